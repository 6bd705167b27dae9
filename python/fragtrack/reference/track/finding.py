"""What is found out about a packet: why, and what a protocol makes of it."""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Literal, NamedTuple

from fragtrack.verdicts import TrackReason

__all__ = ["Finding", "Handled", "TrackReason", "Way"]


@unique
class Way(IntEnum):
    """Direction of a packet in its connection (``enum ip_conntrack_dir``)."""

    ORIGINAL = 0
    REPLY = 1

    @property
    def other(self) -> Way:
        """The opposite direction."""
        return Way.REPLY if self is Way.ORIGINAL else Way.ORIGINAL


class Finding(NamedTuple):
    """A reason with the two numbers that were compared; None where there is none."""

    reason: TrackReason
    got: int | None = None
    bound: int | None = None


class Handled(NamedTuple):
    """What a protocol handler makes of a packet that has an entry.

    Attributes
    ----------
    effect
        ``accept``: counted, the deadline moves; ``pass``: accepted, but neither of both (a
        repeated SYN); ``ignore``: nothing changes but what the handler remembers; ``invalid``;
        ``kill``: counted, then the entry is deleted; ``repeat``: the entry is deleted, and the
        packet starts over.
    finding
        What there is to say.
    timeout
        Nanoseconds from now, for ``accept``.
    changed
        State or ASSURED changed: the kernel announces an update.
    """

    effect: Literal["accept", "pass", "ignore", "invalid", "kill", "repeat"]
    finding: Finding | None = None
    timeout: int = 0
    changed: bool = False
