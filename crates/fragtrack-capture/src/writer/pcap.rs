//! One pcap file from whatever is read (draft-ietf-opsawg-pcap).

use fragtrack_core::frame::{Frame, LinkType};

use super::{Body, Holder, Packet, Refused};
use crate::order::Order;
use crate::origin::{Format, Layout, MAX_SNAPLEN, Origin, Pcap, Unit};
use crate::pcapng::{INTERFACE, SECTION};

/// Ethernet: the link type of a file that holds no packet to tell.
const ETHERNET: LinkType = LinkType(1);

/// The shape of the file, once its header is written.
#[derive(Clone, Copy, Debug)]
struct File {
    pcap: Pcap,
    link: LinkType,
}

/// What is known of the last section while it may still decide what the file looks like.
#[derive(Clone, Copy, Debug)]
struct Section {
    order: Order,
    described: u32,
    link: LinkType,
    snaplen: u32,
    unit: Unit,
}

/// The pcap writer.
#[derive(Clone, Default, Debug)]
pub(super) struct Out {
    file: Option<File>,
    section: Option<Section>,
}

impl Out {
    pub(super) fn begin(&mut self, origin: &Origin, out: &mut Vec<u8>) {
        if let (None, Format::Pcap(pcap), Some(only)) = (self.file, origin.format(), origin.interface(0)) {
            let start = out.len();
            out.extend_from_slice(origin.header());
            pcap.order.patch32(out, start + 16, only.snaplen.max(MAX_SNAPLEN));
            self.file = Some(File { pcap, link: only.link });
        }
    }

    pub(super) fn other(&mut self, origin: &Origin, bytes: &[u8]) {
        if self.file.is_some() {
            return;
        }
        let order = origin.order();
        match order.u32(bytes, 0) {
            Some(SECTION) => {
                let (link, snaplen, unit) = (ETHERNET, MAX_SNAPLEN, Unit::Micro);
                self.section = Some(Section { order, described: 0, link, snaplen, unit });
            }
            Some(INTERFACE) => {
                let Some(section) = &mut self.section else { return };
                if let Some(known) = origin.interface(section.described) {
                    if section.described == 0 && known.described {
                        section.link = known.link;
                    }
                    section.snaplen = section.snaplen.max(known.snaplen);
                    if known.resolution.finer_than_micro() {
                        section.unit = Unit::Nano;
                    }
                }
                section.described = section.described.saturating_add(1);
            }
            _ => {}
        }
    }

    pub(super) fn admit(&mut self, origin: &Origin, frames: &[Frame], out: &mut Vec<u8>) -> Result<(), Refused> {
        let Some(first) = frames.first() else { return Ok(()) };
        if self.file.is_none() {
            self.start(first.link, out);
        }
        let Some(File { link: file, .. }) = self.file else { return Ok(()) };
        // All frames of a pcap file have one link type.
        let looked = match origin.format() {
            Format::Pcap(_) => frames.get(..1).unwrap_or_default(),
            Format::Pcapng(_) => frames,
        };
        match looked.iter().position(|frame| frame.link != file) {
            Some(at) => {
                let link = frames.get(at).map_or(file, |frame| frame.link);
                Err(Refused { at, link, file })
            }
            None => Ok(()),
        }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if let (None, Some(section)) = (self.file, self.section) {
            self.start(section.link, out);
        }
    }

    /// Writes the header of a file whose first input is pcapng.
    fn start(&mut self, link: LinkType, out: &mut Vec<u8>) {
        let Some(Section { order, snaplen, unit, .. }) = self.section else { return };
        let pcap = Pcap { order, unit, layout: Layout::Classic };
        order.put32(out, pcap.magic());
        order.put16(out, 2);
        order.put16(out, 4);
        for word in [0, 0, snaplen, link.0] {
            order.put32(out, word);
        }
        self.file = Some(File { pcap, link });
    }

    /// Whether records of `origin` are copied as they are.
    pub(super) fn copies(&self, origin: &Origin) -> bool {
        self.file.is_some_and(|file| origin.format() == Format::Pcap(file.pcap))
    }

    pub(super) fn packet(&self, packet: &Packet<'_>, out: &mut Vec<u8>) {
        let Some(File { pcap, .. }) = self.file else { return };
        if packet.holder == Holder::Pcap(pcap) {
            out.extend_from_slice(packet.bytes);
        } else {
            header(pcap, packet, packet.frame.len() as u32, packet.wire, out);
            out.extend_from_slice(packet.frame);
        }
    }

    pub(super) fn replace<F: FnOnce(&mut Vec<u8>)>(&self, packet: &Packet<'_>, body: Body<F>, out: &mut Vec<u8>) {
        let Some(File { pcap, .. }) = self.file else { return };
        let says = body.says();
        if packet.holder == Holder::Pcap(pcap) {
            let start = out.len();
            out.extend_from_slice(packet.bytes.get(..packet.head).unwrap_or_default());
            pcap.order.patch32(out, start + 8, says);
            pcap.order.patch32(out, start + 12, says);
        } else {
            header(pcap, packet, says, says, out);
        }
        body.write(out);
    }
}

/// Writes a record header anew. A time before the epoch becomes the epoch, one that seconds of 32
/// bits cannot hold the last moment that they can.
fn header(pcap: Pcap, packet: &Packet<'_>, captured: u32, wire: u32, out: &mut Vec<u8>) {
    let unit = pcap.unit.nanoseconds();
    let (second, rest) = (packet.time.div_euclid(1_000_000_000), packet.time.rem_euclid(1_000_000_000));
    let (second, fraction) = match u32::try_from(second) {
        Ok(second) => (second, rest / unit),
        Err(_) if second < 0 => (0, 0),
        Err(_) => (u32::MAX, 1_000_000_000 / unit - 1),
    };
    let fraction = u32::try_from(fraction).unwrap_or(0);
    for word in [second, fraction, captured, wire] {
        pcap.order.put32(out, word);
    }
    out.resize(out.len() + usize::from(pcap.layout.head() - Layout::Classic.head()), 0);
}
