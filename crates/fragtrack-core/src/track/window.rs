//! Whether the numbers of a segment are within the window (`tcp_in_window`).

use super::config::Config;
use super::flow::{Ends, Flow, flag};
use super::segment::{ACK, Kind, RST, SYN, Segment, after, before};
use super::states::State;
use super::verdict::{Direction, Reason, Why};

/// What the window says.
pub(super) enum Judged {
    Accept,
    Ignore(Why),
    Invalid(Why),
}

/// How far an acknowledgment may lie behind (`MAXACKWINCONST`).
const ACK_WINDOW: u32 = 66_000;

/// The numbers of a segment as they are compared.
#[derive(Clone, Copy)]
struct Numbers {
    seq: u32,
    end: u32,
    ack: u32,
    sack: u32,
}

/// Takes the options of a SYN over (`tcp_options`). A SYN without any leaves what is known as it is.
pub(super) fn note_options(flow: &mut Flow, sender: Direction, segment: &Segment) {
    if !segment.options.there() {
        return;
    }
    let (mut sent, received) = flow.flags(sender);
    sent &= flag::BE_LIBERAL;
    if segment.options.scale().is_some() {
        sent |= flag::WINDOW_SCALE;
    }
    if segment.options.sack_permitted() {
        sent |= flag::SACK_PERMITTED;
    }
    flow.set_scale(sender, segment.options.scale().unwrap_or(0));
    flow.set_flags(sender, (sent, received));
}

/// What a SYN says about its sender (`tcp_init_sender`).
fn begin(flow: &mut Flow, direction: Direction, segment: &Segment) {
    let (mut sender, receiver) = flow.sides(direction);
    (sender.end, sender.maxend) = (segment.end, segment.end);
    sender.maxwin = u32::from(segment.window).max(1);
    flow.set_sides(direction, (sender, receiver));
    note_options(flow, direction, segment);
    let (sent, received) = flow.flags(direction);
    // Both sides must offer window scaling (RFC 7323 section 2.2).
    if direction == Direction::Reply && sent & received & flag::WINDOW_SCALE == 0 {
        flow.set_scale(Direction::Original, 0);
        flow.set_scale(Direction::Reply, 0);
    }
}

/// A segment from the middle, of a sender that was not seen yet.
fn learn(flow: &mut Flow, direction: Direction, segment: &Segment, sack: u32) {
    let (mut sender, mut receiver) = flow.sides(direction);
    sender.end = segment.end;
    sender.maxwin = (u32::from(segment.window) << flow.scale(direction)).max(1);
    sender.maxend = segment.end.wrapping_add(sender.maxwin);
    if receiver.maxwin == 0 {
        (receiver.end, receiver.maxend) = (sack, sack);
    } else if sack == receiver.end.wrapping_add(1) {
        // Probably the answer to a keep-alive.
        receiver.end = sack;
    }
    flow.set_sides(direction, (sender, receiver));
}

/// Judges a segment, and takes over what it tells if it is accepted.
#[inline(always)]
pub(super) fn judge(flow: &mut Flow, direction: Direction, segment: &Segment, config: &Config) -> Judged {
    let Ends { sender, received, .. } = flow.ends(direction);
    let sack = if *received & flag::SACK_PERMITTED != 0 { segment.sack } else { segment.ack };
    let unseen = sender.maxwin == 0;
    if (unseen || segment.has(SYN)) && introduce(flow, direction, segment, sack, unseen) {
        return Judged::Accept; // both sides open
    }
    let state = flow.tcp();
    let scale = if segment.has(SYN) { 0 } else { flow.scale(direction) };
    let mut ends = flow.ends(direction);
    let mut numbers = Numbers { seq: segment.seq, end: segment.end, ack: segment.ack, sack };
    // Without an acknowledgment, it is as if everything were acknowledged; some stacks set ACK in a RST with 0.
    if !segment.has(ACK) || (segment.has(RST) && segment.ack == 0) {
        (numbers.ack, numbers.sack) = (ends.receiver.end, ends.receiver.end);
    }
    // In answer to a SYN.
    if segment.has(RST) && segment.seq == 0 && state == State::SynSent {
        (numbers.seq, numbers.end) = (ends.sender.end, ends.sender.end);
    }
    if !inside(&ends, &numbers) {
        let failed = outside(&mut ends, &numbers, config.pre_6_1);
        let liberal = config.tcp_be_liberal || *ends.sent & flag::BE_LIBERAL != 0;
        return if liberal { Judged::Accept } else { failed };
    }
    take_over(&mut ends, segment, &numbers, u32::from(segment.window) << scale);
    if segment.kind == Kind::Ack {
        count_repeats(flow, direction, segment, &numbers);
    }
    Judged::Accept
}

/// A SYN, or the first segment of a sender: what is known of it begins. Whether there is nothing more to judge.
#[inline(never)]
fn introduce(flow: &mut Flow, direction: Direction, segment: &Segment, sack: u32, unseen: bool) -> bool {
    if unseen && !segment.has(SYN) {
        learn(flow, direction, segment, sack);
        return false;
    }
    let again =
        after(segment.end, flow.sides(direction).0.end) && matches!(flow.tcp(), State::SynSent | State::SynRecv);
    if !unseen && !again {
        return false;
    }
    begin(flow, direction, segment);
    !segment.has(ACK) && (unseen || direction == Direction::Reply)
}

/// Whether all four bounds of [`Side`] hold.
#[inline(always)]
fn inside(ends: &Ends<'_>, numbers: &Numbers) -> bool {
    let Ends { sender, receiver, .. } = ends;
    let Numbers { seq, end, sack, .. } = *numbers;
    let ack_floor = receiver.end.wrapping_sub(ACK_WINDOW.max(sender.maxwin));
    let data_floor = sender.end.wrapping_sub(receiver.maxwin);
    !after(seq, sender.maxend)
        & (receiver.maxwin == 0 || !before(end, data_floor))
        & !after(sack, receiver.end)
        & !before(sack, ack_floor)
}

/// Which bound of [`Side`] does not hold, in the kernel's order.
#[inline(never)]
fn outside(ends: &mut Ends<'_>, numbers: &Numbers, strict: bool) -> Judged {
    let Ends { sender, receiver, sent, .. } = ends;
    let Numbers { seq, end, sack, .. } = *numbers;
    let ack_floor = receiver.end.wrapping_sub(ACK_WINDOW.max(sender.maxwin));
    let data_floor = sender.end.wrapping_sub(receiver.maxwin);
    // 1.
    if after(seq, sender.maxend) {
        let over = end.wrapping_sub(sender.maxend).wrapping_add(1);
        let in_window = receiver.maxwin != 0 && !before(end, data_floor);
        let acknowledges = !before(sack, ack_floor) && !after(sack, receiver.end);
        if in_window && acknowledges && over <= receiver.maxwin {
            // A little too much: the receiver may well take it, and will acknowledge it then.
            sender.end = end;
            **sent |= flag::DATA_UNACKNOWLEDGED;
            return Judged::Ignore(Why::new(Reason::Overshoot, over, receiver.maxwin));
        }
        return Judged::Invalid(Why::new(Reason::SeqAbove, seq, sender.maxend));
    }
    // 3.
    if after(sack, receiver.end) {
        return Judged::Invalid(Why::new(Reason::AckAbove, sack, receiver.end));
    }
    // 2. and 4.
    let below = if receiver.maxwin != 0 && before(end, data_floor) {
        Why::new(Reason::SeqBelow, end, data_floor)
    } else {
        Why::new(Reason::AckBelow, sack, ack_floor)
    };
    if strict { Judged::Invalid(below) } else { Judged::Ignore(below) }
}

/// What an accepted segment tells about both sides.
#[inline(always)]
fn take_over(ends: &mut Ends<'_>, segment: &Segment, numbers: &Numbers, window: u32) {
    let Ends { sender, receiver, sent, received } = ends;
    let Numbers { end, ack, sack, .. } = *numbers;
    sender.maxwin = sender.maxwin.max(window.wrapping_add(sack.wrapping_sub(ack)));
    if after(end, sender.end) {
        sender.end = end;
        **sent |= flag::DATA_UNACKNOWLEDGED;
    }
    if segment.has(ACK) && (**sent & flag::MAXACK_SET == 0 || after(ack, sender.maxack)) {
        sender.maxack = ack;
        **sent |= flag::MAXACK_SET;
    }
    if receiver.maxwin != 0 && after(end, sender.maxend) {
        receiver.maxwin = receiver.maxwin.wrapping_add(end.wrapping_sub(sender.maxend));
    }
    let allowed = sack.wrapping_add(window);
    if after(allowed, receiver.maxend.wrapping_sub(1)) {
        // One byte beyond a closed window may be sent, to ask whether it is open again.
        receiver.maxend = allowed.wrapping_add(u32::from(window == 0));
    }
    if ack == receiver.end {
        **received &= !flag::DATA_UNACKNOWLEDGED;
    }
}

/// Counts identical segments in a row.
#[inline(always)]
fn count_repeats(flow: &mut Flow, direction: Direction, segment: &Segment, numbers: &Numbers) {
    let Numbers { seq, end, ack, .. } = *numbers;
    let same = flow.last().1 == direction
        && (flow.last_seq, flow.last_ack, flow.last_end) == (seq, ack, end)
        && flow.last_window == segment.window;
    if same {
        flow.retrans = flow.retrans.wrapping_add(1); // as the kernel's counter of 8 bits
        return;
    }
    flow.set_last_direction(direction);
    (flow.last_seq, flow.last_ack, flow.last_end) = (seq, ack, end);
    flow.last_window = segment.window;
    flow.retrans = 0;
}

/// Behind a gap in the capture: forgets both windows and judges once more. Whether that helped.
#[inline(never)]
pub(super) fn relearn(flow: &mut Flow, direction: Direction, segment: &Segment, why: Why, config: &Config) -> bool {
    let state = State::from_number(flow.state);
    if !config.gap_tolerant
        || !matches!(why.reason, Reason::SeqAbove | Reason::AckAbove)
        || !matches!(segment.kind, Kind::Ack | Kind::Fin)
        || !(State::SynRecv..=State::TimeWait).contains(&state)
    {
        return false;
    }
    let (mut sender, mut receiver) = flow.sides(direction);
    (sender.maxwin, receiver.maxwin) = (0, 0);
    flow.set_sides(direction, (sender, receiver));
    matches!(judge(flow, direction, segment, config), Judged::Accept)
}
