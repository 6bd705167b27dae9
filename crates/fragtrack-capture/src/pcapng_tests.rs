use fragtrack_core::frame::{Frame, LinkType};

use crate::order::Order;
use crate::testing::{Ng, Seen, read};
use crate::{Damage, Why};

const ORDERS: [Order; 2] = [Order::Little, Order::Big];

/// The frames that are packets.
fn packets(seen: &Seen) -> Vec<Frame> {
    seen.frames.iter().map(|(_, frame)| *frame).filter(|frame| frame.link != LinkType::NONE).collect()
}

fn damage(offset: usize, why: Why) -> Option<Damage> {
    Some(Damage { offset: offset as u64, why })
}

#[test]
fn every_kind_of_packet() {
    for order in ORDERS {
        let file = Ng::new(order).simple(b"lost", 4).interface(1, 3, &[]).interface(101, 0, &[(9, &[9])]);
        let file =
            file.packet(1, 5 << 32 | 7, b"one", &[(1, b"comment")]).simple(b"two", 9).old_packet(0, 2, 8, b"three");
        let seen = read(&file.data, None, 100);
        assert_eq!(seen.frames.len(), 7);
        let [one, two, three] = packets(&seen)[..] else { panic!("{seen:?}") };
        assert_eq!((one.link, one.time, one.head), (LinkType(101), 5 << 32 | 7, 28));
        assert_eq!((two.link, two.time, two.head), (LinkType(1), one.time, 12));
        assert_eq!(two.captured, 3, "cut to the snapshot length");
        assert_eq!((three.time, three.captured), (8_000, 5));
        for (frame, bytes) in [(one, &b"one"[..]), (two, b"two"), (three, b"three")] {
            assert!(file.data[frame.start as usize + usize::from(frame.head)..].starts_with(bytes));
        }
        assert_eq!(seen.damage, damage(28, Why::Interface { id: 0, known: 0 }), "before any interface");
    }
}

#[test]
fn sections_have_interfaces_of_their_own() {
    let file = Ng::new(Order::Big).interface(1, 0, &[]).packet(0, 1, b"", &[]);
    let file = file.section(Order::Little, 7).interface(101, 0, &[]).packet(0, 1, b"", &[]);
    let seen = read(&file.data, None, 100);
    assert_eq!(seen.frames.iter().map(|(origin, _)| *origin).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1]);
    assert_eq!(packets(&seen).iter().map(|frame| frame.link.0).collect::<Vec<_>>(), [1, 101]);
    assert_eq!((seen.damage, seen.origins), (None, 2));
}

#[test]
fn a_block_may_be_lost_alone() {
    let good = Ng::new(Order::Big).interface(1, 0, &[]);
    let at = good.data.len();
    let body = |captured: u32| [[0; 4], [0; 4], [0; 4], captured.to_be_bytes(), [0; 4], [0; 4]].concat();
    let whys = [
        (good.clone().packet(9, 0, b"", &[]), Why::Interface { id: 9, known: 1 }),
        (good.clone().block(6, &body(5)), Why::PacketLength { says: 5, room: 4 }),
        (good.clone().block(6, &[0; 16]), Why::BlockShort { kind: 6, says: 28, needs: 32 }),
        (good.clone().block(2, &[0; 16]), Why::BlockShort { kind: 2, says: 28, needs: 32 }),
        (good.clone().block(3, &[]), Why::BlockShort { kind: 3, says: 12, needs: 16 }),
        (good.clone().simple(b"abcd", 5), Why::PacketLength { says: 5, room: 4 }),
        (good.clone().block(1, &[0; 4]), Why::BlockShort { kind: 1, says: 16, needs: 20 }),
    ];
    for (bad, why) in whys {
        let file = bad.packet(0, 3, b"after", &[]);
        let seen = read(&file.data, None, 100);
        assert_eq!(seen.damage, damage(at, why));
        assert!(!why.ends_reading());
        assert_eq!((seen.frames.len(), packets(&seen).len()), (4, 1));
        assert_eq!(seen.position, file.data.len() as u64);
    }
}

#[test]
fn packets_of_a_cut_description_are_none() {
    let file =
        Ng::new(Order::Big).block(1, &[0; 4]).packet(0, 3, b"x", &[]).interface(1, 0, &[]).packet(1, 4, b"y", &[]);
    let seen = read(&file.data, None, 100);
    assert_eq!((seen.frames.len(), packets(&seen).len()), (5, 1));
}

#[test]
fn broken_framing_ends_reading() {
    let good = Ng::new(Order::Little).interface(1, 0, &[]).packet(0, 1, b"", &[]);
    let at = good.data.len();
    let raw = |words: &[u32]| {
        let mut data = good.data.clone();
        data.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        read(&data, None, 100)
    };
    let section = 0x0a0d_0d0a;
    let cases: [(&[u32], Why); 9] = [
        (&[6, 8, 0], Why::BlockLength { says: 8 }),
        (&[6, 14, 0, 0], Why::BlockLength { says: 14 }),
        (&[6, 0x0100_0004], Why::BlockTooLong { says: 0x0100_0004, limit: 0x0100_0000 }),
        (&[6, 16, 0, 12], Why::BlockTrailer { front: 16, back: 12 }),
        (&[6, 16, 0], Why::Cut { has: 12, needs: 16 }),
        (&[6], Why::Cut { has: 4, needs: 8 }),
        (&[section, 28], Why::Cut { has: 8, needs: 12 }),
        (&[section, 28, 1], Why::SectionMagic { magic: [1, 0, 0, 0] }),
        (&[section, 28, 0x1a2b_3c4d, 2, 0, 0, 28], Why::SectionVersion { major: 2, minor: 0 }),
    ];
    for (words, why) in cases {
        let seen = raw(words);
        assert_eq!((seen.frames.len(), seen.damage), (3, damage(at, why)));
        assert!(why.ends_reading());
        assert_eq!(seen.position, at as u64);
    }
    let seen = raw(&[section, 24, 0x1a2b_3c4d, 1, 0, 24]);
    assert_eq!(seen.damage, damage(at, Why::BlockShort { kind: section, says: 24, needs: 28 }));
    assert_eq!(seen.position, at as u64, "no section without its header");
}
