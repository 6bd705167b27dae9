//! A capture file in memory, and the options of a run.

use std::fs::File;
use std::io::{self, Read};

/// Bytes before the first record of a classic pcap file.
pub(crate) const FILE_HEADER: usize = 24;
/// Bytes of a record before its frame.
pub(crate) const RECORD: usize = 16;
/// Zeros behind the end, so that the last header can be read as a fixed window.
const MARGIN: usize = 64;

/// The file, read whole (so every page is there) before anything is timed.
pub(crate) struct Capture {
    pub(crate) bytes: Vec<u8>,
    /// Bytes of the file itself.
    pub(crate) end: usize,
}

impl Capture {
    pub(crate) fn load(path: &str) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(length.saturating_add(MARGIN));
        let end = file.read_to_end(&mut bytes)?;
        if bytes.get(..4) != Some(&[0xd4, 0xc3, 0xb2, 0xa1]) {
            return Err(io::Error::other("not a little-endian microsecond pcap file"));
        }
        bytes.resize(end + MARGIN, 0);
        Ok(Self { bytes, end })
    }

    /// Reads every byte: the caches then hold the end of the file, whatever ran before.
    pub(crate) fn sweep(&self) -> u64 {
        let words = self.bytes.chunks_exact(8).filter_map(|eight| eight.first_chunk());
        words.fold(0, |sum, eight| sum ^ u64::from_ne_bytes(*eight))
    }

    /// The file without the margin.
    pub(crate) fn file(&self) -> &[u8] {
        self.bytes.get(..self.end).unwrap_or_default()
    }
}

/// Bytes of this process in huge pages; 0 where the system does not say.
pub(crate) fn huge_pages() -> usize {
    let told = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.unwrap_or(0_usize).saturating_mul(1024)
}

/// What the command line asks for.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) file: String,
    pub(crate) rounds: u32,
    /// Datagrams that every pass must complete; bytes of their IP payloads.
    pub(crate) datagrams: Option<u64>,
    pub(crate) bytes: Option<u64>,
    /// Connections that every pass must make, and packets that it must find invalid.
    pub(crate) connections: Option<u64>,
    pub(crate) invalid: Option<u64>,
    /// Whether to measure with a table that never fills, too.
    pub(crate) room: bool,
    /// Whether the packets are to be made by the program itself.
    pub(crate) made: bool,
    /// The part of `datagrams` that is enough, percent (a flood costs some).
    pub(crate) percent: u64,
    /// Bytes of memory the engine may use for one family; the default of `limits="capture"` if absent.
    pub(crate) memory: Option<u64>,
    /// Whether to measure only if the capture lies in huge pages.
    pub(crate) huge: bool,
    /// Measurements to run, comma-separated; all if empty.
    pub(crate) only: String,
}

impl Options {
    /// Reads the arguments; an error is the sentence to print.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { rounds: 7, percent: 100, ..Self::default() };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--bench" => continue, // cargo says it to every benchmark
                "--huge" => {
                    options.huge = true;
                    continue;
                }
                "--made" => {
                    options.made = true;
                    continue;
                }
                "--room" => {
                    options.room = true;
                    continue;
                }
                _ => {}
            }
            let Some(name) = argument.strip_prefix("--") else {
                options.file = argument;
                continue;
            };
            let value = arguments.next().ok_or_else(|| format!("--{name} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|why| format!("--{name} {value}: {why}"));
            match name {
                "rounds" => options.rounds = u32::try_from(number()?).unwrap_or(u32::MAX),
                "datagrams" => options.datagrams = Some(number()?),
                "connections" => options.connections = Some(number()?),
                "invalid" => options.invalid = Some(number()?),
                "bytes" => options.bytes = Some(number()?),
                "percent" => options.percent = number()?,
                "memory" => options.memory = Some(number()?),
                "only" => options.only = value,
                _ => return Err(format!("no option --{name}")),
            }
        }
        Ok(options)
    }

    /// Whether a measurement was asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.split(',').any(|wanted| wanted == name)
    }
}
