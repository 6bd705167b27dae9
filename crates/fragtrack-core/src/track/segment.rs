//! A TCP segment, read once: numbers, class, options.

use super::verdict::{Reason, Why};
use crate::wire::{be16, be32};

/// FIN.
pub const FIN: u8 = 1;
/// SYN.
pub const SYN: u8 = 2;
/// RST.
pub const RST: u8 = 4;
/// PSH.
pub const PSH: u8 = 8;
/// ACK.
pub const ACK: u8 = 16;
/// URG.
pub const URG: u8 = 32;
const ECE: u8 = 64;
const CWR: u8 = 128;
/// Length of a header without options.
pub const HEADER: usize = 20;
/// Largest window scale (RFC 7323 section 2.3).
const MOST_SCALE: u8 = 14;

/// What kind of segment, by the first flag that matches (`get_conntrack_index`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// SYN alone.
    Syn = 0,
    /// SYN and ACK.
    SynAck = 1,
    /// FIN.
    Fin = 2,
    /// ACK.
    Ack = 3,
    /// RST.
    Rst = 4,
    /// None of these.
    None = 5,
}

impl Kind {
    #[inline(always)]
    const fn of(flags: u8) -> Self {
        if flags & RST != 0 {
            Self::Rst
        } else if flags & SYN != 0 {
            if flags & ACK != 0 { Self::SynAck } else { Self::Syn }
        } else if flags & FIN != 0 {
            Self::Fin
        } else if flags & ACK != 0 {
            Self::Ack
        } else {
            Self::None
        }
    }

    /// From its number.
    #[inline(always)]
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Syn,
            1 => Self::SynAck,
            2 => Self::Fin,
            3 => Self::Ack,
            4 => Self::Rst,
            _ => Self::None,
        }
    }
}

/// What the options of a segment say, in a byte. Options that were not there at all are not the same as none of
/// interest: they leave what is known as it is (`tcp_options`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options(u8);

impl Options {
    const THERE: u8 = 1;
    const SCALED: u8 = 2;
    const SACK_PERMITTED: u8 = 4;
    /// Place of the window scale.
    const SCALE: u32 = 4;

    /// There are options.
    #[inline(always)]
    #[must_use]
    pub const fn there(self) -> bool {
        self.0 & Self::THERE != 0
    }

    /// Window scale, at most 14.
    #[inline(always)]
    #[must_use]
    pub const fn scale(self) -> Option<u8> {
        if self.0 & Self::SCALED == 0 { None } else { Some(self.0 >> Self::SCALE) }
    }

    /// Selective acknowledgments are permitted (RFC 2018).
    #[inline(always)]
    #[must_use]
    pub const fn sack_permitted(self) -> bool {
        self.0 & Self::SACK_PERMITTED != 0
    }

    const fn set_scale(&mut self, scale: u8) {
        let scale = if scale > MOST_SCALE { MOST_SCALE } else { scale };
        self.0 = self.0 & 0x0f | Self::SCALED | scale << Self::SCALE;
    }
}

/// One segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number, whatever the ACK flag says.
    pub ack: u32,
    /// Behind its last byte; SYN and FIN count as one each.
    pub end: u32,
    /// The acknowledgment number, or the highest right edge of its SACK blocks.
    pub sack: u32,
    /// Window as it stands there.
    pub window: u16,
    /// All flags.
    pub flags: u8,
    /// What kind.
    pub kind: Kind,
    /// Options.
    pub options: Options,
}

impl Segment {
    /// Before reading.
    pub const NONE: Self =
        Self { seq: 0, ack: 0, end: 0, sack: 0, window: 0, flags: 0, kind: Kind::None, options: Options(0) };

    /// Whether a flag is set.
    #[inline(always)]
    #[must_use]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Combinations of flags that occur, with PSH, ECE and CWR left out (`tcp_valid_flags`): a bit for each.
const VALID: u64 = 1 << SYN
    | 1 << (SYN | URG)
    | 1 << (SYN | ACK)
    | 1 << RST
    | 1 << (RST | ACK)
    | 1 << (FIN | ACK)
    | 1 << (FIN | ACK | URG)
    | 1 << ACK
    | 1 << (ACK | URG);

/// Reads the segment that starts `bytes`, which were captured of `length` bytes; `verify` says what is wrong with
/// the checksum (`tcp_error`).
///
/// # Errors
/// Short, offset, checksum, flags; in the kernel's order.
#[inline(always)]
pub fn read(bytes: &[u8], length: usize, verify: impl FnOnce() -> Option<Why>) -> Result<Segment, Why> {
    let Some(fixed) = bytes.first_chunk::<HEADER>() else {
        return Err(Why::new(Reason::Short, bytes.len() as u32, HEADER as u32));
    };
    let [_, _, _, _, s0, s1, s2, s3, a0, a1, a2, a3, offset, flags, w0, w1, ..] = *fixed;
    let header = usize::from(offset >> 4) * 4;
    if header < HEADER || header > length {
        return Err(Why::new(Reason::Offset, header as u32, length as u32));
    }
    if let Some(why) = verify() {
        return Err(why);
    }
    let bare = flags & !(PSH | ECE | CWR);
    if VALID >> bare & 1 == 0 {
        return Err(Why::got(Reason::Flags, u32::from(bare)));
    }
    let seq = u32::from_be_bytes([s0, s1, s2, s3]);
    let ack = u32::from_be_bytes([a0, a1, a2, a3]);
    let syn_fin = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
    let payload = length.wrapping_sub(header) as u32;
    let end = seq.wrapping_add(payload).wrapping_add(syn_fin);
    let window = u16::from_be_bytes([w0, w1]);
    let (options, sack) = if header > HEADER {
        // What was not captured of them is as if it were malformed.
        read_options(bytes.get(HEADER..header.min(bytes.len())).unwrap_or(&[]), ack)
    } else {
        (Options(0), ack)
    };
    Ok(Segment { seq, ack, end, sack, window, flags, kind: Kind::of(flags), options })
}

const END: u8 = 0;
const NOP: u8 = 1;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
/// Two NOPs and a time stamp: what nearly every segment has, and nothing that matters here.
const TIME_STAMP: u32 = 0x0101_080a;
const TIME_STAMP_LENGTH: usize = 12;

/// What the options say, and the highest number acknowledged with them.
#[inline(always)]
fn read_options(options: &[u8], ack: u32) -> (Options, u32) {
    if options.len() == TIME_STAMP_LENGTH && be32(options, 0) == Some(TIME_STAMP) {
        return (Options(Options::THERE), ack);
    }
    read_all_options(options, ack)
}

/// Walks the options until one is malformed (`tcp_options`, `tcp_sack`).
#[inline(never)]
fn read_all_options(mut rest: &[u8], ack: u32) -> (Options, u32) {
    let (mut options, mut sack, mut sacked) = (Options(Options::THERE), ack, false);
    while let [kind, behind @ ..] = rest {
        match *kind {
            END => break,
            NOP => rest = behind,
            kind => {
                let size = behind.first().map_or(0, |size| usize::from(*size));
                let Some(option) = rest.get(..size).filter(|_| size >= 2) else { break };
                match (kind, size) {
                    (SCALE, 3) => options.set_scale(option.get(2).copied().unwrap_or(0)),
                    (SACK_PERMITTED, 2) => options.0 |= Options::SACK_PERMITTED,
                    (SACK, 10..) if !sacked && (size - 2).is_multiple_of(8) => {
                        // Only the first such option counts.
                        sacked = true;
                        for block in option.get(2..).unwrap_or(&[]).chunks_exact(8) {
                            sack = be32(block, 4).filter(|edge| after(*edge, sack)).unwrap_or(sack);
                        }
                    }
                    _ => {}
                }
                rest = rest.get(size..).unwrap_or(&[]);
            }
        }
    }
    (options, sack)
}

/// Whether `a` comes before `b`, modulo 2^32.
#[inline(always)]
#[must_use]
pub const fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `a` comes after `b`, modulo 2^32.
#[inline(always)]
#[must_use]
pub const fn after(a: u32, b: u32) -> bool {
    before(b, a)
}

/// Ports of TCP, UDP, UDP-Lite and SCTP: source, destination. The kernel needs no more than these four bytes to
/// look a connection up.
#[inline(always)]
#[must_use]
pub fn ports(bytes: &[u8]) -> Option<(u16, u16)> {
    Some((be16(bytes, 0)?, be16(bytes, 2)?))
}
