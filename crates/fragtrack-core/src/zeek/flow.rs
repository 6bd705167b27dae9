//! A flow: packets between two endpoints, counted by role, and the timers that end it.

use super::config::Config;
use super::history::{History, Once, Tally};
use super::row::{ConnState, Row, uid};
use super::segment::{ICMP, ICMPV6, Segment, TCP, UDP};
use super::tcp::Tcp;
use super::{Pair, Role};
use crate::frag::key::{Multilinear, SipHash};

pub(super) const NEVER: i64 = i64::MAX;
const BROADCAST: u128 = 0xffff_ffff;

/// Address, and port or what stands for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Side {
    pub(super) address: u128,
    pub(super) port: u16,
}

/// The endpoints of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides {
    pub(super) source: Side,
    pub(super) destination: Side,
    /// Nothing can answer it: packets of the other direction make another flow.
    pub(super) one_way: bool,
}

/// The type that answers an ICMP message, or that it answers.
const fn counterpart(protocol: u8, kind: u16) -> Option<u16> {
    Some(match (protocol, kind) {
        (ICMP, 8) => 0,
        (ICMP, 0) => 8,
        (ICMP, 13 | 15 | 17) | (ICMPV6, 128 | 130 | 133 | 135 | 139 | 144) => kind + 1,
        (ICMP, 14 | 16 | 18) | (ICMPV6, 129 | 131 | 134 | 136 | 140 | 145) => kind - 1,
        (ICMP, 9) => 10,
        (ICMP, 10) => 9,
        _ => return None,
    })
}

/// Whether nobody sends such an ICMP message unasked.
const fn is_reply(protocol: u8, kind: u16) -> bool {
    matches!((protocol, kind), (ICMP, 0 | 14 | 16 | 18) | (ICMPV6, 129 | 140 | 145))
}

impl Sides {
    #[inline(always)]
    pub(super) const fn of(packet: &Segment) -> Self {
        let protocol = packet.protocol as u16;
        let (sport, dport, one_way) = match packet.protocol {
            TCP | UDP => (packet.sport, packet.dport, false),
            ICMP | ICMPV6 => match counterpart(packet.protocol, packet.sport) {
                Some(other) => (packet.sport, other, false),
                None => (packet.sport, packet.dport, true),
            },
            _ => (protocol, protocol, false),
        };
        Self {
            source: Side { address: packet.src, port: sport },
            destination: Side { address: packet.dst, port: dport },
            one_way,
        }
    }

    /// The same for both directions, unless it is one-way.
    #[inline(always)]
    pub(super) fn hash(&self, packet: &Segment, hash: &Multilinear) -> u32 {
        let Self { source, destination, one_way } = *self;
        let swap = !one_way && destination < source;
        let (a, b) = if swap { (destination, source) } else { (source, destination) };
        let ports = u64::from(a.port) << 48 | u64::from(b.port) << 32 | u64::from(packet.protocol);
        if packet.version == 4 {
            hash.hash([(a.address as u64) << 32 | (b.address as u64 & 0xffff_ffff), ports, packet.zone])
        } else {
            let halves = |address: u128| [(address >> 64) as u64, address as u64];
            let ([a0, a1], [b0, b1]) = (halves(a.address), halves(b.address));
            hash.hash([a0, a1, b0, b1, ports, packet.zone])
        }
    }
}

/// The timers of a flow; those of one time act in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    Attempt,
    Close,
    Expire,
    Inactivity,
    Partial,
    Reset,
}

pub(super) const TIMERS: [Timer; 6] =
    [Timer::Attempt, Timer::Close, Timer::Expire, Timer::Inactivity, Timer::Partial, Timer::Reset];

/// When which timer is due, or [`NEVER`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    pub(super) attempt: i64,
    pub(super) close: i64,
    pub(super) expire: i64,
    pub(super) inactivity: i64,
    pub(super) partial: i64,
    pub(super) reset: i64,
}

impl Timers {
    const fn resting(inactivity: i64) -> Self {
        Self { attempt: NEVER, close: NEVER, expire: NEVER, inactivity, partial: NEVER, reset: NEVER }
    }

    /// Those of a connection that closed: all others are off.
    pub(super) const fn closing(&self, close: i64) -> Self {
        Self { close, ..Self::resting(self.inactivity) }
    }

    #[inline(always)]
    pub(super) fn first(&self) -> i64 {
        let early = self.attempt.min(self.close).min(self.expire);
        early.min(self.inactivity).min(self.partial).min(self.reset)
    }

    pub(super) const fn of_mut(&mut self, timer: Timer) -> &mut i64 {
        match timer {
            Timer::Attempt => &mut self.attempt,
            Timer::Close => &mut self.close,
            Timer::Expire => &mut self.expire,
            Timer::Inactivity => &mut self.inactivity,
            Timer::Partial => &mut self.partial,
            Timer::Reset => &mut self.reset,
        }
    }
}

/// What all flows have.
///
/// Invariant: `first <= last`; the inactivity timer is on.
#[derive(Debug)]
pub(super) struct Base {
    /// Originator and responder.
    pub(super) ends: Pair<Side>,
    pub(super) zone: u64,
    /// In the order of opening, from 1.
    pub(super) number: u64,
    /// Times of the first packet, and of the last one that counts for the duration.
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) timers: Timers,
    /// Rest after which it ends.
    inactivity: i64,
    packets: Pair<u64>,
    octets: Pair<u64>,
    pub(super) missed: u64,
    /// For what the queue has it at present.
    pub(super) planned: i64,
    pub(super) hash: u32,
    /// The flows whose last packets came before and after.
    pub(super) older: u32,
    pub(super) newer: u32,
    pub(super) protocol: u8,
    pub(super) version: u8,
    flipped: bool,
    pub(super) history: History,
}

impl Base {
    /// Whether packets with these endpoints belong to it.
    #[inline(always)]
    pub(super) fn is_between(&self, sides: &Sides, packet: &Segment) -> bool {
        let Pair { orig, resp } = self.ends;
        let along = orig == sides.source && resp == sides.destination;
        let back = orig == sides.destination && resp == sides.source && !sides.one_way;
        (along || back) && (self.zone, self.protocol, self.version) == (packet.zone, packet.protocol, packet.version)
    }

    #[inline(always)]
    pub(super) fn role(&self, source: &Side) -> Role {
        if *source == self.ends.orig { Role::Orig } else { Role::Resp }
    }

    #[inline(always)]
    pub(super) fn count(&mut self, role: Role, packet: &Segment) {
        *self.packets.of_mut(role) += 1;
        let octets = self.octets.of_mut(role);
        *octets = octets.saturating_add(packet.length.into());
    }

    /// Swaps the roles.
    pub(super) const fn swap(&mut self) {
        self.ends.swap();
        self.packets.swap();
        self.octets.swap();
        self.flipped = !self.flipped;
    }

    /// Sets how long it may rest.
    pub(super) const fn rest(&mut self, timeout: i64) {
        if timeout != self.inactivity {
            self.inactivity = timeout;
            self.timers.inactivity = self.last.saturating_add(timeout);
        }
    }

    /// Lets the inactivity timer act, that was due at a time; whether the flow ends.
    pub(super) const fn is_idle(&mut self, due: i64) -> bool {
        self.timers.inactivity = self.last.saturating_add(self.inactivity);
        self.timers.inactivity <= due
    }
}

/// What flows without a connection have besides.
#[derive(Debug)]
struct Plain {
    sizes: Pair<Option<u64>>,
    checksums: Pair<Tally>,
}

impl Plain {
    fn deliver(&mut self, base: &mut Base, role: Role, packet: &Segment, time: i64) {
        let udp = packet.protocol == UDP;
        let known = matches!(packet.protocol, UDP | ICMP | ICMPV6);
        let bad = packet.bad_checksum && known;
        if bad && udp && self.checksums.of_mut(role).more() {
            base.history.add(role, b'C');
        }
        if !bad || udp {
            base.count(role, packet);
        }
        if bad {
            return;
        }
        base.last = base.last.max(time);
        if known {
            let size = self.sizes.of_mut(role);
            *size = Some(size.unwrap_or(0).saturating_add(packet.payload.into()));
        }
        if udp {
            base.history.once(role, Once::Data, b'D');
        }
    }

    const fn state(&self, protocol: u8) -> ConnState {
        match (protocol, self.sizes.orig.is_some(), self.sizes.resp.is_some()) {
            (UDP, true, true) => ConnState::SF,
            (UDP, true, false) => ConnState::S0,
            (UDP, false, true) => ConnState::SHR,
            _ => ConnState::OTH,
        }
    }
}

#[derive(Debug)]
enum Kind {
    Plain(Plain),
    Tcp(Box<Tcp>),
}

/// A flow.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) base: Base,
    kind: Kind,
}

impl Flow {
    /// Opened by a packet, which is not counted yet.
    pub(super) fn new(packet: &Segment, sides: &Sides, number: u64, time: i64, hash: u32, config: &Config) -> Self {
        let inactivity = match packet.protocol {
            TCP | UDP => config.udp_inactivity, // TCP: until the handshake is over
            ICMP | ICMPV6 => config.icmp_inactivity,
            _ => config.unknown_ip_inactivity,
        };
        let tcp = packet.protocol == TCP;
        let mut base = Base {
            ends: Pair { orig: sides.source, resp: sides.destination },
            zone: packet.zone,
            number,
            first: time,
            last: time,
            timers: Timers::resting(time.saturating_add(inactivity)),
            inactivity,
            packets: Pair::default(),
            octets: Pair::default(),
            missed: 0,
            planned: NEVER,
            hash,
            older: crate::frag::index::NIL,
            newer: crate::frag::index::NIL,
            protocol: packet.protocol,
            version: packet.version,
            flipped: false,
            history: History::new(),
        };
        if tcp {
            base.timers.expire = time.saturating_add(config.tcp_syn_timeout);
        }
        let broadcast = packet.version == 4 && packet.dst == BROADCAST;
        if starts_at_server(packet, config) && !broadcast {
            base.swap();
            base.history.flip();
        }
        let kind = if tcp {
            Kind::Tcp(Box::new(Tcp::new()))
        } else {
            Kind::Plain(Plain { sizes: Pair::default(), checksums: Pair::default() })
        };
        Self { base, kind }
    }

    /// Whether a packet starts another connection between the same endpoints.
    #[inline(always)]
    pub(super) fn is_reused(&self, packet: &Segment) -> bool {
        match &self.kind {
            Kind::Tcp(tcp) => tcp.is_reused(packet),
            Kind::Plain(_) => false,
        }
    }

    #[inline(always)]
    pub(super) fn deliver(&mut self, packet: &Segment, sides: &Sides, time: i64, config: &Config) {
        match &mut self.kind {
            Kind::Tcp(tcp) => tcp.deliver(&mut self.base, packet, sides, time, config),
            Kind::Plain(plain) => {
                let role = self.base.role(&sides.source);
                plain.deliver(&mut self.base, role, packet, time);
            }
        }
    }

    /// Lets a timer act that was due at a time; whether the flow ends.
    pub(super) fn fire(&mut self, timer: Timer, due: i64, now: i64, config: &Config) -> bool {
        match (&mut self.kind, timer) {
            (_, Timer::Inactivity) => self.base.is_idle(due),
            (Kind::Tcp(tcp), _) => tcp.fire(&mut self.base, timer, now, config),
            (Kind::Plain(_), _) => false,
        }
    }

    /// Its row.
    pub(super) fn row(&self, key: &SipHash) -> Row {
        let Self { base, kind } = self;
        let lasted = base.last.saturating_sub(base.first);
        let (state, sizes) = match kind {
            Kind::Tcp(tcp) => (tcp.state(&base.history), tcp.sizes()),
            Kind::Plain(plain) => {
                let sizes = Pair { orig: plain.sizes.orig.unwrap_or(0), resp: plain.sizes.resp.unwrap_or(0) };
                (plain.state(base.protocol), sizes)
            }
        };
        let Pair { orig, resp } = base.ends;
        let opener = if base.flipped { [resp, orig] } else { [orig, resp] };
        Row {
            ts: base.first,
            uid: uid(key, base, opener),
            version: base.version,
            ip_proto: base.protocol,
            orig_h: orig.address,
            orig_p: orig.port,
            resp_h: resp.address,
            resp_p: resp.port,
            duration: (lasted > 0).then_some(lasted),
            orig_bytes: (lasted > 0).then_some(sizes.orig),
            resp_bytes: (lasted > 0).then_some(sizes.resp),
            conn_state: state,
            missed_bytes: base.missed,
            history: base.history,
            orig_pkts: base.packets.orig,
            orig_ip_bytes: base.octets.orig,
            resp_pkts: base.packets.resp,
            resp_ip_bytes: base.octets.resp,
        }
    }

    /// Whether the invariants hold.
    pub(super) fn check(&self) -> bool {
        let sound = match &self.kind {
            Kind::Tcp(tcp) => tcp.check(),
            Kind::Plain(_) => true,
        };
        sound && self.base.first <= self.base.last && self.base.timers.inactivity != NEVER
    }
}

/// Whether the first packet comes from what is likely the responder.
fn starts_at_server(packet: &Segment, config: &Config) -> bool {
    match packet.protocol {
        TCP => {
            let servers = &config.tcp_server_ports;
            if packet.asks() || !servers.contains(packet.sport) {
                return false;
            }
            // With two likely ports a SYN/ACK may be a scan, and the lower port is likelier.
            !servers.contains(packet.dport) || (!packet.has(super::segment::SYN) && packet.sport < packet.dport)
        }
        UDP => config.udp_server_ports.contains(packet.sport) && !config.udp_server_ports.contains(packet.dport),
        _ => config.icmp_by_type && is_reply(packet.protocol, packet.sport),
    }
}
