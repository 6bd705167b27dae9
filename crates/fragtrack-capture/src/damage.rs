//! What can be wrong with a capture file, where, and with which value.

use std::fmt;

/// A place in a file that does not follow the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage {
    /// Byte of the file at which the record in question starts.
    pub offset: u64,
    /// What is wrong there.
    pub why: Why,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.why)
    }
}

impl std::error::Error for Damage {}

/// The kinds of damage, each with the offending value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The file has no bytes at all.
    Empty,
    /// The first bytes are of no known capture format.
    NotACapture {
        /// The first four bytes, as they stand in the file.
        magic: [u8; 4],
    },
    /// The bytes end inside a header, record or block.
    Cut {
        /// Bytes that are there.
        has: u64,
        /// Bytes that would have to be there.
        needs: u64,
    },
    /// pcap: a record claims more bytes than a record can have.
    RecordLength {
        /// Captured length that the record states.
        says: u32,
        /// Largest length allowed in this file.
        limit: u32,
    },
    /// pcapng: a block length below 12 or not a multiple of four.
    BlockLength {
        /// Total length that the block states.
        says: u32,
    },
    /// pcapng: a block longer than a stream may have to hold in memory.
    BlockTooLong {
        /// Total length that the block states.
        says: u32,
        /// Largest length accepted.
        limit: u32,
    },
    /// pcapng: the two lengths of a block differ.
    BlockTrailer {
        /// Length before the body.
        front: u32,
        /// Length after the body.
        back: u32,
    },
    /// pcapng: a section header without the byte-order magic.
    SectionMagic {
        /// The four bytes that stand in its place.
        magic: [u8; 4],
    },
    /// pcapng: a section of an unknown version.
    SectionVersion {
        /// Major version; 1 is known.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// pcapng: a block too short for the fixed part of its type. Reading goes on.
    BlockShort {
        /// Block type.
        kind: u32,
        /// Total length that the block states.
        says: u32,
        /// Smallest total length of that type.
        needs: u32,
    },
    /// pcapng: a packet longer than its block. Reading goes on.
    PacketLength {
        /// Captured length that the packet states.
        says: u32,
        /// Bytes that the block has for it.
        room: u32,
    },
    /// pcapng: a packet of an interface that was not described before. Reading goes on.
    Interface {
        /// Interface that the packet names.
        id: u32,
        /// Interfaces described so far in the section.
        known: u32,
    },
    /// pcapng: more interfaces in a section than are remembered. Reading goes on.
    Interfaces {
        /// Interfaces remembered in a section.
        limit: u32,
    },
}

impl Why {
    /// Whether nothing after this place can be read: the next record cannot be found.
    #[must_use]
    pub const fn ends_reading(self) -> bool {
        match self {
            Self::Empty
            | Self::NotACapture { .. }
            | Self::Cut { .. }
            | Self::RecordLength { .. }
            | Self::BlockLength { .. }
            | Self::BlockTooLong { .. }
            | Self::BlockTrailer { .. }
            | Self::SectionMagic { .. }
            | Self::SectionVersion { .. } => true,
            Self::BlockShort { .. } | Self::PacketLength { .. } | Self::Interface { .. } | Self::Interfaces { .. } => {
                false
            }
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => write!(f, "empty file"),
            Self::NotACapture { magic: [a, b, c, d] } => {
                write!(f, "not a capture: starts with bytes {a:02x} {b:02x} {c:02x} {d:02x}")
            }
            Self::Cut { has, needs } => write!(f, "cut off record: {has} of {needs} bytes"),
            Self::RecordLength { says, limit } => {
                write!(f, "record says {says} bytes were captured, at most {limit} are possible")
            }
            Self::BlockLength { says } => {
                write!(f, "block says it is {says} bytes long, must be a multiple of 4 from 12 up")
            }
            Self::BlockTooLong { says, limit } => {
                write!(f, "block says it is {says} bytes long, at most {limit} are read")
            }
            Self::BlockTrailer { front, back } => {
                write!(f, "block says it is {front} bytes long at its start and {back} at its end")
            }
            Self::SectionMagic { magic: [a, b, c, d] } => {
                write!(f, "section header with byte-order magic {a:02x} {b:02x} {c:02x} {d:02x}")
            }
            Self::SectionVersion { major, minor } => {
                write!(f, "section of version {major}.{minor}, known is 1.0")
            }
            Self::BlockShort { kind, says, needs } => {
                write!(f, "block of type {kind} is {says} bytes long, must be at least {needs}")
            }
            Self::PacketLength { says, room } => {
                write!(f, "packet says {says} bytes were captured, its block has {room}")
            }
            Self::Interface { id, known } => {
                write!(f, "packet of interface {id}, but only {known} are described")
            }
            Self::Interfaces { limit } => {
                write!(f, "more than {limit} interfaces in one section")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_with_the_value() {
        let damage = Damage { offset: 40, why: Why::Cut { has: 3, needs: 16 } };
        assert_eq!(damage.to_string(), "at byte 40: cut off record: 3 of 16 bytes");
        let why = Why::NotACapture { magic: [0x1f, 0x8b, 8, 0] };
        assert_eq!(why.to_string(), "not a capture: starts with bytes 1f 8b 08 00");
        assert!(why.ends_reading());
        assert!(!Why::Interface { id: 3, known: 1 }.ends_reading());
    }
}
