//! Connection tracking with the verdicts of the kernel's `nf_conntrack`: packets and times in, verdicts out.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`packet`] | a packet from its IP header on → addresses, ports and what its protocol needs, or a fault |
//! | `protocols` | which protocol takes a packet, and what it may answer |
//! | [`states`], `tcp`, `window` | the TCP state table; its special cases; which numbers are within the window |
//! | `sctp`, `simple` | SCTP; UDP, UDP-Lite, GRE, ICMP and the rest |
//! | [`flow`], [`flows`] | one connection, in two cache lines; many, and how they are found |
//! | [`timers`] | when connections have to be looked at again |
//! | [`tracker`], `time` | the order of things for one packet; what time and a full table end |
//! | [`row`] | connections as they were at some time |
//! | [`verdict`], [`config`] | what comes out; settings |

pub mod config;
pub mod flow;
pub mod flows;
pub mod icmp;
pub mod packet;
mod protocols;
pub mod row;
mod sctp;
pub mod segment;
mod simple;
pub mod states;
pub mod stats;
mod tcp;
mod time;
pub mod timers;
pub mod tracker;
pub mod verdict;
mod window;

pub use config::Config;
pub use packet::Packet;
pub use tracker::Tracker;
pub use verdict::{Class, Reason, Verdict};
