//! What is told of a datagram.

use fragtrack_core::event::{Atomic, Datagram, GivenUp, Key};
use fragtrack_core::reason::Reason;

/// One datagram, complete or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Who it is from and for.
    pub key: Key,
    /// Times of the first and the last fragment, nanoseconds since the epoch.
    pub times: (i64, i64),
    /// Numbers of its frames, in the order of offsets, then of arrival; of a complete one only
    /// those that supply a byte. One that killed it is among them.
    pub frames: Vec<u64>,
    /// IP payload bytes; of an incomplete one the highest end known.
    pub length: u32,
    /// Why it is incomplete; `None` if it is not.
    pub reason: Option<Reason>,
    /// The whole packet, if complete and asked for; its last `length` bytes are the payload.
    pub packet: Option<Vec<u8>>,
}

impl Row {
    pub(super) fn complete(datagram: &Datagram<'_>, packet: Option<Vec<u8>>) -> Self {
        Self {
            key: datagram.key(),
            times: datagram.times(),
            frames: datagram.distinct_frames(),
            length: u32::try_from(datagram.payload_len()).unwrap_or(u32::MAX),
            reason: None,
            packet,
        }
    }

    pub(super) fn atomic(datagram: &Atomic<'_>, time: i64, number: u64, packet: Option<Vec<u8>>) -> Self {
        Self {
            key: datagram.key(),
            times: (time, time),
            frames: vec![number],
            length: u32::try_from(datagram.payload().len()).unwrap_or(u32::MAX),
            reason: None,
            packet,
        }
    }

    pub(super) fn given_up(datagram: &GivenUp<'_>) -> Self {
        let mut frames = datagram.frames();
        frames.sort_by_key(|&(_, offset)| offset);
        Self {
            key: datagram.key(),
            times: datagram.times(),
            frames: frames.into_iter().map(|(number, _)| number).collect(),
            length: datagram.length(),
            reason: Some(datagram.reason()),
            packet: None,
        }
    }
}
