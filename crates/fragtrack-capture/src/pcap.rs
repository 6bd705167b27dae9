//! Records of pcap files (draft-ietf-opsawg-pcap, "Packet Record").

use fragtrack_core::frame::{Frame, LinkType};

use crate::ahead::{Ahead, Chain, NEAR, pair};
use crate::damage::Why;
use crate::order::Order;
use crate::origin::{Interface, Layout, Origin, Pcap};
use crate::reader::Halt;

/// Bytes of a file header (draft-ietf-opsawg-pcap, "File Header").
pub(crate) const FILE_HEADER: usize = 24;

/// Reads records one after the other, in one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walker {
    pcap: Pcap,
    link: LinkType,
    limit: u32,
    /// Seconds of the last record read: what a record to come looks like.
    second: u32,
}

impl Walker {
    pub(crate) fn new(pcap: Pcap, origin: &Origin) -> Self {
        Self {
            pcap,
            link: origin.interface(0).map_or(LinkType::NONE, Interface::mark),
            limit: origin.record_limit(),
            second: 0,
        }
    }

    /// Appends the records that start at `at` or after and end within `bytes`, up to `max` in all
    /// or to where the look-ahead ends.
    pub(crate) fn walk(
        &mut self,
        ahead: &mut Ahead,
        bytes: &[u8],
        at: usize,
        frames: &mut Vec<Frame>,
        max: usize,
    ) -> (usize, Option<Halt>) {
        // One loop for each shape, so that no record waits for a choice.
        match (self.pcap.order, self.pcap.layout) {
            (Order::Little, Layout::Classic) => self.shaped::<false, 16>(ahead, bytes, at, frames, max),
            (Order::Big, Layout::Classic) => self.shaped::<true, 16>(ahead, bytes, at, frames, max),
            (Order::Little, Layout::Modified) => self.shaped::<false, 24>(ahead, bytes, at, frames, max),
            (Order::Big, Layout::Modified) => self.shaped::<true, 24>(ahead, bytes, at, frames, max),
        }
    }

    #[inline(always)]
    fn shaped<const BIG: bool, const HEAD: usize>(
        &mut self,
        ahead: &mut Ahead,
        bytes: &[u8],
        at: usize,
        frames: &mut Vec<Frame>,
        max: usize,
    ) -> (usize, Option<Halt>) {
        let upto = ahead.prepare(&Shape::<BIG, HEAD>(*self), bytes, at);
        let before = frames.len();
        let mut next = at;
        let mut guessed = 0;
        // The place of a record comes from the guesses before it, not from what the records say:
        // the processor need not wait for one to ask for the next.
        for &guess in ahead.lengths().iter().take(max.saturating_sub(before)) {
            match self.length::<BIG, HEAD>(bytes, next) {
                Ok((header, length)) if length == guess => {
                    frames.push(self.frame::<BIG, HEAD>(header, next, length));
                }
                _ => break,
            }
            next += guess as usize;
            guessed += 1;
        }
        let halt = loop {
            if frames.len() >= max {
                break Some(Halt::Full);
            }
            if next >= upto && next < bytes.len() {
                break None;
            }
            match self.length::<BIG, HEAD>(bytes, next) {
                Ok((header, length)) => {
                    frames.push(self.frame::<BIG, HEAD>(header, next, length));
                    next += length as usize;
                }
                Err(halt) => break Some(halt),
            }
        };
        if let Some(last) = frames.last() {
            self.second = u32::try_from(last.time / 1_000_000_000).unwrap_or(u32::MAX);
        }
        ahead.passed(next - at, frames.len() - before, guessed);
        (next, halt)
    }

    /// Header and length of the record at `at`, if it lies wholly within `bytes`.
    #[inline(always)]
    fn length<'a, const BIG: bool, const HEAD: usize>(
        &self,
        bytes: &'a [u8],
        at: usize,
    ) -> Result<(&'a [u8; HEAD], u32), Halt> {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(header) = rest.first_chunk::<HEAD>() else {
            return Err(Halt::Short { needs: HEAD });
        };
        let captured = word::<BIG>(header, 8);
        if captured > self.limit {
            return Err(Halt::Broken(Why::RecordLength { says: captured, limit: self.limit }));
        }
        // The limit is far below the end of 32 bits.
        let length = HEAD as u32 + captured;
        if length as usize > rest.len() {
            return Err(Halt::Short { needs: length as usize });
        }
        Ok((header, length))
    }

    #[inline(always)]
    fn frame<const BIG: bool, const HEAD: usize>(&self, header: &[u8; HEAD], at: usize, length: u32) -> Frame {
        let second = i64::from(word::<BIG>(header, 0));
        let fraction = i64::from(word::<BIG>(header, 4));
        Frame {
            start: at as u64,
            // Fractions of a second and more are added as they are: at most 4.3e18 in all.
            time: second * 1_000_000_000 + fraction * self.pcap.unit.nanoseconds(),
            record: length,
            captured: word::<BIG>(header, 8),
            head: HEAD as u16,
            link: self.link,
        }
    }
}

#[inline(always)]
fn word<const BIG: bool>(header: &[u8], at: usize) -> u32 {
    let order = if BIG { Order::Big } else { Order::Little };
    order.u32(header, at).unwrap_or(0)
}

/// The look-ahead in a file of this shape.
struct Shape<const BIG: bool, const HEAD: usize>(Walker);

impl<const BIG: bool, const HEAD: usize> Chain for Shape<BIG, HEAD> {
    const HEAD: usize = HEAD;

    #[inline(always)]
    fn step(&self, near: &[u8; NEAR]) -> Option<u32> {
        let captured = word::<BIG>(near, 8);
        (captured <= self.0.limit).then(|| HEAD as u32 + captured)
    }

    fn find(&self, bytes: &[u8], from: usize, to: usize) -> Option<usize> {
        // The upper half of the seconds is the same for 18 hours: two bytes to look for.
        let [a, b, c, d] = self.0.pcap.order.bytes32(self.0.second);
        let (shift, first, second) = if BIG { (0, a, b) } else { (2, c, d) };
        let mut from = from;
        while let Some(hit) = pair(bytes, from + shift, to + shift, first, second) {
            let at = hit - shift;
            if self.plausible(bytes, at) {
                return Some(at);
            }
            from = at + 1;
        }
        None
    }
}

impl<const BIG: bool, const HEAD: usize> Shape<BIG, HEAD> {
    /// Whether a record could start at `at`, and another after it.
    fn plausible(&self, bytes: &[u8], at: usize) -> bool {
        let next = self.likely(bytes, at);
        next.is_some_and(|next| next >= bytes.len() || self.likely(bytes, next).is_some())
    }

    /// The end of a record that could start at `at`.
    fn likely(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let header = bytes.get(at..)?.first_chunk::<HEAD>()?;
        let second = word::<BIG>(header, 0);
        let fraction = i64::from(word::<BIG>(header, 4));
        let captured = word::<BIG>(header, 8);
        let wire = word::<BIG>(header, 12);
        let near = second.abs_diff(self.0.second) <= 1 << 17;
        let whole = fraction * self.0.pcap.unit.nanoseconds() < 1_000_000_000;
        (near && whole && captured > 0 && captured <= wire && captured <= self.0.limit)
            .then(|| at + HEAD + captured as usize)
    }
}

#[cfg(test)]
#[path = "pcap_tests.rs"]
mod tests;
