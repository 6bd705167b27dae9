use proptest::prelude::*;

use super::*;
use crate::reader::{Input, Pause, Reader, Tail};
use crate::testing::{CLASSIC, Ng, any_ng, any_pcap, damaged, pcap_header, pcap_record, variants};
use crate::{Layout, Unit};

/// What is done with the packets of a file.
#[derive(Clone, Copy, Debug)]
enum How {
    /// In stretches, as they are.
    Runs,
    /// One by one, as they are.
    Each,
    /// Their bytes anew, which are the same.
    Replaced,
}

/// Reads files one after the other and writes them into one.
fn copy(files: &[&[u8]], output: Output, how: How, max: usize) -> Result<Vec<u8>, Refused> {
    let (mut origins, mut writer, mut out) = (Origins::new(), Writer::new(output), Vec::new());
    let mut packets = 0;
    for &bytes in files {
        let (mut reader, mut frames, mut start, mut begun) = (Reader::new(), Vec::new(), 0, None);
        loop {
            let input = Input { bytes, start, stop: bytes.len(), tail: Tail::Last };
            let step = reader.read(&mut origins, input, &mut frames, max);
            if begun != reader.origin() {
                begun = reader.origin();
                if bytes[..4] != [0x0a, 0x0d, 0x0d, 0x0a] {
                    writer.begin(&origins, begun.unwrap(), &mut out);
                }
            }
            for run in frames.chunk_by(|a, b| a.link != LinkType::NONE && b.link != LinkType::NONE) {
                let origin = begun.unwrap();
                if run[0].link == LinkType::NONE {
                    writer.other(&origins, origin, Record::of(origin, &run[0], bytes).bytes, &mut out);
                    continue;
                }
                writer.admit(&origins, origin, run, &mut out)?;
                packets += run.len() as u64;
                match how {
                    How::Runs => writer.packets(&origins, origin, run, bytes, &mut out),
                    How::Each => {
                        run.iter().for_each(|one| writer.packet(&origins, Record::of(origin, one, bytes), &mut out));
                    }
                    How::Replaced => {
                        for one in run {
                            let start = one.start as usize + usize::from(one.head);
                            let frame = &bytes[start..start + one.captured as usize];
                            let fill = |out: &mut Vec<u8>| out.extend_from_slice(frame);
                            writer.replace(&origins, Record::of(origin, one, bytes), frame.len(), fill, &mut out);
                        }
                    }
                }
            }
            start = step.next;
            if matches!(step.pause, Pause::Done | Pause::Damaged) {
                break;
            }
        }
    }
    writer.finish(&mut out);
    assert_eq!(writer.written(), packets);
    Ok(out)
}

fn one(file: &[u8], output: Output) -> Vec<u8> {
    copy(&[file], output, How::Runs, 100).unwrap()
}

/// The part of a file that can be read, with section lengths unspecified.
fn sound(file: &[u8]) -> Vec<u8> {
    let seen = crate::testing::read(file, None, 1000);
    let mut file = file[..seen.position as usize].to_vec();
    for (_, frame) in seen.frames {
        let at = frame.start as usize;
        if file[at..at + 4] == [0x0a, 0x0d, 0x0d, 0x0a] {
            file[at + 16..at + 24].fill(0xff);
        }
    }
    file
}

fn any_how() -> impl Strategy<Value = How> {
    prop::sample::select(vec![How::Runs, How::Each])
}

proptest! {
    #[test]
    fn pcapng_comes_out_as_it_went_in(file in damaged(any_ng()), how in any_how(), max in 1..20_usize) {
        prop_assume!(file.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]));
        prop_assert_eq!(copy(&[&file], Output::Pcapng, how, max).unwrap(), sound(&file));
    }

    #[test]
    fn pcap_comes_out_as_it_went_in(pcap in any_pcap(), frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20), how in any_how()) {
        let mut file = pcap_header(pcap, 0x1000_0001, 300_000);
        for (at, frame) in frames.iter().enumerate() {
            pcap_record(&mut file, pcap, (at as u32, u32::MAX), frame, 7);
        }
        prop_assert_eq!(&copy(&[&file], Output::Pcap, how, 7).unwrap(), &file);
    }

    #[test]
    fn nothing_is_lost_on_the_way_to_the_other_format(pcap in any_pcap(), frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20)) {
        let mut file = pcap_header(pcap, 1, 262_144);
        for (at, frame) in frames.iter().enumerate() {
            pcap_record(&mut file, pcap, (at as u32, 999_999), frame, frame.len() as u32 + 5);
        }
        let ng = one(&file, Output::Pcapng);
        let plain = Pcap { layout: Layout::Classic, ..pcap };
        let mut back = pcap_header(plain, 1, 262_144);
        for (at, frame) in frames.iter().enumerate() {
            pcap_record(&mut back, plain, (at as u32, 999_999), frame, frame.len() as u32 + 5);
        }
        prop_assert_eq!(one(&ng, Output::Pcap), back);
    }

    #[test]
    fn replacing_by_the_same_bytes_drops_only_hashes(data in prop::collection::vec(any::<u8>(), 0..40), order in crate::testing::any_order()) {
        let start = Ng::new(order).interface(1, 0, &[]);
        let both: &[(u16, &[u8])] = &[(1, b"comment"), (3, b"hash"), (2, b"1234")];
        let file = start.clone().packet(0, 5, &data, both).packet(0, 6, &data, &[(3, b"hash")]);
        let file = file.old_packet(0, 9, 7, &data).simple(&data, data.len() as u32);
        let want = start.packet(0, 5, &data, &[(1, b"comment"), (2, b"1234")]).packet(0, 6, &data, &[]);
        let want = want.old_packet(0, 9, 7, &data).simple(&data, data.len() as u32);
        prop_assert_eq!(copy(&[&file.data], Output::Pcapng, How::Replaced, 9).unwrap(), want.data);
    }
}

#[test]
fn a_snapshot_length_is_raised() {
    let out = one(&pcap_header(CLASSIC, 1, 96), Output::Pcap);
    assert_eq!(out, pcap_header(CLASSIC, 1, 262_144));
}

#[test]
fn pcap_becomes_a_section() {
    for pcap in variants() {
        let mut file = pcap_header(pcap, 113, 96);
        pcap_record(&mut file, pcap, (5, 7), b"frame", 99);
        let (resolution, unit) = if pcap.unit == Unit::Nano { (9, 1_000_000_000) } else { (6, 1_000_000) };
        let want = Ng::new(pcap.order).interface(113, 262_144, &[(9, &[resolution])]);
        let mut want = want.packet(0, 5 * unit + 7, b"frame", &[]).data;
        let wire = want.len() - 4 - 8 - 4;
        want[wire..wire + 4].copy_from_slice(&pcap.order.bytes32(99));
        assert_eq!(one(&file, Output::Pcapng), want);
    }
}

#[test]
fn pcapng_becomes_pcap_if_it_has_one_link_type() {
    let ng = Ng::new(Order::Big).interface(101, 300_000, &[]).block(4, &[]);
    let fine =
        ng.clone().interface(101, 0, &[(9, &[9])]).packet(1, 1_000_000_001, b"one", &[]).packet(0, 2, b"two", &[]);
    let pcap = Pcap { order: Order::Big, unit: Unit::Nano, layout: Layout::Classic };
    let mut want = pcap_header(pcap, 101, 300_000);
    pcap_record(&mut want, pcap, (1, 1), b"one", 3);
    pcap_record(&mut want, pcap, (0, 2_000), b"two", 3);
    assert_eq!(one(&fine.data, Output::Pcap), want);
    let two = ng.packet(0, 1, b"one", &[]).interface(1, 0, &[]).packet(0, 1, b"", &[]).packet(1, 1, b"", &[]);
    let refused = Refused { at: 1, link: LinkType(1), file: LinkType(101) };
    assert_eq!(copy(&[&two.data], Output::Pcap, How::Runs, 100), Err(refused));
}

#[test]
fn interfaces_known_when_the_header_is_written_decide_not_later_ones() {
    // However many blocks are read at once.
    let ng = Ng::new(Order::Little).interface(1, 0, &[]).packet(0, 1, b"", &[]).interface(1, 400_000, &[(9, &[9])]);
    let mut want = pcap_header(CLASSIC, 1, 262_144);
    pcap_record(&mut want, CLASSIC, (0, 1), b"", 0);
    assert_eq!(copy(&[&ng.data], Output::Pcap, How::Runs, 1), Ok(want.clone()));
    assert_eq!(copy(&[&ng.data], Output::Pcap, How::Runs, 100), Ok(want));
}

#[test]
fn an_output_without_packets_has_a_header() {
    let big = Pcap { order: Order::Big, ..CLASSIC };
    assert_eq!(one(&Ng::new(Order::Big).data, Output::Pcap), pcap_header(big, 1, 262_144));
    assert_eq!(one(&Ng::new(Order::Big).interface(113, 0, &[]).data, Output::Pcap), pcap_header(big, 113, 262_144));
    assert_eq!(one(&[], Output::Pcapng), []);
}

#[test]
fn later_pcap_files_take_the_shape_of_the_first() {
    for first in variants() {
        for second in variants() {
            let (mut one, mut two) = (pcap_header(first, 1, 262_144), pcap_header(second, 1, 262_144));
            pcap_record(&mut one, first, (1, 2), b"one", 3);
            pcap_record(&mut two, second, (3, 999_999), b"two", 9);
            let mut want = one.clone();
            if first == second {
                pcap_record(&mut want, second, (3, 999_999), b"two", 9);
            } else {
                let fraction = match (first.unit, second.unit) {
                    (Unit::Micro, Unit::Nano) => 999,
                    (Unit::Nano, Unit::Micro) => 999_999_000,
                    _ => 999_999,
                };
                let at = want.len();
                pcap_record(&mut want, first, (3, fraction), b"two", 9);
                if first.layout == Layout::Modified {
                    want[at + 16..at + 24].fill(0);
                }
            }
            assert_eq!(copy(&[&one, &two], Output::Pcap, How::Each, 9), Ok(want));
        }
    }
    let other = pcap_header(CLASSIC, 101, 0);
    let mut packet = other.clone();
    pcap_record(&mut packet, CLASSIC, (1, 1), b"", 0);
    let first = pcap_header(CLASSIC, 1, 262_144);
    assert_eq!(copy(&[&first, &other], Output::Pcap, How::Runs, 9).as_ref(), Ok(&first));
    assert!(copy(&[&first, &packet], Output::Pcap, How::Runs, 9).is_err());
}

/// A packet of an earlier section is written late: its interface goes along, others move up.
#[test]
fn a_packet_of_an_earlier_section_brings_its_interface() {
    for (from, to) in [(Order::Little, Order::Little), (Order::Big, Order::Little)] {
        let early = Ng::new(from).interface(1, 5, &[]).interface(113, 9, &[(2, b"eth1")]);
        let at = early.data.len();
        let file = early.packet(1, 7, b"held", &[]).section(to, -1).interface(101, 0, &[]);
        let middle = file.data.len();
        let file = file.interface(1, 0, &[]).packet(1, 8, b"x", &[]).old_packet(1, 3, 9, b"y");
        let file = file.block(5, &[to.bytes32(1), [0; 4], [0; 4]].concat());
        let (mut reader, mut origins, mut frames) = (Reader::new(), Origins::new(), Vec::new());
        let (mut writer, mut out) = (Writer::new(Output::Pcapng), Vec::new());
        let mut start = 0;
        let mut held = None;
        loop {
            let input = Input { bytes: &file.data, start, stop: file.data.len(), tail: Tail::Last };
            let step = reader.read(&mut origins, input, &mut frames, 100);
            let origin = reader.origin().unwrap();
            for frame in &frames {
                let record = Record::of(origin, frame, &file.data);
                if frame.start as usize == at {
                    held = Some(record);
                    continue;
                }
                if frame.start as usize == middle {
                    for _ in 0..2 {
                        writer.packet(&origins, held.unwrap(), &mut out);
                    }
                }
                match frame.link {
                    LinkType::NONE => writer.other(&origins, origin, record.bytes, &mut out),
                    _ => writer.packet(&origins, record, &mut out),
                }
            }
            start = step.next;
            if step.pause == Pause::Done {
                break;
            }
        }
        let want = Ng::new(from).interface(1, 5, &[]).interface(113, 9, &[(2, b"eth1")]).section(to, -1);
        let want = want.interface(101, 0, &[]).interface(113, 9, &[(2, b"eth1")]);
        let want = want.packet(1, 7, b"held", &[]).packet(1, 7, b"held", &[]);
        let want = want.interface(1, 0, &[]).packet(2, 8, b"x", &[]).old_packet(2, 3, 9, b"y");
        assert_eq!(out, want.block(5, &[to.bytes32(2), [0; 4], [0; 4]].concat()).data);
    }
}

#[test]
fn a_simple_block_too_short_for_its_new_frame_becomes_an_enhanced_one() {
    let file = Ng::new(Order::Little).interface(1, 4, &[]).packet(0, 8, b"a", &[]).simple(b"abcd", 4).data;
    let (mut origins, mut writer, mut out) = (Origins::new(), Writer::new(Output::Pcapng), Vec::new());
    let (mut reader, mut frames) = (Reader::new(), Vec::new());
    let input = Input { bytes: &file, start: 0, stop: file.len(), tail: Tail::Last };
    reader.read(&mut origins, input, &mut frames, 100);
    for frame in &frames[..3] {
        writer.other(&origins, 0, Record::of(0, frame, &file).bytes, &mut out);
    }
    let record = Record::of(0, &frames[3], &file);
    writer.replace(&origins, record, 5, |out| out.extend_from_slice(b"abcde"), &mut out);
    let want = Ng::new(Order::Little).interface(1, 4, &[]).packet(0, 8, b"a", &[]).packet(0, 8, b"abcde", &[]).data;
    assert_eq!(out, want);
}
