use fragtrack_core::frame::LinkType;
use proptest::prelude::*;

use super::*;
use crate::order::Order;
use crate::testing::{CLASSIC, Ng, Seen, any_ng, any_pcap, damaged, pcap_header, pcap_record, read, variants};

fn any_small_pcap() -> impl Strategy<Value = Vec<u8>> {
    let record = (any::<(u32, u32)>(), prop::collection::vec(any::<u8>(), 0..60), any::<u32>());
    (any_pcap(), prop::collection::vec(record, 0..20)).prop_map(|(pcap, records)| {
        records.iter().fold(pcap_header(pcap, 1, 65_535), |mut file, (stamp, frame, wire)| {
            pcap_record(&mut file, pcap, *stamp, frame, *wire);
            file
        })
    })
}

proptest! {
    #[test]
    fn pieces_make_no_difference(
        file in prop_oneof![damaged(any_small_pcap()), damaged(any_ng())],
        chunk in prop_oneof![1..20_usize, 1..400_usize],
        max in 1..9_usize,
    ) {
        prop_assert_eq!(read(&file, Some(chunk), max), read(&file, None, 1000));
    }

    #[test]
    fn any_bytes_are_read_to_an_end(file in prop::collection::vec(any::<u8>(), 0..200), magic in 0..8_usize) {
        let starts: Vec<[u8; 4]> = variants().map(|pcap| pcap.order.bytes32(pcap.magic())).collect();
        let mut start = starts.get(magic).copied().unwrap_or([0x0a, 0x0d, 0x0d, 0x0a]).to_vec();
        start.extend(file);
        prop_assert_eq!(read(&start, Some(7), 3), read(&start, None, 1000));
    }
}

/// Bytes that look like anything a record header can look like.
fn trap(kind: u8, seed: u32, length: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let mut out = Vec::with_capacity(length + 32);
    while out.len() < length {
        let second = 1_700_000_000_u32;
        match kind {
            0 => out.extend_from_slice(&[0; 16]),
            1 => out.extend_from_slice(&next().to_le_bytes()),
            // Records that hold nothing, little ones, and ones that lead far away.
            2 => out.extend([second, 1, 0, 0].iter().flat_map(|word| word.to_le_bytes())),
            3 => out.extend([second, 1, next() % 40, 60].iter().flat_map(|word| word.to_le_bytes())),
            4 => out.extend([second, 1, next() % 200_000, 262_144].iter().flat_map(|word| word.to_le_bytes())),
            // Blocks of pcapng.
            _ => out.extend([6, 12, 12].iter().flat_map(|word: &u32| word.to_le_bytes())),
        }
        if next() % 64 == 0 {
            out.push(kind);
        }
    }
    out.truncate(length);
    out
}

/// Large enough to be looked ahead in.
fn any_large() -> impl Strategy<Value = Vec<u8>> {
    let record =
        (0..6_u8, any::<u32>(), prop_oneof![300..1500_usize, 1400..1401_usize, 0..70_usize, 9_000..9_001_usize]);
    let format = prop_oneof![any_pcap().prop_map(Some), Just(None)];
    (format, prop::collection::vec(record, 200..500)).prop_map(|(format, records)| {
        let step = |at: usize| (1_700_000_000 + at as u32 / 50, at as u32);
        let bytes: Vec<Vec<u8>> = records.iter().map(|(kind, seed, length)| trap(*kind, *seed, *length)).collect();
        match format {
            Some(pcap) => {
                let mut file = pcap_header(pcap, 1, 65_535);
                for (at, frame) in bytes.iter().enumerate() {
                    pcap_record(&mut file, pcap, step(at), frame, frame.len() as u32);
                }
                file
            }
            None => {
                let mut ng = Ng::new(Order::Little).interface(1, 0, &[]);
                for (at, frame) in bytes.iter().enumerate() {
                    ng = ng.packet(0, at as u64, frame, &[]);
                    if at % 150 == 149 {
                        let order = if at % 300 == 149 { Order::Big } else { Order::Little };
                        ng = ng.section(order, -1).interface(1, 0, &[]);
                    }
                }
                ng.data
            }
        }
    })
}

/// The plainest walk over a little-endian pcap file: place and captured length.
fn serial(file: &[u8]) -> (Vec<(u64, u32)>, u64) {
    let (mut at, mut records) = (24, Vec::new());
    while let Some(header) = file.get(at..at + 16) {
        let captured = u32::from_le_bytes(header[8..12].try_into().unwrap());
        let end = at + 16 + captured as usize;
        if captured > 262_144 || end > file.len() {
            break;
        }
        records.push((at as u64, captured));
        at = end;
    }
    (records, at as u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn looking_ahead_makes_no_difference(file in damaged(any_large()), max in prop_oneof![1..2000_usize, 256..257_usize]) {
        let plain = read(&file, Some(50_000), 1000); // too little to look ahead in
        let same: Seen = read(&file, None, max);
        prop_assert_eq!(&plain, &same);
        if file.starts_with(&CLASSIC.order.bytes32(CLASSIC.magic())) && file.len() >= 24 {
            let places: Vec<(u64, u32)> = same.frames.iter().map(|(_, frame)| (frame.start, frame.captured)).collect();
            prop_assert_eq!((places, same.position), serial(&file));
        }
    }

    #[test]
    fn looking_ahead_in_a_stream_makes_no_difference(file in damaged(any_large()), chunk in 140_000..400_000_usize) {
        prop_assert_eq!(read(&file, Some(chunk), 300), read(&file, Some(50_000), 1000));
    }
}

#[test]
fn a_reader_outlives_a_buffer_that_changed() {
    // Against what it asks for: the bytes behind what was read are others than before.
    let mut file = pcap_header(CLASSIC, 1, 65_535);
    for at in 0..600 {
        pcap_record(&mut file, CLASSIC, (1_700_000_000, at), &[0; 1000], 1000);
    }
    let (mut reader, mut origins, mut frames) = (Reader::new(), Origins::new(), Vec::new());
    let input = Input { bytes: &file, start: 0, stop: file.len(), tail: Tail::Last };
    let step = reader.read(&mut origins, input, &mut frames, 10);
    for shorter in [file.len() - 500, step.next + 3, step.next] {
        let input = Input { bytes: &file[..shorter], start: step.next, stop: shorter, tail: Tail::Open };
        let mut reader = reader.clone();
        let step = reader.read(&mut origins, input, &mut frames, 1000);
        assert!(step.next <= shorter && frames.iter().all(|frame| frame.start + 1016 <= shorter as u64));
    }
    let other = vec![7; file.len()];
    let input = Input { bytes: &other, start: step.next, stop: other.len(), tail: Tail::Last };
    assert_eq!(reader.read(&mut origins, input, &mut frames, 1000).pause, Pause::Damaged);
}

#[test]
fn detect_tells_formats_and_what_is_none() {
    for pcap in variants() {
        let header = pcap_header(pcap, 1, 0);
        assert_eq!(Reader::detect(&header, Tail::Open), Ok(Detect::Pcap(pcap)));
        assert_eq!(Reader::detect(&header[..23], Tail::Open), Ok(Detect::More));
        let why = Why::Cut { has: 23, needs: 24 };
        assert_eq!(Reader::detect(&header[..23], Tail::Last), Err(Damage { offset: 0, why }));
    }
    let section = Ng::new(Order::Big).data;
    assert_eq!(Reader::detect(&section, Tail::Last), Ok(Detect::Pcapng));
    assert_eq!(Reader::detect(&section[..11], Tail::Open), Ok(Detect::More));
    let none = |bytes: &[u8]| Reader::detect(bytes, Tail::Last).unwrap_err().why;
    assert_eq!(none(&[]), Why::Empty);
    assert_eq!(none(&section[..3]), Why::Cut { has: 3, needs: 24 });
    assert_eq!(none(&section[..11]), Why::Cut { has: 11, needs: 12 });
    assert_eq!(none(b"plain text"), Why::NotACapture { magic: *b"plai" });
    assert_eq!(none(b"\x0a\x0d\x0d\x0aplain text"), Why::SectionMagic { magic: *b"n te" });
}

#[test]
fn what_is_no_capture_is_damage_at_its_start() {
    for (file, why) in [(&b""[..], Why::Empty), (b"plain", Why::NotACapture { magic: *b"plai" })] {
        let seen = read(file, None, 10);
        assert_eq!((seen.frames.len(), seen.damage), (0, Some(Damage { offset: 0, why })));
        assert_eq!(read(file, Some(1), 10), seen);
    }
}

#[test]
fn a_batch_ends_at_a_section() {
    let file = Ng::new(Order::Big).section(Order::Little, -1).block(9, &[]).section(Order::Big, -1).data;
    let (mut reader, mut origins, mut frames) = (Reader::new(), Origins::new(), Vec::new());
    let mut input = Input { bytes: &file, start: 0, stop: file.len(), tail: Tail::Last };
    let mut steps = Vec::new();
    loop {
        let step = reader.read(&mut origins, input, &mut frames, 100);
        steps.push((step.pause, frames.len(), reader.origin()));
        assert!(frames.iter().all(|frame| frame.link == LinkType::NONE));
        input.start = step.next;
        if step.pause == Pause::Done {
            break;
        }
    }
    let section = Pause::Section;
    assert_eq!(steps, [(section, 1, Some(0)), (section, 2, Some(1)), (Pause::Done, 1, Some(2))]);
}
