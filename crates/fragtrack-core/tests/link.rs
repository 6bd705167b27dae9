//! Where the IP header starts behind every link header, by hand-written bytes.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod common;

use common::{Log, V4, check_empty, config, pattern};
use fragtrack_core::config::Policy;
use fragtrack_core::engine::Batch;
use fragtrack_core::wire::link::{Located, TYPES, locate, set_lengths};
use fragtrack_core::{Engine, Frame, LinkType};
use proptest::prelude::*;

/// Two Ethernet addresses.
const MACS: &str = "020000000001 020000000002";
/// Linux cooked capture, version 1: all but the protocol.
const SLL: &str = "0000 0001 0006 020000000001 0000";
/// Linux cooked capture, version 2: all behind the protocol.
const SLL2: &str = "0000 00000002 0001 00 06 0200000000010000";

/// Bytes from hexadecimal digits; spaces do not count.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// `count` labels of MPLS, the last one marked.
fn labels(count: usize) -> String {
    "00064040".repeat(count - 1) + "00064140"
}

const fn domain(tags: &[u64]) -> u64 {
    let mut domain = (tags.len() as u64) << 48;
    let mut at = 0;
    while at < tags.len() {
        domain |= tags[at] << (12 * at);
        at += 1;
    }
    domain
}

const fn plain(ip: usize) -> Located {
    Located { ip, domain: 0, pppoe_length: None, ieee_length: None }
}

const fn tagged(ip: usize, tags: &[u64]) -> Located {
    Located { domain: domain(tags), ..plain(ip) }
}

/// Link type, link header, and what is found.
fn rows() -> Vec<(u32, String, Located)> {
    let pppoe = |ip, place| Located { pppoe_length: Some(place), ..plain(ip) };
    let snap = |ip, place| Located { ieee_length: Some(place), ..plain(ip) };
    let mut rows: Vec<(u32, String, Located)> = Vec::new();
    let mut row = |link, bytes: &str, located| rows.push((link, bytes.to_owned(), located));
    for link in [0, 108] {
        row(link, "02000000", plain(4));
        row(link, "00000002", plain(4));
    }
    let ethernet: [(&str, Located); 20] = [
        ("0800", plain(14)),
        ("8100 000a 0800", tagged(18, &[10])),
        ("8100 f00a 0800", tagged(18, &[10])),
        ("8100 0000 0800", tagged(18, &[0])),
        ("88a8 0001 8100 0002 0800", tagged(22, &[1, 2])),
        ("9100 0001 9200 0002 9300 0003 0800", tagged(26, &[1, 2, 3])),
        ("8100 0fff 8100 0fff 8100 0fff 8100 0fff 0800", tagged(30, &[0xfff; 4])),
        ("8864 11 00 0007 0000 0021", pppoe(22, 18)),
        ("8864 11 00 0007 0000 21", pppoe(21, 18)),
        ("8864 11 00 0007 0000 ff03 0021", pppoe(24, 18)),
        ("8864 11 00 0007 0000 0281 00064140", pppoe(26, 18)),
        ("8100 0007 8864 11 00 0007 0000 0021", Located { domain: domain(&[7]), ..pppoe(26, 22) }),
        ("8847 00064140", plain(18)),
        ("8848 00064040 00064140", plain(22)),
        ("8100 0007 8847 00064140", tagged(22, &[7])),
        ("0040 aaaa03 000000 0800", snap(22, 12)),
        ("0000 aaaa03 000000 0800", snap(22, 12)),
        ("05dc aaaa03 000000 0800", snap(22, 12)),
        ("8100 0007 0040 aaaa03 000000 0800", Located { domain: domain(&[7]), ..snap(26, 16) }),
        ("88a8 0001 8100 0002 8864 11 00 0007 0000 0281 00064040 00064140", {
            Located { domain: domain(&[1, 2]), ..pppoe(38, 26) }
        }),
    ];
    for (bytes, located) in ethernet {
        row(1, &format!("{MACS} {bytes}"), located);
    }
    row(1, &format!("{MACS} 8847 {}", labels(16)), plain(78));
    for link in [9, 50] {
        row(link, "0021", plain(2));
        row(link, "21", plain(1));
        row(link, "ff03 0021", plain(4));
        row(link, "ff03 21", plain(3));
        row(link, "ff03 0281 00064140", plain(8));
    }
    row(51, "11 00 0001 0007 0021", pppoe(8, 4));
    row(51, "11 00 0001 0007 21", pppoe(7, 4));
    for link in [12, 14, 101, 228] {
        row(link, "", plain(0));
    }
    for address in ["0f00", "8f00"] {
        row(104, &format!("{address} 0800"), plain(4));
        row(104, &format!("{address} 8100 0007 0800"), tagged(8, &[7]));
        row(104, &format!("{address} 8847 00064140"), plain(8));
    }
    row(113, &format!("{SLL} 0800"), plain(16));
    row(113, &format!("{SLL} 8100 0007 0800"), tagged(20, &[7]));
    row(113, &format!("{SLL} 88a8 0001 8100 0002 0800"), tagged(24, &[1, 2]));
    row(113, &format!("{SLL} 8864 11 00 0001 0007 0021"), pppoe(24, 20));
    row(113, &format!("{SLL} 8847 00064140"), plain(20));
    row(276, &format!("0800 {SLL2}"), plain(20));
    row(276, &format!("8100 {SLL2} 0007 0800"), tagged(24, &[7]));
    row(276, &format!("8864 {SLL2} 11 00 0001 0007 0021"), pppoe(28, 24));
    row(276, &format!("8847 {SLL2} 00064140"), plain(24));
    rows
}

/// The same in front of IPv6: whatever names the version is another number.
fn wide(link: u32, header: &str) -> Vec<(u32, String)> {
    let swap = |from: &str, to: &str| {
        header.strip_suffix(from).map(|kept| (link, format!("{kept}{to}"))).into_iter().collect::<Vec<_>>()
    };
    match link {
        0 | 108 => ["1e000000", "0000001e", "1c000000", "0000001c", "18000000", "00000018", "0a000000", "0000000a"]
            .map(|family| (link, family.to_owned()))
            .to_vec(),
        228 => vec![(229, String::new())],
        12 | 14 | 101 => vec![(link, String::new())],
        // What is inside MPLS says itself what it is.
        _ if header.ends_with("00064140") => vec![(link, header.to_owned())],
        276 if header.starts_with("0800") => vec![(link, header.replacen("0800", "86dd", 1))],
        _ if header.ends_with("0800") => swap("0800", "86dd"),
        _ if header.ends_with("0021") => swap("0021", "0057"),
        _ => swap("21", "57"),
    }
}

/// Every row, with the start of an IP header behind it.
fn frames() -> Vec<(u32, Vec<u8>, Located)> {
    let mut frames = Vec::new();
    for (link, header, located) in rows() {
        frames.push((link, [hex(&header), vec![0x45, 0]].concat(), located));
        let wide = wide(link, &header);
        assert!(!wide.is_empty(), "{link} {header}");
        frames.extend(wide.into_iter().map(|(link, header)| (link, [hex(&header), vec![0x60, 0]].concat(), located)));
    }
    frames
}

#[test]
fn every_link_header_has_its_row() {
    for (link, frame, located) in frames() {
        assert_eq!(locate(LinkType(link), &frame), Some(located), "{link} {frame:02x?}");
        assert_eq!(located.ip + 2, frame.len());
    }
    for (number, name, _) in TYPES {
        assert!(frames().iter().any(|(link, ..)| *link == u32::from(number)), "{name}");
    }
}

#[test]
fn cut_anywhere_it_is_the_same_or_nothing() {
    for (link, frame, located) in frames() {
        for at in 0..frame.len() {
            let found = locate(LinkType(link), &frame[..at]);
            assert!(
                found.is_none_or(|found| found == located && (found.ip <= at || link == 276)),
                "{link} {frame:02x?} cut at {at}"
            );
        }
    }
}

#[test]
fn what_is_not_ip_is_not_found() {
    let ethernet = |rest: &str| (1, format!("{MACS} {rest}"));
    let none = [
        // A version that is none, or not the one that the family says.
        (0, "02000000 60".into()),
        (0, "1e000000 45".into()),
        (0, "07000000 45".into()),
        (108, "00000200 45".into()),
        (101, "50".into()),
        (12, "00".into()),
        (228, "60".into()),
        (229, "45".into()),
        ethernet("0806 45"),
        // One tag too many; a length that is neither length nor type; no SNAP, or of another kind.
        ethernet("8100 0001 8100 0001 8100 0001 8100 0001 8100 0001 0800 45"),
        ethernet("05dd aaaa03 000000 0800 45"),
        ethernet("05ff aaaa03 000000 0800 45"),
        ethernet("0040 424203 000000 0800 45"),
        ethernet("0040 aaaa03 0000f8 0800 45"),
        ethernet("0040 aaaa03 000000 8100 0001 0800 45"),
        // PPPoE discovery, another version, another code; LCP.
        ethernet("8863 11 00 0001 0007 0021 45"),
        ethernet("8864 12 00 0001 0007 0021 45"),
        ethernet("8864 11 09 0001 0007 0021 45"),
        ethernet("8864 11 00 0001 0007 c021 45"),
        // A control word; one label too many.
        ethernet("8847 00064140 00000000 45"),
        ethernet(&format!("8847 {} 45", labels(17))),
        (9, "c021 45".into()),
        (104, "0f01 0800 45".into()),
        (104, "0f00 0806 45".into()),
        (113, format!("{SLL} 0004 aaaa03 000000 0800 45")),
        (276, format!("0806 {SLL2} 45")),
        (105, "0800 45".into()),
        (LinkType::NONE.0, "45".into()),
    ];
    for (link, bytes) in none {
        assert_eq!(locate(LinkType(link), &hex(&bytes)), None, "{link} {bytes}");
    }
}

#[test]
fn only_the_length_fields_change() {
    let mut fields = 0;
    for (link, frame, located) in frames() {
        for packet in [20usize, 576, 1492, 1493, 1500, 65_533, 65_534, 65_535] {
            let header = &frame[..located.ip];
            let mut expected = header.to_vec();
            for (place, most, beyond) in
                [(located.pppoe_length, 0xffff, Some(0xffff)), (located.ieee_length, 1500, None)]
            {
                let Some(place) = place else { continue };
                fields += 1;
                // What stands behind the field, the session header's own rest not counted by PPPoE.
                let behind = header.len() - place - 2 + packet;
                let value = if behind <= most { Some(behind) } else { beyond };
                if let Some(value) = value {
                    expected[place..place + 2].copy_from_slice(&(value as u16).to_be_bytes());
                }
            }
            let mut written = header.to_vec();
            set_lengths(&mut written, &located, packet);
            assert_eq!(written, expected, "{link} {frame:02x?}");
            // A header that is cut short is left alone where there is nothing to write to.
            for at in 0..located.ip {
                let mut cut = header[..at].to_vec();
                set_lengths(&mut cut, &located, packet);
                assert_eq!(cut.len(), at);
            }
        }
    }
    assert!(fields > 100);
}

#[test]
fn a_whole_datagram_has_a_right_length_in_its_link_header() {
    let pieces = [V4::new(1, 0, true, &pattern(1, 0, 1400)), V4::new(1, 1400, false, &pattern(1, 1400, 10))];
    // Length fields as they are when the second fragment is sent, and with the datagram in its place.
    for (header, place, before, after) in [
        ("8864 11 00 0001 0020 0021", 18, 2 + 30, 2 + 1430),
        ("8100 0007 8864 11 00 0001 0020 0021", 22, 2 + 30, 2 + 1430),
        ("0026 aaaa03 000000 0800", 12, 8 + 30, 8 + 1430),
    ] {
        let link = hex(&format!("{MACS} {header}"));
        assert_eq!(link[place..place + 2], (before as u16).to_be_bytes());
        let mut segment = Vec::new();
        let mut frames = Vec::new();
        for piece in &pieces {
            let bytes = [link.clone(), piece.bytes()].concat();
            let length = bytes.len() as u32;
            let start = segment.len() as u64;
            frames.push(Frame { start, time: 0, record: length, captured: length, head: 0, link: LinkType(1) });
            segment.extend(bytes);
        }
        let (mut engine, mut log) = (Engine::new(config(Policy::Linux), false), Log::default());
        engine.run(Batch { segment: &segment, frames: &frames, first: 0, origin: 0, transient: false }, &mut log);
        check_empty(&engine);
        let mut expected = link.clone();
        expected[place..place + 2].copy_from_slice(&(after as u16).to_be_bytes());
        assert_eq!(log.links, [expected]);
        assert_eq!(log.wholes()[0].payload, pattern(1, 0, 1410));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_located_within_them(
        link in prop::sample::select(TYPES.map(|(number, ..)| u32::from(number)).to_vec()),
        start in prop::sample::select(vec!["", "0f00 ", "02000000", MACS, SLL, "8864", "8100"]),
        parts in prop::collection::vec(prop::sample::select(vec![
            "8100 0001", "8864", "11000000 0000", "0021", "ff03", "8847", "0006 4140", "0800", "86dd", "45", "60",
            "0040", "aaaa03000000", "0281", "21", "00",
        ]), 0..12),
        packet in 0usize..70_000,
    ) {
        let mut frame = hex(&format!("{start}{}", parts.concat()));
        if let Some(located) = locate(LinkType(link), &frame) {
            // The type stands first in this one, so that it may be all there is.
            prop_assert!(located.ip <= frame.len() || link == 276);
            for place in [located.pppoe_length, located.ieee_length].into_iter().flatten() {
                prop_assert!(place + 2 <= located.ip);
            }
            prop_assert!(located.domain >> 48 <= 4);
            set_lengths(&mut frame, &located, packet);
            prop_assert_eq!(locate(LinkType(link), &frame).map(|again| again.ip), Some(located.ip));
        }
    }
}
