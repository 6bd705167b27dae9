//! About which packets Linux sends errors, and what they quote.

#![allow(clippy::expect_used, clippy::indexing_slicing)]

mod common;

use common::{Event, Log, SECOND, V4, V6, config, pattern, push};
use fragtrack_core::config::{Config, Path, Policy};
use fragtrack_core::icmp::IcmpError;
use fragtrack_core::wire::Family;
use fragtrack_core::{Engine, Reason};

fn answered4(packet: &V4) -> bool {
    IcmpError::time_exceeded(Family::V4, &packet.bytes()).is_some()
}

#[test]
fn every_icmp_type() {
    // Errors are 3, 4, 5, 11, 12; those that the kernel has no use for count as such, and what is above 18.
    let answered = [0, 8, 13, 14, 15, 16, 17, 18];
    for kind in 0..=255 {
        for options in [vec![], vec![1; 4], vec![1; 40]] {
            let icmp = V4 { protocol: 1, options, ..V4::new(1, 0, true, &[kind, 3, 0, 0, 0, 0, 0, 0]) };
            assert_eq!(answered4(&icmp), answered.contains(&kind), "type {kind}");
            // Another protocol may start with any byte.
            assert!(answered4(&V4 { protocol: 17, ..icmp }));
        }
    }
}

#[test]
fn addresses_of_ipv4() {
    let edges: [(u32, bool); 16] = [
        (0x0000_0000, false),
        (0x00ff_ffff, false),
        (0x0100_0000, true),
        (0x0a00_0001, true),
        (0x7eff_ffff, true),
        (0x7f00_0000, false),
        (0x7f00_0001, false),
        (0x7fff_ffff, false),
        (0x8000_0000, true),
        (0xa9fe_0001, true),
        (0xdfff_ffff, true),
        (0xe000_0000, false),
        (0xefff_ffff, false),
        (0xf000_0000, true),
        (0xffff_fffe, true),
        (0xffff_ffff, false),
    ];
    for (address, expected) in edges {
        let packet = V4::new(1, 0, true, &[0; 8]);
        assert_eq!(answered4(&V4 { source: address, ..packet.clone() }), expected, "from {address:08x}");
        assert_eq!(answered4(&V4 { destination: address, ..packet }), expected, "to {address:08x}");
    }
}

fn answered6(packet: &[u8]) -> bool {
    let time = IcmpError::time_exceeded(Family::V6, packet);
    let problem = IcmpError::parameter_problem(0, 40, packet);
    assert_eq!(time.is_some(), problem.is_some());
    time.is_some()
}

#[test]
fn addresses_of_ipv6() {
    let group = 0xff02_u128 << 112 | 1;
    let edges = [
        (0u128, false, true),
        (1, true, true),
        (0xfe80 << 112 | 1, true, true),
        (0xfeff << 112 | 1, true, true),
        (group, false, false),
        (u128::MAX, false, false),
    ];
    for (address, from, to) in edges {
        let packet = V6::new(1, 0, true, &[0; 8]);
        assert_eq!(answered6(&V6 { source: address, ..packet.clone() }.bytes()), from, "from {address:032x}");
        assert_eq!(answered6(&V6 { destination: address, ..packet }.bytes()), to, "to {address:032x}");
    }
}

#[test]
fn every_icmpv6_type() {
    for kind in 0..=255 {
        let message = [kind, 0, 0, 0, 0, 0, 0, 0];
        let first = V6 { next: 58, ..V6::new(1, 0, true, &message) };
        assert_eq!(answered6(&first.bytes()), kind >= 128, "type {kind}");
        // Options in front of and behind the fragment header are walked over.
        let before = V6 { first: 0, before: vec![44, 0, 1, 4, 0, 0, 0, 0], ..first.clone() };
        assert_eq!(answered6(&before.bytes()), kind >= 128);
        let behind = [&[58, 0, 1, 4, 0, 0, 0, 0][..], &message].concat();
        let behind = V6 { next: 60, ..V6::new(1, 0, true, &behind) };
        assert_eq!(answered6(&behind.bytes()), kind >= 128);
        // Without a fragment header, as a parameter problem may quote it.
        let mut whole = V6 { first: 58, ..V6::new(1, 0, true, &[]) }.bytes();
        whole.truncate(40);
        whole.extend(message);
        assert_eq!(answered6(&whole), kind >= 128);
        // Not the first fragment: nobody can tell.
        assert!(answered6(&V6 { offset: 8, ..first }.bytes()));
    }
}

#[test]
fn an_icmpv6_type_that_is_missing() {
    let cut = |more, offset| V6 { next: 58, more, ..V6::new(1, offset, more, &[]) }.bytes();
    // The fragment header says that there is more, or nothing at all.
    assert!(answered6(&cut(true, 0)));
    assert!(!answered6(&cut(false, 0)));
    assert!(answered6(&cut(false, 8)));
    let mut bare = V6 { first: 58, ..V6::new(1, 0, true, &[]) }.bytes();
    bare.truncate(40);
    assert!(!answered6(&bare));
    // No next header, and a chain that cannot be walked to its end.
    assert!(answered6(&V6 { next: 59, ..V6::new(1, 0, true, &[]) }.bytes()));
    assert!(answered6(&V6 { next: 60, ..V6::new(1, 0, true, &[58]) }.bytes()));
}

#[test]
fn a_quote_is_as_long_as_fits() {
    for length in [8, 528, 529, 600, 1400] {
        let v4 = V4::new(1, 0, true, &pattern(1, 0, length)).bytes();
        let error = IcmpError::time_exceeded(Family::V4, &v4).expect("an answer");
        assert_eq!((error.kind, error.code, error.rest), (11, 1, 0));
        assert_eq!(error.quote, v4[..v4.len().min(548)]);
        let v6 = V6::new(1, 0, true, &pattern(1, 0, length)).bytes();
        let error = IcmpError::time_exceeded(Family::V6, &v6).expect("an answer");
        assert_eq!((error.kind, error.code, error.rest), (3, 1, 0));
        assert_eq!(error.quote, v6[..v6.len().min(1232)]);
        let error = IcmpError::parameter_problem(3, 7, &v6).expect("an answer");
        assert_eq!((error.family, error.kind, error.code, error.rest), (Family::V6, 4, 3, 7));
    }
}

#[test]
fn cut_anywhere_nothing_panics() {
    let v4 = V4 { protocol: 1, options: vec![1; 40], ..V4::new(1, 0, true, &[8; 16]) }.bytes();
    let before = vec![60, 0, 1, 4, 0, 0, 0, 0, 43, 0, 1, 4, 0, 0, 0, 0, 44, 0, 9, 0, 0, 0, 0, 0];
    let behind = [58, 0, 1, 4, 0, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0];
    let v6 = V6 { first: 0, before, next: 60, ..V6::new(1, 0, true, &behind) }.bytes();
    for at in 0..=v4.len() {
        let error = IcmpError::time_exceeded(Family::V4, &v4[..at]);
        assert!(error.is_none_or(|error| at >= 20 && error.quote == v4[..at]), "cut at {at}");
    }
    for at in 0..=v6.len() {
        let _ = answered6(&v6[..at]);
    }
}

/// The errors of the datagrams given up when the first fragment of each has waited long enough.
fn expired(config: Config, packets: &[Vec<u8>]) -> Vec<Option<IcmpError>> {
    let (mut engine, mut log) = (Engine::new(config, true), Log::default());
    for (number, packet) in packets.iter().enumerate() {
        push(&mut engine, &mut log, number as u64, packet, 0);
    }
    engine.advance(&[], 60 * SECOND, &mut log);
    assert!(log.lost().iter().all(|lost| lost.reason == Reason::Timeout));
    log.lost().iter().map(|lost| lost.icmp.clone()).collect()
}

#[test]
fn only_a_timeout_with_the_first_fragment_is_told() {
    let first = V4::new(1, 0, true, &pattern(1, 0, 12)).bytes();
    let packets = [V4::new(2, 8, true, &[0; 8]).bytes(), first.clone(), V6::new(2, 8, true, &[0; 8]).bytes()];
    let errors = expired(config(Policy::Linux), &packets);
    assert_eq!(errors.len(), 3);
    assert_eq!((&errors[0], &errors[2]), (&None, &None));
    // Bytes behind the last multiple of 8 are not quoted.
    assert_eq!(errors[1].as_ref().map(|error| error.quote.as_slice()), Some(&first[..28]));
}

#[test]
fn netfilter_answers_for_its_own_addresses() {
    let own = Some(vec![(0xc0a8_0000, 0xffff_0000), (0x0808_0808, u32::MAX)]);
    for (destination, path, local, told) in [
        (0xc0a8_0002, Path::Netfilter, own.clone(), true),
        (0x0808_0808, Path::Netfilter, own.clone(), true),
        (0x0808_0809, Path::Netfilter, own.clone(), false),
        (0x0808_0809, Path::Netfilter, Some(vec![]), false),
        (0x0808_0809, Path::Netfilter, Some(vec![(0, 0)]), true),
        (0x0808_0809, Path::Netfilter, None, true),
        (0x0808_0809, Path::Local, own, true),
    ] {
        let packet = V4 { destination, ..V4::new(1, 0, true, &[0; 8]) }.bytes();
        let errors = expired(Config { path, local, ..config(Policy::Linux) }, &[packet]);
        assert_eq!(errors[0].is_some(), told, "to {destination:08x}");
    }
    let packet = V6::new(1, 0, true, &[0; 8]).bytes();
    let netfilter = Config { path: Path::Netfilter, local: Some(vec![]), ..config(Policy::Linux) };
    assert!(expired(netfilter, &[packet])[0].is_some());
}

#[test]
fn problems_of_ipv6_point_at_what_is_wrong() {
    let long = V6::new(1, 65_528, false, &[0; 8]).bytes();
    let odd = V6::new(2, 0, true, &[0; 9]).bytes();
    let chain = V6 { next: 6, ..V6::new(3, 0, true, &[0; 16]) }.bytes();
    let mut none = V6::new(4, 0, true, &[]).bytes();
    none[4..6].fill(0);
    let nested = V6 { next: 44, ..V6::new(5, 0, false, &[17, 0, 0, 1, 0, 0, 0, 9]) }.bytes();
    let (mut engine, mut log) = (Engine::new(config(Policy::Linux), true), Log::default());
    for (number, packet) in [&long, &odd, &chain, &none, &nested].into_iter().enumerate() {
        push(&mut engine, &mut log, number as u64, packet, 0);
    }
    let fault = |at: u64, code, pointer, packet: &[u8], reason| {
        [Event::Problem(at, code, pointer, packet.to_vec()), Event::Dropped(at, reason)]
    };
    let expected = [
        fault(0, 0, 42, &long, Reason::Oversize),
        fault(1, 0, 4, &odd, Reason::Unaligned),
        fault(2, 3, 0, &chain, Reason::Chain),
        // Cut at its own payload length.
        fault(3, 0, 40, &none[..40], Reason::FragmentHeader),
        fault(4, 0, 48, &nested, Reason::Nested),
    ];
    assert_eq!(log.events, expected.concat());
    assert_eq!(engine.counters(Family::V6).in_hdr_errors, 5);
}
