//! One input through the rewriter, twice: as a mapping and as a stream. What must hold is checked. Then the same
//! through the follower.

use fragtrack_capture::rewrite::{Incomplete, Rewriter, Row, Rows};
use fragtrack_capture::{Buffer, Failure, Input, Origins, Output, Pause, Reader, Tail};
use fragtrack_core::config::{Checksum, Config, CostModel, Duplicates, Extent, Path, Policy, Reclaim};
use fragtrack_core::frame::LinkType;
use fragtrack_core::stats::Totals;

use crate::random::Random;
use crate::{follow, memory};

/// Bytes of an input before its capture: the settings.
pub const SETTINGS: usize = 8;

/// Bytes that a run may have in use at once, whatever its input...
const ROOM: usize = 24 << 20;
/// ...and for each byte of it.
const ROOM_PER_BYTE: usize = 400;

struct Settings {
    config: Config,
    output: Option<Output>,
    incomplete: Incomplete,
    rows: Rows,
    inputs: usize,
    budget: usize,
    chunk: usize,
}

fn settings(number: u64) -> Settings {
    let mut random = Random::new(number);
    let policy = Policy::ALL[random.below(Policy::ALL.len())].1;
    let linux = random.once_in(3);
    let config = Config {
        policy: if linux { Policy::Linux } else { policy },
        path: random.of(&[Path::Local, Path::Netfilter]),
        timeout4: random.of(&[30_000_000_000, 2_000_000_000, 1]),
        timeout6: random.of(&[60_000_000_000, 3_000_000_000, 1]),
        memory: random.of(&[512 << 20, 512 << 20, 4 << 20, 0, 1, 600, 2500, 5000]),
        cost: random.of(&[CostModel::Capture, CostModel::Kernel]),
        max_dist: random.of(&[0, 0, 64, 1, 2, u32::MAX]),
        reclaim: random.of(&[Reclaim::Refuse, Reclaim::Lru, Reclaim::BucketOldest, Reclaim::Fair]),
        checksum: random.of(&[Checksum::Ignore, Checksum::Ignore, Checksum::Verify]),
        duplicates: random.of(&[Duplicates::Ignore, Duplicates::Discard]),
        extent: random.of(&[Extent::Piece, Extent::Original]),
        local: random.once_in(3).then(|| vec![(0xc633_6402, 0xffff_ffff)]),
        hash_key: (random.next(), random.next()),
    };
    Settings {
        config,
        output: random.of(&[None, Some(Output::Pcap), Some(Output::Pcapng), Some(Output::Pcapng)]),
        incomplete: random.of(&[Incomplete::Keep, Incomplete::Keep, Incomplete::Drop]),
        rows: random.of(&[Rows::None, Rows::Keys, Rows::Payloads]),
        inputs: 1 + usize::from(random.once_in(5)),
        budget: random.of(&[1, 100, 1 << 20, 1 << 20]),
        chunk: random.of(&[1, 3, 16, 17, 60, 200, 1000, 4096, 65536]),
    }
}

/// All that comes out of a run.
#[derive(PartialEq, Eq, Debug)]
struct Result {
    error: Option<String>,
    output: Vec<u8>,
    rows: Vec<Row>,
    totals: Totals,
    damaged: Option<String>,
    counts: [u64; 3],
}

/// Runs an input.
///
/// # Errors
/// What does not hold.
pub fn run(input: &[u8]) -> std::result::Result<(), String> {
    let Some((number, capture)) = input.split_first_chunk::<SETTINGS>() else { return Ok(()) };
    let settings = settings(u64::from_le_bytes(*number));
    let before = memory::start();
    let mut mapped = rewrite(&settings, |rewriter| map(rewriter, capture, &settings))?;
    let mut streamed = rewrite(&settings, |rewriter| stream(rewriter, capture, &settings))?;
    if mapped.error.is_some() {
        // Where an output refuses a frame, how much was read behind that frame depends on the pieces.
        for result in [&mut mapped, &mut streamed] {
            (result.damaged, result.counts) = (None, [0; 3]);
        }
    }
    if mapped != streamed {
        return Err(difference(&mapped, &streamed));
    }
    if settings.output.is_some() && mapped.error.is_none() {
        reread(&mapped)?;
    }
    follow::run(u64::from_le_bytes(*number), &settings.config, capture)?;
    let used = memory::peak().saturating_sub(before);
    if used > ROOM + ROOM_PER_BYTE * capture.len() {
        return Err(format!("{used} bytes in use for an input of {}", capture.len()));
    }
    Ok(())
}

type Fed = std::result::Result<std::result::Result<(), Failure>, String>;

fn rewrite(settings: &Settings, feed: impl Fn(&mut Rewriter) -> Fed) -> std::result::Result<Result, String> {
    let mut rewriter = Rewriter::new(settings.config.clone(), settings.output, settings.incomplete, settings.rows);
    let mut error = None;
    for input in 0..settings.inputs {
        rewriter.begin(&format!("input {input}"));
        error = feed(&mut rewriter)?.err().map(|failure| failure.to_string());
        if error.is_some() {
            break;
        }
    }
    rewriter.engine().check()?;
    if error.is_none() {
        rewriter.finish();
        let engine = rewriter.engine();
        engine.check()?;
        if (engine.queues(), engine.memory()) != (0, 0) {
            return Err(format!("at the end {} queues, {} bytes", engine.queues(), engine.memory()));
        }
        let totals = rewriter.totals();
        let (seen, lost) = (totals.fragments.iter().sum::<u64>(), totals.reasons.iter().sum::<u64>());
        if seen != totals.used + lost {
            return Err(format!("{seen} fragments seen, {} used, {lost} lost", totals.used));
        }
    }
    Ok(Result {
        error,
        output: rewriter.output().to_vec(),
        rows: rewriter.take_rows(),
        totals: rewriter.totals().clone(),
        damaged: rewriter.damaged().map(|damaged| format!("{damaged:?}")),
        counts: [rewriter.packets(), rewriter.bytes(), rewriter.written()],
    })
}

/// Everything at once; held fragments refer to it.
fn map(rewriter: &mut Rewriter, capture: &[u8], settings: &Settings) -> Fed {
    let mut start = 0;
    loop {
        let input = Input { bytes: capture, start, stop: capture.len(), tail: Tail::Last };
        match rewriter.feed(input, Buffer::Stays, settings.budget) {
            Err(failure) => return Ok(Err(failure)),
            Ok(next) if next == capture.len() => break,
            Ok(next) if next <= start || next > capture.len() => return Err(format!("feed from {start} gives {next}")),
            Ok(next) => start = next,
        }
    }
    rewriter.engine().check()?;
    rewriter.end(capture);
    Ok(Ok(()))
}

/// Piece by piece: what was consumed goes away.
fn stream(rewriter: &mut Rewriter, capture: &[u8], settings: &Settings) -> Fed {
    let mut buffer = Vec::new();
    let mut pieces = capture.chunks(settings.chunk.max(capture.len() / 200)).peekable();
    loop {
        buffer.extend_from_slice(pieces.next().unwrap_or_default());
        let tail = Tail::from(pieces.peek().is_none());
        let mut start = 0;
        loop {
            let input = Input { bytes: &buffer, start, stop: buffer.len(), tail };
            let next = match rewriter.feed(input, Buffer::Goes, settings.budget) {
                Err(failure) => return Ok(Err(failure)),
                Ok(next) => next,
            };
            if next < start || next > buffer.len() {
                return Err(format!("feed from {start} gives {next}"));
            }
            let stuck = next == start;
            start = next;
            if stuck || next == buffer.len() {
                break;
            }
        }
        buffer.drain(..start);
        if tail == Tail::Last {
            break;
        }
    }
    if !buffer.is_empty() {
        return Err(format!("{} bytes are left at the end", buffer.len()));
    }
    rewriter.end(&[]);
    Ok(Ok(()))
}

/// What was written is a capture, and has as many packets as were written.
fn reread(result: &Result) -> std::result::Result<(), String> {
    if result.output.is_empty() {
        return Err("no output".into());
    }
    let (mut origins, mut reader, mut frames) = (Origins::new(), Reader::new(), Vec::new());
    let (mut start, mut packets) = (0, 0);
    loop {
        let bytes = result.output.as_slice();
        let input = Input { bytes, start, stop: bytes.len(), tail: Tail::Last };
        let step = reader.read(&mut origins, input, &mut frames, 64);
        packets += frames.iter().filter(|frame| frame.link != LinkType::NONE).count() as u64;
        start = step.next;
        match step.pause {
            Pause::Full | Pause::Section => {}
            Pause::Done => break,
            Pause::More | Pause::Damaged => return Err(format!("the output is damaged: {:?}", reader.damage())),
        }
    }
    // A damaged block goes through as it is: it may name an interface that only the output has.
    let [.., written] = result.counts;
    if packets < written || packets > written && result.damaged.is_none() {
        return Err(format!("the output has {packets} packets, {written} were written"));
    }
    if reader.damage().is_some() && result.damaged.is_none() {
        return Err(format!("the output is damaged, the input was not: {:?}", reader.damage()));
    }
    Ok(())
}

fn difference(mapped: &Result, streamed: &Result) -> String {
    let show = |name: &str, one: &dyn std::fmt::Debug, two: &dyn std::fmt::Debug| {
        format!("mapped and streamed differ in {name}: {one:?} and {two:?}")
    };
    if mapped.error != streamed.error {
        return show("error", &mapped.error, &streamed.error);
    }
    if mapped.totals != streamed.totals {
        return show("totals", &mapped.totals, &streamed.totals);
    }
    if mapped.damaged != streamed.damaged {
        return show("damaged", &mapped.damaged, &streamed.damaged);
    }
    if mapped.counts != streamed.counts {
        return show("packets, bytes, written", &mapped.counts, &streamed.counts);
    }
    if mapped.rows != streamed.rows {
        return show("rows", &mapped.rows.len(), &streamed.rows.len());
    }
    let at = mapped.output.iter().zip(&streamed.output).position(|(one, two)| one != two);
    show("output (lengths, place)", &(mapped.output.len(), at), &streamed.output.len())
}
