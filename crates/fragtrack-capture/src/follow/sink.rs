//! Where the events of reassembly go: whole datagrams to the tracker.

use fragtrack_core::event::{Atomic, Datagram, GivenUp, Sink};
use fragtrack_core::reason::Reason;
use fragtrack_core::track::tracker::Tracker;
use fragtrack_core::track::verdict::Why;
use fragtrack_core::track::{self, Class, Packet};
use fragtrack_core::zeek;

use super::columns::Verdicts;
use super::see;

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
    pub(super) zeek: Option<&'a mut zeek::Flows>,
    pub(super) scratch: &'a mut Vec<u8>,
    /// The fragment, from its IP header on.
    pub(super) bytes: &'a [u8],
    pub(super) zone: u64,
    pub(super) time: i64,
    pub(super) number: u64,
}

impl Whole<'_> {
    /// Follows a packet that is not staged.
    fn follow(&mut self, bytes: &[u8], fragmented: bool) {
        let mut packet = Packet::lost(Why::bare(track::Reason::Header));
        self.tracker.stage(bytes, self.zone, &mut packet);
        packet.fragmented = fragmented;
        let verdict = self.tracker.follow(&packet, bytes, self.time, self.number);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.push(self.number, &verdict, self.tracker);
        }
        if let Some(flows) = &mut self.zeek {
            see(flows, bytes, &verdict, self.time);
        }
    }

    fn stopped(&mut self, class: Class, reason: Option<Reason>) {
        self.tracker.see_fragment(class, self.time);
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.push_fragment(self.number, class, reason);
        }
    }

    fn whole(&mut self) {
        let packet = core::mem::take(self.scratch);
        self.follow(&packet, true);
        *self.scratch = packet;
    }
}

impl Sink for Whole<'_> {
    fn pass(&mut self, _at: usize) {
        self.follow(self.bytes, false);
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
