//! ICMP and ICMPv6 types: queries and their answers, errors, what is not tracked.

use crate::wire::Family;

/// A query type, and whether the type given is its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Query {
    /// The type of the request.
    pub request: u8,
    /// The type given is the answer.
    pub answer: bool,
}

/// The query that a type belongs to (`invmap`); `None`: it cannot be answered.
#[must_use]
pub const fn query(family: Family, kind: u8) -> Option<Query> {
    let (request, answer) = match (family, kind) {
        (Family::V4, 8 | 13 | 15 | 17) | (Family::V6, 128 | 139) => (kind, false),
        (Family::V4, 0) => (8, true),
        (Family::V4, 14 | 16 | 18) | (Family::V6, 129 | 140) => (kind - 1, true),
        _ => return None,
    };
    Some(Query { request, answer })
}

/// Highest ICMP type that is known (`NR_ICMP_TYPES`).
pub const HIGHEST: u8 = 18;

/// Whether a message is an error about another packet (`icmp_is_err`).
#[must_use]
pub const fn is_error(family: Family, kind: u8) -> bool {
    match family {
        Family::V4 => matches!(kind, 3 | 4 | 5 | 11 | 12),
        Family::V6 => kind < 128,
    }
}

/// Whether an ICMPv6 message is exempt: listener discovery, neighbor and router discovery (`noct_valid_new`).
#[must_use]
pub const fn is_exempt(kind: u8) -> bool {
    matches!(kind, 130..=136 | 143 | 151 | 152)
}

/// ICMPv6 redirect.
pub const REDIRECT: u8 = 137;
/// Its fixed part.
pub const REDIRECT_HEADER: usize = 40;
/// Option that quotes the redirected packet, and its length without the quote.
pub const REDIRECTED: (u8, usize) = (4, 8);
/// Length of the ICMP header.
pub const HEADER: usize = 8;
