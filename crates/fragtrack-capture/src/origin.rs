//! Where records come from: everything needed to write a record of some input or section again.

use fragtrack_core::frame::LinkType;

use crate::options::{self, Scope};
use crate::order::Order;
use crate::pcapng::{INTERFACE, MAX_BLOCK, close};
use crate::resolution::Resolution;

/// Interfaces remembered in one section; later ones are unknown (bounds what a hostile file costs).
pub const MAX_INTERFACES: u32 = 65_536;

/// Bytes of interface blocks remembered in one section, for the same reason.
const MAX_INTERFACE_BYTES: usize = MAX_BLOCK as usize;

/// Captured length that every reader of pcap files accepts (libpcap, `MAXIMUM_SNAPLEN`), in bytes.
pub const MAX_SNAPLEN: u32 = 262_144;

/// Unit of the second number of a pcap time stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Microseconds, magic `a1b2c3d4`.
    Micro,
    /// Nanoseconds, magic `a1b23c4d`.
    Nano,
}

impl Unit {
    /// Nanoseconds in one unit.
    #[must_use]
    pub const fn nanoseconds(self) -> i64 {
        match self {
            Self::Micro => 1_000,
            Self::Nano => 1,
        }
    }
}

/// Shape of a pcap record header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// 16 bytes (draft-ietf-opsawg-pcap, "Packet Record").
    Classic,
    /// 24 bytes, magic `a1b2cd34`: interface index (4), protocol (2), packet type (1) and a byte
    /// of padding follow the classic fields (libpcap, `pcap_sf_patched_pkthdr`).
    Modified,
}

impl Layout {
    /// Bytes of a record header.
    #[must_use]
    pub const fn head(self) -> u16 {
        match self {
            Self::Classic => 16,
            Self::Modified => 24,
        }
    }
}

/// The variant of a pcap file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pcap {
    /// Byte order of all numbers.
    pub order: Order,
    /// Unit of time stamps.
    pub unit: Unit,
    /// Shape of record headers.
    pub layout: Layout,
}

impl Pcap {
    /// The variant that the first four bytes of a file name (draft-ietf-opsawg-pcap, "File Header").
    #[must_use]
    pub fn of(magic: [u8; 4]) -> Option<Self> {
        let (order, value) = match u32::from_le_bytes(magic) {
            value @ (0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34) => (Order::Little, value),
            value => (Order::Big, value.swap_bytes()),
        };
        let (unit, layout) = match value {
            0xa1b2_c3d4 => (Unit::Micro, Layout::Classic),
            0xa1b2_3c4d => (Unit::Nano, Layout::Classic),
            0xa1b2_cd34 => (Unit::Micro, Layout::Modified),
            _ => return None,
        };
        Some(Self { order, unit, layout })
    }

    /// The magic number of this variant.
    #[must_use]
    pub const fn magic(self) -> u32 {
        match (self.unit, self.layout) {
            (_, Layout::Modified) => 0xa1b2_cd34,
            (Unit::Micro, Layout::Classic) => 0xa1b2_c3d4,
            (Unit::Nano, Layout::Classic) => 0xa1b2_3c4d,
        }
    }
}

/// Kind and byte order of an input or section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A pcap file.
    Pcap(Pcap),
    /// A section of a pcapng file.
    Pcapng(Order),
}

/// What is known of a capture interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface {
    /// How its frames are read.
    pub link: LinkType,
    /// Whether its description is whole. If not, the other fields are defaults, and what is said
    /// to come from it is no frame.
    pub described: bool,
    /// Bytes captured of a frame at most, 0 for no limit.
    pub snaplen: u32,
    /// Resolution of its time stamps.
    pub resolution: Resolution,
    /// Seconds to add to its time stamps.
    pub offset: i64,
    start: usize,
    length: usize,
}

impl Interface {
    /// Captured bytes of a Simple Packet Block with a frame of `wire` bytes.
    pub(crate) const fn simple(&self, wire: u32) -> u32 {
        if self.snaplen != 0 && self.snaplen < wire { self.snaplen } else { wire }
    }

    /// How its frames are marked: as no frames if its description is damaged, and only then.
    pub(crate) const fn mark(&self) -> LinkType {
        if self.described { self.link } else { LinkType::NONE }
    }
}

/// An input file or, in pcapng, one section of it: whatever records of it share.
///
/// Invariant: an origin of a pcap file has one interface, whose `start` and `length` are 0; the
/// others have their whole Interface Description Block at `blocks[start..start + length]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    format: Format,
    header: [u8; 24],
    interfaces: Vec<Interface>,
    blocks: Vec<u8>,
    full: bool,
}

impl Origin {
    /// The origin of a pcap file with this file header.
    #[must_use]
    pub fn pcap(pcap: Pcap, header: [u8; 24]) -> Self {
        // The upper half of the field holds FCS length bits, which say nothing about the frames.
        let network = pcap.order.u32(&header, 20).unwrap_or(0);
        let interface = Interface {
            link: LinkType(network & 0xffff),
            described: true,
            snaplen: pcap.order.u32(&header, 16).unwrap_or(0),
            resolution: match pcap.unit {
                Unit::Micro => Resolution::MICRO,
                Unit::Nano => Resolution(9),
            },
            offset: 0,
            start: 0,
            length: 0,
        };
        Self { format: Format::Pcap(pcap), header, interfaces: vec![interface], blocks: Vec::new(), full: false }
    }

    /// The origin of a pcapng section without interfaces yet.
    #[must_use]
    pub const fn section(order: Order) -> Self {
        Self { format: Format::Pcapng(order), header: [0; 24], interfaces: Vec::new(), blocks: Vec::new(), full: false }
    }

    /// Kind and byte order.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Byte order of the numbers in it.
    #[must_use]
    pub const fn order(&self) -> Order {
        match self.format {
            Format::Pcap(pcap) => pcap.order,
            Format::Pcapng(order) => order,
        }
    }

    /// The pcap file header as it stands in the file; zeros for a pcapng section.
    #[must_use]
    pub const fn header(&self) -> &[u8; 24] {
        &self.header
    }

    /// Interfaces described so far.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Interface number `id`.
    #[inline]
    #[must_use]
    pub fn interface(&self, id: u32) -> Option<&Interface> {
        self.interfaces.get(usize::try_from(id).ok()?)
    }

    /// The whole block that describes interface `id`, in this origin's byte order; empty for pcap.
    #[must_use]
    pub fn block(&self, id: u32) -> &[u8] {
        self.interface(id).and_then(|known| self.blocks.get(known.start..)?.get(..known.length)).unwrap_or_default()
    }

    /// Captured length up to which pcap records of this file are believed, in bytes: the snapshot
    /// length where it is larger than what every reader accepts, but never more than a stream may
    /// have to hold.
    #[must_use]
    pub fn record_limit(&self) -> u32 {
        self.interface(0).map_or(0, |only| only.snaplen).clamp(MAX_SNAPLEN, MAX_BLOCK)
    }

    /// Remembers the interface that a whole Interface Description Block describes. One too short
    /// takes its number all the same, without a link type.
    ///
    /// # Errors
    ///
    /// `()` where no more interfaces are remembered.
    pub(crate) fn describe(&mut self, block: &[u8]) -> Result<(), ()> {
        let room = MAX_INTERFACE_BYTES.saturating_sub(self.blocks.len());
        // Once one is left out, the numbers of those behind it are unknown, too.
        self.full |= self.interfaces.len() >= MAX_INTERFACES as usize || block.len() > room;
        if self.full {
            return Err(());
        }
        let order = self.order();
        let body = block.get(..block.len().saturating_sub(4)).unwrap_or_default();
        let mut interface = Interface {
            link: LinkType(0),
            described: false,
            snaplen: 0,
            resolution: Resolution::MICRO,
            offset: 0,
            start: self.blocks.len(),
            length: block.len(),
        };
        if let (Some(link), Some(snaplen)) = (order.u16(body, 8), order.u32(body, 12)) {
            interface.link = LinkType(u32::from(link));
            interface.described = true;
            interface.snaplen = snaplen;
        }
        for (code, value) in options::walk(order, body.get(16..).unwrap_or_default()) {
            match (code, value) {
                (options::IF_TSRESOL, &[resolution]) => interface.resolution = Resolution(resolution),
                (options::IF_TSOFFSET, _) => {
                    if let (8, Some(offset)) = (value.len(), order.u64(value, 0)) {
                        interface.offset = offset.cast_signed();
                    }
                }
                _ => {}
            }
        }
        self.blocks.extend_from_slice(block);
        self.interfaces.push(interface);
        Ok(())
    }

    /// Appends the description of interface `id` as a block in byte order `to`. That of a pcap file
    /// has the snapshot length which every reader accepts.
    pub(crate) fn write_description(&self, id: u32, to: Order, out: &mut Vec<u8>) {
        let block = self.block(id);
        if self.format == Format::Pcapng(to) {
            out.extend_from_slice(block);
            return;
        }
        let Some(known) = self.interface(id) else { return };
        let start = out.len();
        to.put32(out, INTERFACE);
        to.put32(out, 0);
        // It was read from 16 bits.
        to.put16(out, known.link.0 as u16);
        to.put16(out, 0);
        match self.format {
            Format::Pcap(_) => {
                to.put32(out, MAX_SNAPLEN);
                to.put16(out, options::IF_TSRESOL);
                to.put16(out, 1);
                out.extend_from_slice(&[known.resolution.0, 0, 0, 0, 0, 0, 0, 0]);
            }
            Format::Pcapng(from) => {
                to.put32(out, known.snaplen);
                let list = block.get(16..block.len().saturating_sub(4)).unwrap_or_default();
                options::copy(list, from, to, Scope::Interface, &[], out);
            }
        }
        close(to, start, out);
    }
}

/// The origins of all records that may still be written, by number.
///
/// Numbers go up from 0 in the order of reading and are never used again. Invariant: those in
/// `list` go up, and are below `next`.
#[derive(Clone, Default, Debug)]
pub struct Origins {
    next: u32,
    list: Vec<(u32, Origin)>,
}

impl Origins {
    /// No origins yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an origin and gives its number.
    pub fn add(&mut self, origin: Origin) -> u32 {
        let number = self.next;
        self.next = number.saturating_add(1);
        self.list.push((number, origin));
        number
    }

    /// The number that the next origin gets.
    #[must_use]
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// How many are remembered.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.list.len()
    }

    fn place(&self, number: u32) -> Option<usize> {
        // Nearly always it is the last.
        match self.list.last() {
            Some((last, _)) if *last == number => Some(self.list.len() - 1),
            _ => self.list.binary_search_by_key(&number, |(number, _)| *number).ok(),
        }
    }

    /// Origin `number`, unless it was forgotten.
    #[inline]
    #[must_use]
    pub fn at(&self, number: u32) -> Option<&Origin> {
        self.list.get(self.place(number)?).map(|(_, origin)| origin)
    }

    /// Origin `number` for changing, unless it was forgotten.
    pub(crate) fn at_mut(&mut self, number: u32) -> Option<&mut Origin> {
        let place = self.place(number)?;
        self.list.get_mut(place).map(|(_, origin)| origin)
    }

    /// Forgets origin `number`.
    pub fn forget(&mut self, number: u32) {
        if let Some(place) = self.place(number) {
            self.list.remove(place);
        }
    }

    /// Forgets the origins that `needed` is false for: no record of them will be written any more.
    /// Otherwise a file of very many sections would take very much memory.
    pub fn retain(&mut self, mut needed: impl FnMut(u32) -> bool) {
        self.list.retain(|(number, _)| needed(*number));
    }
}

#[cfg(test)]
#[path = "origin_tests.rs"]
mod tests;
