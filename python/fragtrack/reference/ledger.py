"""What a reassembler has to tell: counters, reasons, and the datagrams that ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fragtrack.events import GivenUp, IcmpError, Outcome, Reason
from fragtrack.reference.fragment import address_text

if TYPE_CHECKING:
    from fragtrack.reference.queue import Held, Queue

COUNTERS: Final = (
    "ReasmReqds",
    "ReasmOKs",
    "ReasmFails",
    "ReasmTimeout",
    "ReasmOverlaps",
    "InHdrErrors",
    "InTruncatedPkts",
    "InCsumErrors",
)


class Ledger:
    """The books of one reassembler.

    Invariant: every fragment seen is used, held, or has exactly one reason.
    """

    __slots__ = ("_ended", "counters", "reasons", "seen", "used")

    def __init__(self) -> None:
        self.counters = {version: dict.fromkeys(COUNTERS, 0) for version in (4, 6)}
        self.reasons = dict.fromkeys(Reason, 0)
        self.seen = 0  # fragments
        self.used = 0  # fragments of complete datagrams
        self._ended: list[GivenUp] = []

    def count(self, version: int, *names: str) -> None:
        """Raise counters of a family by one."""
        for name in names:
            self.counters[version][name] += 1

    def drop(self, reason: Reason, icmp: IcmpError | None = None) -> Outcome:
        """Give the current fragment its reason."""
        self.reasons[reason] += 1
        return Outcome("dropped", reason=reason.name, icmp=icmp)

    def give_up(
        self,
        queue: Queue,
        reason: Reason,
        *,
        killer: Held | None = None,
        icmp: IcmpError | None = None,
    ) -> None:
        """Report a queue that ended, and give the fragments it held their reason.

        Parameters
        ----------
        queue : Queue
            As it was; a poisoned one was reported when it was poisoned and is passed over.
        killer : Held or None
            The current fragment, if it ended the queue.  It is part of the report, but gets its
            reason from :meth:`drop`.  If it had been accepted (and completed the queue) it is the
            last one held.
        icmp : IcmpError or None
            What a host would send about it.
        """
        if queue.poisoned:
            return
        held = [fragment for fragment in queue.held if fragment is not killer]
        self.reasons[reason] += len(held)
        record = _record(queue, reason, held, killer)
        record.icmp = icmp
        self._ended.append(record)

    def ended(self) -> list[GivenUp]:
        """Return what was given up since the last call, in order."""
        ended, self._ended = self._ended, []
        return ended

    def check(self, held: int) -> None:
        """Assert the invariant; `held` fragments are held now."""
        assert self.seen == self.used + held + sum(self.reasons.values())


def _record(queue: Queue, reason: Reason, held: list[Held], killer: Held | None) -> GivenUp:
    fragments = held if killer is None else [*held, killer]
    times = [fragment.time for fragment in fragments] or [queue.created]
    end = 0 if killer is None else killer.fragment.end
    return GivenUp(
        version=queue.key.version,
        src=address_text(queue.key.src),
        dst=address_text(queue.key.dst),
        protocol=queue.protocol(),
        id=queue.key.ident,
        domain=queue.key.domain,
        reason=reason.name,
        fragments=len(fragments),
        frames=tuple(fragment.number for fragment in fragments),
        time_first=times[0],
        time_last=times[-1],
        length=max(queue.length, end),
        offsets=tuple(fragment.fragment.start for fragment in fragments),
        held=tuple(fragment.frame for fragment in held),
    )
