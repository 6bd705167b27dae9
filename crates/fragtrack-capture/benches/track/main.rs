//! Tracking beside its floors: the same records, the same process, in turns. And the tracker by itself.
//!
//! ```text
//! cargo bench -p fragtrack-capture --bench track -- FILE.pcap --rounds 7 --connections N --invalid N
//! cargo bench -p fragtrack-capture --bench track -- --made
//! ```
//!
//! With a file: it lies in memory before anything is timed; one pass of each measurement warms up, then each has one
//! pass in every round, and before each pass the whole file is read once. With `--made`: packets that the program
//! makes itself. Each pass prints a line of JSON. `benchmarks/run.py` makes the files, runs this and draws the tables.

#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::cast_possible_truncation, reason = "positions of a file that fits in memory")]

#[path = "../engine/clock.rs"]
mod clock;
mod floors;
#[path = "../engine/input.rs"]
mod input;
mod made;
mod subject;

use clock::{Clock, Took};
use input::{Capture, Options};
use std::hint::black_box;
use std::process::ExitCode;

/// What a pass found.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Answer {
    pub(crate) records: u64,
    /// Connections made.
    pub(crate) connections: u64,
    /// Invalid packets.
    pub(crate) invalid: u64,
    /// Connections that had to go, and packets refused, because the table was full.
    pub(crate) pressed: u64,
    /// Everything read, mixed, so that no read can be optimized away.
    pub(crate) sum: u64,
}

/// What is known about a capture.
#[derive(Clone, Copy)]
pub(crate) struct Truth {
    /// Connections in it.
    pub(crate) connections: Option<u64>,
    /// Invalid packets in it.
    pub(crate) invalid: Option<u64>,
}

/// One thing to time.
pub(crate) trait Measure {
    /// What the line of JSON calls it.
    fn name(&self) -> &'static str;

    /// Whether it follows connections, to be held against the truth.
    fn follows(&self) -> bool {
        true
    }

    /// Makes ready for a pass; not timed.
    fn prepare(&mut self) {}

    /// One pass over the capture.
    fn pass(&mut self) -> Answer;

    /// Takes what the pass left in the table; timed by itself. Gives the connections.
    fn drain(&mut self) -> u64 {
        0
    }
}

/// Exit status where huge pages were asked for and not granted; the next start may get them.
const TRY_AGAIN: u8 = 75;

const USAGE: &str = "usage: track FILE.pcap [--rounds N] [--connections N] [--invalid N] [--room] [--huge] [--only NAME,...]\n   \
    or: track --made [--rounds N] [--only hot,ipv4,ipv6]";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(TRY_AGAIN),
        Err(why) => {
            eprintln!("track: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Measures; `false` if the pages are not those asked for.
fn run() -> Result<bool, String> {
    let options = Options::parse(std::env::args().skip(1))?;
    if options.made {
        return made::run(&Clock::new(), &options);
    }
    if options.file.is_empty() {
        println!("{USAGE}"); // `cargo bench` without arguments passes
        return Ok(true);
    }
    let capture = Capture::load(&options.file).map_err(|why| format!("{}: {why}", options.file))?;
    if options.huge && input::huge_pages() < capture.end / 2 {
        return Ok(false);
    }
    let truth = Truth { connections: options.connections, invalid: options.invalid };
    let positions = floors::positions(&capture);
    let mut measures = floors::measures(&capture, &positions, truth);
    measures.extend(subject::measures(&capture, truth, options.room));
    measures.retain(|measure| options.wants(measure.name()));
    let clock = Clock::new();
    for round in 0..=options.rounds {
        for measure in &mut measures {
            measure.prepare();
            black_box(capture.sweep());
            let (answer, took) = clock.time(|| measure.pass());
            let (left, drained) = clock.time(|| measure.drain());
            black_box(left);
            if measure.follows() {
                check(measure.name(), &answer, truth)?;
            }
            if round > 0 {
                report(measure.name(), round, answer.records, took, Some((drained, answer)));
            }
        }
    }
    Ok(true)
}

/// Holds a pass against the truth about the file. A connection that had to go before its time is made again by its next
/// packet: then there may be more of them, and packets that no longer belong to any.
fn check(name: &str, answer: &Answer, truth: Truth) -> Result<(), String> {
    let Answer { connections, invalid, pressed, .. } = *answer;
    if let Some(right) = truth.connections
        && (connections < right || pressed == 0 && connections > right)
    {
        return Err(format!("{name}: {connections} connections where {right} is right"));
    }
    if let Some(right) = truth.invalid.filter(|right| pressed == 0 && *right != invalid) {
        return Err(format!("{name}: {invalid} invalid packets where {right} is right"));
    }
    Ok(())
}

pub(crate) fn report(name: &str, round: u32, records: u64, took: Took, more: Option<(Took, Answer)>) {
    let Took { cpu, wall } = took;
    let more = more.map_or_else(String::new, |(drained, answer)| {
        let Answer { connections, invalid, pressed, .. } = answer;
        let drain = drained.cpu;
        format!(",\"drain_ns\":{drain},\"connections\":{connections},\"invalid\":{invalid},\"pressed\":{pressed}")
    });
    println!(
        "{{\"what\":\"{name}\",\"round\":{round},\"cpu_ns\":{cpu},\"wall_ns\":{wall},\"records\":{records}{more}}}"
    );
}
