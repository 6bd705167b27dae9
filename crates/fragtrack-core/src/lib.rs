//! The engine of fragtrack: bytes and times in, whole datagrams and reasons out.
//!
//! Nothing in this crate opens a file, reads a clock, logs or draws random numbers: the same input
//! gives the same output, byte for byte. The modules in the order of the data:
//!
//! | module | takes → gives |
//! | --- | --- |
//! | [`frame`] | what the capture layer hands over: one record, by position |
//! | [`wire`] | frame → fragment, or a reason |
//! | [`frag`] | fragment + time → held, whole datagram, or a reason |
//! | [`build`] | a finished queue → the bytes of the whole datagram |
//! | [`engine`] | one staged frame through all of it, events out |
//! | [`blocks`] | batches of frames, staged a block ahead of the engine |
//! | [`event`] | what came out, as views that borrow |

pub mod blocks;
pub mod build;
pub mod config;
pub mod engine;
pub mod event;
pub mod frag;
pub mod frame;
pub mod icmp;
pub mod prefetch;
pub mod reason;
mod stage;
pub mod stats;
pub mod track;
pub mod wire;
pub mod zeek;

pub use config::Config;
pub use engine::Engine;
pub use frame::{Frame, LinkType};
pub use reason::Reason;
