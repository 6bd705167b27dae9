use fragtrack_core::reason::Reason;

use super::*;
use crate::Tail;
use crate::order::Order;
use crate::testing::{CLASSIC, Ng, pcap_header, pcap_record};

const SECOND: i64 = 1_000_000_000;

fn config() -> Config {
    Config { memory: 1 << 20, ..Config::capture((1, 2)) }
}

/// An Ethernet frame with an IPv4 packet: 20 bytes of header, without a checksum.
fn frame(id: u8, offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend_from_slice(&[8, 0, 0x45, 0]);
    frame.extend_from_slice(&(20 + payload.len() as u16).to_be_bytes());
    frame.extend_from_slice(&[0, id]);
    frame.extend_from_slice(&((offset / 8) | (u16::from(more) << 13)).to_be_bytes());
    frame.extend_from_slice(&[64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend_from_slice(payload);
    frame
}

fn pcap(frames: &[(u32, &[u8])]) -> Vec<u8> {
    let mut file = pcap_header(CLASSIC, 1, 262_144);
    for (second, frame) in frames {
        pcap_record(&mut file, CLASSIC, (*second, 5), frame, frame.len() as u32);
    }
    file
}

/// Runs a rewriter over files, each `chunk` bytes at a time.
fn run(files: &[&[u8]], output: Output, incomplete: Incomplete, chunk: usize) -> (Rewriter, Vec<u8>) {
    let mut rewriter = Rewriter::new(config(), Some(output), incomplete, Rows::Payloads);
    let mut out = Vec::new();
    for (number, file) in files.iter().enumerate() {
        rewriter.begin(&format!("file{number}"));
        let (mut start, mut stop) = (0, chunk.min(file.len()));
        loop {
            let input = Input { bytes: file, start, stop, tail: Tail::from(stop == file.len()) };
            // A buffer that goes: none of it is there in the next call.
            let mut passing = file.to_vec();
            let buffer = if chunk < file.len() { Buffer::Goes } else { Buffer::Stays };
            let input = if buffer == Buffer::Goes { Input { bytes: &passing, ..input } } else { input };
            start = rewriter.feed(input, buffer, usize::MAX).unwrap();
            passing.fill(0);
            if stop == file.len() && start == stop {
                break;
            }
            stop = (stop + chunk).min(file.len());
        }
        rewriter.end(file);
        out.extend_from_slice(rewriter.output());
        rewriter.clear_output();
    }
    rewriter.finish();
    out.extend_from_slice(rewriter.output());
    (rewriter, out)
}

const PIECES: [(u16, bool, &[u8]); 3] = [(0, true, b"01234567"), (8, true, b"89abcdef"), (16, false, b"end")];

fn pieces() -> [Vec<u8>; 3] {
    PIECES.map(|(offset, more, payload)| frame(7, offset, more, payload))
}

fn whole() -> Vec<u8> {
    let mut whole = frame(7, 0, false, b"0123456789abcdefend");
    let sum: u32 = whole[14..34].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    whole[24..26].copy_from_slice(&sum.to_be_bytes());
    whole
}

#[test]
fn a_datagram_stands_where_it_became_whole() {
    let ([a, b, c], other) = (pieces(), frame(9, 0, false, b"no fragment"));
    let file = pcap(&[(1, &a), (2, &other), (3, &c), (4, &other), (5, &b), (6, &other)]);
    let want = pcap(&[(2, &other), (4, &other), (5, &whole()), (6, &other)]);
    for chunk in [1, 50, 1 << 20] {
        let (mut rewriter, out) = run(&[&file], Output::Pcap, Incomplete::Drop, chunk);
        assert_eq!(out, want);
        let rows = rewriter.take_rows();
        assert_eq!((rows.len(), &rows[0].frames[..], rows[0].length), (1, &[1, 5, 3][..], 19));
        assert_eq!(rows[0].packet.as_deref(), Some(&whole()[14..]));
        assert_eq!(rows[0].times, (SECOND + 5_000, 5 * SECOND + 5_000));
        assert_eq!((rewriter.packets(), rewriter.written(), rewriter.bytes()), (6, 4, file.len() as u64));
    }
}

#[test]
fn fragments_without_a_datagram_are_kept_or_not() {
    let ([a, b, _], other) = (pieces(), frame(9, 0, false, b""));
    let file = pcap(&[(1, &a), (2, &a), (3, &other), (4, &b), (60, &other)]);
    let kept = pcap(&[(3, &other), (1, &a), (4, &b), (60, &other)]);
    let (mut rewriter, out) = run(&[&file], Output::Pcap, Incomplete::Keep, 1 << 20);
    assert_eq!(out, kept);
    assert_eq!(rewriter.take_rows()[0].reason, Some(Reason::Timeout));
    let (rewriter, out) = run(&[&file], Output::Pcap, Incomplete::Drop, 1 << 20);
    assert_eq!(out, pcap(&[(3, &other), (60, &other)]));
    assert_eq!(rewriter.totals().lost(Reason::Duplicate), 1);
}

#[test]
fn fragments_wait_for_the_next_input() {
    let [a, b, c] = pieces();
    let (first, second) = (pcap(&[(1, &a), (2, &b)]), pcap(&[(3, &c)]));
    for chunk in [40, 1 << 20] {
        let (mut rewriter, out) = run(&[&first, &second], Output::Pcap, Incomplete::Keep, chunk);
        assert_eq!(out, pcap(&[(3, &whole())]));
        assert_eq!(rewriter.take_rows()[0].frames, [1, 2, 1], "numbers count in each input");
    }
}

#[test]
fn blocks_are_not_counted_as_frames() {
    let [a, b, c] = pieces();
    let start = Ng::new(Order::Big).interface(1, 0, &[]).block(4, b"names");
    let file = start.clone().packet(0, 1, &a, &[]).block(4, b"more").packet(0, 2, &b, &[]).block(5, b"");
    let file = file.simple(&c, c.len() as u32).block(4, b"last");
    let want = start.block(4, b"more").block(5, b"").simple(&whole(), whole().len() as u32).block(4, b"last");
    let (mut rewriter, out) = run(&[&file.data], Output::Pcapng, Incomplete::Keep, 1 << 20);
    assert_eq!(out, want.data);
    assert_eq!((rewriter.take_rows()[0].frames.clone(), rewriter.packets()), (vec![1, 2, 3], 3));
}

#[test]
fn a_held_packet_without_a_time_keeps_the_one_it_was_given() {
    let [a, ..] = pieces();
    let file = Ng::new(Order::Big).interface(1, 0, &[]).packet(0, 77, &frame(9, 0, false, b""), &[]);
    let first = file.simple(&a, a.len() as u32).data;
    let (_, out) = run(&[&first], Output::Pcap, Incomplete::Keep, 1 << 20);
    assert!(out.ends_with(&a));
    let record = &out[out.len() - a.len() - 16..];
    assert_eq!(record[..8], [0, 0, 0, 0, 0, 0, 0, 77]);
}

#[test]
fn sections_that_nothing_is_held_of_are_forgotten() {
    let [a, b, c] = pieces();
    let other = frame(9, 0, false, b"");
    let empty = |file: Ng| {
        (0..50).fold(file, |file, _| file.section(Order::Big, -1).interface(1, 0, &[]).packet(0, 1, &other, &[]))
    };
    let file = empty(Ng::new(Order::Big)).section(Order::Little, -1).interface(1, 0, &[]).packet(0, 1, &a, &[]);
    let (rewriter, _) = run(&[&file.data], Output::Pcapng, Incomplete::Keep, 1 << 20);
    assert_eq!(rewriter.intake.origins.count(), 1);
    let file = empty(file).section(Order::Little, -1).interface(1, 0, &[]).packet(0, 2, &b, &[]);
    let (rewriter, out) = run(&[&empty(file.clone()).data], Output::Pcapng, Incomplete::Keep, 1 << 20);
    assert_eq!((rewriter.intake.origins.count(), rewriter.written()), (3, 152));
    assert!(out.windows(a.len()).any(|bytes| bytes == a));
    let file = empty(file.packet(0, 3, &c, &[]));
    let (rewriter, _) = run(&[&file.data], Output::Pcapng, Incomplete::Keep, 1 << 20);
    assert_eq!((rewriter.intake.origins.count(), rewriter.written()), (1, 151));
}

#[test]
fn damage_is_told_for_each_input_and_the_rest_goes_by() {
    let other = frame(9, 0, false, b"");
    let mut file = pcap(&[(1, &other), (2, &other)]);
    file.truncate(file.len() - 1);
    let (rewriter, out) = run(&[&file, &file], Output::Pcap, Incomplete::Keep, 10);
    assert_eq!(out, pcap(&[(1, &other), (1, &other)]));
    let damaged = rewriter.damaged().unwrap();
    assert_eq!((damaged.name.as_str(), damaged.damage.offset), ("file1", 74));
    assert_eq!(damaged.damage.why.to_string(), "cut off record: 49 of 50 bytes");
    let whole = pcap(&[(1, &other)]);
    let (rewriter, _) = run(&[&file, &whole], Output::Pcap, Incomplete::Keep, 10);
    assert_eq!(rewriter.damaged(), None);
}

#[test]
fn what_is_no_capture_is_a_failure() {
    let fails = |bytes: &[u8], tail| {
        let mut rewriter = Rewriter::new(config(), None, Incomplete::Drop, Rows::None);
        rewriter.begin("file");
        let input = Input { bytes, start: 0, stop: bytes.len(), tail };
        rewriter.feed(input, Buffer::Goes, usize::MAX).unwrap_err().to_string()
    };
    assert_eq!(fails(b"", Tail::Last), "empty file");
    assert_eq!(fails(b"text", Tail::Open), "not a capture: starts with bytes 74 65 78 74");
    assert_eq!(fails(b"\xd4\xc3\xb2\xa1", Tail::Last), "not a capture: cut off record: 4 of 24 bytes");
}

#[test]
fn a_second_link_type_is_a_failure_that_names_the_frame() {
    let file = Ng::new(Order::Big).interface(1, 0, &[]).interface(101, 0, &[]);
    let file = file.packet(0, 1, &frame(9, 0, false, b""), &[]).packet(1, 1, b"", &[]).data;
    let mut rewriter = Rewriter::new(config(), Some(Output::Pcap), Incomplete::Drop, Rows::None);
    rewriter.begin("name");
    let input = Input { bytes: &file, start: 0, stop: file.len(), tail: Tail::Last };
    let failure = rewriter.feed(input, Buffer::Stays, usize::MAX).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "name: frame 2 has link type 101, those before it have 1, and a pcap file holds one: write .pcapng instead"
    );
    assert_eq!(rewriter.written(), 1, "what came before is written");
}
