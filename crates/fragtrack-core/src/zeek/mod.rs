//! The Zeek view: a flow table of its own that observes packets and judges none.
//!
//! It differs from connection tracking in most rules. Any packet opens a flow, a lone RST too; each side of a TCP
//! connection has its own state; roles are flipped where the first packet seems to come from the responder; timeouts
//! are short. What comes out are the rows of a conn.log. The rules in words are those of
//! `fragtrack.reference.zeek` in Python, which gives the same rows.
//!
//! | module | holds |
//! | --- | --- |
//! | [`segment`] | what is needed of a packet |
//! | [`config`] | settings |
//! | [`history`] | the letters of a history |
//! | `stream` | where one side's payload has gaps |
//! | `endpoint` | one side of a TCP connection: state, numbers |
//! | `tcp` | a TCP connection: one packet, gaps, the close |
//! | `states` | what a packet does to the states of both sides |
//! | `flow` | a flow: roles, counters, timers |
//! | [`flows`] | all flows: table, clock, bound |
//! | [`row`] | a flow that ended |

pub mod config;
mod endpoint;
mod flow;
pub mod flows;
pub mod history;
pub mod row;
pub mod segment;
mod states;
mod stream;
mod tcp;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use flows::{Counters, Flows};
pub use row::{ConnState, Row};
pub use segment::Segment;

/// The two roles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Orig,
    Resp,
}

impl Role {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Orig => Self::Resp,
            Self::Resp => Self::Orig,
        }
    }
}

/// Something of both roles.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Pair<T> {
    pub(crate) orig: T,
    pub(crate) resp: T,
}

impl<T> Pair<T> {
    #[inline(always)]
    pub(crate) const fn of(&self, role: Role) -> &T {
        match role {
            Role::Orig => &self.orig,
            Role::Resp => &self.resp,
        }
    }

    #[inline(always)]
    pub(crate) const fn of_mut(&mut self, role: Role) -> &mut T {
        match role {
            Role::Orig => &mut self.orig,
            Role::Resp => &mut self.resp,
        }
    }

    /// That of a role, and that of the other one.
    #[inline(always)]
    pub(crate) const fn both_mut(&mut self, role: Role) -> (&mut T, &mut T) {
        match role {
            Role::Orig => (&mut self.orig, &mut self.resp),
            Role::Resp => (&mut self.resp, &mut self.orig),
        }
    }

    pub(crate) const fn swap(&mut self) {
        core::mem::swap(&mut self.orig, &mut self.resp);
    }
}
