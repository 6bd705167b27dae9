//! IPv6 header chains in front of and behind the fragment header, by hand-written bytes.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Event, Log, check, check_empty, config, push};
use fragtrack_core::config::{Config, Path, Policy};
use fragtrack_core::engine::Batch;
use fragtrack_core::wire::ipv6::{Decoded, decode, find_fragment_header, nested_fragment_header, packet, upper_layer};
use fragtrack_core::wire::{Addresses, Family, Fragment};
use fragtrack_core::{Engine, Frame, LinkType, Reason};

/// Hop-by-hop options, 8 bytes of padding; a next header goes in front.
const HOP: &str = "00 01040000 0000";
/// Destination options, 16 bytes.
const OPTIONS: &str = "01 010c0000 00000000 00000000 0000";
/// A routing header with one segment, 24 bytes.
const ROUTING: &str = "02 02010000 0000 20010db8000000000000000000000009";
/// An authentication header of 24 bytes: its length counts words of 4.
const AUTH: &str = "04 0000 00000001 00000002 000102030405060708090a0b";
/// Upper-layer headers: UDP with 8 bytes of its own, TCP.
const UDP: &str = "0035 0035 0018 0000 6162636465666768";
const TCP: &str = "0050 0050 00000001 00000002 5002 2000 0000 0000 61626364";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// A packet of what follows the fixed header; traffic class 2 (ECT(0)).
fn ip(next: &str, rest: &str) -> Vec<u8> {
    let rest = hex(rest);
    let mut bytes = hex("60200000");
    bytes.extend((rest.len() as u16).to_be_bytes());
    bytes.extend(hex(&format!("{next} 40 20010db8000000000000000000000001 20010db8000000000000000000000002")));
    bytes.extend(rest);
    bytes
}

/// The chain of all that may stand before a fragment header, which itself is at 112.
fn before() -> String {
    format!("3c{HOP} 2b{OPTIONS} 33{ROUTING} 2c{AUTH}")
}

fn decoded(bytes: &[u8], path: Path) -> (Decoded, Fragment, Addresses) {
    let mut fragment = Fragment::NONE;
    let mut addresses = [0; 4];
    let decoded = decode(bytes, 7, path, true, &mut fragment, &mut addresses);
    (decoded, fragment, addresses)
}

/// What it is, in words.
fn told(bytes: &[u8], path: Path) -> String {
    match decoded(bytes, path).0 {
        Decoded::Whole => "whole".to_owned(),
        Decoded::Fragment => "fragment".to_owned(),
        Decoded::Atomic => "atomic".to_owned(),
        Decoded::Fault { reason, problem: Some((code, pointer)), .. } => format!("{} {code} {pointer}", reason.name()),
        Decoded::Fault { reason, problem: None, fragment: true } => reason.name().to_owned(),
        Decoded::Fault { reason, problem: None, fragment: false } => format!("no fragment: {}", reason.name()),
    }
}

#[test]
fn a_fragment_header_is_read_wherever_it_stands() {
    let chains = [
        ("2c", String::new(), 40, 6),
        ("00", format!("2c{HOP}"), 48, 40),
        ("3c", format!("2c{OPTIONS}"), 56, 40),
        ("2b", format!("2c{ROUTING}"), 64, 40),
        ("33", format!("2c{AUTH}"), 64, 40),
        ("00", format!("3c{HOP} 2c{OPTIONS}"), 64, 48),
        ("00", before(), 112, 88),
    ];
    for (next, chain, at, named) in chains {
        // UDP, offset 1,480, reserved bits set, more to come, an identification.
        let bytes = ip(next, &format!("{chain} 11 ff 05cf deadbeef 0001020304050607"));
        assert_eq!(find_fragment_header(&bytes), Some((at, named)), "{chain}");
        for path in [Path::Local, Path::Netfilter] {
            let (decoded, fragment, addresses) = decoded(&bytes, path);
            assert!(matches!(decoded, Decoded::Fragment), "{chain}");
            assert_eq!((fragment.offset, fragment.length, fragment.more), (1480, 8, true));
            assert_eq!((fragment.header as usize, fragment.protocol), (at + 8, 17));
            assert_eq!((fragment.id, fragment.ecn, fragment.context, fragment.df), (0xdead_beef, 2, 7, false));
            assert_eq!(addresses, [0x2001_0db8 << 32, 1, 0x2001_0db8 << 32, 2]);
        }
    }
}

#[test]
fn what_ends_the_walk_is_no_fragment() {
    // Upper layers, no next header, ESP, an unknown header; a chain that runs out.
    for (next, rest) in [
        ("11", UDP.to_owned()),
        ("06", TCP.to_owned()),
        ("3b", String::new()),
        ("32", "2c00000000000000".to_owned()),
        ("87", "2c00000000000000".to_owned()),
        ("00", format!("11{HOP} {UDP}")),
        ("3c", "2c".to_owned()),
        ("3c", "2cff 0000".to_owned()),
        ("3c", String::new()),
    ] {
        let bytes = ip(next, &rest);
        assert_eq!(find_fragment_header(&bytes), None, "{next} {rest}");
        for path in [Path::Local, Path::Netfilter] {
            assert_eq!(told(&bytes, path), "whole", "{next} {rest}");
        }
    }
}

#[test]
fn a_first_fragment_has_the_whole_chain() {
    let cases = [
        // Upper layer, bytes of it, whether that is enough.
        ("06", TCP, 19, false),
        ("06", TCP, 20, true),
        ("11", UDP, 7, false),
        ("11", UDP, 8, true),
        ("3a", UDP, 7, false),
        ("3a", UDP, 8, true),
        ("84", UDP, 0, false),
        ("84", UDP, 1, true),
        ("32", UDP, 0, false),
        ("32", UDP, 1, true),
        // No next header: nothing is missing.
        ("3b", UDP, 0, true),
    ];
    for (upper, bytes, length, enough) in cases {
        let part = |bytes: &str| hex(bytes)[..length].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        for chain in [String::new(), format!("3c{upper}")] {
            // With destination options between the two, or nothing.
            let (next, options) =
                if chain.is_empty() { (upper, String::new()) } else { ("3c", upper.to_owned() + OPTIONS) };
            for more in ["0001", "0007"] {
                let rest = format!("{next}00 {more} 00000009 {options} {}", part(bytes));
                let first = ip("2c", &rest);
                let (local, netfilter) = if enough { ("fragment", "fragment") } else { ("chain 3 0", "whole") };
                assert_eq!(told(&first, Path::Local), local, "{rest}");
                assert_eq!(told(&first, Path::Netfilter), netfilter, "{rest}");
            }
            // Only the first one is judged, and an atomic one not on the local path.
            let later = ip("2c", &format!("{next}00 0009 00000009 {options} {}", part(bytes)));
            assert_eq!(
                (told(&later, Path::Local), told(&later, Path::Netfilter)),
                ("fragment".into(), "fragment".into())
            );
            let atomic = ip("2c", &format!("{next}00 0000 00000009 {options} {}", part(bytes)));
            let netfilter = if enough { "fragment" } else { "whole" };
            assert_eq!(
                (told(&atomic, Path::Local), told(&atomic, Path::Netfilter)),
                ("atomic".into(), netfilter.into())
            );
        }
    }
}

#[test]
fn a_chain_that_breaks_off_in_an_extension_header() {
    // Not even the first two bytes of the options: that cannot be judged. With them, it can.
    for (rest, local) in
        [("", "fragment"), ("11", "fragment"), ("1100", "chain 3 0"), ("11ff 01040000 0000", "chain 3 0")]
    {
        let bytes = ip("2c", &format!("3c00 0001 00000009 {rest}"));
        assert_eq!(told(&bytes, Path::Local), local, "{rest}");
    }
    assert_eq!(upper_layer(&ip("3c", "11"), 40, 60), None);
    assert_eq!(upper_layer(&ip("3c", "1100"), 40, 60), Some((17, 48)));
    assert_eq!(upper_layer(&ip("3b", ""), 40, 59), None);
    // A fragment that is not the first ends the walk; the first is walked over.
    assert_eq!(upper_layer(&ip("2c", "1100 0009 00000001"), 40, 44), Some((44, 40)));
    assert_eq!(upper_layer(&ip("2c", "1100 0001 00000001"), 40, 44), Some((17, 48)));
    assert_eq!(upper_layer(&ip("2c", "1100 00"), 40, 44), None);
}

#[test]
fn a_fragment_header_that_cannot_be() {
    let zero = |mut bytes: Vec<u8>| {
        bytes[4..6].fill(0);
        bytes
    };
    let direct = ip("2c", &format!("1100 0001 00000009 {UDP}"));
    let behind = ip("00", &format!("2c{HOP} 1100 0001 00000009 {UDP}"));
    // A payload length of 0: nothing follows, or it is a jumbogram, which is as long as it came.
    assert_eq!(told(&zero(direct.clone()), Path::Local), "fragment_header 0 40");
    assert_eq!(told(&zero(direct), Path::Netfilter), "whole");
    assert_eq!(told(&zero(behind.clone()), Path::Local), "fragment_header 0 48");
    assert_eq!(told(&zero(behind), Path::Netfilter), "whole");
    // Cut short by the payload length. Netfilter looks at the chain first: behind offset 0 it is cut as well.
    for (rest, netfilter) in [
        ("", "whole"),
        ("11", "fragment_header"),
        ("1100 0009", "fragment_header"),
        ("1100 0009 000000", "fragment_header"),
        ("1100 0001", "whole"),
        ("1100 0001 000000", "whole"),
    ] {
        let bytes = ip("2c", rest);
        assert_eq!(told(&bytes, Path::Local), "fragment_header 0 40", "{rest}");
        assert_eq!(told(&bytes, Path::Netfilter), netfilter, "{rest}");
    }
    let bytes = ip("00", &format!("2c{HOP} 1100 0001"));
    assert_eq!(told(&bytes, Path::Local), "fragment_header 0 48");
}

#[test]
fn length_and_version() {
    let bytes = ip("2c", &format!("1100 0009 00000009 {UDP}"));
    let padded = [bytes.as_slice(), &[0xee; 30]].concat();
    assert_eq!(packet(&padded), bytes);
    assert_eq!(decoded(&padded, Path::Local).1.length, 16);
    assert_eq!(told(&bytes[..bytes.len() - 1], Path::Local), "truncated");
    assert_eq!(told(&ip("11", UDP)[..50], Path::Local), "no fragment: truncated");
    assert_eq!(told(&bytes[..39], Path::Local), "no fragment: truncated");
    let mut other = bytes;
    other[0] = 0x50;
    assert_eq!(told(&other, Path::Local), "no fragment: header");
}

#[test]
fn a_second_fragment_header() {
    let second = "1100 0001 0000000a";
    // Directly, behind options, cut short by the packet, behind what ends the walk.
    for (next, rest, at) in [
        (44, second.to_owned(), Some(48)),
        (60, format!("2c{OPTIONS} {second}"), Some(64)),
        (0, format!("3c{HOP} 2c{OPTIONS} {second}"), Some(72)),
        (51, format!("2c{AUTH} {second}"), Some(72)),
        (44, String::new(), Some(48)),
        (60, "2c".to_owned(), None),
        (60, "2cff".to_owned(), None),
        (59, second.to_owned(), None),
        (17, second.to_owned(), None),
        (50, second.to_owned(), None),
    ] {
        let bytes = ip("2c", &format!("{next:02x}00 0000 00000009 {rest}"));
        assert_eq!(nested_fragment_header(&bytes, next, 48), at, "{next} {rest}");
        // An atomic fragment on the local path is looked at on arrival.
        let (mut engine, mut log) = (Engine::new(config(Policy::Linux), true), Log::default());
        push(&mut engine, &mut log, 0, &bytes, 0);
        match at {
            Some(at) => {
                let problem = Event::Problem(0, 0, at as u32, bytes.clone());
                assert_eq!(log.events, [problem, Event::Dropped(0, Reason::Nested)]);
            }
            None => assert!(matches!(log.events.as_slice(), [Event::Atomic(0, ..)])),
        }
        check_empty(&engine);
    }
}

#[test]
fn a_second_fragment_header_in_a_whole_datagram() {
    // Options in the first fragment, the second fragment header in the other one.
    let first = ip("2c", &format!("3c00 0001 00000009 2c{OPTIONS}"));
    let last = ip("2c", "3c00 0010 00000009 1100 0001 0000000a");
    for path in [Path::Local, Path::Netfilter] {
        let (mut engine, mut log) = (Engine::new(Config { path, ..config(Policy::Linux) }, true), Log::default());
        push(&mut engine, &mut log, 0, &last, 0);
        push(&mut engine, &mut log, 1, &first, 0);
        check_empty(&engine);
        if path == Path::Netfilter {
            assert_eq!(log.wholes().len(), 1);
            continue;
        }
        let whole = ip("3c", &format!("2c{OPTIONS} 1100 0001 0000000a"));
        assert_eq!(log.lost()[0].reason, Reason::Nested);
        assert_eq!(log.lost()[0].frames, [(0, 16), (1, 0)]);
        let problem = Event::Problem(1, 0, 56, whole);
        assert!(log.events.contains(&problem));
        assert_eq!(log.events.last(), Some(&Event::Dropped(1, Reason::Nested)));
    }
}

#[test]
fn the_whole_has_the_chain_of_the_first_fragment() {
    for path in [Path::Local, Path::Netfilter] {
        let (mut engine, mut log) = (Engine::new(Config { path, ..config(Policy::Linux) }, true), Log::default());
        // Another chain, another next header, another hop limit in the one that comes first.
        let mut last = ip("2c", "0600 0010 00000009 a1a2a3");
        last[1] = 0x30;
        last[7] = 9;
        let first = ip("00", &format!("{} 11 00 0001 00000009 {UDP}", before()));
        push(&mut engine, &mut log, 0, &last, 0);
        push(&mut engine, &mut log, 1, &first, 0);
        check_empty(&engine);
        // CE among ECT(0): the result says CE. The authentication header now names UDP.
        let chain = format!("3c{HOP} 2b{OPTIONS} 33{ROUTING} 11{AUTH}");
        let mut expected = ip("00", &format!("{chain} {UDP} a1a2a3"));
        expected[1] = 0x30;
        assert_eq!(log.wholes()[0].packet, expected);
        assert_eq!((log.wholes()[0].key.protocol, log.wholes()[0].key.id), (17, 9));
        assert_eq!(log.wholes()[0].frames, [1, 0]);
    }
}

/// Packets of every kind above, whole.
fn packets() -> Vec<Vec<u8>> {
    vec![
        ip("00", &format!("{} 1100 0001 00000009 {UDP}", before())),
        ip("00", &format!("{} 0600 0000 00000009 {TCP}", before())),
        ip("2c", &format!("3c00 0001 00000009 2c{OPTIONS} 1100 0001 0000000a")),
        ip("2c", &format!("2c00 0000 00000009 1100 0001 0000000a {UDP}")),
        ip("33", &format!("2c{AUTH} 3a00 0001 00000009 {UDP}")),
        ip("2c", "1100 0010 00000009 6162"),
    ]
}

#[test]
fn cut_anywhere_nothing_panics() {
    for bytes in packets() {
        for at in 0..=bytes.len() {
            // Once as the capture cut it, once as if it had been sent so.
            let cut = bytes[..at].to_vec();
            let mut short = cut.clone();
            if let (Some(length), Some(rest)) = (short.get_mut(4..6), at.checked_sub(40)) {
                length.copy_from_slice(&(rest as u16).to_be_bytes());
            }
            for packet in [cut, short] {
                for path in [Path::Local, Path::Netfilter] {
                    assert!(!told(&packet, path).is_empty());
                    assert!(find_fragment_header(&packet).is_none_or(|(at, named)| named < at && at <= packet.len()));
                    assert!(nested_fragment_header(&packet, bytes[6], 40).is_none_or(|at| at <= packet.len()));
                    assert!(upper_layer(&packet, 40, bytes[6]).is_none_or(|(_, at)| at >= 40));
                    let settings = Config { path, ..config(Policy::Linux) };
                    let (mut engine, mut log) = (Engine::new(settings, true), Log::default());
                    push(&mut engine, &mut log, 0, &packet, 0);
                    let length = packet.len() as u32;
                    let frame =
                        Frame { start: 0, time: 0, record: length, captured: length, head: 0, link: LinkType(229) };
                    let batch = Batch { segment: &packet, frames: &[frame], first: 1, origin: 0, transient: false };
                    log.first = 1;
                    engine.run(batch, &mut log);
                    check(&engine);
                    engine.flush(&packet, &mut log);
                    check_empty(&engine);
                }
            }
        }
    }
}

#[test]
fn any_byte_may_be_any_other() {
    for bytes in packets() {
        for at in 0..bytes.len() {
            for value in [0, 1, 7, 8, 17, 43, 44, 51, 58, 59, 60, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                for path in [Path::Local, Path::Netfilter] {
                    let settings = Config { path, ..config(Policy::Linux) };
                    let (mut engine, mut log) = (Engine::new(settings, false), Log::default());
                    push(&mut engine, &mut log, 0, &changed, 0);
                    push(&mut engine, &mut log, 1, &bytes, 0);
                    check(&engine);
                    engine.flush(&[], &mut log);
                    check_empty(&engine);
                    assert!(engine.counters(Family::V4).reasm_reqds == 0);
                }
            }
        }
    }
}
