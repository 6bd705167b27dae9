//! Tracking beside its floors: the same records, the same process, in turns. And the tracker by itself.
//!
//! ```text
//! cargo bench -p fragtrack-capture --bench track -- FILE.pcap --rounds 7 --connections N
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
    /// Everything read, mixed, so that no read can be optimized away.
    pub(crate) sum: u64,
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
}

/// Exit status where huge pages were asked for and not granted; the next start may get them.
const TRY_AGAIN: u8 = 75;

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
    let made = std::env::args().any(|argument| argument == "--made");
    let options = Options::parse(std::env::args().skip(1).filter(|argument| argument != "--made"))?;
    if made {
        return made::run(&Clock::new(), options.rounds.min(5)).map(|()| true);
    }
    if options.file.is_empty() {
        println!("usage: track FILE.pcap [--rounds N] [--connections N] [--only NAME,...] | --made [--rounds N]");
        return Ok(true); // `cargo bench` without arguments passes
    }
    let capture = Capture::load(&options.file).map_err(|why| format!("{}: {why}", options.file))?;
    if options.huge && input::huge_pages() < capture.end / 2 {
        return Ok(false);
    }
    let positions = floors::positions(&capture);
    let mut measures = floors::measures(&capture, &positions);
    measures.extend(subject::measures(&capture));
    measures.retain(|measure| options.wants(measure.name()));
    let clock = Clock::new();
    for round in 0..=options.rounds {
        for measure in &mut measures {
            measure.prepare();
            black_box(capture.sweep());
            let (answer, took) = clock.time(|| measure.pass());
            let Answer { connections, invalid, .. } = answer;
            if let Some(right) = options.connections.filter(|_| measure.follows())
                && connections != right
            {
                return Err(format!("{}: {connections} connections where {right} is right", measure.name()));
            }
            if round > 0 {
                report(measure.name(), round, answer.records, took);
                if measure.follows() && invalid > 0 {
                    eprintln!("{}: {invalid} invalid packets", measure.name());
                }
            }
        }
    }
    Ok(true)
}

pub(crate) fn report(name: &str, round: u32, records: u64, took: Took) {
    let Took { cpu, wall } = took;
    println!("{{\"what\":\"{name}\",\"round\":{round},\"cpu_ns\":{cpu},\"wall_ns\":{wall},\"records\":{records}}}");
}
