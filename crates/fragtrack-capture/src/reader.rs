//! Reads a capture from memory or from a stream, piece by piece.

use fragtrack_core::frame::Frame;

use crate::ahead::Ahead;
use crate::damage::{Damage, Why};
use crate::origin::{Origin, Origins, Pcap};
use crate::pcap::{self, FILE_HEADER};
use crate::pcapng;

/// What the first bytes of an input are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detect {
    /// Too few bytes to tell; more may come.
    More,
    /// A pcap file of this variant.
    Pcap(Pcap),
    /// A pcapng file.
    Pcapng,
}

/// Whether more bytes can follow those at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tail {
    /// The input goes on, or may.
    Open,
    /// These are the last bytes of the input.
    Last,
}

/// Whether more of an input can come, from a flag.
impl From<bool> for Tail {
    fn from(last: bool) -> Self {
        if last { Self::Last } else { Self::Open }
    }
}

/// A view of the input: the bytes `start..stop` of a buffer are the next ones of the file.
///
/// `start` is the place that the call before gave back, or where its bytes stand now: a caller may
/// move them to the front of the buffer and append more.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The buffer; frames are given by position in it.
    pub bytes: &'a [u8],
    /// Where the bytes not yet read start.
    pub start: usize,
    /// Where they end; at most `bytes.len()`.
    pub stop: usize,
    /// Whether more can come.
    pub tail: Tail,
}

/// Why a call of [`Reader::read`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// As many frames as asked for; there may be more.
    Full,
    /// A new section starts at the next record: what it holds is of another origin.
    Section,
    /// The next record is not complete, or there are no more bytes.
    More,
    /// Everything was read, and the input is at its end.
    Done,
    /// Nothing more can be read; [`Reader::damage`] says why.
    Damaged,
}

/// What a call of [`Reader::read`] achieved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Where the first byte not read stands in the buffer.
    pub next: usize,
    /// Why reading paused there.
    pub pause: Pause,
}

/// Why a walk over records stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Halt {
    Full,
    Section,
    Short { needs: usize },
    Broken(Why),
}

#[derive(Clone, Copy, Debug)]
enum State {
    Start,
    Pcap(pcap::Walker),
    Pcapng(pcapng::Walker),
    Broken,
}

/// A reader of one input, pcap or pcapng, whichever its first bytes show.
///
/// How the bytes are cut into calls makes no difference to the frames, their origins or the damage.
///
/// Invariant: `position` is the number of bytes read so far, thus the place in the file of the
/// byte at `Input::start` of the next call; it is at a record boundary.
#[derive(Clone, Debug)]
pub struct Reader {
    state: State,
    position: u64,
    origin: Option<u32>,
    damage: Option<Damage>,
    ahead: Ahead,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// A reader at the start of an input.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: State::Start, position: 0, origin: None, damage: None, ahead: Ahead::new() }
    }

    /// What an input is by its first bytes.
    ///
    /// # Errors
    ///
    /// [`Damage`] at offset 0 if it is no capture, or ends too early to be one.
    pub fn detect(bytes: &[u8], tail: Tail) -> Result<Detect, Damage> {
        let damage = |why| Damage { offset: 0, why };
        let cut = |needs: u64| match tail {
            Tail::Open => Ok(Detect::More),
            Tail::Last if bytes.is_empty() => Err(damage(Why::Empty)),
            Tail::Last => Err(damage(Why::Cut { has: bytes.len() as u64, needs })),
        };
        let Some(&magic) = bytes.first_chunk::<4>() else {
            return cut(FILE_HEADER as u64);
        };
        if let Some(pcap) = Pcap::of(magic) {
            return if bytes.len() < FILE_HEADER { cut(FILE_HEADER as u64) } else { Ok(Detect::Pcap(pcap)) };
        }
        if u32::from_le_bytes(magic) != pcapng::SECTION {
            return Err(damage(Why::NotACapture { magic }));
        }
        match pcapng::section_order(bytes, 0).map_err(damage)? {
            Some(_) => Ok(Detect::Pcapng),
            None => cut(12),
        }
    }

    /// Says how many bytes of each frame will be looked at: the reader asks for their cache lines
    /// ahead. 34, which is Ethernet and an IPv4 header, if never called; more than that is taken as
    /// 62, for IPv6. Changes nothing but speed.
    pub const fn glance(&mut self, bytes: usize) {
        self.ahead.glance(bytes);
    }

    /// Bytes of the file read so far.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Number of the origin of the frames last read; `None` before the first header.
    #[must_use]
    pub const fn origin(&self) -> Option<u32> {
        self.origin
    }

    /// The first damage found. Frames may still follow, unless [`Why::ends_reading`].
    #[must_use]
    pub const fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Reads the records that lie wholly within the input, `max` at most, in place of what `frames`
    /// held. All of them have one origin, which is added to `origins` when its header is read.
    ///
    /// A file header is no record. A block of pcapng without a packet, or whose packet cannot be
    /// read, is a record of [`LinkType::NONE`](fragtrack_core::frame::LinkType::NONE).
    pub fn read(&mut self, origins: &mut Origins, input: Input<'_>, frames: &mut Vec<Frame>, max: usize) -> Step {
        frames.clear();
        let max = max.max(1);
        let bytes = input.bytes.get(..input.stop).unwrap_or(input.bytes);
        let mut at = input.start.min(bytes.len());
        loop {
            let (next, halt) = self.go_on(origins, bytes, at, frames, max);
            self.position += (next - at) as u64;
            at = next;
            let pause = match halt {
                None => continue,
                Some(Halt::Full) => Pause::Full,
                Some(Halt::Section) => Pause::Section,
                Some(Halt::Short { .. }) if input.tail == Tail::Open => Pause::More,
                Some(Halt::Short { .. }) if at == bytes.len() && self.position > 0 => Pause::Done,
                Some(Halt::Short { needs }) => {
                    let (has, needs) = ((bytes.len() - at) as u64, needs as u64);
                    self.give_up(if has == 0 { Why::Empty } else { Why::Cut { has, needs } })
                }
                Some(Halt::Broken(why)) => self.give_up(why),
            };
            return Step { next: at, pause };
        }
    }

    fn give_up(&mut self, why: Why) -> Pause {
        self.damage.get_or_insert(Damage { offset: self.position, why });
        self.state = State::Broken;
        Pause::Damaged
    }

    /// One header, or records up to where the look-ahead ends. `None` means to go on.
    fn go_on(
        &mut self,
        origins: &mut Origins,
        bytes: &[u8],
        at: usize,
        frames: &mut Vec<Frame>,
        max: usize,
    ) -> (usize, Option<Halt>) {
        match &mut self.state {
            State::Broken => (at, Some(Halt::Broken(Why::Empty))),
            State::Start => self.start(origins, bytes, at),
            State::Pcap(walker) => walker.walk(&mut self.ahead, bytes, at, frames, max),
            State::Pcapng(walker) => {
                let Some(origin) = self.origin.and_then(|number| origins.at_mut(number)) else {
                    return self.section(origins, bytes, at, frames);
                };
                let mut lost = None;
                let ahead = &mut self.ahead;
                let (next, halt) = walker.walk(origin, ahead, bytes, at, frames, max, &mut lost);
                if let Some((place, why)) = lost {
                    let offset = self.position + (place - at) as u64;
                    self.damage.get_or_insert(Damage { offset, why });
                }
                if halt == Some(Halt::Section) && frames.is_empty() {
                    return self.section(origins, bytes, next, frames);
                }
                (next, halt)
            }
        }
    }

    /// Reads what comes before the first record.
    fn start(&mut self, origins: &mut Origins, bytes: &[u8], at: usize) -> (usize, Option<Halt>) {
        let rest = bytes.get(at..).unwrap_or_default();
        match Self::detect(rest, Tail::Open) {
            Err(damage) => (at, Some(Halt::Broken(damage.why))),
            Ok(Detect::More) => {
                let ng = rest.starts_with(&pcapng::SECTION.to_le_bytes());
                (at, Some(Halt::Short { needs: if ng { 12 } else { FILE_HEADER } }))
            }
            Ok(Detect::Pcap(pcap)) => {
                let header = rest.first_chunk::<FILE_HEADER>().copied().unwrap_or_default();
                let origin = Origin::pcap(pcap, header);
                self.state = State::Pcap(pcap::Walker::new(pcap, &origin));
                self.origin = Some(origins.add(origin));
                (at + FILE_HEADER, None)
            }
            Ok(Detect::Pcapng) => {
                self.state = State::Pcapng(pcapng::Walker::default());
                (at, None)
            }
        }
    }

    /// Reads a section header, the first record of its origin.
    fn section(
        &mut self,
        origins: &mut Origins,
        bytes: &[u8],
        at: usize,
        frames: &mut Vec<Frame>,
    ) -> (usize, Option<Halt>) {
        match pcapng::section(bytes, at) {
            Err(halt) => (at, Some(halt)),
            Ok((block, order)) => {
                self.origin = Some(origins.add(Origin::section(order)));
                let State::Pcapng(walker) = &self.state else {
                    return (at, None);
                };
                frames.push(walker.other(at, block.total));
                (at + block.total as usize, None)
            }
        }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
