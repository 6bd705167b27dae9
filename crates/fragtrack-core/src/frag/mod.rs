//! Fragment queues: from fragments and times to whole datagrams and reasons.

mod check;
pub mod held;
pub mod index;
pub mod key;
pub mod order;
mod place;
pub mod policy;
pub mod queue;
mod reclaim;
pub mod rules;
pub mod table;
mod time;
pub mod whole;
