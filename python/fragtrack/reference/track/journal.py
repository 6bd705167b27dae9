"""What a tracker has to tell: events, connections that ended, counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from fragtrack.verdicts import Connection, Event, TrackReason

if TYPE_CHECKING:
    from fragtrack.verdicts import Verdict

COUNTERS: Final = (
    "packets",
    "found",
    "new",
    "invalid",
    "ignore",
    "delete",
    "insert",
    "insert_failed",
    "drop",
    "early_drop",
    "icmp_error",
)
"""Names as in the kernel's ``net/stat/nf_conntrack``, and `packets`."""


class Journal:
    """The books of one tracker.

    Invariant: connections made are those in the table and those deleted; the classes sum up to the
    packets and the fragments that were held or dropped.
    """

    def __init__(self, *, events: bool = True, ended: bool = True) -> None:
        self._keep_events, self._keep_ended = events, ended
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.reasons = dict.fromkeys(TrackReason, 0)
        self.classes: dict[str, int] = {}
        self.protocols: dict[int, int] = {}
        self.ends: dict[str, int] = {}
        self._events: list[Event] = []
        self._ended: list[Connection] = []

    def count(self, *names: str) -> None:
        """Raise counters by one."""
        for name in names:
            self.counters[name] += 1

    def verdict(self, verdict: Verdict) -> None:
        """Count a verdict."""
        self.classes[verdict.ct_class] = self.classes.get(verdict.ct_class, 0) + 1
        if verdict.ct_class in {"held", "dropped"}:
            return
        self.count("packets")
        if verdict.ct_class == "invalid":
            self.count("invalid")
        elif verdict.ct_class == "untracked":
            self.count("ignore")
        if verdict.reason is not None:
            self.reasons[TrackReason[verdict.reason]] += 1

    def announce(
        self,
        kind: Literal["new", "update", "destroy"],
        time: int,
        frame: int | None,
        row: Connection,
    ) -> None:
        """Record an event (``nf_conntrack_event``)."""
        if self._keep_events:
            self._events.append(Event(kind, time, frame, row))
        if kind == "new":
            self.protocols[row.protocol] = self.protocols.get(row.protocol, 0) + 1
        elif kind == "destroy":
            if self._keep_ended:
                self._ended.append(row)
            self.ends[row.end] = self.ends.get(row.end, 0) + 1
            self.count("delete")

    def take_events(self) -> list[Event]:
        """Return the events since the last call."""
        events, self._events = self._events, []
        return events

    def take_ended(self) -> list[Connection]:
        """Return the connections that ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def check(self, *, made: int, live: int) -> None:
        """Assert the invariant, for so many connections made and in the table."""
        counters = self.counters
        assert counters["new"] == counters["insert"] == made == live + counters["delete"]
        fragments = self.classes.get("held", 0) + self.classes.get("dropped", 0)
        assert sum(self.classes.values()) == counters["packets"] + fragments
        assert counters["invalid"] == self.classes.get("invalid", 0)
        assert counters["ignore"] == self.classes.get("untracked", 0)
