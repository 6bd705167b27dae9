"""Connection tracking: packets in, verdicts out.

The order of things is that of ``nf_conntrack_in``, ``resolve_normal_ct`` and
``nf_conntrack_confirm``; every packet counts as accepted by whatever rules there are.

The clock is the highest time seen. A connection whose deadline it has reached is found no more: a
look-up that meets it ends it first. And whenever the clock enters a later second, all of them end,
before the packet that brought the second is looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fragtrack.reference.reassembler import DOMAIN_BITS, Reassembler, is_fragment
from fragtrack.reference.track import icmp, protocols
from fragtrack.reference.track.entries import Cause, Entries
from fragtrack.reference.track.finding import Finding, TrackReason, Way
from fragtrack.reference.track.journal import Journal
from fragtrack.reference.track.key import ANSWERS, tuple_of
from fragtrack.reference.track.packet import Packet, decode
from fragtrack.reference.track.table import Connections
from fragtrack.verdicts import DIRECTIONS, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from fragtrack.config import ReassemblyConfig
    from fragtrack.events import GivenUp, Outcome
    from fragtrack.reference.track.finding import Handled
    from fragtrack.reference.track.flow import Flow
    from fragtrack.reference.track.key import Tuple
    from fragtrack.track_config import TrackConfig
    from fragtrack.verdicts import CtClass, Event

    Watch = Callable[[bytes, Verdict, int], None]


class Arrival(NamedTuple):
    """A whole packet on its way.

    Attributes
    ----------
    packet, given
        The packet and its tuple.
    cause
        Its time stamp and number.
    fragmented
        Whether it came in fragments.
    """

    packet: Packet
    given: Tuple
    cause: Cause
    fragmented: bool


class Tracker:
    """Follows connections as Linux does.

    Parameters
    ----------
    config : TrackConfig
        A missing `hash_key` counts as 0: there is no randomness in here.
    reassembly : ReassemblyConfig
        How fragments are put together, in front of tracking; its `path` is always ``netfilter``.
    vlans : bool
        Zones are VLAN tags of frames, and rows show them so.
    watch : callable or None
        Called with the bytes of each whole packet, its verdict and its time stamp (ns).
    events, ended : bool
        Whether they are kept for `take_events` and `take_ended`.

    Notes
    -----
    Invariant: that of the reassembler and of the entries.
    """

    def __init__(
        self,
        config: TrackConfig,
        reassembly: ReassemblyConfig,
        *,
        vlans: bool = False,
        watch: Watch | None = None,
        events: bool = True,
        ended: bool = True,
    ) -> None:
        self._config = config
        self._watch = watch
        self._verify = reassembly.verify_checksum
        self._reassembler = Reassembler(replace(reassembly, path="netfilter"))
        self._entries = Entries(config, Journal(events=events, ended=ended), vlans=vlans)
        self._pushed = 0
        self._fragments = {"seen": 0, "complete": 0, "incomplete": 0}

    # -- what users call -----------------------------------------------------

    def push(self, packet: bytes | bytearray | memoryview, time_ns: int, zone: int = 0) -> Verdict:
        """Take one packet, from its IP header on.

        Parameters
        ----------
        packet : bytes-like
            May be followed by link padding.
        time_ns : int
            When it was captured, nanoseconds.
        zone : int
            Key beyond IP, below 2**56; packets of different zones never meet.

        Raises
        ------
        ValueError
            If the zone is out of range.
        """
        if not 0 <= zone < 1 << DOMAIN_BITS:
            raise ValueError(f"zone: {zone} is not below 2**{DOMAIN_BITS}")
        self._pushed += 1
        data = bytes(packet)
        return self.handle(data, Cause(time_ns, self._pushed), zone, cost=len(data))

    def handle(self, packet: bytes, cause: Cause, zone: int = 0, *, cost: int) -> Verdict:
        """Take one packet of a capture.

        Parameters
        ----------
        packet, zone
            As in :meth:`push`.
        cause : Cause
            Time stamp and frame number.
        cost : int
            Captured bytes of the whole frame, for the memory model of reassembly.
        """
        self._entries.pass_time(cause.time)
        verdict = self._receive(packet, cause, zone, cost)
        self._entries.journal.verdict(verdict)
        return verdict

    def pass_by(self, time_ns: int) -> None:
        """Take the time of a frame that holds no packet."""
        self._given_up(self._reassembler.advance(time_ns))
        self._entries.pass_time(time_ns)

    def advance(self, time_ns: int) -> None:
        """Let time pass; what has run out by then ends."""
        self.pass_by(time_ns)
        self._entries.sweep()

    def __len__(self) -> int:
        """Return the number of connections in the table."""
        return len(self._entries.flows)

    def flush(self) -> None:
        """End the input: open fragments are given up, connections stay as they are."""
        self._given_up(self._reassembler.flush())

    def take_events(self) -> list[Event]:
        """Return the events since the last call, in order."""
        return self._entries.journal.take_events()

    def take_ended(self) -> Connections:
        """Return the connections that ended since the last call, in order of their ending."""
        return Connections(self._entries.journal.take_ended())

    def connections(self) -> Connections:
        """Return the connections in the table, in the order of creation."""
        return Connections([self._entries.row(flow) for flow in self._entries.flows])

    def page(self, cursor: int, limit: int) -> tuple[Connections, int | None]:
        """Return some of the connections in the table, in no order that can be relied on.

        Parameters
        ----------
        cursor : int
            0, or where the page before said to go on.
        limit : int
            How many at most; at least 1.

        Returns
        -------
        connections : Connections
        next : int or None
            Where to go on; None if that was all. Between two pages the tracker may be used: a
            connection that is there all the time comes exactly once.
        """
        behind = [flow for flow in self._entries.flows if flow.id > cursor]
        page = behind[: max(1, limit)]
        rows = Connections([self._entries.row(flow) for flow in page])
        return rows, page[-1].id if len(page) < len(behind) else None

    def inspect(self, connection: int) -> dict[str, object] | None:
        """Show the private TCP state of a connection; None if it is gone, or not TCP.

        Returns
        -------
        dict or None
            ``win``: for each direction end, maxend, maxwin, maxack, scale and flags of its sender;
            ``retrans``: repetitions counted; ``last``: class and direction of the last segment.
        """
        flow = self._entries.flows.by_id.get(connection)
        return None if flow is None or flow.tcp is None else flow.tcp.inspect()

    @property
    def made(self) -> int:
        """Connections made so far."""
        return self._entries.flows.made

    @property
    def counters(self) -> dict[str, int]:
        """What the kernel would count; `entries` are the connections in the table."""
        return {"entries": len(self), **self._entries.journal.counters}

    @property
    def reasons(self) -> dict[str, int]:
        """Packets by reason; reasons that did not occur are left out."""
        reasons = self._entries.journal.reasons
        return {reason.name: count for reason, count in reasons.items() if count}

    @property
    def classes(self) -> dict[str, int]:
        """Packets by class, and fragments ``held`` or ``dropped``; classes that occurred."""
        return dict(self._entries.journal.classes)

    @property
    def protocols(self) -> dict[int, int]:
        """Connections made, by protocol; those that occurred."""
        return dict(sorted(self._entries.journal.protocols.items()))

    @property
    def ends(self) -> dict[str, int]:
        """Connections that ended, by how; those that occurred."""
        return dict(self._entries.journal.ends)

    @property
    def fragments(self) -> dict[str, int]:
        """Fragments `seen`; datagrams that became `complete`, and that stayed `incomplete`."""
        return dict(self._fragments)

    @property
    def orphans(self) -> dict[str, int]:
        """Fragments that did not become part of a datagram, by `fragtrack.Reason`."""
        return self._reassembler.reasons

    def check(self) -> None:
        """Assert the invariant of everything, from scratch."""
        self._reassembler.check()
        self._entries.check()

    # -- fragments -----------------------------------------------------------

    def _receive(self, packet: bytes, cause: Cause, zone: int, cost: int) -> Verdict:
        """Put fragments together (``ipv4_conntrack_defrag``), and track what is whole."""
        if not is_fragment(packet):
            self._given_up(self._reassembler.advance(cause.time))
            return self._read(packet, cause, zone)
        outcome = self._reassembler.handle(packet, cause.time, zone, number=cause.number, cost=cost)
        self._given_up(outcome.given_up)
        if outcome.kind == "whole":
            return self._read(packet, cause, zone)
        self._fragments["seen"] += 1
        return self._reassembled(outcome, cause, zone)

    def _reassembled(self, outcome: Outcome, cause: Cause, zone: int) -> Verdict:
        if outcome.packet is not None:
            self._fragments["complete"] += 1
            return self._read(outcome.packet, cause, zone, fragmented=True)
        if outcome.kind == "held":
            return Verdict("held")
        return Verdict("dropped", reason=outcome.reason)

    def _given_up(self, given_up: list[GivenUp] | tuple[GivenUp, ...]) -> None:
        self._fragments["incomplete"] += len(given_up)

    # -- one packet ----------------------------------------------------------

    def _read(self, data: bytes, cause: Cause, zone: int, *, fragmented: bool = False) -> Verdict:
        """Read a packet, track it, and show it to whoever watches."""
        verdict = self._track_bytes(data, cause, zone, fragmented=fragmented)
        if self._watch is not None:
            self._watch(data, verdict, cause.time)
        return verdict

    def _track_bytes(self, data: bytes, cause: Cause, zone: int, *, fragmented: bool) -> Verdict:
        """Read a packet, and track it (``nf_conntrack_in``)."""
        packet = decode(data, verify=self._verify and not fragmented)
        if isinstance(packet, Finding):
            return _alone(packet)
        if packet.protocol in ANSWERS:
            found = icmp.examine(packet, self._config, zone)
            if isinstance(found, icmp.Error):
                return self._relate(found, packet)
            if found is not None:
                return _alone(found)
        given = tuple_of(packet, zone)
        if isinstance(given, Finding):
            return _alone(given)
        return self._track(Arrival(packet, given, cause, fragmented))

    def _relate(self, error: icmp.Error, packet: Packet) -> Verdict:
        """Find the connection of an ICMP error (``nf_conntrack_inet_error``)."""
        flow, events = self._entries.look_up(error.about)
        if flow is None:
            self._entries.journal.count("icmp_error")
            return _alone(Finding(TrackReason.inner_unknown), events)
        if error.about.dst.address != packet.dst:
            self._entries.journal.count("icmp_error")
            return self._of("invalid", flow, None, Finding(TrackReason.outer_address))
        return self._of("related", flow, flow.way(error.about))

    def _track(self, arrival: Arrival) -> Verdict:
        """Find the connection of a packet, or begin one (``resolve_normal_ct``)."""
        entries = self._entries
        flow, events = entries.look_up(arrival.given)
        if flow is None:
            return self._begin(arrival, events)
        entries.journal.count("found")
        way = flow.way(arrival.given)
        new = way is Way.ORIGINAL and not flow.seen_reply
        flow.time_last = max(flow.time_last, arrival.cause.time)
        flow.fragments += arrival.fragmented
        handled = protocols.handle(flow, way, arrival.packet, self._config, entries.now)
        if handled.effect == "invalid":
            flow.invalid += 1
            flow.unannounced |= handled.changed
            entries.flows.refreshed(flow)  # the second one may have cut its time
            return self._of("invalid", flow, None, handled.finding)
        if handled.effect == "repeat":
            return self._begin_again(arrival, flow, handled)
        verdict = self._settle(arrival, flow, way, handled)
        verdict.ct_class = "new" if new else "established"
        return verdict

    def _settle(self, arrival: Arrival, flow: Flow, way: Way, handled: Handled) -> Verdict:
        """Do what the protocol decided, and note that the other side answered."""
        entries = self._entries
        if handled.effect == "kill":
            flow.count(way, arrival.packet.length)
            entries.end(flow, "reset", arrival.cause)
            verdict = _alone(handled.finding, ("destroy",))
            verdict.direction, verdict.connection = DIRECTIONS[way], flow.id
            return verdict
        if handled.effect == "accept":
            entries.refresh(flow, way, arrival.packet, handled.timeout)
        changed, flow.unannounced = handled.changed or flow.unannounced, False
        if way is Way.REPLY and not flow.seen_reply:
            flow.seen_reply = changed = True
        if changed:
            entries.announce("update", flow, arrival.cause)
        events = ("update",) if changed else ()
        return self._of("established", flow, way, handled.finding, events)

    def _begin_again(self, arrival: Arrival, flow: Flow, handled: Handled) -> Verdict:
        """End a connection, and begin another with the same packet (``NF_REPEAT``)."""
        end: Literal["reset", "closed"] = "reset" if flow.state == "CLOSE" else "closed"
        self._entries.end(flow, end, arrival.cause)
        verdict = self._begin(arrival, ("destroy",))
        if verdict.reason is None and handled.finding is not None:
            verdict.reason, verdict.bound = handled.finding.reason.name, handled.finding.bound
        return verdict

    def _begin(self, arrival: Arrival, events: tuple[str, ...]) -> Verdict:
        """Begin a connection (``init_conntrack``)."""
        entries, packet = self._entries, arrival.packet
        flow = entries.make(arrival.given, arrival.cause)
        if isinstance(flow, Finding):
            return _alone(flow, events)
        handled = protocols.handle(flow, Way.ORIGINAL, packet, self._config, entries.now)
        if handled.effect == "invalid":
            return _alone(handled.finding, events)
        flow.fragments += arrival.fragmented
        entries.refresh(flow, Way.ORIGINAL, packet, handled.timeout)
        refused = entries.confirm(flow, arrival.cause)
        if refused:
            return _alone(refused, events)
        return self._of("new", flow, Way.ORIGINAL, handled.finding, (*events, "new"))

    def _of(
        self,
        ct_class: CtClass,
        flow: Flow,
        way: Way | None,
        finding: Finding | None = None,
        events: tuple[str, ...] = (),
    ) -> Verdict:
        """Tell of a packet of a connection that is in the table."""
        verdict = _alone(finding, events)
        verdict.ct_class = ct_class
        verdict.direction = None if way is None else DIRECTIONS[way]
        verdict.connection, verdict.state = flow.id, flow.state
        verdict.timeout = flow.left(self._entries.now)
        verdict.assured, verdict.seen_reply = flow.assured, flow.seen_reply
        return verdict


def _alone(finding: Finding | None, events: tuple[str, ...] = ()) -> Verdict:
    """Tell of a packet without a connection: it is invalid, or need not have one."""
    reason, got, bound = finding or (None, None, None)
    ct_class: CtClass = "untracked" if reason is TrackReason.discovery else "invalid"
    name = None if reason is None else reason.name
    return Verdict(ct_class, reason=name, got=got, bound=bound, events=events)
