//! One pcapng file from whatever is read (draft-ietf-opsawg-pcapng).
//!
//! What was read from pcapng is written block by block as it stands. A packet of an earlier section
//! goes into the current one: its interface is described there first, behind the descriptions written
//! so far, so that later interfaces of the current section get higher numbers than they had.

use std::collections::HashMap;

use super::{Body, Holder, Packet};
use crate::options::{self, EPB_HASH, Scope};
use crate::order::{Order, padding, patch};
use crate::origin::{Format, Origin};
use crate::pcapng::{INTERFACE, OLD_PACKET, ORDER_MAGIC, PACKET, SECTION, SIMPLE, STATISTICS, close};

/// The section being written.
///
/// Invariant: `written` interfaces are described in it, of which `own` are its own, in their order,
/// and `foreign` has the others. `shifts` says, for numbers of its own, from which number on by how
/// much they are moved; both go up.
#[derive(Clone, Debug)]
struct Section {
    origin: u32,
    order: Order,
    own: u32,
    written: u32,
    shifts: Vec<(u32, u32)>,
    foreign: HashMap<(u32, u32), u32>,
}

impl Section {
    fn new(origin: u32, order: Order) -> Self {
        Self { origin, order, own: 0, written: 0, shifts: Vec::new(), foreign: HashMap::new() }
    }

    /// The number in the output of this section's own interface `id`.
    fn moved(&self, id: u32) -> u32 {
        let before = self.shifts.partition_point(|&(from, _)| from <= id);
        let shift = before.checked_sub(1).and_then(|at| self.shifts.get(at));
        shift.map_or(id, |&(_, by)| id.saturating_add(by))
    }

    /// One of its own interfaces is described.
    fn describe_own(&mut self) {
        self.own = self.own.saturating_add(1);
        self.written = self.written.saturating_add(1);
    }

    /// The number in the output of the interface of a packet; it is described first if it must.
    fn number(&mut self, packet: &Packet<'_>, out: &mut Vec<u8>) -> u32 {
        if packet.number == self.origin {
            return self.moved(packet.interface);
        }
        let next = self.written;
        let number = *self.foreign.entry((packet.number, packet.interface)).or_insert(next);
        if number == next {
            packet.origin.write_description(packet.interface, self.order, out);
            self.written = next.saturating_add(1);
            self.shifts.push((self.own, self.written.saturating_sub(self.own)));
        }
        number
    }
}

/// The pcapng writer.
#[derive(Clone, Default, Debug)]
pub(super) struct Out {
    section: Option<Section>,
}

impl Out {
    /// Begins the section of a pcap input: a header without options, one interface.
    pub(super) fn begin(&mut self, origin: &Origin, number: u32, out: &mut Vec<u8>) {
        let Format::Pcap(pcap) = origin.format() else { return };
        let order = pcap.order;
        let start = out.len();
        for word in [SECTION, 0, ORDER_MAGIC] {
            order.put32(out, word);
        }
        order.put16(out, 1);
        order.put16(out, 0);
        out.extend_from_slice(&[0xff; 8]);
        close(order, start, out);
        origin.write_description(0, order, out);
        let mut section = Section::new(number, order);
        section.describe_own();
        self.section = Some(section);
    }

    pub(super) fn other(&mut self, origin: &Origin, number: u32, bytes: &[u8], out: &mut Vec<u8>) {
        let order = origin.order();
        let start = out.len();
        out.extend_from_slice(bytes);
        match (order.u32(bytes, 0), &mut self.section) {
            (Some(SECTION), _) => {
                self.section = Some(Section::new(number, order));
                // Sizes change: the length is not specified.
                patch(out, start + 16, [0xff; 8]);
            }
            (Some(INTERFACE), Some(section)) => section.describe_own(),
            (Some(STATISTICS), Some(section)) if bytes.len() >= 16 => {
                let id = order.u32(bytes, 8).unwrap_or(0);
                if id < section.own {
                    order.patch32(out, start + 8, section.moved(id));
                }
            }
            _ => {}
        }
    }

    /// Whether records of that origin are copied as they are.
    pub(super) fn copies(&self, origin: &Origin, number: u32) -> bool {
        let same = matches!(origin.format(), Format::Pcapng(_));
        self.section.as_ref().is_some_and(|section| same && section.origin == number && section.shifts.is_empty())
    }

    pub(super) fn packet(&mut self, packet: &Packet<'_>, out: &mut Vec<u8>) {
        let Some(section) = &mut self.section else { return };
        let id = section.number(packet, out);
        let to = section.order;
        let home = packet.number == section.origin && id == packet.interface;
        let fill = |out: &mut Vec<u8>| out.extend_from_slice(packet.frame);
        let body = Body { length: packet.frame.len(), fill };
        match packet.holder {
            Holder::Pcap(_) => enhanced(packet, to, id, packet.wire, body, out),
            _ if home => out.extend_from_slice(packet.bytes),
            Holder::Simple => enhanced(packet, to, id, packet.wire, body, out),
            Holder::Enhanced if packet.order() == to => {
                let start = out.len();
                out.extend_from_slice(packet.bytes);
                to.patch32(out, start + 8, id);
            }
            Holder::Obsolete if packet.order() == to && u16::try_from(id).is_ok() => {
                let start = out.len();
                out.extend_from_slice(packet.bytes);
                patch(out, start + 8, to.bytes16(u16::try_from(id).unwrap_or(0)));
            }
            Holder::Enhanced | Holder::Obsolete => {
                again(packet, to, id, packet.wire, body, &[], out);
            }
        }
    }

    pub(super) fn replace<F: FnOnce(&mut Vec<u8>)>(&mut self, packet: &Packet<'_>, body: Body<F>, out: &mut Vec<u8>) {
        let Some(section) = &mut self.section else { return };
        let id = section.number(packet, out);
        let to = section.order;
        let says = body.says();
        match packet.holder {
            Holder::Simple if id == 0 && packet.can_be(says) => {
                let start = out.len();
                for word in [SIMPLE, 0, says] {
                    to.put32(out, word);
                }
                padded(body, out);
                close(to, start, out);
            }
            Holder::Pcap(_) | Holder::Simple => {
                enhanced(packet, to, id, says, body, out);
            }
            Holder::Enhanced | Holder::Obsolete => {
                again(packet, to, id, says, body, &[EPB_HASH], out);
            }
        }
    }
}

/// Writes a packet that was in another kind of record as an Enhanced Packet Block: its time in the
/// units of its interface, no options.
fn enhanced<F: FnOnce(&mut Vec<u8>)>(
    packet: &Packet<'_>,
    to: Order,
    id: u32,
    wire: u32,
    body: Body<F>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let units = packet.units();
    for word in [PACKET, 0, id, (units >> 32) as u32, units as u32, body.says(), wire] {
        to.put32(out, word);
    }
    padded(body, out);
    close(to, start, out);
}

/// Writes an Enhanced or obsolete Packet Block anew, in byte order `to`, without some options. An
/// obsolete one has 16 bits for its interface: if they do not suffice it becomes an enhanced one.
fn again<F: FnOnce(&mut Vec<u8>)>(
    packet: &Packet<'_>,
    to: Order,
    id: u32,
    wire: u32,
    body: Body<F>,
    without: &[u16],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let (from, bytes) = (packet.order(), packet.bytes);
    match (packet.holder, u16::try_from(id)) {
        (Holder::Obsolete, Ok(id)) => {
            to.put32(out, OLD_PACKET);
            to.put32(out, 0);
            to.put16(out, id);
            to.put16(out, from.u16(bytes, 10).unwrap_or(0));
        }
        _ => {
            for word in [PACKET, 0, id] {
                to.put32(out, word);
            }
        }
    }
    let stamp = |at| from.u32(bytes, at).unwrap_or(0);
    for word in [stamp(12), stamp(16), body.says(), wire] {
        to.put32(out, word);
    }
    padded(body, out);
    options::copy(packet.options(), from, to, Scope::Packet, without, out);
    close(to, start, out);
}

fn padded<F: FnOnce(&mut Vec<u8>)>(body: Body<F>, out: &mut Vec<u8>) {
    let pad = padding(body.length);
    body.write(out);
    out.resize(out.len() + pad, 0);
}
