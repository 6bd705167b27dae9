//! What came out, as views that borrow: nothing is copied until somebody asks for bytes.

use crate::build;
use crate::frag::held::Node;
use crate::frag::queue::Queue;
use crate::frag::table::Table;
use crate::frag::whole::Slice;
use crate::frame::Frame;
use crate::icmp::IcmpError;
use crate::prefetch;
use crate::reason::Reason;
use crate::wire::link::{self, Located};
use crate::wire::{Addresses, Family, Fragment, ipv6};

/// Takes events, in the order of frames; `at` is the frame's place in the batch.
///
/// Queues that end by themselves come before the frame at which that was noticed.
pub trait Sink {
    /// Not a fragment, not IP, not a packet: it passes untouched.
    fn pass(&mut self, at: usize);
    /// A fragment is held.
    fn held(&mut self, at: usize);
    /// A fragment is dropped. If it took a queue with it, that came just before.
    fn dropped(&mut self, at: usize, reason: Reason);
    /// Linux would answer the fragment dropped next with an ICMPv6 parameter problem about `packet`.
    fn problem(&mut self, _at: usize, _code: u8, _pointer: u32, _packet: &[u8]) {}
    /// A fragment that is whole by itself (RFC 6946): the frame passes untouched.
    fn atomic(&mut self, at: usize, datagram: &Atomic<'_>);
    /// The frame completed a datagram.
    fn complete(&mut self, at: usize, datagram: &Datagram<'_>);
    /// A datagram is given up.
    fn given_up(&mut self, datagram: &GivenUp<'_>);
}

/// An address, either family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// IPv4.
    V4(u32),
    /// IPv6.
    V6(u128),
}

/// Who a datagram is from and for, and its identification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Source.
    pub source: Address,
    /// Destination.
    pub destination: Address,
    /// IPv4 protocol; IPv6: next header of the fragment at offset 0, or, without one, of the first that came.
    pub protocol: u8,
    /// Identification.
    pub id: u32,
    /// VLAN tags.
    pub domain: u64,
}

fn wide(addresses: Addresses) -> (Address, Address) {
    let [a, b, c, d] = addresses;
    (Address::V6(u128::from(a) << 64 | u128::from(b)), Address::V6(u128::from(c) << 64 | u128::from(d)))
}

/// The number of a frame, of which only the low half was kept.
const fn number(current: u64, low: u32) -> u64 {
    let number = current & !0xffff_ffff | low as u64;
    if number > current && current >> 32 != 0 { number - (1 << 32) } else { number }
}

/// What a queue and its fragments are looked at through.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) table: &'a Table,
    pub(crate) at: u32,
    pub(crate) queue: &'a Queue,
    pub(crate) segment: &'a [u8],
    pub(crate) current: u64,
}

impl<'a> View<'a> {
    fn record(&self, node: &Node) -> &'a [u8] {
        self.table.held.record(self.segment, node)
    }

    /// Headers of the fragment: from the IP header to the payload.
    fn header(&self, node: &Node) -> &'a [u8] {
        let ip = usize::from(node.ip);
        self.record(node).get(ip..ip + node.header()).unwrap_or(&[])
    }

    /// Time of the first fragment (of the queue's creation if details are not kept).
    fn first_time(&self) -> i64 {
        self.table.details.get(self.at as usize).map_or(self.queue.created, |detail| detail.first_time)
    }

    fn key(&self) -> Key {
        let queue = self.queue;
        if self.table.family == Family::V4 {
            let (source, destination) = queue.addresses4();
            return Key {
                source: Address::V4(source),
                destination: Address::V4(destination),
                protocol: queue.protocol4(),
                id: queue.id,
                domain: queue.domain(),
            };
        }
        let (source, destination) = wide(self.table.addresses(self.at));
        let first = self.table.first_node(queue).map(|node| self.header(node));
        let protocol = first.and_then(|header| header.len().checked_sub(8).and_then(|at| header.get(at)));
        Key {
            source,
            destination,
            protocol: protocol.copied().unwrap_or(queue.opener),
            id: queue.id,
            domain: queue.domain(),
        }
    }
}

/// Bytes at the start of a payload that are asked for ahead of a copy.
const START: usize = 256;

/// A whole datagram.
pub struct Datagram<'a> {
    pub(crate) view: View<'a>,
    pub(crate) slices: &'a [Slice],
    pub(crate) frame: &'a Frame,
    pub(crate) located: Located,
}

impl<'a> Datagram<'a> {
    /// Who it is from and for.
    #[must_use]
    pub fn key(&self) -> Key {
        self.view.key()
    }

    /// Times of the first fragment and of the one that completed it.
    #[must_use]
    pub fn times(&self) -> (i64, i64) {
        (self.view.first_time(), self.frame.time)
    }

    /// Payload bytes: behind the IPv4 header, or behind the unfragmentable part.
    #[must_use]
    pub const fn payload_len(&self) -> usize {
        self.view.queue.len as usize
    }

    /// The ranges it is made of, in order, each with the bytes.
    #[inline(always)]
    pub fn slices(&self) -> impl Iterator<Item = (Slice, &'a [u8])> {
        let View { table, segment, .. } = self.view;
        self.slices.iter().rev().map(move |slice| {
            (*slice, table.held.bytes(segment, slice.place, slice.inside as usize, slice.len() as usize))
        })
    }

    /// Numbers of the frames that supply its bytes, in the order of offsets (one that supplies two ranges
    /// comes twice).
    pub fn frames(&self) -> impl Iterator<Item = u64> {
        let current = self.view.current;
        self.slices.iter().rev().map(move |slice| number(current, slice.frame))
    }

    /// The same, each frame once.
    #[must_use]
    pub fn distinct_frames(&self) -> Vec<u64> {
        let frames: Vec<u64> = self.frames().collect();
        if !self.splits() {
            return frames;
        }
        let mut seen = std::collections::BTreeSet::new();
        frames.into_iter().filter(|number| seen.insert(*number)).collect()
    }

    /// Whether a fragment may supply more than one range (policies that split pieces).
    fn splits(&self) -> bool {
        self.view.table.pieces(self.view.queue).is_some()
    }

    fn first_header(&self) -> &'a [u8] {
        self.view.table.first_node(self.view.queue).map_or(&[], |node| self.view.header(node))
    }

    /// Length of the whole packet.
    #[must_use]
    pub fn packet_len(&self) -> usize {
        let header = self.first_header().len();
        let header = if self.view.table.family == Family::V4 { header } else { header.saturating_sub(8) };
        header + self.payload_len()
    }

    /// Writes the headers of the whole packet.
    pub fn write_header(&self, out: &mut Vec<u8>) {
        let queue = self.view.queue;
        let (first, ecn) = (self.first_header(), build::ecn(queue));
        match self.view.table.family {
            Family::V4 => {
                build::header4(out, first, queue.len, ecn, self.view.table.dont_fragment(self.view.at));
            }
            Family::V6 => build::header6(out, first, queue.len, ecn),
        }
    }

    /// Writes the payload.
    pub fn write_payload(&self, out: &mut Vec<u8>) {
        // Payloads lie far apart: the start of the next one is asked for while this one is copied, up to where
        // the processor's own prefetching has caught on.
        let ask = |bytes: &[u8]| (0..bytes.len().min(START)).step_by(64).for_each(|at| prefetch::read(bytes, at));
        let mut slices = self.slices();
        let mut next = slices.next();
        while let Some((_, bytes)) = next {
            next = slices.next();
            if let Some((_, bytes)) = next {
                ask(bytes);
            }
            out.extend_from_slice(bytes);
        }
    }

    /// Writes the whole packet, from the IP header on.
    pub fn write_packet(&self, out: &mut Vec<u8>) {
        self.write_header(out);
        self.write_payload(out);
    }

    /// Writes the link header of the completing frame, its length fields made right.
    pub fn write_link_header(&self, out: &mut Vec<u8>) {
        let (start, head) = (self.frame.start as usize, usize::from(self.frame.head));
        let bytes = self.view.segment.get(start + head..start + head + self.located.ip).unwrap_or(&[]);
        let from = out.len();
        out.extend_from_slice(bytes);
        if let Some(header) = out.get_mut(from..) {
            link::set_lengths(header, &self.located, self.packet_len());
        }
    }

    /// Length of that link header.
    #[must_use]
    pub const fn link_header_len(&self) -> usize {
        self.located.ip
    }
}

/// An atomic fragment: a whole datagram in one frame, fragment header and all.
pub struct Atomic<'a> {
    pub(crate) addresses: Addresses,
    pub(crate) fragment: &'a Fragment,
    pub(crate) packet: &'a [u8],
}

impl<'a> Atomic<'a> {
    /// Who it is from and for.
    #[must_use]
    pub fn key(&self) -> Key {
        let (source, destination) = wide(self.addresses);
        let fragment = self.fragment;
        Key { source, destination, protocol: fragment.protocol, id: fragment.id, domain: fragment.context }
    }

    /// The packet, from the IP header on, padding cut off.
    #[must_use]
    pub const fn packet(&self) -> &'a [u8] {
        self.packet
    }

    /// What follows the fragment header.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.packet.get(self.fragment.header as usize..).unwrap_or(&[])
    }
}

/// A fragment of a datagram that was given up.
#[derive(Clone, Copy)]
pub struct HeldFrame<'a> {
    /// Its record.
    pub record: &'a [u8],
    /// Which section or input the record is of.
    pub origin: u32,
    /// Number of the frame.
    pub number: u64,
    /// First byte of its payload within the datagram.
    pub offset: u32,
}

/// A datagram that never became whole.
pub struct GivenUp<'a> {
    pub(crate) view: View<'a>,
    pub(crate) reason: Reason,
    pub(crate) icmp: bool,
    pub(crate) killer: Option<Killer>,
}

/// The fragment that a queue ended with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Killer {
    /// Number of its frame.
    pub number: u64,
    /// First byte of its payload.
    pub offset: u32,
    /// Behind the last.
    pub end: u32,
    /// When it came, nanoseconds.
    pub time: i64,
    /// Whether it had been accepted: it completed what must not be delivered.
    pub accepted: bool,
}

impl<'a> GivenUp<'a> {
    /// Why.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// Who it is from and for.
    #[must_use]
    pub fn key(&self) -> Key {
        self.view.key()
    }

    /// Times of the first and of the last of its fragments, with the one it ended with (of its creation if there is
    /// none, or if details are not kept).
    #[must_use]
    pub fn times(&self) -> (i64, i64) {
        let queue = self.view.queue;
        let last = self.view.table.details.get(self.view.at as usize);
        let (first, last) = (self.view.first_time(), last.map_or(queue.created, |detail| detail.last_time));
        match self.killer {
            Some(killer) if !queue.holds() => (killer.time, killer.time),
            Some(killer) => (first, killer.time),
            None => (first, last),
        }
    }

    /// Its fragments in the order they came, with the one it ended with: number of the frame, offset of the payload.
    #[must_use]
    pub fn frames(&self) -> Vec<(u64, u32)> {
        let killer = self.killer.map(|killer| (killer.number, killer.offset));
        self.held().iter().map(|held| (held.number, held.offset)).chain(killer).collect()
    }

    /// Highest end seen.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.view.queue.len.max(self.killer.map_or(0, |killer| killer.end))
    }

    /// Its fragments in the order they came, without the one it ended with.
    #[must_use]
    pub fn held(&self) -> Vec<HeldFrame<'a>> {
        let mut frames: Vec<HeldFrame<'a>> = (self.view.table.held.list(self.view.queue.head))
            .map(|(_, node)| HeldFrame {
                record: self.view.record(node),
                origin: node.origin,
                number: number(self.view.current, node.frame),
                offset: u32::from(node.start),
            })
            .collect();
        frames.reverse();
        if self.killer.is_some_and(|killer| killer.accepted) {
            frames.pop();
        }
        frames
    }

    /// The error Linux would send.
    #[must_use]
    pub fn icmp(&self) -> Option<IcmpError> {
        if !self.icmp {
            return None;
        }
        let node = self.view.table.first_node(self.view.queue)?;
        let ip = usize::from(node.ip);
        let packet = self.view.record(node).get(ip..ip + node.size() as usize)?;
        let family = self.view.table.family;
        if family == Family::V4 && !self.view.table.may_answer(self.view.queue) {
            return None;
        }
        IcmpError::time_exceeded(family, packet)
    }
}

/// The unfragmentable part's length and the first next header of a completed IPv6 datagram.
pub(crate) fn behind_unfragmentable(view: &View<'_>) -> Option<(u8, usize)> {
    let node = view.table.first_node(view.queue)?;
    let header = view.header(node);
    let at = header.len().checked_sub(8)?;
    Some((*header.get(at)?, at))
}

/// Where a second fragment header stands in a completed IPv6 datagram, and the datagram.
pub(crate) fn nested(datagram: &Datagram<'_>) -> Option<(usize, Vec<u8>)> {
    let (next, at) = behind_unfragmentable(&datagram.view)?;
    if !ipv6::is_extension(next) {
        return None;
    }
    let mut packet = Vec::with_capacity(datagram.packet_len());
    datagram.write_packet(&mut packet);
    Some((ipv6::nested_fragment_header(&packet, next, at)?, packet))
}
