//! A segment through the TCP state machine (`nf_conntrack_proto_tcp.c`): the table, and the cases that go before it.

use super::config::Config;
use super::flow::{Flow, Side, bit, flag};
use super::protocols::Handled;
use super::segment::{Kind, RST, Segment, before};
use super::states::State;
use super::states::{Cell, look};
use super::verdict::{Direction, Reason, Why};
use super::window::{self, Judged};

/// Makes the entry of a first segment ready (`tcp_new`).
///
/// # Errors
/// It cannot begin a connection.
pub(super) fn open(flow: &mut Flow, segment: &Segment, config: &Config) -> Result<(), Why> {
    match look(Direction::Original, segment.kind, State::None) {
        Cell::To(State::SynSent) => {
            let mut side = Side { end: segment.end, maxend: segment.end, ..Side::default() };
            side.maxwin = u32::from(segment.window).max(1);
            flow.set_sides(Direction::Original, (side, Side::default()));
            window::note_options(flow, Direction::Original, segment);
        }
        Cell::To(_) if config.tcp_loose => pick_up(flow, Direction::Original, segment),
        Cell::To(_) => return Err(Why::bare(Reason::NotLoose)),
        Cell::Ignore | Cell::Invalid => return Err(Why::got(Reason::NoEntry, segment.kind as u32)),
    }
    flow.set_last(Kind::None, Direction::Original);
    Ok(())
}

/// What is assumed where the history of a connection is not known.
fn pick_up(flow: &mut Flow, sender: Direction, segment: &Segment) {
    let window = u32::from(segment.window).max(1);
    let side = Side { end: segment.end, maxend: segment.end.wrapping_add(window), maxwin: window, maxack: 0 };
    flow.set_sides(sender, (side, Side::default()));
    let both = flag::SACK_PERMITTED | flag::BE_LIBERAL;
    flow.set_flags(sender, (both, both));
    flow.set_scale(Direction::Original, 0);
    flow.set_scale(Direction::Reply, 0);
}

/// A segment of a connection (`nf_conntrack_tcp_packet`).
#[inline(always)]
pub(super) fn handle(
    flow: &mut Flow,
    direction: Direction,
    segment: &Segment,
    config: &Config,
    now: i64,
    length: u32,
) -> Handled {
    let mut old = flow.tcp();
    let kind = segment.kind;
    let mut note = None;
    let new = match look(direction, kind, old) {
        Cell::Invalid => {
            if !bridges_gap(flow, direction, segment, config) {
                return Handled::Invalid(Why::new(Reason::Transition, kind as u32, old as u32));
            }
            note = Some(Why::new(Reason::Resynchronized, kind as u32, old as u32));
            pick_up(flow, direction, segment);
            flow.forget_last();
            State::Established
        }
        Cell::Ignore => match answers_ignored_syn(flow, direction, segment) {
            false => return ignore(flow, direction, segment, old),
            true => {
                resynchronize(flow, direction);
                old = State::SynSent;
                State::SynRecv
            }
        },
        Cell::To(State::SynSent) if old >= State::TimeWait => {
            if may_reopen(flow, direction) {
                return Handled::Repeat(Why::bound(Reason::Reopened, old as u32));
            }
            return ignore(flow, direction, segment, old);
        }
        Cell::To(State::TimeWait) if is_challenge(flow, direction, kind, old) => {
            flow.last_flags &= !flag::CHALLENGE_ACK;
            return Handled::Ignored(Why::got(Reason::ChallengeAck, segment.ack));
        }
        Cell::To(State::SynSent2) => {
            flow.last_flags |= flag::SIMULTANEOUS_OPEN;
            State::SynSent2
        }
        Cell::To(State::SynRecv)
            if direction == Direction::Reply && kind == Kind::Ack && flow.last_flags & flag::SIMULTANEOUS_OPEN != 0 =>
        {
            State::Established
        }
        Cell::To(State::Close) if kind == Kind::Rst => match reset(flow, direction, segment, old, config) {
            Reset::InWindow => return accept(flow, direction, segment, (old, State::Close), None, config, now, length),
            Reset::Judge => State::Close,
            Reset::Inexact(bound) => {
                note = Some(Why::new(Reason::RstInexact, segment.seq, bound));
                old
            }
            Reset::Below(bound) => return Handled::Invalid(Why::new(Reason::RstBelow, segment.seq, bound)),
        },
        Cell::To(state) => state,
    };
    match window::judge(flow, direction, segment, config) {
        Judged::Accept => {}
        Judged::Ignore(why) => return Handled::Ignored(why),
        Judged::Invalid(why) => {
            if !window::relearn(flow, direction, segment, why, config) {
                return Handled::Invalid(note_invalid(flow, direction, kind, why, config, now));
            }
            note = Some(Why { reason: Reason::Resynchronized, ..why });
        }
    }
    accept(flow, direction, segment, (old, new), note, config, now, length)
}

/// Whether an ACK where the SYN/ACK is missing may be taken for the third segment of a handshake.
fn bridges_gap(flow: &Flow, direction: Direction, segment: &Segment, config: &Config) -> bool {
    config.gap_tolerant
        && (direction, segment.kind, flow.tcp()) == (Direction::Original, Kind::Ack, State::SynSent)
        && segment.seq == flow.sides(direction).0.end
}

/// A SYN/ACK that acknowledges a SYN which was ignored: both sides agree, and what is known here is out of date.
fn answers_ignored_syn(flow: &Flow, direction: Direction, segment: &Segment) -> bool {
    segment.kind == Kind::SynAck && flow.last() == (Kind::Syn, direction.other()) && segment.ack == flow.last_end
}

/// Takes what was remembered of the ignored SYN for true.
fn resynchronize(flow: &mut Flow, direction: Direction) {
    let syn = direction.other();
    let (mut side, _) = flow.sides(syn);
    (side.end, side.maxend) = (flow.last_end, flow.last_end);
    side.maxwin = u32::from(flow.last_window).max(1);
    flow.last_flags &= !flag::CHALLENGE_ACK;
    let (_, liberal) = flow.flags(syn);
    flow.set_sides(syn, (side, Side::default()));
    flow.set_flags(syn, (flow.last_flags, liberal & flag::BE_LIBERAL));
    flow.set_scale(syn, flow.last_scale);
    flow.set_scale(direction, 0);
}

/// Lets a packet through and remembers it: it may be what the two sides really talk about.
fn ignore(flow: &mut Flow, direction: Direction, segment: &Segment, old: State) -> Handled {
    let kind = segment.kind;
    flow.set_last(kind, direction);
    flow.last_seq = segment.seq;
    flow.last_end = segment.end;
    flow.last_window = segment.window;
    if kind == Kind::Syn && direction == Direction::Original {
        (flow.last_flags, flow.last_scale) = (0, 0);
        if let Some(scale) = segment.options.scale() {
            flow.last_flags |= flag::WINDOW_SCALE;
            flow.last_scale = scale;
        }
        if segment.options.sack_permitted() {
            flow.last_flags |= flag::SACK_PERMITTED;
        }
        if old == State::LastAck {
            flow.last_flags |= flag::CHALLENGE_ACK;
        }
    }
    if old == State::SynSent && kind == Kind::Ack && direction == Direction::Reply {
        flow.last_ack = segment.ack;
    }
    Handled::Ignored(Why::new(Reason::State, kind as u32, old as u32))
}

/// Whether a SYN may begin anew: the connection was closed by one of both, or reset by who sends the SYN.
fn may_reopen(flow: &Flow, direction: Direction) -> bool {
    let (one, other) = flow.flags(direction);
    (one | other) & flag::CLOSE_INIT != 0 || flow.last() == (Kind::Rst, direction)
}

/// A challenge ACK (RFC 5961) in answer to an ignored SYN: not the ACK of the last FIN.
fn is_challenge(flow: &Flow, direction: Direction, kind: Kind, old: State) -> bool {
    old == State::LastAck
        && kind == Kind::Ack
        && flow.last() == (Kind::Syn, direction.other())
        && flow.last_flags & flag::CHALLENGE_ACK != 0
}

enum Reset {
    /// It closes, whatever the window says.
    InWindow,
    /// It closes if it is in the window.
    Judge,
    /// Its number is not the exact one: nothing closes yet.
    Inexact(u32),
    /// It is below what is acknowledged.
    Below(u32),
}

/// What a RST may do.
fn reset(flow: &Flow, direction: Direction, segment: &Segment, old: State, config: &Config) -> Reset {
    if old.closing() {
        return Reset::InWindow;
    }
    let (_, peer) = flow.sides(direction);
    let (_, peer_flags) = flow.flags(direction);
    let last = flow.last();
    if peer_flags & flag::MAXACK_SET != 0 && last.0 != Kind::Syn {
        let proven = old == State::Established && flow.has(bit::ASSURED);
        if segment.seq == 0 && !proven {
            return Reset::Judge;
        }
        if before(segment.seq, peer.maxack) && !config.tcp_ignore_invalid_rst {
            return Reset::Below(peer.maxack);
        }
        let behind_data = last == (Kind::Ack, direction) && segment.seq == flow.last_end;
        if !proven || segment.seq == peer.maxack || behind_data {
            return Reset::Judge;
        }
        // Of an established and proven connection: what follows below is about others.
        return Reset::Inexact(peer.maxack);
    }
    // In answer to a SYN or an ACK that was let through.
    let answered = (flow.has(bit::SEEN_REPLY) && last == (Kind::Syn, direction.other()))
        || (!flow.has(bit::ASSURED) && last.0 == Kind::Ack);
    let answers = answered && segment.ack == flow.last_end;
    // In answer to a challenge ACK.
    let challenged = old == State::SynSent && last == (Kind::Ack, Direction::Reply) && segment.seq == flow.last_ack;
    if answers || challenged { Reset::InWindow } else { Reset::Judge }
}

/// The segment is accepted: state, timeout, counts.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn accept(
    flow: &mut Flow,
    direction: Direction,
    segment: &Segment,
    (old, new): (State, State),
    note: Option<Why>,
    config: &Config,
    now: i64,
    length: u32,
) -> Handled {
    let kind = segment.kind;
    flow.set_last(kind, direction);
    flow.state = new as u8;
    let (mut sender, receiver) = flow.flags(direction);
    if old != new && new == State::FinWait {
        sender |= flag::CLOSE_INIT;
        flow.set_flags(direction, (sender, receiver));
    }
    let mut changed = old != new;
    let timeouts = &config.timeouts;
    let usual = timeouts.of(new);
    let unacknowledged = timeouts.tcp_unacknowledged;
    let mut timeout = if flow.retrans >= config.tcp_max_retrans && usual > timeouts.tcp_max_retrans {
        timeouts.tcp_max_retrans
    } else if kind == Kind::Rst {
        if new != State::Close && config.rst_inexact_unacknowledged {
            usual.min(unacknowledged)
        } else {
            timeouts.of(State::Close)
        }
    } else if (sender | receiver) & flag::DATA_UNACKNOWLEDGED != 0 && usual > unacknowledged {
        unacknowledged
    } else if flow.last_window == 0 && usual > timeouts.tcp_max_retrans {
        timeouts.tcp_max_retrans
    } else {
        usual
    };
    if !flow.has(bit::SEEN_REPLY) {
        if segment.has(RST) {
            // The only answer is a reset, or there is none: nothing was established.
            flow.count(direction, length);
            return Handled::Kill(Why::bound(Reason::Reset, old as u32));
        }
        if kind == Kind::Syn && old == State::SynSent {
            // A repeated SYN does not keep the entry.
            return Handled::Unrefreshed { changed };
        }
        if new == State::Established {
            timeout = timeout.min(unacknowledged);
        }
    } else if !flow.has(bit::ASSURED) && matches!(old, State::SynRecv | State::Established) && new == State::Established
    {
        flow.bits |= bit::ASSURED;
        changed = true;
    }
    flow.count(direction, length);
    flow.deadline = now.saturating_add(timeout);
    match note {
        None => Handled::Accepted { changed },
        Some(note) => Handled::Noted { changed, note },
    }
}

/// Remembers an invalid FIN or RST; a second one, of the other side, cuts a long timeout (`nf_tcp_handle_invalid`).
#[inline(never)]
fn note_invalid(flow: &mut Flow, direction: Direction, kind: Kind, why: Why, config: &Config, now: i64) -> Why {
    const LONG: i64 = 120_000_000_000;
    if !flow.has(bit::ASSURED) || !matches!(kind, Kind::Rst | Kind::Fin) {
        return why;
    }
    let (last, from) = flow.last();
    if from == direction || !matches!(last, Kind::Rst | Kind::Fin) {
        flow.set_last(kind, direction);
        return why;
    }
    let left = flow.deadline.saturating_sub(now);
    let timeout = config.timeouts.tcp_unacknowledged;
    if left < LONG || left <= timeout {
        return why;
    }
    flow.deadline = now.saturating_add(timeout);
    Why { reason: Reason::InvalidNoted, ..why }
}
