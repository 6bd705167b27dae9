"""One incomplete datagram: the kernel's ``inet_frag_queue``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fragtrack.events import Reason
from fragtrack.reference.coverage import Coverage
from fragtrack.reference.policy import Options, Piece, Placement, Policy, Verdict

if TYPE_CHECKING:
    from fragtrack.reference.fragment import Fragment, View


class Key(NamedTuple):
    """What fragments of one datagram have in common.

    `protocol` is 0 for IPv6, whose next header is not part of the key
    (``frag_v4_compare_key``, ``frag_v6_compare_key``).
    """

    version: int
    src: bytes
    dst: bytes
    protocol: int
    ident: int
    domain: int


@dataclass(frozen=True, slots=True)
class Held:
    """A fragment that was accepted.

    `time` is its raw arrival time in ns, `number` its frame number, `cost` its bytes by the cost
    model, `frame` what the caller wants back when the datagram is given up.
    """

    fragment: Fragment
    time: int
    number: int
    cost: int
    frame: object

    def bytes_of(self, start: int, end: int) -> bytes:
        """Return the bytes ``[start, end)`` of the datagram, which this fragment carries."""
        at = self.fragment.data - self.fragment.start
        return bytes(self.fragment.packet[at + start : at + end])


@dataclass(frozen=True, slots=True)
class Arrival:
    """One packet as it came: bytes from the IP header on, when, where, and its frame."""

    packet: View
    time: int
    domain: int
    number: int
    cost: int
    frame: object

    def held(self, fragment: Fragment, cost: int) -> Held:
        """Return the fragment with what is to be remembered of its arrival."""
        return Held(fragment, self.time, self.number, cost, self.frame)


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to become of a fragment; nothing has changed yet.

    Attributes
    ----------
    reason : Reason or None
        None: accepted.
    length, last_seen
        The queue's bookkeeping afterwards, also if the fragment is refused.
    placement : Placement or None
        Where its bytes go; only if accepted.
    """

    reason: Reason | None
    length: int
    last_seen: bool
    placement: Placement | None = None


class Queue:
    """One incomplete datagram.

    Invariant: `length` is at least the end of every held byte, and exactly the known end if
    `last_seen`; `first_seen` holds if and only if byte 0 is held; `cost` is the queue's own cost
    plus its fragments'; `ecn` has a bit for every ECN codepoint held; a poisoned queue holds
    nothing.
    """

    __slots__ = (
        "cost",
        "coverage",
        "created",
        "deadline",
        "ecn",
        "first_seen",
        "held",
        "key",
        "largest",
        "largest_df",
        "last_seen",
        "length",
        "opener",
        "own_cost",
        "poisoned",
        "serial",
        "touched",
    )

    def __init__(self, key: Key, opener: int, own_cost: int) -> None:
        self.key = key
        self.opener = opener  # protocol of the fragment that opened the queue
        self.own_cost = own_cost
        self.created = 0  # raw time
        self.deadline = 0  # by the family's clock
        self.touched = 0  # sequence number of the last acceptance, or of the creation
        self.serial = 0  # number of its last fragment among its source's (qp->rid)
        self.largest = 0
        self.largest_df = 0
        self.poisoned = False
        self.clear()

    def clear(self) -> None:
        """Forget the fragments (``ip_frag_reinit``); the largest sizes are kept, as there."""
        self.held: list[Held] = []
        self.coverage = Coverage()
        self.length = 0
        self.first_seen = False
        self.last_seen = False
        self.ecn = 0
        self.cost = self.own_cost

    def decide(self, fragment: Fragment, policy: Policy, options: Options) -> Decision:
        """Judge a fragment, in the order of ``ip_frag_queue`` and ``ip6_frag_queue``.

        1. Last fragment: refused if it ends below data seen or elsewhere than a known end;
           otherwise it sets the end.
        2. Not last: refused if it goes beyond a known end.
        3. Empty: refused.
        4. The policy places it.

        Steps 1 to 3 are Linux's for every policy.  What steps 1 and 2 note (last seen, length)
        stays even if step 3 or 4 refuses the fragment: so a duplicate can set "last seen".
        """
        length, last_seen = self.length, self.last_seen
        if not fragment.more:
            if fragment.end < length or (last_seen and fragment.end != length):
                return Decision(Reason.last_conflict, length, last_seen)
            length, last_seen = fragment.end, True
        elif fragment.end > length:
            if last_seen:
                return Decision(Reason.past_last, length, last_seen)
            length = fragment.end
        if fragment.start == fragment.end:
            return Decision(Reason.empty, length, last_seen)
        new = Piece(fragment.start, fragment.end, fragment.start, fragment.end, len(self.held))
        placement = policy(self.coverage.pieces, new, options)
        if placement.verdict is Verdict.DUPLICATE:
            return Decision(Reason.duplicate, length, last_seen)
        if placement.verdict is Verdict.OVERLAP:
            return Decision(Reason.overlap, length, last_seen)
        return Decision(None, length, last_seen, placement)

    def note(self, decision: Decision) -> None:
        """Keep the bookkeeping of a refused fragment whose queue stays."""
        self.length = decision.length
        self.last_seen = decision.last_seen

    def accept(self, held: Held, decision: Decision) -> None:
        """Take a fragment in, as decided."""
        assert decision.placement is not None
        fragment = held.fragment
        self.note(decision)
        self.coverage.apply(decision.placement)
        self.held.append(held)
        self.cost += held.cost
        self.ecn |= 1 << fragment.ecn
        self.first_seen |= fragment.start == 0
        size = fragment.header + fragment.end - fragment.start
        self.largest = max(self.largest, size)
        if fragment.dont_fragment:
            self.largest_df = max(self.largest_df, size)

    @property
    def complete(self) -> bool:
        """Whether all bytes are held; only to be asked after a fragment was accepted."""
        return self.first_seen and self.last_seen and self.coverage.covered == self.length

    def spans(self, *, runs: bool) -> list[tuple[int, int, Held]]:
        """Return (start, end, fragment) of all bytes held, in offset order.

        Parameters
        ----------
        runs : bool
            The pieces are runs of several fragments; then the fragments share no byte.
        """
        if runs:
            pieces = ((h.fragment.start, h.fragment.end, h) for h in self.held)
            return sorted(pieces, key=lambda span: span[0])
        return [(p.start, p.end, self.held[p.fragment]) for p in self.coverage.pieces]

    def first_fragment(self) -> Held | None:
        """Return the fragment that byte 0 belongs to."""
        if not self.first_seen:
            return None
        return self.held[self.coverage.pieces[0].fragment]

    def protocol(self) -> int:
        """Return the protocol, as far as it is known."""
        head = self.first_fragment()
        return self.opener if head is None else head.fragment.protocol

    def check(self) -> None:
        """Assert the invariant."""
        self.coverage.check()
        pieces = self.coverage.pieces
        assert all(p.end <= self.length for p in pieces)
        assert self.first_seen == bool(pieces and pieces[0].start == 0)
        assert self.first_seen == any(h.fragment.start == 0 for h in self.held)
        assert all(0 <= p.fragment < len(self.held) for p in pieces)
        assert self.cost == self.own_cost + sum(h.cost for h in self.held)
        assert self.ecn == sum({1 << h.fragment.ecn for h in self.held})
        assert not (self.poisoned and (self.held or pieces))
        assert self.largest >= self.largest_df
        assert bool(pieces) == bool(self.held)
