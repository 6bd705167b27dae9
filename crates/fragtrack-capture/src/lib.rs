//! Capture files: record framing of pcap and pcapng, read and written.
//!
//! [`Reader`] takes bytes, from memory or piece by piece from a stream, and gives
//! [`Frame`](fragtrack_core::frame::Frame)s: where each record stands, how long, when, on what kind
//! of link. [`Writer`] takes records back, unchanged or with other bytes for the frame, and appends
//! them to an output of either format. [`Origins`] holds what the writer must know of the inputs
//! and sections that records come from. None of them knows what is in a frame, or does input or
//! output. The [`Rewriter`](rewrite::Rewriter) puts them together with the engine, the
//! [`Follower`](follow::Follower) its reader with the engine and the tracker.
//!
//! Sources: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng; where they leave room, what
//! libpcap accepts.

mod ahead;
mod damage;
pub mod follow;
mod intake;
mod options;
mod order;
mod origin;
mod pcap;
mod pcapng;
mod reader;
mod resolution;
pub mod rewrite;
#[cfg(test)]
mod testing;
mod writer;

pub use damage::{Damage, Why};
pub use intake::{Buffer, Damaged, Failure};
pub use order::Order;
pub use origin::{Format, Interface, Layout, MAX_INTERFACES, MAX_SNAPLEN, Origin, Origins, Pcap, Unit};
pub use pcapng::MAX_BLOCK;
pub use reader::{Detect, Input, Pause, Reader, Step, Tail};
pub use resolution::Resolution;
pub use writer::{Output, Record, Refused, Writer};
