"""Captures in, connections and verdicts out.

Every packet moves the clock to its time first, whatever it holds. A frame that holds no IP has no
verdict. Frame numbers count the packets of an input from 1; connections and fragments live on from
one input to the next.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fragtrack.reference.intake import Intake, held_cost
from fragtrack.reference.link import NotIpError, decode
from fragtrack.reference.record import NO_PACKET, Record
from fragtrack.reference.track.entries import Cause
from fragtrack.reference.track.finding import Finding
from fragtrack.reference.track.packet import decode as read_packet
from fragtrack.reference.track.table import Connections, VerdictRow, Verdicts
from fragtrack.reference.track.tracker import Tracker
from fragtrack.reference.zeek import ZeekFlows
from fragtrack.reference.zeek.segment import read as read_segment
from fragtrack.zeek import ZeekConfig

if TYPE_CHECKING:
    from fragtrack.config import ReassemblyConfig
    from fragtrack.reference.link import Decoded
    from fragtrack.track_config import TrackConfig
    from fragtrack.verdicts import Event, Verdict
    from fragtrack.zeek import ZeekRow

__all__ = ["Follower"]

SUMMED = frozenset((1, 6, 17, 58))  # ICMP, TCP, UDP, ICMPv6: Zeek looks at their checksums


class Follower(Intake):
    """Follows the connections of captures.

    Parameters
    ----------
    config
        How to follow them.
    reassembly
        How to put fragments together.
    verdicts
        Whether packets are told of, see `take_verdicts`.
    events
        Whether events are told of, see `take_events`.
    zeek
        Whether connections are also followed as Zeek sees them, see `take_zeek`.

    Notes
    -----
    For each input: `begin`, `feed` until all is consumed, `end`. Then `finish`.
    """

    def __init__(
        self,
        config: TrackConfig,
        reassembly: ReassemblyConfig,
        *,
        verdicts: bool,
        events: bool,
        zeek: bool = False,
    ) -> None:
        super().__init__()
        self._zeek = ZeekFlows(ZeekConfig(max=config.max)) if zeek else None
        watch = self._see if zeek else None
        self._tracker = Tracker(config, reassembly, vlans=True, watch=watch)
        self._by_vlan = config.zones == "vlan"
        self._verdicts: list[VerdictRow] | None = [] if verdicts else None
        self._events: list[Event] | None = [] if events else None
        self._finished = False
        self._standing: Counter[str] = Counter()
        self._ip = 0
        self._fragments = {4: 0, 6: 0}

    # -------------------------------------------------------------------------------- end

    def finish(self) -> None:
        """End everything: open fragments are given up, connections in the table become rows."""
        self._tracker.flush()
        if self._zeek is not None:
            self._zeek.finish()
        self._finished = True
        self._standing = Counter(row.end for row in self._tracker.connections().rows())

    # ----------------------------------------------------------------------------- results

    def take_connections(self) -> Connections:
        """Give the connections that ended since the last call, in the order of their ending.

        After `finish` also those still in the table, once, in the order of creation.
        """
        rows = self._tracker.take_ended().rows()
        if self._finished:
            self._finished = False
            rows += self._tracker.connections().rows()
        return Connections(rows)

    def take_verdicts(self) -> Verdicts:
        """Give the verdicts since the last call, one for each frame that holds IP."""
        rows = self._verdicts or []
        if self._verdicts is not None:
            self._verdicts = []
        return Verdicts(rows)

    def take_events(self) -> list[Event]:
        """Give the events since the last call, in order."""
        events = self._events or []
        if self._events is not None:
            self._events = []
        return events

    def take_zeek(self) -> list[ZeekRow]:
        """Give the connections as Zeek sees them, that ended since the last call."""
        return [] if self._zeek is None else self._zeek.take()

    def summary(self) -> dict[str, object]:
        """Give counts: of packets, bytes, fragments, datagrams, connections, classes, reasons."""
        fragments = self._tracker.fragments
        datagrams = {name: fragments[name] for name in ("complete", "incomplete")}
        return {
            "packets": self._packets,
            "bytes": self._bytes,
            "ip": self._ip,
            "fragments": {"ipv4": self._fragments[4], "ipv6": self._fragments[6]},
            "datagrams": datagrams,
            "orphans": self._tracker.orphans,
            "connections": self._tracker.made,
            "open": len(self._tracker),
            "ends": dict(self._standing + Counter(self._tracker.ends)),
            "protocols": self._tracker.protocols,
            "classes": self._tracker.classes,
            "reasons": self._tracker.reasons,
            "counters": self._tracker.counters,
        }

    def check(self) -> None:
        """Assert the invariant of the tracker, from scratch."""
        self._tracker.check()

    # ---------------------------------------------------------------------------- one record

    def _take(self, record: Record) -> None:
        if record.link == NO_PACKET:
            return
        frame = record.frame
        try:
            place = decode(record.link, frame)
        except NotIpError:
            self._tracker.pass_by(record.time)
        else:
            self._packet(record, place, frame[place.offset :])
        events = self._tracker.take_events()
        if self._events is not None:
            self._events += events

    def _packet(self, record: Record, place: Decoded, packet: bytes) -> None:
        self._ip += 1
        before = self._tracker.fragments["seen"]
        verdict = self._tracker.handle(
            packet,
            Cause(record.time, self._number),
            place.domain if self._by_vlan else 0,
            cost=held_cost(record),
        )
        self._fragments[place.version] += self._tracker.fragments["seen"] - before
        if self._verdicts is not None:
            self._verdicts.append(_row(self._number, verdict))

    def _see(self, data: bytes, verdict: Verdict, time: int) -> None:
        """Show a whole packet to the other view."""
        packet = read_packet(data, verify=False)
        if self._zeek is None or isinstance(packet, Finding):
            return
        segment = read_segment(
            packet.family,
            packet.src,
            packet.dst,
            packet.protocol,
            length=packet.length,
            size=packet.size,
            transport=packet.transport,
            bad_checksum=verdict.reason == "checksum" and packet.protocol in SUMMED,
        )
        if segment is not None:
            self._zeek.see(segment, time)


def _row(number: int, verdict: Verdict) -> VerdictRow:
    return VerdictRow(
        number,
        verdict.connection,
        verdict.ct_class,
        verdict.direction,
        verdict.state,
        verdict.reason,
        verdict.got,
        verdict.bound,
    )
