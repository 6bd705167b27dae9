//! Coverage-guided fuzzing of reader, engine, writer and tracker, in one process.
//!
//! `fragtrack-fuzz SECONDS CORPUS ARTIFACTS [SEED]` mutates what lies in the folder CORPUS, and
//! adds what goes new ways; `fragtrack-fuzz FILE...` replays. An input is 8 bytes of settings, then
//! a capture. Found are panics (overflow and debug assertions are on), hangs, unbounded memory,
//! broken invariants, and differences between an input mapped and the same input streamed.

mod coverage;
mod drive;
mod follow;
mod memory;
mod mutate;
mod random;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, panic, thread};

use coverage::Coverage;
use drive::SETTINGS;
use random::Random;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

/// Seconds that an input may take.
const HANG: u64 = 5;
/// Different findings after which a run stops.
const ENOUGH: usize = 20;
/// Longest input kept in the corpus, bytes.
const KEPT: usize = 1 << 14;

/// Inputs run so far; what runs now; where a hang is written; the place of the last panic.
static RUNS: AtomicU64 = AtomicU64::new(0);
static CURRENT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static PANIC: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    panic::set_hook(Box::new(|info| {
        if let Ok(mut place) = PANIC.lock() {
            *place = info.to_string();
        }
    }));
    let arguments: Vec<String> = env::args().skip(1).collect();
    let seconds = arguments.first().and_then(|text| text.parse::<u64>().ok());
    match (seconds, arguments.as_slice()) {
        (Some(seconds), [_, corpus, artifacts, rest @ ..]) => {
            let seed = rest.first().and_then(|text| text.parse().ok()).unwrap_or(1);
            watch(artifacts.clone());
            fuzz(seconds, Path::new(corpus), Path::new(artifacts), seed)
        }
        (None, files) if !files.is_empty() => replay(files),
        _ => {
            eprintln!("usage: fragtrack-fuzz SECONDS CORPUS ARTIFACTS [SEED] | FILE...");
            ExitCode::from(2)
        }
    }
}

/// Runs one input; what is wrong with it.
fn attempt(input: &[u8]) -> Result<(), String> {
    if let Ok(mut current) = CURRENT.lock() {
        input.clone_into(&mut current);
    }
    RUNS.fetch_add(1, Ordering::Relaxed);
    panic::catch_unwind(|| drive::run(input))
        .unwrap_or_else(|_| Err(PANIC.lock().map(|place| place.clone()).unwrap_or_default()))
}

/// Ends the process when an input takes too long.
fn watch(artifacts: String) {
    thread::spawn(move || {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            thread::sleep(Duration::from_millis(250));
            let now = RUNS.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > Duration::from_secs(HANG) {
                let input = CURRENT.lock().map(|input| input.clone()).unwrap_or_default();
                save(Path::new(&artifacts), &input, &format!("no end within {HANG} s"));
                std::process::exit(1);
            }
        }
    });
}

fn fuzz(seconds: u64, corpus: &Path, artifacts: &Path, seed: u64) -> ExitCode {
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    let mut paths: Vec<_> = fs::read_dir(corpus).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut found = BTreeSet::new();
    let mut coverage = Coverage::new();
    let end = Instant::now() + Duration::from_secs(seconds);
    for path in &paths {
        let Ok(input) = fs::read(path) else { continue };
        note(&mut found, artifacts, &input, attempt(&input));
        if coverage.take() {
            inputs.push(input);
        } else if is_learned(path) {
            let _ = fs::remove_file(path);
        }
    }
    if inputs.is_empty() {
        inputs.push(vec![0; SETTINGS]);
    }
    let start = inputs.len();
    let mut random = Random::new(seed);
    let mut slowest = Duration::ZERO;
    while Instant::now() < end && found.len() < ENOUGH {
        let recent = if random.once_in(3) { inputs.len().min(64) } else { inputs.len() };
        let mut input = inputs[inputs.len() - 1 - random.below(recent)].clone();
        let other = inputs[random.below(inputs.len())].clone();
        let mut capture = input.split_off(SETTINGS.min(input.len()));
        mutate::mutate(&mut random, &mut capture, other.get(SETTINGS..).unwrap_or_default());
        if random.once_in(3) || input.len() < SETTINGS {
            input = (random.next() >> 40).to_le_bytes().to_vec();
        }
        input.append(&mut capture);
        let began = Instant::now();
        let result = attempt(&input);
        slowest = slowest.max(began.elapsed());
        note(&mut found, artifacts, &input, result);
        if coverage.take() && input.len() <= KEPT {
            let _ = fs::write(corpus.join(format!("{:016x}", digest(&input))), &input);
            inputs.push(input);
        }
    }
    let (edges, all) = coverage.edges();
    println!(
        "engine: {} inputs run, {} of {all} edges, corpus {start} + {}, slowest {} ms, {} findings (seed {seed})",
        RUNS.load(Ordering::Relaxed),
        edges,
        inputs.len() - start,
        slowest.as_millis(),
        found.len(),
    );
    ExitCode::from(u8::from(!found.is_empty()))
}

/// Whether a file of the corpus was put there by an earlier run: 16 hexadecimal digits.
fn is_learned(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Saves a finding, the first of its kind.
fn note(found: &mut BTreeSet<String>, artifacts: &Path, input: &[u8], result: Result<(), String>) {
    let Err(why) = result else { return };
    // Numbers differ from one input to the next; the place of a panic is in the first line.
    let digits = if why.contains("panicked") { "" } else { "0123456789" };
    let kind: String =
        why.lines().next().unwrap_or_default().chars().filter(|c| !digits.contains(*c)).take(80).collect();
    if found.insert(kind) {
        save(artifacts, input, &why);
    }
}

fn save(artifacts: &Path, input: &[u8], why: &str) {
    let file = artifacts.join(format!("engine-{:016x}", digest(input)));
    let program = env::args().next().unwrap_or_default();
    println!("engine: FINDING: {why}");
    match fs::create_dir_all(artifacts).and_then(|()| fs::write(&file, input)) {
        Ok(()) => println!("  replay: {program} {}", file.display()),
        Err(error) => println!("  cannot write {}: {error}", file.display()),
    }
}

fn replay(files: &[String]) -> ExitCode {
    let mut failed = false;
    for file in files {
        let result = fs::read(file).map_err(|error| error.to_string()).and_then(|input| attempt(&input));
        println!("{file}: {}", result.as_ref().err().map_or("passes", String::as_str));
        failed |= result.is_err();
    }
    ExitCode::from(u8::from(failed))
}

/// FNV-1a: names files.
fn digest(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
