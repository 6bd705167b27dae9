//! The history of a connection: a letter for each thing that happened, in order.

use super::config::HISTORY_LIMIT;
use super::{Pair, Role};

const ROOM: usize = HISTORY_LIMIT + 1;

/// What is noted once a side, or again only with another number.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Once {
    Syn = 1,
    Fin = 2,
    Rst = 4,
    Data = 8,
    Ack = 16,
    Inconsistent = 32,
    Multiple = 64,
    Partial = 128,
}

/// Letters, in upper case for what the originator did, in lower case for the responder.
///
/// Invariant: at most [`HISTORY_LIMIT`] letters, and behind them at most one `x` or `X`; with it nothing is added any
/// more.
#[derive(Clone, Copy)]
pub struct History {
    letters: [u8; ROOM],
    len: u8,
    seen: Pair<u8>,
}

impl History {
    pub(crate) const fn new() -> Self {
        Self { letters: [0; ROOM], len: 0, seen: Pair { orig: 0, resp: 0 } }
    }

    /// The letters, ASCII.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.letters.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Adds a letter, given in upper case.
    pub(crate) const fn add(&mut self, role: Role, letter: u8) {
        let at = self.len as usize;
        let letter = if at == HISTORY_LIMIT { b'X' } else { letter };
        // There is no room behind the x.
        if let Some((place, _)) = self.letters.split_at_mut(if at < ROOM { at } else { ROOM }).1.split_first_mut() {
            *place = if matches!(role, Role::Resp) { letter.to_ascii_lowercase() } else { letter };
            self.len += 1;
        }
    }

    /// Adds a letter unless this side did such a thing before; whether it did.
    pub(crate) const fn once(&mut self, role: Role, what: Once, letter: u8) -> bool {
        let seen = self.seen.of_mut(role);
        if *seen & what as u8 != 0 {
            return true;
        }
        *seen |= what as u8;
        self.add(role, letter);
        false
    }

    /// Notes that the roles are swapped; letters that stand there keep their case.
    pub(crate) const fn flip(&mut self) {
        self.add(Role::Orig, b'^');
        self.seen.swap();
    }

    /// Tells it anew as if the roles had been swapped from the start.
    pub(crate) fn retell(&mut self) {
        let mut letters = [0; ROOM];
        let told = core::iter::once(b'^').chain(self.as_bytes().iter().map(|letter| match letter {
            b'A'..=b'Z' => letter.to_ascii_lowercase(),
            _ => letter.to_ascii_uppercase(),
        }));
        for (place, letter) in letters.iter_mut().zip(told) {
            *place = letter;
        }
        self.letters = letters;
        self.len = if usize::from(self.len) < ROOM { self.len + 1 } else { self.len };
        self.seen.swap();
    }

    /// Whether a SYN was given up: `^?S[^HAFGIQ]*R.*` as a whole.
    pub(crate) fn is_aborted(&self) -> bool {
        let letters = self.as_bytes();
        let letters = letters.strip_prefix(b"^").unwrap_or(letters);
        let Some(rest) = letters.strip_prefix(b"S") else { return false };
        rest.iter().find(|letter| b"HAFGIQR".contains(letter)) == Some(&b'R')
    }
}

impl core::fmt::Debug for History {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Counts what is noted at the 1st, 10th, 100th... time only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    count: u32,
    next: u32,
}

impl Tally {
    pub(crate) const fn new() -> Self {
        Self { count: 0, next: 1 }
    }

    /// Counts one more; whether it is to be noted.
    pub(crate) const fn more(&mut self) -> bool {
        self.count = self.count.saturating_add(1);
        let noted = self.count == self.next;
        if noted {
            // Behind 10^9 there is no further one: a count of 0 never comes.
            self.next = match self.next.checked_mul(10) {
                Some(next) => next,
                None => 0,
            };
        }
        noted
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}
