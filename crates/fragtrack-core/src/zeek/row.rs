//! A flow that ended, as a line of Zeek's conn.log.

use super::flow::{Base, Side};
use super::history::History;
use super::segment::{ICMP, ICMPV6, TCP, UDP};
use crate::frag::key::SipHash;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What became of a connection, in one word of conn.log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs, clippy::upper_case_acronyms)] // the words are Zeek's
pub enum ConnState {
    S0,
    S1,
    SF,
    REJ,
    S2,
    S3,
    RSTO,
    RSTR,
    RSTOS0,
    RSTRH,
    SH,
    SHR,
    OTH,
}

impl ConnState {
    /// The word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::S0 => "S0",
            Self::S1 => "S1",
            Self::SF => "SF",
            Self::REJ => "REJ",
            Self::S2 => "S2",
            Self::S3 => "S3",
            Self::RSTO => "RSTO",
            Self::RSTR => "RSTR",
            Self::RSTOS0 => "RSTOS0",
            Self::RSTRH => "RSTRH",
            Self::SH => "SH",
            Self::SHR => "SHR",
            Self::OTH => "OTH",
        }
    }
}

/// Identifier of a connection: `C` and 17 digits of base 62.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Uid([u8; 18]);

impl Uid {
    /// The letters, ASCII.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl core::fmt::Debug for Uid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One connection.
///
/// Originator and responder are those at the end. For ICMP the ports are the type of what the originator sends, and
/// the type of the answer, or the code where there is no answer. For protocols without ports both are the protocol
/// number.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Time stamp of the first packet, ns.
    pub ts: i64,
    /// Identifier. The same input and key give the same.
    pub uid: Uid,
    /// 4 or 6.
    pub version: u8,
    /// IP protocol.
    pub ip_proto: u8,
    /// Address of the originator; an IPv4 address in the low 32 bits.
    pub orig_h: u128,
    /// Port of the originator.
    pub orig_p: u16,
    /// Address of the responder.
    pub resp_h: u128,
    /// Port of the responder.
    pub resp_p: u16,
    /// From the first to the last packet, ns; `None` if that is no time. Packets behind the close of both sides do
    /// not prolong it.
    pub duration: Option<i64>,
    /// Payload of the originator, for TCP by sequence numbers; `None` without a duration.
    pub orig_bytes: Option<u64>,
    /// Payload of the responder.
    pub resp_bytes: Option<u64>,
    /// What became of it.
    pub conn_state: ConnState,
    /// Bytes of TCP payload that were acknowledged and not seen.
    pub missed_bytes: u64,
    /// What happened, in order; may be empty.
    pub history: History,
    /// Packets of the originator.
    pub orig_pkts: u64,
    /// Their lengths by the IP header.
    pub orig_ip_bytes: u64,
    /// Packets of the responder.
    pub resp_pkts: u64,
    /// Their lengths by the IP header.
    pub resp_ip_bytes: u64,
}

impl Row {
    /// The transport protocol as conn.log names it.
    #[must_use]
    pub const fn proto(&self) -> &'static str {
        match self.ip_proto {
            TCP => "tcp",
            UDP => "udp",
            ICMP | ICMPV6 => "icmp",
            _ => "unknown_transport",
        }
    }
}

/// A keyed hash of what is known when a flow opens, its endpoints as the first packet names them. The first ten digits
/// come from the hash of these words and a 0, the other seven from that with a 1.
pub(super) fn uid(key: &SipHash, base: &Base, opener: [Side; 2]) -> Uid {
    let [source, destination] = opener;
    let halves = |address: u128| [(address >> 64) as u64, address as u64];
    let ([s0, s1], [d0, d1]) = (halves(source.address), halves(destination.address));
    let ports = u64::from(source.port) << 48 | u64::from(destination.port) << 32;
    let rest = ports | u64::from(base.protocol) << 8 | u64::from(base.version);
    let hash = |last: u64| key.hash([base.number, base.first as u64, s0, s1, d0, d1, rest, base.zone, last]);
    let mut text = [b'C'; 18];
    let [_, digits @ ..] = &mut text;
    let (front, back) = digits.split_at_mut(10);
    write_digits(front, hash(0));
    write_digits(back, hash(1));
    Uid(text)
}

/// Writes the lowest digits of a number, the highest first.
fn write_digits(places: &mut [u8], mut number: u64) {
    for place in places.iter_mut().rev() {
        *place = DIGITS.get((number % 62) as usize).copied().unwrap_or_default();
        number /= 62;
    }
}
