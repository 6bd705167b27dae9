//! SCTP associations (`nf_conntrack_proto_sctp.c`): a table over chunks, and verification tags.

use super::config::Config;
use super::flow::{Flow, bit};
use super::protocols::Handled;
use super::simple::refresh;
use super::verdict::{Direction, Reason, Why};
use crate::wire::be32;

const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const HEARTBEAT: u8 = 4;
const HEARTBEAT_ACK: u8 = 5;
const ABORT: u8 = 6;
const SHUTDOWN: u8 = 7;
const SHUTDOWN_ACK: u8 = 8;
const ERROR: u8 = 9;
const COOKIE_ECHO: u8 = 10;
const COOKIE_ACK: u8 = 11;
const SHUTDOWN_COMPLETE: u8 = 14;

/// Common header, chunk header, fixed part of an INIT.
const HEADER: usize = 12;
const CHUNK: usize = 4;
const INIT_FIXED: usize = 16;
/// In the flags of ABORT and SHUTDOWN COMPLETE: the tag is that of the other side.
const REFLECTED: u8 = 1;
/// A heartbeat had another tag ([`Flow::last_flags`]).
const HEARTBEAT_FAILED: u8 = 1;

/// The names of the states, by number.
pub(super) const STATES: [&str; 9] = [
    "NONE",
    "CLOSED",
    "COOKIE_WAIT",
    "COOKIE_ECHOED",
    "ESTABLISHED",
    "SHUTDOWN_SENT",
    "SHUTDOWN_RECD",
    "SHUTDOWN_ACK_SENT",
    "HEARTBEAT_SENT",
];

const CL: u8 = 1;
const CW: u8 = 2;
const CE: u8 = 3;
const ES: u8 = 4;
const SS: u8 = 5;
const SR: u8 = 6;
const SA: u8 = 7;
const HS: u8 = 8;
const IV: u8 = 9;

/// From direction, chunk and state to the next state (`sctp_conntracks`). Columns: NONE, CLOSED, COOKIE_WAIT,
/// COOKIE_ECHOED, ESTABLISHED, SHUTDOWN_SENT, SHUTDOWN_RECD, SHUTDOWN_ACK_SENT, HEARTBEAT_SENT.
#[rustfmt::skip]
const TABLE: [[(u8, [u8; 9]); 11]; 2] = [
    [ // original
        (INIT,              [CL, CL, CW, CE, ES, CL, CL, SA, CW]),
        (INIT_ACK,          [CL, CL, CW, CE, ES, SS, SR, SA, CL]),
        (ABORT,             [CL, CL, CL, CL, CL, CL, CL, CL, CL]),
        (SHUTDOWN,          [CL, CL, CW, CE, SS, SS, SR, SA, CL]),
        (SHUTDOWN_ACK,      [SA, CL, CW, CE, ES, SA, SA, SA, SA]),
        (ERROR,             [CL, CL, CW, CE, ES, SS, SR, SA, CL]),
        (COOKIE_ECHO,       [CL, CL, CE, CE, ES, SS, SR, SA, CL]),
        (COOKIE_ACK,        [CL, CL, CW, ES, ES, SS, SR, SA, CL]),
        (SHUTDOWN_COMPLETE, [CL, CL, CW, CE, ES, SS, SR, CL, CL]),
        (HEARTBEAT,         [HS, CL, CW, CE, ES, SS, SR, SA, HS]),
        (HEARTBEAT_ACK,     [CL, CL, CW, CE, ES, SS, SR, SA, HS]),
    ],
    [ // reply
        (INIT,              [IV, CL, CW, CE, ES, SS, SR, SA, IV]),
        (INIT_ACK,          [IV, CW, CW, CE, ES, SS, SR, SA, IV]),
        (ABORT,             [IV, CL, CL, CL, CL, CL, CL, CL, IV]),
        (SHUTDOWN,          [IV, CL, CW, CE, SR, SS, SR, SA, IV]),
        (SHUTDOWN_ACK,      [IV, CL, CW, CE, ES, SA, SA, SA, IV]),
        (ERROR,             [IV, CL, CW, CL, ES, SS, SR, SA, IV]),
        (COOKIE_ECHO,       [IV, CL, CE, CE, ES, SS, SR, SA, IV]),
        (COOKIE_ACK,        [IV, CL, CW, ES, ES, SS, SR, SA, IV]),
        (SHUTDOWN_COMPLETE, [IV, CL, CW, CE, ES, SS, SR, CL, IV]),
        (HEARTBEAT,         [IV, CL, CW, CE, ES, SS, SR, SA, HS]),
        (HEARTBEAT_ACK,     [IV, CL, CW, CE, ES, SS, SR, SA, ES]),
    ],
];

/// The next state; chunks without a row leave the state as it is. `None`: it cannot be.
fn look(direction: Direction, kind: u8, state: u8) -> Option<u8> {
    let rows = TABLE.get(direction as usize)?;
    let Some((_, row)) = rows.iter().find(|(row, _)| *row == kind) else { return Some(state) };
    row.get(usize::from(state)).copied().filter(|next| *next != IV)
}

/// One chunk: where it is in the packet's SCTP part, its type and flags.
#[derive(Clone, Copy)]
struct Chunk {
    at: usize,
    kind: u8,
    flags: u8,
    length: u16,
}

/// The chunks of a packet, as far as their headers are there.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk> {
    let mut at = HEADER;
    core::iter::from_fn(move || {
        let [kind, flags, l0, l1] = *bytes.get(at..)?.first_chunk::<CHUNK>()?;
        let chunk = Chunk { at, kind, flags, length: u16::from_be_bytes([l0, l1]) };
        at = at.saturating_add(usize::from(chunk.length).next_multiple_of(4));
        Some(chunk)
    })
}

/// Which chunk cannot stand where it does (`do_basic_checks`), or which kinds there are, as bits.
fn basic(bytes: &[u8], cut: bool) -> Result<u32, Why> {
    let mut kinds = 0u32;
    let mut alone = false;
    let mut count = 0usize;
    for Chunk { at, kind, length, .. } in chunks(bytes) {
        alone |= matches!(kind, INIT | INIT_ACK | SHUTDOWN_COMPLETE);
        let first = alone || matches!(kind, COOKIE_ACK | COOKIE_ECHO);
        if (first && count != 0) || length == 0 {
            return Err(Why::new(Reason::Chunk, u32::from(kind), at as u32));
        }
        if kind < 32 {
            kinds |= 1 << kind;
        }
        count = count.saturating_add(1);
    }
    match count {
        0 if cut => Err(Why::new(Reason::Short, bytes.len() as u32, (HEADER + CHUNK) as u32)),
        0 => Err(Why::new(Reason::Chunk, 0, HEADER as u32)),
        _ => Ok(kinds),
    }
}

const fn has(kinds: u32, kind: u8) -> bool {
    kinds >> kind & 1 == 1
}

fn init_tag(bytes: &[u8], chunk: &Chunk) -> Option<u32> {
    let body = chunk.at.checked_add(CHUNK)?;
    bytes.get(body..)?.first_chunk::<INIT_FIXED>()?;
    be32(bytes, body)
}

/// Makes the entry of a first packet ready (`sctp_new`).
fn open(flow: &mut Flow, bytes: &[u8], tag: u32, kinds: u32) -> Result<(), Why> {
    let cannot = |kind: u8, at: usize| Why::new(Reason::Chunk, u32::from(kind), at as u32);
    for chunk in chunks(bytes) {
        let Chunk { at, kind, .. } = chunk;
        if has(kinds, ABORT) || has(kinds, SHUTDOWN_COMPLETE) || has(kinds, COOKIE_ACK) {
            if matches!(kind, ABORT | SHUTDOWN_COMPLETE | COOKIE_ACK) {
                return Err(Why::new(Reason::ChunkState, u32::from(kind), 0));
            }
            continue;
        }
        // A chunk that leads nowhere begins nothing.
        if matches!(look(Direction::Original, kind, 0), None | Some(0)) {
            return Err(Why::new(Reason::ChunkState, u32::from(kind), 0));
        }
        match kind {
            INIT => {
                if tag != 0 {
                    return Err(Why::new(Reason::Vtag, tag, 0));
                }
                let tag = init_tag(bytes, &chunk).ok_or_else(|| cannot(kind, at))?;
                flow.set_vtag(Direction::Reply, tag);
            }
            HEARTBEAT => flow.set_vtag(Direction::Original, tag),
            // Its answer carries its tag (RFC 9260 section 8.4).
            SHUTDOWN_ACK => flow.set_vtag(Direction::Reply, tag),
            _ => {}
        }
    }
    Ok(())
}

/// What a chunk leads to.
enum Step {
    Next(u8),
    /// A heartbeat of a path that is not known.
    Skip,
}

/// A packet of an association (`nf_conntrack_sctp_packet`). `bytes` start at the SCTP header; `cut`: not all were
/// captured. `fresh`: the first.
#[allow(clippy::too_many_arguments)]
pub(super) fn handle(
    flow: &mut Flow,
    direction: Direction,
    (bytes, cut): (&[u8], bool),
    fresh: bool,
    config: &Config,
    now: i64,
    length: u32,
) -> Handled {
    match judge(flow, direction, (bytes, cut), fresh) {
        Err(why) => Handled::Invalid(why),
        Ok((true, _)) => Handled::Unrefreshed { changed: false },
        Ok((false, state)) => {
            let timeout = config.timeouts.sctp.get(usize::from(state)).copied().unwrap_or(0);
            refresh(flow, direction, length, now, timeout);
            Handled::Accepted { changed: false }
        }
    }
}

/// Whether the timer stays, and the last state. What the state was before a chunk turned out invalid is not brought
/// back ([`bit::UNANNOUNCED`]).
fn judge(flow: &mut Flow, direction: Direction, (bytes, cut): (&[u8], bool), fresh: bool) -> Result<(bool, u8), Why> {
    /// Chunks with rules of their own for the tag.
    const OWN_RULES: [u8; 7] = [INIT, SHUTDOWN_COMPLETE, COOKIE_ECHO, ABORT, SHUTDOWN_ACK, HEARTBEAT, HEARTBEAT_ACK];
    let kinds = basic(bytes, cut)?;
    let tag = be32(bytes, 4).unwrap_or(0);
    if fresh {
        open(flow, bytes, tag, kinds)?;
    }
    let right = flow.vtag(direction);
    if !OWN_RULES.iter().any(|kind| has(kinds, *kind)) && tag != right {
        return Err(Why::new(Reason::Vtag, tag, right));
    }
    let (mut unrefreshed, mut state) = (false, 0);
    for chunk in chunks(bytes) {
        match step(flow, direction, bytes, &chunk, (tag, kinds), (fresh, &mut unrefreshed))? {
            Step::Skip => {}
            Step::Next(next) => {
                state = next;
                if flow.state != next {
                    flow.state = next;
                    flow.bits |= bit::UNANNOUNCED;
                    if next == ES {
                        flow.bits |= bit::ASSURED;
                    }
                }
            }
        }
    }
    Ok((unrefreshed, state))
}

fn step(
    flow: &mut Flow,
    direction: Direction,
    bytes: &[u8],
    chunk: &Chunk,
    (tag, kinds): (u32, u32),
    (fresh, unrefreshed): (bool, &mut bool),
) -> Result<Step, Why> {
    let (own, peer) = (flow.vtag(direction), flow.vtag(direction.other()));
    let wrong = |right| Err(Why::new(Reason::Vtag, tag, right));
    match chunk.kind {
        INIT if tag != 0 => return wrong(0),
        ABORT | SHUTDOWN_COMPLETE => {
            let right = if chunk.flags & REFLECTED == 0 { own } else { peer };
            if tag != right {
                return wrong(right);
            }
        }
        COOKIE_ECHO if tag != own => return wrong(own),
        COOKIE_ACK => {
            flow.set_init(direction, false);
            flow.set_init(direction.other(), false);
        }
        HEARTBEAT | HEARTBEAT_ACK => {
            if own == 0 {
                flow.set_vtag(direction, tag);
            } else if tag != own {
                if has(kinds, DATA) || *unrefreshed {
                    return wrong(own);
                }
                if chunk.kind == HEARTBEAT {
                    // Perhaps a path of another address: it is known once it is answered.
                    flow.last_flags |= HEARTBEAT_FAILED;
                    flow.set_last_direction(direction);
                    *unrefreshed = true;
                    return Ok(Step::Skip);
                }
                if flow.last_flags & HEARTBEAT_FAILED == 0 || flow.last().1 == direction {
                    return wrong(own);
                }
                flow.last_flags &= !HEARTBEAT_FAILED;
                flow.set_vtag(direction, tag);
                flow.set_vtag(direction.other(), 0);
            } else {
                flow.last_flags &= !HEARTBEAT_FAILED;
            }
        }
        _ => {}
    }
    let old = flow.state;
    let Some(next) = look(direction, chunk.kind, old) else {
        return Err(Why::new(Reason::ChunkState, u32::from(chunk.kind), u32::from(old)));
    };
    if matches!(chunk.kind, INIT | INIT_ACK) {
        let Some(theirs) = init_tag(bytes, chunk) else {
            return Err(Why::new(Reason::Chunk, u32::from(chunk.kind), chunk.at as u32));
        };
        let peer = flow.vtag(direction.other());
        let (mine, other) = (flow.init(direction), flow.init(direction.other()));
        if chunk.kind == INIT {
            // One that tells what is known already is stale, or not true.
            if fresh || theirs != peer {
                if mine && other {
                    flow.set_init(direction.other(), false);
                }
                flow.set_init(direction, true);
            }
            // A repeated INIT does not keep the entry.
            *unrefreshed |= next == CL && old == CL && !fresh;
        } else {
            let disagrees = peer != theirs;
            if disagrees && ((!other && peer != 0) || (mine && other)) {
                return Err(Why::new(Reason::Vtag, theirs, peer));
            }
        }
        flow.set_vtag(direction.other(), theirs);
    }
    Ok(Step::Next(next))
}
