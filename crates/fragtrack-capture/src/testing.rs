//! Captures made up for tests.

use proptest::prelude::*;

use crate::order::{Order, padding};
use crate::origin::{Layout, Pcap, Unit};
use crate::reader::{Input, Pause, Reader, Tail};
use crate::{Damage, Origins};
use fragtrack_core::frame::Frame;

pub(crate) const CLASSIC: Pcap = Pcap { order: Order::Little, unit: Unit::Micro, layout: Layout::Classic };

/// Every variant of pcap.
pub(crate) fn variants() -> impl Iterator<Item = Pcap> {
    let shapes = [(Unit::Micro, Layout::Classic), (Unit::Nano, Layout::Classic), (Unit::Micro, Layout::Modified)];
    [Order::Little, Order::Big]
        .into_iter()
        .flat_map(move |order| shapes.map(|(unit, layout)| Pcap { order, unit, layout }))
}

pub(crate) fn any_pcap() -> impl Strategy<Value = Pcap> {
    prop::sample::select(variants().collect::<Vec<_>>())
}

pub(crate) fn any_order() -> impl Strategy<Value = Order> {
    prop::sample::select(vec![Order::Little, Order::Big])
}

/// A pcap file header.
pub(crate) fn pcap_header(pcap: Pcap, link: u32, snaplen: u32) -> Vec<u8> {
    let (mut out, order) = (Vec::new(), pcap.order);
    order.put32(&mut out, pcap.magic());
    order.put16(&mut out, 2);
    order.put16(&mut out, 4);
    for word in [0, 0, snaplen, link] {
        order.put32(&mut out, word);
    }
    out
}

/// Appends a pcap record.
pub(crate) fn pcap_record(out: &mut Vec<u8>, pcap: Pcap, stamp: (u32, u32), frame: &[u8], wire: u32) {
    for word in [stamp.0, stamp.1, frame.len() as u32, wire] {
        pcap.order.put32(out, word);
    }
    if pcap.layout == Layout::Modified {
        out.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    }
    out.extend_from_slice(frame);
}

/// Builds a pcapng file, block by block, in one byte order at a time.
#[derive(Clone)]
pub(crate) struct Ng {
    pub(crate) data: Vec<u8>,
    pub(crate) order: Order,
}

impl Ng {
    pub(crate) fn new(order: Order) -> Self {
        Self { data: Vec::new(), order }.section(order, -1)
    }

    pub(crate) fn section(mut self, order: Order, length: i64) -> Self {
        self.order = order;
        let mut body = order.bytes32(0x1a2b_3c4d).to_vec();
        order.put16(&mut body, 1);
        order.put16(&mut body, 0);
        body.extend_from_slice(&match order {
            Order::Little => length.to_le_bytes(),
            Order::Big => length.to_be_bytes(),
        });
        self.block(0x0a0d_0d0a, &body)
    }

    pub(crate) fn block(mut self, kind: u32, body: &[u8]) -> Self {
        let order = self.order;
        let total = (body.len() + padding(body.len()) + 12) as u32;
        order.put32(&mut self.data, kind);
        order.put32(&mut self.data, total);
        self.data.extend_from_slice(body);
        self.data.resize(self.data.len() + padding(body.len()), 0);
        order.put32(&mut self.data, total);
        self
    }

    pub(crate) fn options(&self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let (mut out, order) = (Vec::new(), self.order);
        for (code, value) in options {
            order.put16(&mut out, *code);
            order.put16(&mut out, value.len() as u16);
            out.extend_from_slice(value);
            out.resize(out.len() + padding(value.len()), 0);
        }
        if !options.is_empty() {
            out.extend_from_slice(&[0; 4]);
        }
        out
    }

    pub(crate) fn interface(self, link: u16, snaplen: u32, options: &[(u16, &[u8])]) -> Self {
        let mut body = self.order.bytes16(link).to_vec();
        body.extend_from_slice(&[0, 0]);
        self.order.put32(&mut body, snaplen);
        body.extend(self.options(options));
        self.block(1, &body)
    }

    pub(crate) fn packet(self, id: u32, units: u64, frame: &[u8], options: &[(u16, &[u8])]) -> Self {
        let mut body = self.order.bytes32(id).to_vec();
        self.tail(&mut body, units, frame, options);
        self.block(6, &body)
    }

    pub(crate) fn old_packet(self, id: u16, drops: u16, units: u64, frame: &[u8]) -> Self {
        let mut body = self.order.bytes16(id).to_vec();
        self.order.put16(&mut body, drops);
        self.tail(&mut body, units, frame, &[]);
        self.block(2, &body)
    }

    fn tail(&self, body: &mut Vec<u8>, units: u64, frame: &[u8], options: &[(u16, &[u8])]) {
        let length = frame.len() as u32;
        for word in [(units >> 32) as u32, units as u32, length, length] {
            self.order.put32(body, word);
        }
        body.extend_from_slice(frame);
        body.resize(body.len() + padding(frame.len()), 0);
        body.extend(self.options(options));
    }

    pub(crate) fn simple(self, frame: &[u8], wire: u32) -> Self {
        let mut body = self.order.bytes32(wire).to_vec();
        body.extend_from_slice(frame);
        self.block(3, &body)
    }
}

/// What a reader makes of an input: each frame with the number of its origin, by place in the file.
#[derive(PartialEq, Debug)]
pub(crate) struct Seen {
    pub(crate) frames: Vec<(u32, Frame)>,
    pub(crate) damage: Option<Damage>,
    pub(crate) position: u64,
    pub(crate) origins: u32,
}

/// Reads a file at once, or as a stream that grows by `chunk` bytes and forgets what was read.
pub(crate) fn read(file: &[u8], chunk: Option<usize>, max: usize) -> Seen {
    let (mut reader, mut origins) = (Reader::new(), Origins::new());
    let (mut frames, mut batch) = (Vec::new(), Vec::new());
    let (mut buffer, mut base, mut start) = (Vec::new(), 0_usize, 0);
    let mut given = chunk.map_or(file.len(), |chunk| chunk.min(file.len()));
    buffer.extend_from_slice(&file[..given]);
    loop {
        let tail = Tail::from(given == file.len());
        let input = Input { bytes: &buffer, start, stop: buffer.len(), tail };
        let step = reader.read(&mut origins, input, &mut batch, max);
        assert!(batch.len() <= max);
        for frame in &batch {
            assert!(u64::from(frame.record) >= u64::from(frame.head) + u64::from(frame.captured));
            assert!(frame.start as usize + frame.record as usize <= step.next);
            let start = frame.start + base as u64;
            frames.push((reader.origin().unwrap(), Frame { start, ..*frame }));
        }
        assert_eq!(reader.position(), (base + step.next) as u64);
        start = step.next;
        match step.pause {
            Pause::Full | Pause::Section => {}
            Pause::Done | Pause::Damaged => break,
            Pause::More => {
                buffer.drain(..start);
                (base, start) = (base + start, 0);
                let next = (given + chunk.unwrap_or(0)).min(file.len());
                assert!(next > given, "more was asked for at the end");
                buffer.extend_from_slice(&file[given..next]);
                given = next;
            }
        }
    }
    let damage = reader.damage().copied();
    Seen { frames, damage, position: reader.position(), origins: origins.next() }
}

/// A pcapng file with a bit of everything, and the blocks that make it.
pub(crate) fn any_ng() -> impl Strategy<Value = Vec<u8>> {
    let data = || prop::collection::vec(any::<u8>(), 0..40);
    let block = prop_oneof![
        4 => (0..3_u32, any::<u64>(), data()).prop_map(|(id, units, data)| (6, id, units, data)),
        1 => (0..3_u32, any::<u64>(), data()).prop_map(|(id, units, data)| (2, id, units, data)),
        1 => data().prop_map(|data| (3, 0, 0, data)),
        1 => data().prop_map(|data| (1, 0, 0, data)),
        1 => (prop::sample::select(vec![4_u32, 5, 0xbad]), data()).prop_map(|(kind, data)| (kind, 0, 0, data)),
        1 => any_order().prop_map(|order| (0x0a0d_0d0a, u32::from(order == Order::Big), 0, Vec::new())),
    ];
    (any_order(), prop::collection::vec(block, 0..30)).prop_map(|(order, blocks)| {
        let resolution: [&[u8]; 3] = [&[6], &[9], &[0x94]];
        let start = Ng::new(order).interface(1, 0, &[]);
        let file = blocks.into_iter().fold(start, |ng, (kind, id, units, data)| match kind {
            1 => {
                let at = data.len() % 3;
                ng.interface(101, data.len() as u32, &[(2, b"name"), (9, resolution[at])])
            }
            2 => ng.old_packet(id as u16, 7, units, &data),
            3 => ng.simple(&data, data.len() as u32),
            6 if units % 3 == 0 => ng.packet(id, units, &data, &[(1, b"comment"), (3, b"hash!")]),
            6 => ng.packet(id, units, &data, &[]),
            0x0a0d_0d0a => {
                let order = if id == 1 { Order::Big } else { Order::Little };
                ng.section(order, 99).interface(1, 0, &[]).interface(113, 9, &[])
            }
            other => ng.block(other, &data),
        });
        file.data
    })
}

/// A file with some bytes changed, some gone.
pub(crate) fn damaged(file: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (file, changes, prop::option::weighted(0.3, any::<prop::sample::Index>())).prop_map(|(mut file, changes, cut)| {
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        file
    })
}
