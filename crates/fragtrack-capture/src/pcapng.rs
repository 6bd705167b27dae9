//! Blocks of pcapng sections (draft-ietf-opsawg-pcapng, "Block Types").

use fragtrack_core::frame::{Frame, LinkType};

use crate::ahead::{Ahead, Chain, NEAR, pair};
use crate::damage::Why;
use crate::order::Order;
use crate::origin::{Interface, MAX_INTERFACES, Origin};
use crate::reader::Halt;

/// Section Header Block; the same four bytes in both orders.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// Interface Description Block.
pub(crate) const INTERFACE: u32 = 1;
/// Packet Block, obsolete (draft, appendix "Packet Block").
pub(crate) const OLD_PACKET: u32 = 2;
/// Simple Packet Block.
pub(crate) const SIMPLE: u32 = 3;
/// Interface Statistics Block.
pub(crate) const STATISTICS: u32 = 5;
/// Enhanced Packet Block.
pub(crate) const PACKET: u32 = 6;

/// Magic number that tells the byte order of a section.
pub(crate) const ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Bytes of a block before the frame: Enhanced and obsolete Packet Block.
pub(crate) const PACKET_HEAD: usize = 28;
/// Bytes of a block before the frame: Simple Packet Block.
pub(crate) const SIMPLE_HEAD: usize = 12;

/// Longest block read, in bytes: what a stream may have to hold at once.
pub const MAX_BLOCK: u32 = 16 << 20;

/// Completes a block that starts at `start` with an empty length field: both lengths.
pub(crate) fn close(order: Order, start: usize, out: &mut Vec<u8>) {
    let total = u32::try_from(out.len() - start + 4).unwrap_or(u32::MAX);
    order.patch32(out, start + 4, total);
    order.put32(out, total);
}

/// The byte order of the section whose header starts at `at`, once its magic is there.
pub(crate) fn section_order(bytes: &[u8], at: usize) -> Result<Option<Order>, Why> {
    let Some(magic) = bytes.get(at..).and_then(|rest| rest.get(8..)?.first_chunk::<4>()) else {
        return Ok(None);
    };
    match u32::from_le_bytes(*magic) {
        ORDER_MAGIC => Ok(Some(Order::Little)),
        value if value.swap_bytes() == ORDER_MAGIC => Ok(Some(Order::Big)),
        _ => Err(Why::SectionMagic { magic: *magic }),
    }
}

/// A block that lies wholly within the bytes and whose two lengths agree.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) kind: u32,
    pub(crate) total: u32,
}

/// The block at `at`, or why there is none.
#[inline]
pub(crate) fn block(order: Order, bytes: &[u8], at: usize) -> Result<Block, Halt> {
    let rest = bytes.get(at..).unwrap_or_default();
    let (Some(kind), Some(total)) = (order.u32(rest, 0), order.u32(rest, 4)) else {
        return Err(Halt::Short { needs: 8 });
    };
    if total < 12 || total % 4 != 0 {
        return Err(Halt::Broken(Why::BlockLength { says: total }));
    }
    if total > MAX_BLOCK {
        return Err(Halt::Broken(Why::BlockTooLong { says: total, limit: MAX_BLOCK }));
    }
    let length = total as usize;
    if length > rest.len() {
        return Err(Halt::Short { needs: length });
    }
    match order.u32(rest, length - 4) {
        Some(back) if back == total => Ok(Block { kind, total }),
        back => {
            let back = back.unwrap_or(0);
            Err(Halt::Broken(Why::BlockTrailer { front: total, back }))
        }
    }
}

/// The section header at `at`, with the byte order that it declares.
pub(crate) fn section(bytes: &[u8], at: usize) -> Result<(Block, Order), Halt> {
    let order = match section_order(bytes, at) {
        Ok(Some(order)) => order,
        Ok(None) => return Err(Halt::Short { needs: 12 }),
        Err(why) => return Err(Halt::Broken(why)),
    };
    let block = block(order, bytes, at)?;
    if block.total < 28 {
        let (kind, says) = (block.kind, block.total);
        return Err(Halt::Broken(Why::BlockShort { kind, says, needs: 28 }));
    }
    let major = order.u16(bytes, at + 12).unwrap_or(0);
    let minor = order.u16(bytes, at + 14).unwrap_or(0);
    if major == 1 { Ok((block, order)) } else { Err(Halt::Broken(Why::SectionVersion { major, minor })) }
}

/// Reads blocks one after the other, across sections.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Walker {
    /// Time of the last packet, for those without one.
    time: i64,
}

/// What makes up a packet of a block.
struct Packet {
    time: i64,
    captured: u32,
    head: usize,
    link: LinkType,
}

impl Walker {
    /// Appends the blocks of `origin`'s section that start at `at` or after and end within `bytes`,
    /// up to `max` in all or to where the look-ahead ends. The first block with damage that does not
    /// end reading is noted in `damage`.
    #[expect(clippy::too_many_arguments, reason = "the reader's state, in the pieces it can lend")]
    pub(crate) fn walk(
        &mut self,
        origin: &mut Origin,
        ahead: &mut Ahead,
        bytes: &[u8],
        at: usize,
        frames: &mut Vec<Frame>,
        max: usize,
        damage: &mut Option<(usize, Why)>,
    ) -> (usize, Option<Halt>) {
        let order = origin.order();
        let upto = ahead.prepare(&Blocks(order), bytes, at);
        let before = frames.len();
        let mut next = at;
        let mut guessed = 0;
        let mut guesses = ahead.lengths().iter();
        let halt = loop {
            if frames.len() >= max {
                break Some(Halt::Full);
            }
            if next >= upto && next < bytes.len() {
                break None;
            }
            if order.u32(bytes, next) == Some(SECTION) {
                break Some(Halt::Section);
            }
            let Block { kind, total } = match block(order, bytes, next) {
                Ok(block) => block,
                Err(halt) => break Some(halt),
            };
            let whole = bytes.get(next..).and_then(|rest| rest.get(..total as usize));
            match self.read(origin, kind, whole.unwrap_or_default()) {
                Ok(Some(packet)) => {
                    self.time = packet.time;
                    frames.push(Frame {
                        start: next as u64,
                        time: packet.time,
                        record: total,
                        captured: packet.captured,
                        head: packet.head as u16,
                        link: packet.link,
                    });
                }
                Ok(None) => frames.push(self.other(next, total)),
                Err(why) => {
                    // The framing is intact: the block alone is lost, and goes by as it is.
                    damage.get_or_insert((next, why));
                    frames.push(self.other(next, total));
                }
            }
            // The place of the next block comes from the guess where there is one: the processor
            // need not wait for the length in this one.
            next += match guesses.next() {
                Some(&guess) if guess == total => {
                    guessed += 1;
                    guess as usize
                }
                _ => {
                    guesses = [].iter();
                    total as usize
                }
            };
        };
        ahead.passed(next - at, frames.len() - before, guessed);
        (next, halt)
    }

    /// The packet in a block, if it is of a type that has one.
    fn read(&self, origin: &mut Origin, kind: u32, block: &[u8]) -> Result<Option<Packet>, Why> {
        match kind {
            PACKET | OLD_PACKET => self.packet(origin, kind, block).map(Some),
            SIMPLE => self.simple(origin, block).map(Some),
            INTERFACE => describe(origin, block).map(|()| None),
            _ => Ok(None),
        }
    }

    /// A record without a packet, to be passed on as it is.
    pub(crate) const fn other(&self, at: usize, total: u32) -> Frame {
        Frame { start: at as u64, time: self.time, record: total, captured: 0, head: 0, link: LinkType::NONE }
    }

    /// The packet of an Enhanced Packet Block, or of an obsolete Packet Block, whose interface
    /// field has 16 bits (the rest counts drops) and whose other fields are the same.
    fn packet(&self, origin: &Origin, kind: u32, block: &[u8]) -> Result<Packet, Why> {
        let order = origin.order();
        let body = block.get(..block.len().saturating_sub(4)).unwrap_or_default();
        let says = block.len() as u32;
        let fields = body.get(8..).and_then(|rest| rest.first_chunk::<20>());
        let fields = fields.ok_or(Why::BlockShort { kind, says, needs: 32 })?;
        let word = |at| order.u32(fields, at).unwrap_or(0);
        let id = match kind {
            PACKET => word(0),
            _ => u32::from(order.u16(fields, 0).unwrap_or(0)),
        };
        let captured = word(12);
        let room = (body.len() - PACKET_HEAD) as u32;
        let interface = known(origin, id)?;
        if captured > room {
            return Err(Why::PacketLength { says: captured, room });
        }
        let units = u64::from(word(4)) << 32 | u64::from(word(8));
        Ok(Packet {
            time: interface.resolution.nanoseconds(units, interface.offset),
            captured,
            head: PACKET_HEAD,
            link: interface.mark(),
        })
    }

    /// The packet of a Simple Packet Block: of interface 0, without a time stamp, captured up to
    /// the interface's snapshot length.
    fn simple(&self, origin: &Origin, block: &[u8]) -> Result<Packet, Why> {
        let body = block.get(..block.len().saturating_sub(4)).unwrap_or_default();
        let says = block.len() as u32;
        let wire = origin.order().u32(body, 8);
        let wire = wire.ok_or(Why::BlockShort { kind: SIMPLE, says, needs: 16 })?;
        let interface = known(origin, 0)?;
        let captured = interface.simple(wire);
        let room = (body.len() - SIMPLE_HEAD) as u32;
        if captured > room {
            return Err(Why::PacketLength { says: captured, room });
        }
        Ok(Packet { time: self.time, captured, head: SIMPLE_HEAD, link: interface.mark() })
    }
}

fn known(origin: &Origin, id: u32) -> Result<&Interface, Why> {
    origin.interface(id).ok_or_else(|| Why::Interface { id, known: origin.interfaces().len() as u32 })
}

fn describe(origin: &mut Origin, block: &[u8]) -> Result<(), Why> {
    let says = block.len() as u32;
    origin.describe(block).map_err(|()| Why::Interfaces { limit: MAX_INTERFACES })?;
    if says < 20 { Err(Why::BlockShort { kind: INTERFACE, says, needs: 20 }) } else { Ok(()) }
}

/// The look-ahead in a section: what stands there is blocks of this order.
struct Blocks(Order);

impl Chain for Blocks {
    const HEAD: usize = PACKET_HEAD;

    #[inline(always)]
    fn step(&self, near: &[u8; NEAR]) -> Option<u32> {
        let total = self.0.u32(near, 4)?;
        (total >= 12 && total % 4 == 0 && total <= MAX_BLOCK).then_some(total)
    }

    fn find(&self, bytes: &[u8], from: usize, to: usize) -> Option<usize> {
        // Enhanced Packet Blocks are what there is much of; their type has three zero bytes and a
        // six. The rest of the fixed part, and the length at the end, must agree with it.
        let [a, b, c, _] = self.0.bytes32(PACKET);
        let (shift, first, second) = match self.0 {
            Order::Little => (0, a, b),
            Order::Big => (2, c, PACKET as u8),
        };
        let mut from = from;
        while let Some(hit) = pair(bytes, from + shift, to + shift, first, second) {
            let at = hit - shift;
            if block(self.0, bytes, at).is_ok_and(|block| block.kind == PACKET && block.total >= 32) {
                return Some(at);
            }
            from = at + 1;
        }
        None
    }
}

#[cfg(test)]
#[path = "pcapng_tests.rs"]
mod tests;
