//! Verdicts as columns.

use fragtrack_core::reason;
use fragtrack_core::track::tracker::Tracker;
use fragtrack_core::track::{Class, Verdict};

/// No value, in the columns of codes.
pub(super) const NONE: u8 = u8::MAX;

/// One verdict a row; the columns are of equal length.
#[derive(Default)]
pub struct Verdicts {
    /// Number of the frame.
    pub frame: Vec<u64>,
    /// Number of the connection; 0 is none.
    pub connection: Vec<u64>,
    /// Code of the class.
    pub class: Vec<u8>,
    /// 0 original, 1 reply, or 255.
    pub direction: Vec<u8>,
    /// Protocol and state of the connection; 255 as state: none.
    pub state: Vec<(u8, u8)>,
    /// Code of the reason; 0 is none. For fragments that of reassembly.
    pub reason: Vec<u8>,
    /// What the packet has.
    pub got: Vec<Option<u32>>,
    /// What it was held against.
    pub bound: Vec<Option<u32>>,
}

impl Verdicts {
    #[inline(always)]
    pub(super) fn push(&mut self, number: u64, verdict: &Verdict, tracker: &Tracker) {
        let flow = verdict.slot.and_then(|slot| tracker.flow(slot));
        self.frame.push(number);
        self.connection.push(verdict.connection);
        self.class.push(verdict.class as u8);
        self.direction.push(verdict.direction.map_or(NONE, |direction| direction as u8));
        self.state.push(flow.map_or((0, NONE), |flow| (flow.protocol, flow.state)));
        self.reason.push(verdict.why.map_or(0, |why| why.reason as u8));
        self.got.push(verdict.why.and_then(|why| why.got));
        self.bound.push(verdict.why.and_then(|why| why.bound));
    }

    /// A fragment that did not get as far as tracking.
    pub(super) fn push_fragment(&mut self, number: u64, class: Class, reason: Option<reason::Reason>) {
        self.frame.push(number);
        self.connection.push(0);
        self.class.push(class as u8);
        self.direction.push(NONE);
        self.state.push((0, NONE));
        self.reason.push(reason.map_or(0, reason::Reason::code));
        self.got.push(None);
        self.bound.push(None);
    }

    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.frame.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.frame.is_empty()
    }
}
