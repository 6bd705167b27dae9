//! The order of things for one packet (`nf_conntrack_in`, `resolve_normal_ct`, `nf_conntrack_confirm`).

use super::config::{Checksum, Config};
use super::flow::{Flow, bit};
use super::flows::{CHAIN, Flows};
use super::packet::{Decoder, Packet, What};
use super::protocols::{Handled, handle};
use super::row::{Event, Row};
use super::states::State;
use super::stats::Totals;
use super::timers::Timers;
use super::verdict::{Class, Direction, End, Events, Reason, Verdict, Why};

/// What is recorded besides verdicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Connections that end.
    pub rows: bool,
    /// What is announced.
    pub events: bool,
}

/// Follows connections.
///
/// Invariant: the timers hold exactly the slots of live connections; each stands at most its protocol's shortest timeout
/// ahead, so that none is looked at too late.
pub struct Tracker {
    pub(super) config: Config,
    pub(super) decoder: Decoder,
    pub(super) flows: Flows,
    pub(super) timers: Timers,
    /// Highest time seen.
    pub(super) now: i64,
    /// When the second begins that is swept next.
    pub(super) turn: i64,
    pub(super) begun: bool,
    /// Number of the connection made last.
    pub(super) number: u64,
    pub(super) totals: Totals,
    pub(super) record: Record,
    pub(super) ended: Vec<Row>,
    pub(super) events: Vec<Event>,
    /// The table was full: at the next second, those that may go do.
    pub(super) squeeze: bool,
    /// Nothing in the table may go, as was found when it was squeezed: no need to look again.
    pub(super) settled: bool,
    pub(super) due: Vec<u32>,
    pub(super) near: Vec<u32>,
}

impl Tracker {
    /// A tracker that has seen nothing. `header_checksum`: IPv4 header checksums count, too.
    #[must_use]
    pub fn new(config: Config, header_checksum: bool, record: Record) -> Self {
        Self {
            decoder: Decoder::new(config.hash_key, config.checksum, header_checksum),
            flows: Flows::new(config.hash_key, config.max),
            timers: Timers::default(),
            now: i64::MIN,
            turn: i64::MIN,
            begun: false,
            number: 0,
            totals: Totals::default(),
            record,
            ended: Vec::new(),
            events: Vec::new(),
            squeeze: false,
            settled: false,
            due: Vec::new(),
            near: Vec::new(),
            config,
        }
    }

    /// Decodes a packet, and asks for what following it will need of the index.
    #[inline(always)]
    pub fn stage(&self, bytes: &[u8], zone: u64, packet: &mut Packet) {
        self.decoder.decode(bytes, zone, packet);
        self.flows.prefetch_index(packet.hash);
    }

    /// Whether packets are summed up, so that all their bytes are read.
    #[must_use]
    pub fn sums(&self) -> bool {
        self.config.checksum != Checksum::Ignore
    }

    /// Asks for the connection of a staged packet.
    #[inline(always)]
    pub fn glance(&self, packet: &Packet) {
        self.flows.prefetch_flow(packet.hash);
    }

    /// One packet: its verdict. `bytes` are those it was decoded from.
    #[inline(always)]
    pub fn follow(&mut self, packet: &Packet, bytes: &[u8], time: i64, frame: u64) -> Verdict {
        self.pass_time(time);
        self.totals.packets = self.totals.packets.wrapping_add(1);
        let verdict = match packet.what {
            What::Lost(why) => Verdict::alone(Class::Invalid, Some(why)),
            What::Exempt(kind) => Verdict::alone(Class::Untracked, Some(Why::got(Reason::Discovery, u32::from(kind)))),
            What::Error { to_sender, alike } => self.relate(packet, to_sender, alike),
            _ => self.track(packet, bytes, time, frame),
        };
        self.totals.see(&verdict);
        verdict
    }

    /// A frame that is nobody's: time passes.
    #[inline(always)]
    pub fn pass_by(&mut self, time: i64) {
        self.pass_time(time);
    }

    /// A fragment that waits or was refused: time passes, and it is counted.
    pub fn see_fragment(&mut self, class: Class, time: i64) {
        self.pass_time(time);
        self.totals.see_class(class);
    }

    /// An ICMP error about a connection (`nf_conntrack_inet_error`).
    #[inline(never)]
    fn relate(&mut self, packet: &Packet, to_sender: bool, alike: bool) -> Verdict {
        let mut events = Events::default();
        let Some(slot) = self.look_up(packet, &mut events) else {
            self.totals.counters.icmp_error = self.totals.counters.icmp_error.wrapping_add(1);
            let why = Some(Why::bare(Reason::InnerUnknown));
            return Verdict { events, ..Verdict::alone(Class::Invalid, why) };
        };
        let id = self.id(slot);
        let quoted = self.flows.at(slot).map(|flow| flow.direction(packet.swapped));
        if !to_sender {
            self.totals.counters.icmp_error = self.totals.counters.icmp_error.wrapping_add(1);
            let why = Some(Why::bare(Reason::OuterAddress));
            return Verdict { connection: id, slot: Some(slot), ..Verdict::alone(Class::Invalid, why) };
        }
        // The error goes against the packet that it is about.
        let direction = quoted.map(|quoted| if alike { quoted } else { quoted.other() });
        Verdict { direction, connection: id, slot: Some(slot), ..Verdict::alone(Class::Related, None) }
    }

    /// The connection of a packet, if its time is not over.
    #[inline(always)]
    fn look_up(&mut self, packet: &Packet, events: &mut Events) -> Option<u32> {
        let slot = self.flows.find(&packet.key, packet.hash)?;
        if self.flows.at(slot)?.deadline <= self.now {
            self.expire(slot);
            events.add(Events::DESTROY);
            return None;
        }
        Some(slot)
    }

    #[inline(always)]
    fn track(&mut self, packet: &Packet, bytes: &[u8], time: i64, frame: u64) -> Verdict {
        let mut events = Events::default();
        let Some(slot) = self.look_up(packet, &mut events) else {
            return self.begin(packet, bytes, time, frame, events, None);
        };
        self.totals.counters.found = self.totals.counters.found.wrapping_add(1);
        let (config, now) = (&self.config, self.now);
        let Some(flow) = self.flows.at_mut(slot) else { return Verdict::alone(Class::Invalid, None) };
        let direction = flow.direction(packet.swapped);
        let answered = flow.has(bit::SEEN_REPLY);
        let class = if direction == Direction::Reply || answered { Class::Established } else { Class::New };
        flow.latest = flow.latest.max(time);
        if packet.fragmented {
            flow.fragments = flow.fragments.saturating_add(1);
        }
        let handled = handle(flow, direction, packet, bytes, false, config, now);
        if self.settled && flow.may_go() {
            self.settled = false;
        }
        let (mut changed, why) = match handled {
            Handled::Accepted { changed } => (changed, None),
            Handled::Noted { changed, note } => (changed, Some(note)),
            Handled::Unrefreshed { changed } => (changed, None),
            Handled::Ignored(why) => (false, Some(why)),
            Handled::Invalid(why) => {
                flow.invalid = flow.invalid.saturating_add(1);
                let connection = self.id(slot);
                return Verdict { connection, slot: Some(slot), events, ..Verdict::alone(Class::Invalid, Some(why)) };
            }
            Handled::Kill(why) => {
                let connection = self.id(slot);
                self.end(slot, End::Reset, time, frame);
                events.add(Events::DESTROY);
                let alone = Verdict::alone(class, Some(why));
                return Verdict { direction: Some(direction), connection, events, ..alone };
            }
            Handled::Repeat(why) => {
                let end = if flow.tcp() == State::Close { End::Reset } else { End::Closed };
                self.end(slot, end, time, frame);
                events.add(Events::DESTROY);
                return self.begin(packet, bytes, time, frame, events, Some(why));
            }
        };
        if flow.has(bit::UNANNOUNCED) {
            flow.bits &= !bit::UNANNOUNCED;
            changed = true;
        }
        if direction == Direction::Reply && !answered {
            flow.bits |= bit::SEEN_REPLY;
            changed = true;
        }
        let connection = self.id(slot);
        if changed {
            events.add(Events::UPDATE);
            self.announce(Events::UPDATE, slot, time, frame);
        }
        Verdict { class, direction: Some(direction), connection, slot: Some(slot), why, events }
    }

    /// A packet without a connection: it may begin one. `before`: why it has none any more.
    #[inline(never)]
    fn begin(
        &mut self,
        packet: &Packet,
        bytes: &[u8],
        time: i64,
        frame: u64,
        mut events: Events,
        before: Option<Why>,
    ) -> Verdict {
        let refuse = |why| Verdict { events, ..Verdict::alone(Class::Invalid, Some(why)) };
        if self.flows.len() >= self.config.max as usize && !self.drop_early(packet.hash, frame) {
            let why = Why::new(Reason::TableFull, self.flows.len() as u32, self.config.max);
            self.totals.counters.drop = self.totals.counters.drop.wrapping_add(1);
            self.squeeze = true;
            return refuse(why);
        }
        let mut flow = Flow::new(&packet.key, packet.swapped, time);
        let handled = handle(&mut flow, Direction::Original, packet, bytes, true, &self.config, self.now);
        let note = match handled {
            Handled::Accepted { .. } => None,
            Handled::Noted { note, .. } => Some(note),
            Handled::Invalid(why) => return refuse(why),
            Handled::Ignored(why) | Handled::Kill(why) | Handled::Repeat(why) => Some(why),
            Handled::Unrefreshed { .. } => None,
        };
        let chain = self.flows.chain(packet.hash);
        if chain >= CHAIN {
            let counters = &mut self.totals.counters;
            counters.insert_failed = counters.insert_failed.wrapping_add(1);
            counters.drop = counters.drop.wrapping_add(1);
            return refuse(Why::new(Reason::Chain, chain as u32, CHAIN as u32));
        }
        flow.fragments = u32::from(packet.fragmented);
        flow.bits &= !bit::UNANNOUNCED;
        self.number = self.number.wrapping_add(1);
        flow.number = self.number as u32;
        self.totals.see_made(flow.protocol);
        let look = self.next_look(&flow);
        let slot = self.flows.insert(flow, &packet.key, packet.hash);
        self.settled = false;
        self.timers.add(slot, look);
        let counters = &mut self.totals.counters;
        counters.insert = counters.insert.wrapping_add(1);
        counters.new = counters.new.wrapping_add(1);
        events.add(Events::NEW);
        self.announce(Events::NEW, slot, time, frame);
        Verdict {
            class: Class::New,
            direction: Some(Direction::Original),
            connection: self.number,
            slot: Some(slot),
            why: note.or(before),
            events,
        }
    }

    /// A connection is over.
    pub(super) fn end(&mut self, slot: u32, end: End, time: i64, frame: u64) {
        if self.record.rows || self.record.events {
            let Some(row) = self.row(slot) else { return };
            let row = Row { end, left: None, ..row };
            if self.record.rows {
                self.ended.push(row);
            }
            if self.record.events {
                self.events.push(Event { kind: Events::DESTROY, time, frame, row });
            }
        }
        self.totals.see_end(end);
        self.timers.remove(slot);
        self.flows.remove(slot);
        let counters = &mut self.totals.counters;
        counters.delete = counters.delete.wrapping_add(1);
    }

    #[inline(always)]
    fn announce(&mut self, kind: u8, slot: u32, time: i64, frame: u64) {
        if self.record.events
            && let Some(row) = self.row(slot)
        {
            self.events.push(Event { kind, time, frame, row });
        }
    }

    /// Number of the connection in a slot.
    #[inline(always)]
    #[must_use]
    pub fn id(&self, slot: u32) -> u64 {
        let low = self.flows.at(slot).map_or(0, |flow| flow.number);
        let number = self.number & !0xffff_ffff | u64::from(low);
        // Its upper half is that of the newest connection, or one less.
        if number > self.number { number.wrapping_sub(1 << 32) } else { number }
    }

    /// The connection in a slot as it is now.
    #[must_use]
    pub fn row(&self, slot: u32) -> Option<Row> {
        let flow = *self.flows.at(slot)?;
        let left = flow.deadline.saturating_sub(self.now).max(0);
        Some(Row { flow, key: self.flows.key(slot)?, id: self.id(slot), end: flow.end(false), left: Some(left) })
    }

    /// The connection in a slot.
    #[must_use]
    pub fn flow(&self, slot: u32) -> Option<&Flow> {
        self.flows.at(slot)
    }

    /// The slot of a connection by its number.
    #[must_use]
    pub fn slot(&self, id: u64) -> Option<u32> {
        self.flows.live().find(|slot| self.id(*slot) == id)
    }

    /// Connections in the table, in the order in which they were made.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.flows.live().filter_map(|slot| self.row(slot)).collect();
        rows.sort_unstable_by_key(|row| row.id);
        rows
    }

    /// Some connections in the table, from a place on, and where to go on. Between two pages the tracker may be used: a
    /// connection that is there all the time comes exactly once.
    #[must_use]
    pub fn page(&self, from: u32, most: usize) -> (Vec<Row>, Option<u32>) {
        let (slots, next) = self.flows.page(from, most);
        (slots.into_iter().filter_map(|slot| self.row(slot)).collect(), next)
    }

    /// Connections that ended since the last call, in the order of their ending.
    pub fn take_ended(&mut self) -> Vec<Row> {
        core::mem::take(&mut self.ended)
    }

    /// What was announced since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        core::mem::take(&mut self.events)
    }

    /// Highest time seen.
    #[must_use]
    pub const fn now(&self) -> i64 {
        self.now
    }

    /// Connections in the table.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Connections made so far.
    #[must_use]
    pub const fn made(&self) -> u64 {
        self.number
    }

    /// What was counted.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Bytes that the table has.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.flows.memory() + self.timers.memory()
    }

    /// Bytes of it in use: the rest is kept for growth.
    #[must_use]
    pub fn used(&self) -> usize {
        self.flows.used() + self.timers.used()
    }

    /// Asserts all invariants from scratch.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), &'static str> {
        self.flows.check()?;
        if self.timers.check() != Some(self.flows.len()) {
            return Err("timers and connections differ");
        }
        if self.flows.len() > self.config.max as usize {
            return Err("more connections than allowed");
        }
        Ok(())
    }
}
