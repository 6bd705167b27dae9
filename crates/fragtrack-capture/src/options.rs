//! Option lists of pcapng blocks (draft-ietf-opsawg-pcapng, "Options").

use crate::order::{Order, padding};

/// End of the list.
const END: u16 = 0;
/// Resolution of time stamps, one byte.
pub(crate) const IF_TSRESOL: u16 = 9;
/// Seconds to add to time stamps, eight bytes.
pub(crate) const IF_TSOFFSET: u16 = 14;
/// Hash of the packet's bytes; the code is the same in the obsolete Packet Block.
pub(crate) const EPB_HASH: u16 = 3;

/// Which block a list belongs to: codes below 2988 mean something else in each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// Interface Description Block.
    Interface,
    /// Enhanced Packet Block or the obsolete Packet Block.
    Packet,
}

/// How the numbers in an option's value stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// None: text, addresses, single bytes.
    None,
    /// All of it is 32-bit numbers.
    Words,
    /// All of it is 64-bit numbers.
    Longs,
    /// A 32-bit enterprise number, then bytes only the enterprise understands.
    Enterprise,
}

const fn numbers(scope: Scope, code: u16) -> Numbers {
    match (scope, code) {
        (_, 2988 | 2989 | 19372 | 19373) => Numbers::Enterprise,
        // if_tzone
        (Scope::Interface, 10) => Numbers::Words,
        // if_speed, if_tsoffset, if_txspeed, if_rxspeed
        (Scope::Interface, 8 | IF_TSOFFSET | 16 | 17) => Numbers::Longs,
        // epb_flags, epb_queue, epb_processid_threadid
        (Scope::Packet, 2 | 6 | 8) => Numbers::Words,
        // epb_dropcount, epb_packetid
        (Scope::Packet, 4 | 5) => Numbers::Longs,
        (Scope::Interface | Scope::Packet, _) => Numbers::None,
    }
}

/// The options of a list, as code and value. Ends at `opt_endofopt`, at the end of the bytes, or at
/// an option longer than what is left.
pub(crate) fn walk(order: Order, list: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let code = order.u16(rest, 0)?;
        let length = usize::from(order.u16(rest, 2)?);
        if code == END {
            return None;
        }
        let value = rest.get(4..)?.get(..length)?;
        // A last option may lack its padding and still be whole.
        rest = rest.get(4 + length + padding(length)..).unwrap_or_default();
        Some((code, value))
    })
}

/// Appends the options of `list` except those with a code in `without`, numbers turned from order
/// `from` to `to`. `opt_endofopt` follows if there is any option left.
pub(crate) fn copy(list: &[u8], from: Order, to: Order, scope: Scope, without: &[u16], out: &mut Vec<u8>) {
    let start = out.len();
    for (code, value) in walk(from, list).filter(|(code, _)| !without.contains(code)) {
        to.put16(out, code);
        to.put16(out, u16::try_from(value.len()).unwrap_or(u16::MAX));
        if from == to {
            out.extend_from_slice(value);
        } else {
            turned(numbers(scope, code), value, out);
        }
        out.resize(out.len() + padding(value.len()), 0);
    }
    if out.len() > start {
        out.extend_from_slice(&[0; 4]);
    }
}

/// Appends `value` with the bytes of its numbers reversed.
fn turned(numbers: Numbers, value: &[u8], out: &mut Vec<u8>) {
    let (width, upto) = match numbers {
        Numbers::None => (1, 0),
        Numbers::Words => (4, value.len()),
        Numbers::Longs => (8, value.len()),
        Numbers::Enterprise => (4, 4),
    };
    let (front, back) = value.split_at_checked(upto).unwrap_or((&[], value));
    for number in front.chunks(width) {
        if number.len() == width {
            out.extend(number.iter().rev());
        } else {
            out.extend_from_slice(number);
        }
    }
    out.extend_from_slice(back);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = &[
        1, 0, 5, 0, b'h', b'e', b'l', b'l', b'o', 0, 0, 0, // opt_comment
        3, 0, 5, 0, 2, 1, 2, 3, 4, 0, 0, 0, // epb_hash
        2, 0, 4, 0, 9, 0, 0, 0, // epb_flags
        0, 0, 0, 0, // opt_endofopt
        7, 0, 1, 0, 1, 0, 0, 0, // nothing
    ];

    #[test]
    fn walk_ends_at_the_end_mark() {
        let codes: Vec<u16> = walk(Order::Little, LIST).map(|(code, _)| code).collect();
        assert_eq!(codes, [1, 3, 2]);
    }

    #[test]
    fn walk_stops_at_an_option_longer_than_the_list() {
        assert_eq!(walk(Order::Little, &[1, 0, 5, 0, 1, 2, 3, 4]).count(), 0);
        assert_eq!(walk(Order::Little, &[1, 0, 3, 0, 1, 2, 3]).count(), 1);
        assert_eq!(walk(Order::Little, &[1, 0, 0xff, 0xff]).count(), 0);
        assert_eq!(walk(Order::Little, &[1, 0, 3]).count(), 0);
    }

    #[test]
    fn copy_without_the_hash_in_the_other_order() {
        let mut out = Vec::new();
        copy(LIST, Order::Little, Order::Big, Scope::Packet, &[EPB_HASH], &mut out);
        let want = [0, 1, 0, 5, b'h', b'e', b'l', b'l', b'o', 0, 0, 0, 0, 2, 0, 4, 0, 0, 0, 9, 0, 0, 0, 0];
        assert_eq!(out, want);
    }

    #[test]
    fn copy_of_nothing_writes_nothing() {
        let mut out = Vec::new();
        let hash_alone = [3, 0, 2, 0, 2, 1, 0, 0, 0, 0, 0, 0];
        let little = Order::Little;
        copy(&hash_alone, little, little, Scope::Packet, &[EPB_HASH], &mut out);
        copy(&[], little, Order::Big, Scope::Packet, &[], &mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn numbers_of_each_width_turn() {
        let mut out = Vec::new();
        turned(Numbers::Longs, &[1, 2, 3, 4, 5, 6, 7, 8], &mut out);
        turned(Numbers::Enterprise, &[1, 2, 3, 4, 5, 6], &mut out);
        turned(Numbers::Enterprise, &[1, 2, 3], &mut out);
        turned(Numbers::Words, &[1, 2, 3, 4, 5], &mut out);
        turned(Numbers::None, &[1, 2], &mut out);
        assert_eq!(out, [8, 7, 6, 5, 4, 3, 2, 1, 4, 3, 2, 1, 5, 6, 1, 2, 3, 4, 3, 2, 1, 5, 1, 2]);
    }
}
