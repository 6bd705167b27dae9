//! Whether the numbers of a segment are within the window (`tcp_in_window`).

use super::config::Config;
use super::flow::{Flow, Side, flag};
use super::segment::{ACK, Kind, RST, SYN, Segment, after, before};
use super::tcp::State;
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

/// Sender and receiver with their flags, taken out of the flow and put back at once.
struct Ends {
    sender: Side,
    receiver: Side,
    sent: u8,
    received: u8,
}

impl Ends {
    #[inline(always)]
    const fn of(flow: &Flow, direction: Direction) -> Self {
        let ((sender, receiver), (sent, received)) = (flow.sides(direction), flow.flags(direction));
        Self { sender, receiver, sent, received }
    }

    #[inline(always)]
    const fn store(&self, flow: &mut Flow, direction: Direction) {
        flow.set_sides(direction, (self.sender, self.receiver));
        flow.set_flags(direction, (self.sent, self.received));
    }
}

/// Takes the options of a SYN over (`tcp_options`). A SYN without any leaves what is known as it is.
pub(super) fn note_options(flow: &mut Flow, sender: Direction, segment: &Segment) {
    if !segment.options.there {
        return;
    }
    let (mut sent, received) = flow.flags(sender);
    sent &= flag::BE_LIBERAL;
    if segment.options.scale.is_some() {
        sent |= flag::WINDOW_SCALE;
    }
    if segment.options.sack_permitted {
        sent |= flag::SACK_PERMITTED;
    }
    flow.set_scale(sender, segment.options.scale.unwrap_or(0));
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
    let (sender, _) = flow.sides(direction);
    let (_, received) = flow.flags(direction);
    let sack = if received & flag::SACK_PERMITTED != 0 { segment.sack } else { segment.ack };
    if sender.maxwin == 0 {
        if segment.has(SYN) {
            begin(flow, direction, segment);
            if !segment.has(ACK) {
                return Judged::Accept; // both sides open
            }
        } else {
            learn(flow, direction, segment, sack);
        }
    } else if segment.has(SYN)
        && after(segment.end, sender.end)
        && matches!(State::from_number(flow.state), State::SynSent | State::SynRecv)
    {
        begin(flow, direction, segment);
        if direction == Direction::Reply && !segment.has(ACK) {
            return Judged::Accept;
        }
    }
    let mut ends = Ends::of(flow, direction);
    let mut numbers = Numbers { seq: segment.seq, end: segment.end, ack: segment.ack, sack };
    // Without an acknowledgment, it is as if everything were acknowledged; some stacks set ACK in a RST with 0.
    if !segment.has(ACK) || (segment.has(RST) && segment.ack == 0) {
        (numbers.ack, numbers.sack) = (ends.receiver.end, ends.receiver.end);
    }
    // In answer to a SYN.
    if segment.has(RST) && segment.seq == 0 && State::from_number(flow.state) == State::SynSent {
        (numbers.seq, numbers.end) = (ends.sender.end, ends.sender.end);
    }
    if let Some(failed) = outside(&mut ends, &numbers, config.pre_6_1) {
        ends.store(flow, direction);
        return if config.tcp_be_liberal || ends.sent & flag::BE_LIBERAL != 0 { Judged::Accept } else { failed };
    }
    let mut window = u32::from(segment.window);
    if !segment.has(SYN) {
        window <<= flow.scale(direction);
    }
    take_over(&mut ends, segment, &numbers, window);
    ends.store(flow, direction);
    if segment.kind == Kind::Ack {
        count_repeats(flow, direction, segment, &numbers);
    }
    Judged::Accept
}

/// Which bound of [`Side`] does not hold, if any.
#[inline(always)]
fn outside(ends: &mut Ends, numbers: &Numbers, strict: bool) -> Option<Judged> {
    let Ends { sender, receiver, .. } = ends;
    let Numbers { seq, end, sack, .. } = *numbers;
    let ack_floor = receiver.end.wrapping_sub(ACK_WINDOW.max(sender.maxwin));
    let data_floor = sender.end.wrapping_sub(receiver.maxwin);
    let acks_enough = !before(sack, ack_floor);
    // 1.
    if after(seq, sender.maxend) {
        let over = end.wrapping_sub(sender.maxend).wrapping_add(1);
        let in_window = receiver.maxwin != 0 && !before(end, data_floor);
        if in_window && acks_enough && over <= receiver.maxwin && !after(sack, receiver.end) {
            // A little too much: the receiver may well take it, and will acknowledge it then.
            let why = Why::new(Reason::Overshoot, over, receiver.maxwin);
            sender.end = end;
            ends.sent |= flag::DATA_UNACKNOWLEDGED;
            return Some(Judged::Ignore(why));
        }
        return Some(Judged::Invalid(Why::new(Reason::SeqAbove, seq, sender.maxend)));
    }
    // 3.
    if after(sack, receiver.end) {
        return Some(Judged::Invalid(Why::new(Reason::AckAbove, sack, receiver.end)));
    }
    // 2. and 4.
    let below = if receiver.maxwin != 0 && before(end, data_floor) {
        Why::new(Reason::SeqBelow, end, data_floor)
    } else if !acks_enough {
        Why::new(Reason::AckBelow, sack, ack_floor)
    } else {
        return None;
    };
    Some(if strict { Judged::Invalid(below) } else { Judged::Ignore(below) })
}

/// What an accepted segment tells about both sides.
#[inline(always)]
fn take_over(ends: &mut Ends, segment: &Segment, numbers: &Numbers, window: u32) {
    let Ends { sender, receiver, sent, received } = ends;
    let Numbers { end, ack, sack, .. } = *numbers;
    sender.maxwin = sender.maxwin.max(window.wrapping_add(sack.wrapping_sub(ack)));
    if after(end, sender.end) {
        sender.end = end;
        *sent |= flag::DATA_UNACKNOWLEDGED;
    }
    if segment.has(ACK) && (*sent & flag::MAXACK_SET == 0 || after(ack, sender.maxack)) {
        sender.maxack = ack;
        *sent |= flag::MAXACK_SET;
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
        *received &= !flag::DATA_UNACKNOWLEDGED;
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
