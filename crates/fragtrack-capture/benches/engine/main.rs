//! The engine beside the floors: the same records, the same process, in turns.
//!
//! ```text
//! cargo bench -p fragtrack-capture --bench engine -- FILE.pcap --rounds 7 --datagrams N --bytes N
//! ```
//!
//! The capture lies in memory before anything is timed. Every measurement gets one pass to warm up,
//! then one pass in every round. Before each pass the whole file is read once, so that no
//! measurement finds in the caches what another one left there. Each pass is checked against the
//! truth about the file and prints a line of JSON. `benchmarks/run.py` makes the files, runs this and draws the tables.

#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::cast_possible_truncation, reason = "positions of a file that fits in memory")]

mod clock;
mod floors;
mod input;
mod subject;

use clock::{Clock, Took};
use floors::Answer;
use input::{Capture, Options};
use std::hint::black_box;
use std::process::ExitCode;

/// One thing to time.
pub(crate) trait Measure {
    /// What the line of JSON calls it.
    fn name(&self) -> &'static str;

    /// Whether it completes datagrams, to be held against the truth.
    fn completes(&self) -> bool {
        true
    }

    /// Makes ready for a pass; not timed.
    fn prepare(&mut self) {}

    /// One pass over the capture.
    fn pass(&mut self) -> Answer;

    /// Gives up what the pass left open; timed by itself.
    fn drain(&mut self) {}
}

/// Exit status where huge pages were asked for and not granted; the next start may get them.
const TRY_AGAIN: u8 = 75;

const USAGE: &str = "usage: engine FILE.pcap [--rounds N] [--datagrams N] [--bytes N] \
[--percent N] [--memory BYTES] [--huge] [--only NAME,...]";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(TRY_AGAIN),
        Err(why) => {
            eprintln!("engine: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Measures; `false` if the pages are not those asked for.
fn run() -> Result<bool, String> {
    let options = Options::parse(std::env::args().skip(1))?;
    if options.file.is_empty() {
        println!("{USAGE}"); // `cargo bench` without arguments passes
        return Ok(true);
    }
    let capture = Capture::load(&options.file).map_err(|why| format!("{}: {why}", options.file))?;
    if options.huge && input::huge_pages() < capture.end / 2 {
        return Ok(false);
    }
    let positions = floors::positions(&capture);
    let mut measures = floors::measures(&capture, &positions);
    measures.extend(subject::measures(&capture, &options));
    measures.retain(|measure| options.wants(measure.name()));
    let clock = Clock::new();
    for round in 0..=options.rounds {
        for measure in &mut measures {
            measure.prepare();
            black_box(capture.sweep());
            let (answer, took) = clock.time(|| measure.pass());
            let ((), drained) = clock.time(|| measure.drain());
            if measure.completes() {
                check(measure.name(), &answer, &options)?;
            }
            if round > 0 {
                report(measure.name(), round, &answer, took, drained);
            }
        }
    }
    Ok(true)
}

/// Holds a pass against the truth about the file.
fn check(name: &str, answer: &Answer, options: &Options) -> Result<(), String> {
    let pairs = [(options.datagrams, answer.datagrams), (options.bytes, answer.bytes)];
    for (want, got) in pairs {
        let Some(want) = want else { continue };
        if got > want || got.saturating_mul(100) < want.saturating_mul(options.percent) {
            return Err(format!("{name}: {got} where {want} is right"));
        }
    }
    Ok(())
}

fn report(name: &str, round: u32, answer: &Answer, took: Took, drained: Took) {
    let Answer { records, datagrams, bytes, sum } = *answer;
    let (cpu, wall, drain) = (took.cpu, took.wall, drained.cpu);
    println!(
        "{{\"what\":\"{name}\",\"round\":{round},\"cpu_ns\":{cpu},\"wall_ns\":{wall},\
         \"drain_ns\":{drain},\"records\":{records},\"datagrams\":{datagrams},\
         \"bytes\":{bytes},\"sum\":{sum}}}"
    );
}
