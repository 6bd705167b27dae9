//! Where the events of reassembly go: whole datagrams to the tracker.

use fragtrack_core::event::{Atomic, Datagram, GivenUp, Sink};
use fragtrack_core::reason::Reason;
use fragtrack_core::track::tracker::Tracker;
use fragtrack_core::track::{Class, Verdict};

use super::columns::Verdicts;
use super::follow_now;

/// Takes nothing: datagrams that ran out are counted by the engine.
pub(super) struct Nothing;

impl Sink for Nothing {
    fn pass(&mut self, _at: usize) {}
    fn held(&mut self, _at: usize) {}
    fn dropped(&mut self, _at: usize, _reason: Reason) {}
    fn atomic(&mut self, _at: usize, _datagram: &Atomic<'_>) {}
    fn complete(&mut self, _at: usize, _datagram: &Datagram<'_>) {}
    fn given_up(&mut self, _datagram: &GivenUp<'_>) {}
}

/// Takes what becomes of one fragment.
pub(super) struct Whole<'a> {
    pub(super) tracker: &'a mut Tracker,
    pub(super) verdicts: Option<&'a mut Verdicts>,
    pub(super) scratch: &'a mut Vec<u8>,
    /// The fragment, from its IP header on.
    pub(super) bytes: &'a [u8],
    pub(super) zone: u64,
    pub(super) time: i64,
    pub(super) number: u64,
}

impl Whole<'_> {
    fn told(&mut self, verdict: &Verdict) {
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.push(self.number, verdict, self.tracker);
        }
    }

    fn stopped(&mut self, class: Class, reason: Option<Reason>) {
        self.tracker.see_fragment(class, self.time);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.push_fragment(self.number, class, reason);
        }
    }

    fn whole(&mut self) {
        let verdict = follow_now(self.tracker, self.scratch, self.zone, true, self.time, self.number);
        self.told(&verdict);
    }
}

impl Sink for Whole<'_> {
    fn pass(&mut self, _at: usize) {
        let verdict = follow_now(self.tracker, self.bytes, self.zone, false, self.time, self.number);
        self.told(&verdict);
    }

    fn held(&mut self, _at: usize) {
        self.stopped(Class::Held, None);
    }

    fn dropped(&mut self, _at: usize, reason: Reason) {
        self.stopped(Class::Dropped, Some(reason));
    }

    fn atomic(&mut self, _at: usize, datagram: &Atomic<'_>) {
        self.scratch.clear();
        self.scratch.extend_from_slice(datagram.packet());
        self.whole();
    }

    fn complete(&mut self, _at: usize, datagram: &Datagram<'_>) {
        self.scratch.clear();
        datagram.write_packet(self.scratch);
        self.whole();
    }

    fn given_up(&mut self, _datagram: &GivenUp<'_>) {}
}
