//! From a frame to a fragment that is ready to be placed: decoded, its key hashed, its line of the index asked for.

use crate::config::Checksum;
use crate::engine::{Context, Engine};
use crate::frag::index::NIL;
use crate::frame::Frame;
use crate::reason::Reason;
use crate::wire::{Addresses, Family, Fragment, ipv4, ipv6, link};

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Pass,
    Fragment(Family),
    Atomic,
    Fault { family: Family, reason: Reason, problem: Option<ipv6::Problem>, fragment: bool, short: bool },
}

#[derive(Clone, Copy)]
pub(crate) struct Staged {
    pub(crate) kind: Kind,
    pub(crate) hash: u32,
    /// The queue it probably belongs to.
    pub(crate) guess: u32,
    /// Byte of the frame at which its IP header starts.
    pub(crate) ip: u32,
    pub(crate) fragment: Fragment,
    /// IPv6 only.
    pub(crate) wide: Addresses,
}

pub(crate) const UNSTAGED: Staged =
    Staged { kind: Kind::Pass, hash: 0, guess: NIL, ip: 0, fragment: Fragment::NONE, wide: [0; 4] };

impl Engine {
    #[inline(always)]
    pub(crate) fn stage(&mut self, segment: &[u8], frame: &Frame, staged: &mut Staged) {
        staged.kind = Kind::Pass;
        let start = frame.start as usize + usize::from(frame.head);
        let Some(bytes) = segment.get(start..start + frame.captured as usize) else { return };
        let Some(located) = link::locate(frame.link, bytes) else { return };
        let Some(packet) = bytes.get(located.ip..) else { return };
        staged.ip = located.ip as u32;
        self.stage_packet(packet, located.domain, false, staged);
    }

    #[inline(always)]
    pub(crate) fn stage_packet(&mut self, packet: &[u8], domain: u64, host: bool, staged: &mut Staged) {
        let Some(version) = packet.first().map(|byte| byte >> 4) else {
            staged.kind = refused(host, Family::V4, Reason::Header);
            return;
        };
        match version {
            4 => self.stage4(packet, domain, host, staged),
            6 => self.stage6(packet, domain, host, staged),
            _ => staged.kind = refused(host, Family::V4, Reason::Header),
        }
    }

    #[inline(always)]
    fn stage4(&mut self, packet: &[u8], domain: u64, host: bool, staged: &mut Staged) {
        let mut wrong = false;
        let decoded = ipv4::decode(packet, domain, host, &mut staged.fragment, &mut wrong);
        let verify = self.config.checksum == Checksum::Verify;
        let fragment = ipv4_fragment_field(packet);
        match decoded {
            _ if wrong && verify && (fragment || host) => {
                staged.kind = fault(Family::V4, Reason::Checksum, fragment, false);
            }
            Ok(false) => staged.kind = Kind::Pass,
            Ok(true) => {
                self.totals.bad_checksum = self.totals.bad_checksum.wrapping_add(u64::from(wrong));
                staged.kind = Kind::Fragment(Family::V4);
                let table = self.table(Family::V4);
                staged.hash = table.hash(&staged.fragment, &staged.wide);
                table.prefetch_index(staged.hash);
            }
            Err(reason) if fragment || host => {
                let header = packet.first().map_or(0, |byte| usize::from(byte & 15) * 4);
                let short = packet.len() < header.max(20);
                staged.kind = fault(Family::V4, reason, fragment, short);
            }
            Err(_) => staged.kind = Kind::Pass,
        }
    }

    #[inline]
    fn stage6(&mut self, packet: &[u8], domain: u64, host: bool, staged: &mut Staged) {
        match ipv6::decode(packet, domain, self.config.path, host, &mut staged.fragment, &mut staged.wide) {
            ipv6::Decoded::Whole => staged.kind = Kind::Pass,
            ipv6::Decoded::Fragment => {
                staged.kind = Kind::Fragment(Family::V6);
                let table = self.table(Family::V6);
                staged.hash = table.hash(&staged.fragment, &staged.wide);
                table.prefetch_index(staged.hash);
            }
            ipv6::Decoded::Atomic => staged.kind = Kind::Atomic,
            ipv6::Decoded::Fault { reason, problem, fragment } => {
                let short = packet.len() < ipv6::FIXED;
                staged.kind = Kind::Fault { family: Family::V6, reason, problem, fragment, short };
            }
        }
    }
}

const fn fault(family: Family, reason: Reason, fragment: bool, short: bool) -> Kind {
    Kind::Fault { family, reason, problem: None, fragment, short }
}

/// The packet of a frame, from the IP header to its IP length.
pub(crate) fn packet_of<'a>(context: &Context<'a>, staged: &Staged) -> &'a [u8] {
    let frame = context.frame;
    let start = frame.start as usize + usize::from(frame.head);
    let bytes = context.batch.segment.get(start + staged.ip as usize..start + frame.captured as usize).unwrap_or(&[]);
    ipv6::packet(bytes)
}

/// A packet that is no IP: a host drops it, a capture passes it.
const fn refused(host: bool, family: Family, reason: Reason) -> Kind {
    if host { fault(family, reason, false, true) } else { Kind::Pass }
}

/// Whether the flags and offset, as far as they are there, say fragment.
#[inline(always)]
fn ipv4_fragment_field(packet: &[u8]) -> bool {
    packet.len() >= 20 && crate::wire::be16(packet, 6).is_some_and(|field| field & 0x3fff != 0)
}
