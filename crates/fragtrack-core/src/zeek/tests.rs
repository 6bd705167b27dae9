//! Laws of the Zeek view; its rules are tested in Python, row by row, for both backends.

use proptest::prelude::*;

use super::config::{HISTORY_LIMIT, PIECES_LIMIT};
use super::history::History;
use super::stream::Stream;
use super::{Config, Flows, Role, Segment};

const SECOND: i64 = 1_000_000_000;

fn tcp(from_client: bool, flags: u8, seq: u32, ack: u32, payload: u32) -> Segment {
    let (src, dst, sport, dport) = if from_client { (1, 2, 40000, 8443) } else { (2, 1, 8443, 40000) };
    let length = 40 + payload;
    Segment { src, dst, sport, dport, flags, seq, ack, payload, length, window: 1, protocol: 6, ..Segment::default() }
}

fn told(packets: &[Segment]) -> Vec<String> {
    let rows = told_with((1, 2), packets);
    // Who guesses the key of the table can only make it slow.
    assert_eq!(format!("{:?}", told_with((3, 4), packets)), format!("{rows:?}"));
    let word = |row: &super::Row| format!("{} {}", row.history.as_str(), row.conn_state.name());
    rows.iter().map(word).collect()
}

fn told_with(hash_key: (u64, u64), packets: &[Segment]) -> Vec<super::Row> {
    let mut flows = Flows::new(Config::default(), hash_key);
    for (packet, time) in packets.iter().zip(0..) {
        flows.see(packet, time * 1000);
        assert!(flows.check());
    }
    flows.finish();
    flows.take()
}

#[test]
fn a_connection_from_open_to_close() {
    let packets = [
        tcp(true, 2, 100, 0, 0),
        tcp(false, 18, 500, 101, 0),
        tcp(true, 16, 101, 501, 0),
        tcp(true, 24, 101, 501, 50),
        tcp(false, 17, 501, 151, 0),
        tcp(true, 17, 151, 502, 0),
    ];
    assert_eq!(told(&packets), ["ShADfF SF"]);
}

#[test]
fn roles_follow_the_data() {
    let packets = [tcp(false, 18, 500, 101, 0), tcp(true, 16, 101, 501, 0)];
    assert_eq!(told(&packets), ["^hA S1"]);
    assert_eq!(told(&packets[..1]), ["H OTH"]);
}

#[test]
fn histories_are_bounded() {
    let mut history = History::new();
    for _ in 0..200 {
        history.add(Role::Resp, b'R');
    }
    assert_eq!(history.as_bytes().len(), HISTORY_LIMIT + 1);
    assert!(history.as_str().ends_with("rx"));
    history.retell();
    assert!(history.as_str().starts_with("^R"));
    assert_eq!(history.as_bytes().len(), HISTORY_LIMIT + 1);
}

#[test]
fn aborted_histories() {
    for (text, aborted) in [("SR", true), ("^SaRr", true), ("SaFR", false), ("R", false), ("ShR", true), ("SAR", false)]
    {
        let mut history = History::new();
        for letter in text.bytes() {
            let role = if letter.is_ascii_lowercase() { Role::Resp } else { Role::Orig };
            history.add(role, letter.to_ascii_uppercase());
        }
        assert_eq!(history.as_str(), text);
        assert_eq!(history.is_aborted(), aborted, "{text}");
    }
}

fn segments() -> impl Strategy<Value = Segment> {
    let numbers = prop_oneof![0u32..3, 100u32..103, Just(u32::MAX), Just(1 << 31)];
    let ports = prop_oneof![Just(0u16), Just(8), Just(80), Just(5000)];
    let flags = prop_oneof![Just(2u8), Just(18), Just(16), Just(17), Just(4), Just(20), Just(24), any::<u8>()];
    let protocol = prop_oneof![4 => Just(6u8), 1 => Just(17), 1 => Just(1), 1 => Just(132)];
    let ends = (1u128..3, 1u128..3, ports.clone(), ports);
    let rest = (flags, numbers.clone(), numbers, protocol, 0u32..3, any::<bool>(), 0u8..5);
    (ends, rest).prop_map(|((src, dst, sport, dport), (flags, seq, ack, protocol, payload, whole, bad))| Segment {
        src,
        dst,
        sport,
        dport,
        flags,
        seq,
        ack,
        protocol,
        payload: payload * 50,
        length: 40,
        whole,
        bad_checksum: bad == 0,
        ..Segment::default()
    })
}

proptest! {
    #[test]
    fn anything_may_come(packets in proptest::collection::vec((segments(), -SECOND..8 * SECOND), 0..80)) {
        let mut flows = Flows::new(Config { max: 4, ..Config::default() }, (1, 2));
        let mut now = 0;
        let mut rows = Vec::new();
        for (packet, step) in &packets {
            now += step;
            flows.see(packet, now);
            prop_assert!(flows.check());
            prop_assert!(flows.len() <= 4);
            rows.append(&mut flows.take());
        }
        flows.finish();
        prop_assert!(flows.check() && flows.is_empty());
        rows.append(&mut flows.take());
        let counted: u64 = rows.iter().map(|row| row.orig_pkts + row.resp_pkts).sum();
        let skipped = packets.iter().filter(|(p, _)| p.bad_checksum && matches!(p.protocol, 1 | 6)).count();
        prop_assert_eq!(counted as usize, packets.len() - skipped);
        let counters = flows.counters();
        prop_assert_eq!((counters.opened, counters.ended), (rows.len() as u64, rows.len() as u64));
    }

    #[test]
    fn gaps_are_bytes_acknowledged_and_never_sent(
        steps in proptest::collection::vec((1u64..300, 1u64..40, any::<bool>(), 1u64..60), 0..60),
    ) {
        let mut stream = Stream::new();
        let mut sent = std::collections::BTreeSet::new();
        for (start, length, acks, more) in steps {
            stream.sent(start, start + length, 0, false);
            sent.extend(start.max(stream.acked)..start + length);
            prop_assert!(stream.check());
            if acks {
                let upto = stream.acked + more;
                let expected = (stream.acked..upto).filter(|byte| !sent.contains(byte)).count() as u64;
                let mut missed = 0;
                stream.acknowledged(upto, false, |gap| missed += gap);
                prop_assert!(stream.check());
                prop_assert_eq!(missed, expected);
            }
        }
    }

    #[test]
    fn times_at_the_ends_of_their_range(times in proptest::collection::vec(any::<i64>(), 1..40)) {
        let mut flows = Flows::new(Config::default(), (1, 2));
        for time in &times {
            flows.see(&tcp(true, 2, 1, 0, 0), *time);
            flows.see(&Segment { protocol: 17, ..tcp(true, 0, 0, 0, 1) }, *time);
            prop_assert!(flows.check());
        }
        flows.finish();
        let packets: u64 = flows.take().iter().map(|row| row.orig_pkts).sum();
        prop_assert_eq!(packets, 2 * times.len() as u64);
    }
}

#[test]
fn pieces_are_bounded() {
    let mut stream = Stream::new();
    let crowded = (0..200).filter(|i| stream.sent(100 + 10 * i, 105 + 10 * i, 0, false)).count();
    assert_eq!(crowded, 1);
    assert!(stream.skipping && stream.check());
    assert_eq!(PIECES_LIMIT, 64);
}

#[test]
fn headers_that_do_not_fit() {
    let read =
        |protocol, transport: &[u8], size| Segment::read(Segment { protocol, ..Segment::default() }, size, transport);
    let mut header = [0u8; 23];
    header[0] = 1;
    header[12] = 0x50;
    header[13] = 2;
    assert!(read(6, &header[..19], 20).is_none());
    assert!(read(6, &[0; 20], 20).is_none());
    let whole = read(6, &header, 23).unwrap();
    assert_eq!((whole.sport, whole.flags, whole.payload, whole.whole), (256, 2, 3, true));
    let cut = read(6, &header[..20], 23).unwrap();
    assert_eq!((cut.payload, cut.whole), (3, false));
    let padded = read(6, &header, 20).unwrap();
    assert_eq!((padded.payload, padded.whole), (0, true));
    header[12] = 0x60;
    assert!(read(6, &header, 23).is_none());
    assert!(read(17, &[0; 7], 7).is_none());
    assert_eq!(read(17, &[0, 53, 0, 9, 0, 12, 0, 0], 12).map(|s| (s.sport, s.dport, s.payload)), Some((53, 9, 4)));
    assert_eq!(read(17, &[0; 8], 8).map(|s| s.payload), Some(0));
    assert!(read(1, &[8; 4], 4).is_none());
    assert_eq!(read(58, &[128, 0, 0, 0, 0, 0, 0, 0], 64).map(|s| (s.sport, s.dport, s.payload)), Some((128, 0, 56)));
    assert!(read(132, &[], 0).is_some());
}
