use fragtrack_core::frame::LinkType;

use crate::testing::{CLASSIC, pcap_header, pcap_record, read, variants};
use crate::{Damage, Unit, Why};

#[test]
fn records_of_every_variant() {
    for pcap in variants() {
        let mut file = pcap_header(pcap, 113, 65_535);
        pcap_record(&mut file, pcap, (5, 7), b"frame", 99);
        pcap_record(&mut file, pcap, (u32::MAX, u32::MAX), b"", 0);
        let seen = read(&file, None, 100);
        let head = pcap.layout.head();
        let unit = if pcap.unit == Unit::Nano { 1 } else { 1000 };
        let [(0, first), (0, second)] = seen.frames.as_slice() else { panic!("{seen:?}") };
        assert_eq!((first.start, first.record, first.head), (24, u32::from(head) + 5, head));
        assert_eq!((first.captured, first.link), (5, LinkType(113)));
        assert_eq!(first.time, 5_000_000_000 + 7 * unit);
        assert_eq!(second.time, i64::from(u32::MAX) * (1_000_000_000 + unit), "odd fractions are added");
        assert_eq!((seen.damage, seen.position), (None, file.len() as u64));
    }
}

#[test]
fn a_lying_length_ends_reading() {
    let mut file = pcap_header(CLASSIC, 1, 96);
    pcap_record(&mut file, CLASSIC, (1, 1), &[0; 100], 100);
    let at = file.len();
    pcap_record(&mut file, CLASSIC, (1, 2), &[0; 50], 50);
    file[at + 8..at + 12].copy_from_slice(&262_145_u32.to_le_bytes());
    let seen = read(&file, None, 100);
    let why = Why::RecordLength { says: 262_145, limit: 262_144 };
    assert_eq!((seen.frames.len(), seen.damage), (1, Some(Damage { offset: at as u64, why })));
    assert_eq!(seen.position, at as u64);
}

#[test]
fn a_long_record_needs_a_long_snapshot_length() {
    let mut file = pcap_header(CLASSIC, 1, 300_000);
    pcap_record(&mut file, CLASSIC, (1, 1), &[0; 300_000], 300_000);
    assert_eq!(read(&file, None, 100).frames.len(), 1);
}

#[test]
fn a_cut_record_is_damage_at_its_start() {
    let mut file = pcap_header(CLASSIC, 1, 65_535);
    pcap_record(&mut file, CLASSIC, (1, 1), b"frame", 5);
    let whole = file.len();
    pcap_record(&mut file, CLASSIC, (1, 1), b"frame", 5);
    for cut in whole + 1..file.len() {
        let seen = read(&file[..cut], None, 100);
        let needs = if cut < whole + 16 { 16 } else { 21 };
        let why = Why::Cut { has: (cut - whole) as u64, needs };
        assert_eq!((seen.frames.len(), seen.damage), (1, Some(Damage { offset: whole as u64, why })));
    }
}
