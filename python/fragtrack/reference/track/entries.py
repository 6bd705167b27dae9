"""Connections over time: the clock, look-ups, and every way to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fragtrack.reference.track.finding import Finding, TrackReason
from fragtrack.reference.track.flow import SECOND, Flow
from fragtrack.reference.track.flows import CHAIN, Flows
from fragtrack.reference.track.key import key_of

if TYPE_CHECKING:
    from typing import Literal

    from fragtrack.reference.track.finding import Way
    from fragtrack.reference.track.journal import Journal
    from fragtrack.reference.track.key import Tuple
    from fragtrack.reference.track.packet import Packet
    from fragtrack.track_config import TrackConfig
    from fragtrack.verdicts import Connection, End

LATEST = (1 << 63) - 1 - ((1 << 31) - 1) * SECOND
"""Where the clock stops, ns (year 2194), so that every deadline fits 64 bits."""


class Cause(NamedTuple):
    """The packet that makes something happen: its time stamp (ns) and number."""

    time: int
    number: int


class Entries:
    """The table, its clock and its books.

    Parameters
    ----------
    config : TrackConfig
    vlans : bool
        Rows show zones as VLAN tags.

    Notes
    -----
    Invariant: that of the table and of the journal; there are at most `max` connections; the clock
    does not run backward.
    """

    def __init__(self, config: TrackConfig, journal: Journal, *, vlans: bool) -> None:
        self.flows = Flows(config)
        self.journal = journal
        self._most = config.max
        self._vlans = vlans
        self._now: int | None = None
        self._squeeze = False

    @property
    def now(self) -> int:
        """The clock: the highest time seen, ns."""
        assert self._now is not None  # every packet sets it first
        return self._now

    # -- time ----------------------------------------------------------------

    def pass_time(self, time: int) -> None:
        """Move the clock; the first second entered after another one sweeps the table."""
        time = min(time, LATEST)
        if self._now is None:
            self._now = time
        elif time > self._now:
            later = time // SECOND > self._now // SECOND
            self._now = time
            if later:
                self.sweep()

    def sweep(self) -> None:
        """End what has run out; if the table was full, also what may go (``gc_worker``)."""
        for flow in self.flows.expired(self.now):
            self._expire(flow)
        if not self._squeeze:
            return
        self._squeeze = False
        for flow in [flow for flow in self.flows if flow.may_go]:
            if len(self.flows) * 100 <= self._most * 95:
                break
            self._give_way(flow, None)

    # -- look-up and insertion -----------------------------------------------

    def look_up(self, given: Tuple) -> tuple[Flow | None, tuple[str, ...]]:
        """Find a connection that is not over; one that is ends now (``nf_ct_gc_expired``).

        Returns
        -------
        flow : Flow or None
        events : tuple of str
            What that caused.
        """
        flow = self.flows.find(key_of(given))
        if flow is not None and flow.deadline <= self.now:
            self._expire(flow)
            return None, ("destroy",)
        return flow, ()

    def make(self, given: Tuple, cause: Cause) -> Flow | Finding:
        """Make a connection that is not in the table yet (``__nf_conntrack_alloc``).

        A full table drops something near its bucket, or is to be squeezed, and refuses.
        """
        bucket = self.flows.bucket_of(key_of(given))
        if len(self.flows) >= self._most and not self._drop_early(bucket, cause):
            self.journal.count("drop")
            self._squeeze = True
            return Finding(TrackReason.table_full, len(self.flows), self._most)
        return Flow(given, bucket, self.now, cause.time, cause.time)

    def confirm(self, flow: Flow, cause: Cause) -> Finding | None:
        """Put a connection in (``__nf_conntrack_confirm``), or say why it does not fit."""
        if not self.flows.has_room(flow.bucket):
            self.journal.count("insert_failed", "drop")
            return Finding(TrackReason.chain, CHAIN, CHAIN)
        self.flows.insert(flow)
        self.journal.count("new", "insert")
        self.announce("new", flow, cause)
        return None

    def refresh(self, flow: Flow, way: Way, packet: Packet, timeout: int) -> None:
        """Count a packet and move the deadline (``nf_ct_refresh_acct``)."""
        flow.count(way, packet.length)
        flow.deadline = self.now + timeout
        if flow.id:
            self.flows.refreshed(flow)

    # -- the end -------------------------------------------------------------

    def end(self, flow: Flow, end: End, cause: Cause) -> None:
        """End a connection because of a packet of it."""
        self.flows.remove(flow)
        row = flow.row(end, None, vlans=self._vlans)
        self.journal.announce("destroy", cause.time, cause.number, row)

    def _expire(self, flow: Flow) -> None:
        """End a connection at its deadline."""
        self.flows.remove(flow)
        row = flow.row(flow.end(ran_out=True), None, vlans=self._vlans)
        self.journal.announce("destroy", flow.deadline, None, row)

    def _drop_early(self, bucket: int, cause: Cause) -> bool:
        """Make room in the first bucket near that has something to drop (``early_drop``)."""
        for held in self.flows.near(bucket):
            for flow in held:
                if flow.deadline <= self.now:
                    self._expire(flow)
            victims = [flow for flow in held if flow.id in self.flows.by_id and not flow.assured]
            for flow in victims:
                self._give_way(flow, cause.number)
            if victims:
                return True
        return False

    def _give_way(self, flow: Flow, number: int | None) -> None:
        """End a connection for others."""
        self.journal.count("early_drop")
        self.flows.remove(flow)
        row = flow.row("early_drop", None, vlans=self._vlans)
        self.journal.announce("destroy", self.now, number, row)

    # -- what is told --------------------------------------------------------

    def row(self, flow: Flow) -> Connection:
        """Describe a connection in the table."""
        return flow.row(flow.end(ran_out=False), flow.left(self.now), vlans=self._vlans)

    def announce(self, kind: Literal["new", "update"], flow: Flow, cause: Cause) -> None:
        """Announce what happened to a connection in the table."""
        self.journal.announce(kind, cause.time, cause.number, self.row(flow))

    def check(self) -> None:
        """Assert the invariant."""
        self.flows.check()
        self.journal.check(made=self.flows.made, live=len(self.flows))
        assert len(self.flows) <= self._most
