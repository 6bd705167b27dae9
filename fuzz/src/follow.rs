//! One input through the follower, twice: as a mapping and as a stream. What must hold is checked.

use fragtrack_capture::follow::{Follower, Tables, Zones};
use fragtrack_capture::{Buffer, Failure, Input, Tail};
use fragtrack_core::config;
use fragtrack_core::track::config::{Checksum, Config};

use crate::random::Random;

struct Settings {
    config: Config,
    zones: Zones,
    tables: Tables,
    budget: usize,
    chunk: usize,
}

fn settings(random: &mut Random) -> Settings {
    let mut config = Config::linux((random.next(), random.next()));
    config.pre_6_1 = random.once_in(4);
    config.checksum = random.of(&[Checksum::Offload, Checksum::Verify, Checksum::Ignore, Checksum::Ignore]);
    config.max = random.of(&[1, 2, 5, 262_144]);
    config.gap_tolerant = random.once_in(3);
    config.tcp_loose = !random.once_in(4);
    config.tcp_be_liberal = random.once_in(4);
    config.tcp_max_retrans = random.of(&[0, 1, 3, 255]);
    config.timeouts.udp = random.of(&[30_000_000_000, 1, i64::from(i32::MAX) * 1_000_000_000]);
    Settings {
        config,
        zones: random.of(&[Zones::Vlan, Zones::None]),
        tables: Tables { verdicts: true, events: random.once_in(2), zeek: random.once_in(2) },
        budget: random.of(&[1, 100, 1 << 20, 1 << 20]),
        chunk: random.of(&[1, 3, 16, 60, 200, 4096, 65536]),
    }
}

/// Runs an input with the settings of a number.
///
/// # Errors
/// What does not hold.
pub fn run(number: u64, reassembly: &config::Config, capture: &[u8]) -> Result<(), String> {
    let settings = settings(&mut Random::new(!number));
    let mapped = told(&settings, reassembly, capture, usize::MAX)?;
    let streamed = told(&settings, reassembly, capture, settings.chunk.max(capture.len() / 200))?;
    if mapped != streamed {
        return Err(format!("followed mapped and streamed differ: {mapped} and {streamed}"));
    }
    Ok(())
}

/// All that comes out, as text.
fn told(settings: &Settings, reassembly: &config::Config, capture: &[u8], chunk: usize) -> Result<String, String> {
    let reassembly = config::Config { path: config::Path::Netfilter, ..reassembly.clone() };
    let mut follower = Follower::new(settings.config.clone(), reassembly, settings.zones, settings.tables);
    follower.begin("input");
    if let Err(failure) = feed(&mut follower, settings, capture, chunk)? {
        return Ok(failure.to_string());
    }
    follower.finish();
    follower.tracker().check()?;
    follower.engine().check()?;
    let totals = follower.tracker().totals().clone();
    let verdicts = follower.take_verdicts();
    let counted = (0..7).map(|class| verdicts.class.iter().filter(|code| **code == class).count());
    let (_, ip) = follower.packets();
    if verdicts.len() as u64 != ip {
        return Err(format!("{} verdicts on {ip} packets", verdicts.len()));
    }
    Ok(format!(
        "{:?} {:?} {:?} {:?} {totals:?} {:?} {:?}",
        follower.take_connections(),
        (verdicts.frame, verdicts.connection, verdicts.state, verdicts.reason, verdicts.got, verdicts.bound),
        counted.collect::<Vec<_>>(),
        follower.take_events(),
        follower.take_zeek(),
        follower.damaged(),
    ))
}

/// Piece by piece; a piece as long as the capture stays where it is.
fn feed(
    follower: &mut Follower,
    settings: &Settings,
    capture: &[u8],
    chunk: usize,
) -> Result<Result<(), Failure>, String> {
    let stays = chunk >= capture.len();
    let buffer_kind = if stays { Buffer::Stays } else { Buffer::Goes };
    let mut pieces = capture.chunks(chunk.min(capture.len().max(1))).peekable();
    let mut buffer = Vec::new();
    loop {
        buffer.extend_from_slice(pieces.next().unwrap_or_default());
        let tail = Tail::from(pieces.peek().is_none());
        let mut start = 0;
        loop {
            let input = Input { bytes: &buffer, start, stop: buffer.len(), tail };
            let next = match follower.feed(input, buffer_kind, settings.budget) {
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
        if tail == Tail::Last {
            follower.end(&buffer);
            return Ok(Ok(()));
        }
        buffer.drain(..start);
    }
}
