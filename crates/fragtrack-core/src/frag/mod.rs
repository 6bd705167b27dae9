//! Fragment queues: from fragments and times to whole datagrams and reasons.

pub mod held;
pub mod index;
pub mod key;
pub mod order;
pub mod policy;
pub mod queue;
pub mod reclaim;
pub mod table;
