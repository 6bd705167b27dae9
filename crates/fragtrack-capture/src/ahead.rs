//! Looking ahead past the chain of record lengths.
//!
//! Where a record starts is known only from the length of the one before it, so a walk over a file
//! in memory waits for one cache miss after the other. Here a window ahead of the walk is cut in
//! pieces; in each a plausible record boundary is looked for, and from there on the records are
//! walked, all pieces in turn, so that their misses overlap. Nothing but timing comes of it: the
//! walk that follows reads every record again, now from the cache, and checks every guess.

use fragtrack_core::prefetch;

/// Pieces of a window: as many misses as a core keeps in flight, about.
const LANES: usize = 16;

/// Records in a window, about. More would leave the cache before the walk comes to them when payloads
/// are copied meanwhile; fewer would have to make up for as many guesses.
const RECORDS: usize = 1_024;

/// Bytes of a window.
const SMALLEST: usize = 128 << 10;
const LARGEST: usize = 4 << 20;

/// Records between which no cache line is skipped come in order by themselves.
const DENSE: usize = 160;

/// Bytes of a record that a step sees.
pub(crate) const NEAR: usize = 64;

/// Bytes of a frame that whoever gets it looks at: Ethernet and an IPv4 header.
const GLANCE: usize = 34;

/// How the records of a format follow one another.
pub(crate) trait Chain {
    /// Bytes of a record before the frame.
    const HEAD: usize;

    /// Length of the record that starts with these bytes, if its header can be one.
    fn step(&self, near: &[u8; NEAR]) -> Option<u32>;

    /// A place from `from` up to but not at `to` where a record seems to start.
    fn find(&self, bytes: &[u8], from: usize, to: usize) -> Option<usize>;
}

/// How far ahead of the walk the records are known, and their lengths as guessed.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    /// Bytes from the walk's place up to where the window ends.
    window: usize,
    /// Lengths of the next records, if the guesses were right, in bytes; the first `used` of them
    /// are behind the walk. A walk follows them, so that it need not wait for the length in one
    /// record before it asks for the next, and checks each against the record.
    lengths: Vec<u32>,
    used: usize,
    /// Mean length of a record lately, in bytes.
    mean: usize,
    /// Bytes of each frame to have ready.
    glance: usize,
    /// Windows to go by before the next attempt, and how many it will be when that fails.
    rest: u32,
    penalty: u32,
}

/// One piece of a window: where its walk is, where it ends, and what it found.
#[derive(Clone, Copy, Default)]
struct Lane {
    at: usize,
    end: usize,
    guess: usize,
    steps: usize,
}

impl Ahead {
    pub(crate) const fn new() -> Self {
        Self { window: 0, lengths: Vec::new(), used: 0, mean: 512, glance: GLANCE, rest: 0, penalty: 1 }
    }

    /// How many bytes of each frame to have ready.
    pub(crate) const fn glance(&mut self, bytes: usize) {
        self.glance = bytes;
    }

    /// Prepares the records from `at` on, where a record starts, unless that was done before.
    /// Gives the place up to which to walk before coming back.
    pub(crate) fn prepare(&mut self, chain: &impl Chain, bytes: &[u8], at: usize) -> usize {
        let left = bytes.len().saturating_sub(at);
        if self.window == 0 {
            self.forget();
            let window = self.mean.saturating_mul(RECORDS).clamp(SMALLEST, LARGEST).min(left);
            self.window = window;
            if self.rest > 0 {
                self.rest -= 1;
            } else if self.mean > DENSE && window >= SMALLEST {
                self.look(chain, bytes, at, window);
            }
        }
        at + self.window.min(left)
    }

    /// Lengths that the next records seem to have, in bytes.
    #[inline]
    pub(crate) fn lengths(&self) -> &[u32] {
        self.lengths.get(self.used..).unwrap_or_default()
    }

    /// The walk went on by so many `bytes` and `records`, the first `guessed` of which had the
    /// length foretold, and one more had not if there was one more foretold.
    pub(crate) fn passed(&mut self, bytes: usize, records: usize, guessed: usize) {
        self.window = self.window.saturating_sub(bytes);
        self.used += guessed;
        if guessed < records {
            self.forget();
        }
        if let Some(mean) = bytes.checked_div(records) {
            self.mean = (self.mean * 3 + mean) / 4;
        }
    }

    fn forget(&mut self) {
        self.lengths.clear();
        self.used = 0;
    }

    fn look(&mut self, chain: &impl Chain, bytes: &[u8], at: usize, window: usize) {
        let piece = window / LANES;
        // Four times the steps that the mean length makes likely are allowed: records of no length
        // cannot hold it up.
        let most = (4 * piece / self.mean.max(1)).max(8);
        let search = piece.min(self.mean.saturating_mul(4).max(4_096));
        let mut lanes = [Lane::default(); LANES];
        for (number, lane) in lanes.iter_mut().enumerate() {
            lane.at = at + number * piece;
            lane.end = lane.at + piece;
            lane.steps = most;
            if number > 0 {
                for line in 0..self.mean.min(search) / 128 {
                    prefetch::read(bytes, lane.at + line * 64);
                }
            }
        }
        for (number, lane) in lanes.iter_mut().enumerate() {
            if number > 0 {
                let found = chain.find(bytes, lane.at, lane.at + search);
                lane.at = found.unwrap_or(lane.end);
            }
            lane.guess = lane.at;
        }
        self.lengths.resize(LANES * most, 0);
        if self.glance <= GLANCE {
            race::<_, GLANCE>(chain, bytes, &mut lanes, &mut self.lengths, most);
        } else {
            // Ethernet, an IPv6 header and a Fragment header.
            race::<_, 62>(chain, bytes, &mut lanes, &mut self.lengths, most);
        }
        self.keep(&lanes, most);
    }

    /// Keeps the lengths of the lanes up to the first that did not set out where the one before it
    /// arrived.
    fn keep(&mut self, lanes: &[Lane; LANES], most: usize) {
        let (mut kept, mut right) = (0, 0);
        let mut arrival = lanes.first().map_or(0, |first| first.guess);
        for (number, lane) in lanes.iter().enumerate() {
            if lane.guess != arrival {
                break;
            }
            let from = number * most;
            self.lengths.copy_within(from..from + lane.steps, kept);
            kept += lane.steps;
            arrival = lane.at;
            right += 1;
        }
        self.lengths.truncate(kept);
        if right * 2 >= LANES {
            self.penalty = 1;
        } else {
            self.rest = self.penalty;
            self.penalty = (self.penalty * 2).min(64);
        }
    }
}

/// Walks all lanes in turn up to their ends, `most` steps each at most, and notes the lengths:
/// lane n from `lengths[n * most]` on.
fn race<C: Chain, const LOOK: usize>(
    chain: &C,
    bytes: &[u8],
    lanes: &mut [Lane; LANES],
    lengths: &mut [u32],
    most: usize,
) {
    for step in 0..most {
        let mut going = false;
        for (lane, lengths) in lanes.iter_mut().zip(lengths.chunks_exact_mut(most)) {
            if lane.at >= lane.end {
                lane.steps = lane.steps.min(step);
                continue;
            }
            // Few instructions here, so that many lanes fit in what the processor looks ahead.
            let near = bytes.get(lane.at..).and_then(<[u8]>::first_chunk::<NEAR>);
            let Some(length) = near.and_then(|near| chain.step(near)) else {
                lane.end = lane.at;
                lane.steps = lane.steps.min(step);
                continue;
            };
            if let Some(place) = lengths.get_mut(step) {
                *place = length;
            }
            lane.at += length as usize;
            // Asked for now, there when this lane's turn comes again.
            prefetch::read(bytes, lane.at);
            prefetch::read(bytes, lane.at + C::HEAD + GLANCE - 1);
            if LOOK > GLANCE {
                prefetch::read(bytes, lane.at + C::HEAD + LOOK - 1);
            }
            going = true;
        }
        if !going {
            break;
        }
    }
}

/// The first place from `from` up to but not at `to` where `first` and then `second` stand.
pub(crate) fn pair(bytes: &[u8], from: usize, to: usize, first: u8, second: u8) -> Option<usize> {
    const CHUNK: usize = 64;
    let mut at = from;
    while at < to {
        let rest = bytes.get(at..).unwrap_or_default();
        // Whole chunks without a branch for each byte, which the compiler turns into wide compares.
        let hit = match (rest.first_chunk::<CHUNK>(), rest.get(1..).and_then(<[u8]>::first_chunk)) {
            (Some(a), Some(b)) => any_pair::<CHUNK>(a, b, first, second),
            _ => true,
        };
        if hit {
            let here = rest.get(..CHUNK + 1).unwrap_or(rest);
            if let Some(found) = here.windows(2).position(|two| two == [first, second]) {
                return (at + found < to).then_some(at + found);
            }
            if rest.len() <= CHUNK {
                return None;
            }
        }
        at += CHUNK;
    }
    None
}

#[inline(always)]
fn any_pair<const N: usize>(a: &[u8; N], b: &[u8; N], first: u8, second: u8) -> bool {
    a.iter().zip(b).fold(0_u8, |any, (a, b)| any | (u8::from(*a == first) & u8::from(*b == second))) != 0
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
