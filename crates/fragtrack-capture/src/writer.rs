//! Writes records again, into one file of either format.

mod pcap;
mod pcapng;

use std::fmt;

use fragtrack_core::frame::{Frame, LinkType};

use crate::order::Order;
use crate::origin::{Format, Origin, Origins, Pcap};
use crate::pcapng::{OLD_PACKET, PACKET, PACKET_HEAD, SIMPLE, SIMPLE_HEAD};

/// What to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// One pcap file: one link type, one resolution.
    Pcap,
    /// One pcapng file: a section for each pcap input and for each section of a pcapng input.
    Pcapng,
}

/// A frame that the output cannot hold: its link type is not that of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Which of the frames it is.
    pub at: usize,
    /// Its link type.
    pub link: LinkType,
    /// The link type of the frames before it.
    pub file: LinkType,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (link, file) = (self.link.0, self.file.0);
        write!(
            f,
            "has link type {link}, those before it have {file}, and a pcap file holds one: write \
             .pcapng instead"
        )
    }
}

impl std::error::Error for Refused {}

/// A record with a packet, as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Number of its origin.
    pub origin: u32,
    /// The whole record: header, frame, padding, options.
    pub bytes: &'a [u8],
    /// Its time, nanoseconds since the epoch: used only where the record itself has none.
    pub time: i64,
}

/// A writer of one output, fed in the order of reading. Bytes are appended to a buffer of the
/// caller's.
///
/// The same bytes come out as went in where formats agree, except: the section length of pcapng
/// becomes "unspecified", the snapshot length of a pcap file at least 262,144. What else may
/// differ is said at each method.
#[derive(Clone, Debug)]
pub struct Writer {
    kind: Kind,
    written: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Pcap(pcap::Out),
    Pcapng(pcapng::Out),
}

impl Writer {
    /// A writer at the start of an output.
    #[must_use]
    pub fn new(output: Output) -> Self {
        let kind = match output {
            Output::Pcap => Kind::Pcap(pcap::Out::default()),
            Output::Pcapng => Kind::Pcapng(pcapng::Out::default()),
        };
        Self { kind, written: 0 }
    }

    /// Packets written so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// The header of a pcap input was read.
    ///
    /// To pcap: if nothing was written yet, its header is, and the output takes its shape. To
    /// pcapng: a section of one interface begins, in its byte order.
    pub fn begin(&mut self, origins: &Origins, number: u32, out: &mut Vec<u8>) {
        let Some(origin) = origins.at(number) else { return };
        match &mut self.kind {
            Kind::Pcap(pcap) => pcap.begin(origin, out),
            Kind::Pcapng(pcapng) => pcapng.begin(origin, number, out),
        }
    }

    /// A record without a packet was read: a pcapng block of another kind, or a damaged one. Pcap
    /// has no place for it; in pcapng it is written as it is.
    pub fn other(&mut self, origins: &Origins, number: u32, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(origin) = origins.at(number) else { return };
        match &mut self.kind {
            Kind::Pcap(pcap) => pcap.other(origin, bytes),
            Kind::Pcapng(pcapng) => pcapng.other(origin, number, bytes, out),
        }
    }

    /// Packets were read, whatever becomes of them.
    ///
    /// To pcap: if nothing was written yet, the header is: byte order of this section, link type
    /// of the first of these frames, nanoseconds if one of the interfaces known so far is finer
    /// than a microsecond.
    ///
    /// # Errors
    ///
    /// [`Refused`]: the first frame that the output cannot hold. Those before it it can.
    pub fn admit(
        &mut self,
        origins: &Origins,
        number: u32,
        frames: &[Frame],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        match (&mut self.kind, origins.at(number)) {
            (Kind::Pcap(pcap), Some(origin)) => pcap.admit(origin, frames, out),
            _ => Ok(()),
        }
    }

    /// Writes a packet as it was read, whenever that was.
    ///
    /// To pcap: as it is if its file has the same byte order and variant, anew if not. To pcapng:
    /// as it is in its own section, except for the number of its interface where others were added;
    /// in another section its interface is described there first, once; numbers of another byte
    /// order are turned, those in options too.
    pub fn packet(&mut self, origins: &Origins, record: Record<'_>, out: &mut Vec<u8>) {
        let Some(origin) = origins.at(record.origin) else { return };
        let Some(packet) = Packet::of(origin, record) else { return };
        self.written += 1;
        match &mut self.kind {
            Kind::Pcap(pcap) => pcap.packet(&packet, out),
            Kind::Pcapng(pcapng) => pcapng.packet(&packet, out),
        }
    }

    /// Writes packets that were read one right after the other, as [`Writer::packet`] does each.
    /// `segment` has their bytes.
    pub fn packets(&mut self, origins: &Origins, number: u32, frames: &[Frame], segment: &[u8], out: &mut Vec<u8>) {
        let copies = match (&self.kind, origins.at(number)) {
            (Kind::Pcap(pcap), Some(origin)) => pcap.copies(origin),
            (Kind::Pcapng(pcapng), Some(origin)) => pcapng.copies(origin, number),
            (_, None) => return,
        };
        if !copies {
            for frame in frames {
                self.packet(origins, Record::of(number, frame, segment), out);
            }
        } else if let (Some(first), Some(last)) = (frames.first(), frames.last()) {
            let end = last.start as usize + last.record as usize;
            out.extend_from_slice(segment.get(first.start as usize..end).unwrap_or_default());
            self.written += frames.len() as u64;
        }
    }

    /// Writes other bytes in place of a packet's frame: `length` of them, which `fill` appends.
    ///
    /// The record's header stays, with both lengths new; comments and other options stay, except
    /// for the hash of the packet. A Simple Packet Block whose interface's snapshot length is less
    /// becomes an Enhanced one.
    pub fn replace(
        &mut self,
        origins: &Origins,
        record: Record<'_>,
        length: usize,
        fill: impl FnOnce(&mut Vec<u8>),
        out: &mut Vec<u8>,
    ) {
        let Some(origin) = origins.at(record.origin) else { return };
        let Some(packet) = Packet::of(origin, record) else { return };
        self.written += 1;
        let body = Body { length, fill };
        match &mut self.kind {
            Kind::Pcap(pcap) => pcap.replace(&packet, body, out),
            Kind::Pcapng(pcapng) => pcapng.replace(&packet, body, out),
        }
    }

    /// Everything was read: an output without packets gets its header.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.kind {
            Kind::Pcap(pcap) => pcap.finish(out),
            Kind::Pcapng(_) => {}
        }
    }
}

impl<'a> Record<'a> {
    /// The record of a frame that was just read.
    #[must_use]
    pub fn of(origin: u32, frame: &Frame, segment: &'a [u8]) -> Self {
        let start = frame.start as usize;
        let bytes = segment.get(start..start + frame.record as usize).unwrap_or_default();
        Self { origin, bytes, time: frame.time }
    }
}

/// The bytes of a frame that are still to be made.
struct Body<F> {
    length: usize,
    fill: F,
}

impl<F: FnOnce(&mut Vec<u8>)> Body<F> {
    /// Their number, as records state it.
    fn says(&self) -> u32 {
        u32::try_from(self.length).unwrap_or(u32::MAX)
    }

    /// Appends exactly as many bytes as announced.
    fn write(self, out: &mut Vec<u8>) {
        let end = out.len() + self.length;
        (self.fill)(out);
        debug_assert_eq!(out.len(), end, "as many bytes as announced");
        out.resize(end, 0);
    }
}

/// Which kind of record a packet stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Pcap(Pcap),
    Enhanced,
    Obsolete,
    Simple,
}

/// A record taken apart.
struct Packet<'a> {
    origin: &'a Origin,
    number: u32,
    bytes: &'a [u8],
    holder: Holder,
    interface: u32,
    head: usize,
    frame: &'a [u8],
    wire: u32,
    time: i64,
}

impl<'a> Packet<'a> {
    fn of(origin: &'a Origin, record: Record<'a>) -> Option<Self> {
        let (bytes, order) = (record.bytes, origin.order());
        let word = |at| order.u32(bytes, at);
        let (holder, head) = match origin.format() {
            Format::Pcap(pcap) => (Holder::Pcap(pcap), usize::from(pcap.layout.head())),
            Format::Pcapng(_) => match word(0)? {
                PACKET => (Holder::Enhanced, PACKET_HEAD),
                OLD_PACKET => (Holder::Obsolete, PACKET_HEAD),
                SIMPLE => (Holder::Simple, SIMPLE_HEAD),
                _ => return None,
            },
        };
        let interface = match holder {
            Holder::Enhanced => word(8)?,
            Holder::Obsolete => u32::from(order.u16(bytes, 8)?),
            Holder::Pcap(_) | Holder::Simple => 0,
        };
        let known = origin.interface(interface)?;
        let (captured, wire, time) = match holder {
            Holder::Pcap(pcap) => {
                let time = i64::from(word(0)?) * 1_000_000_000 + i64::from(word(4)?) * pcap.unit.nanoseconds();
                (word(8)?, word(12)?, time)
            }
            Holder::Enhanced | Holder::Obsolete => {
                let units = u64::from(word(12)?) << 32 | u64::from(word(16)?);
                (word(20)?, word(24)?, known.resolution.nanoseconds(units, known.offset))
            }
            Holder::Simple => (known.simple(word(8)?), word(8)?, record.time),
        };
        let frame = bytes.get(head..)?.get(..captured as usize)?;
        let number = record.origin;
        Some(Self { origin, number, bytes, holder, interface, head, frame, wire, time })
    }

    /// The options, of blocks that can have some.
    fn options(&self) -> &'a [u8] {
        let at = self.head + self.frame.len() + crate::order::padding(self.frame.len());
        self.bytes.get(at..self.bytes.len().saturating_sub(4)).unwrap_or_default()
    }

    /// Time stamp in the units of its interface.
    fn units(&self) -> u64 {
        self.origin.interface(self.interface).map_or(0, |known| known.resolution.units(self.time, known.offset))
    }

    /// Whether a Simple Packet Block of its interface holds so many bytes.
    fn can_be(&self, length: u32) -> bool {
        self.origin.interface(0).is_some_and(|known| known.simple(length) == length)
    }

    const fn order(&self) -> Order {
        self.origin.order()
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
