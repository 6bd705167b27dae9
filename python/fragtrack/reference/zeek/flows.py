"""All flows that are open, and the rows of those that ended."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from fragtrack.reference.fragment import address_text
from fragtrack.reference.zeek.flow import PROTOCOLS, Flow, Key, Side, key
from fragtrack.reference.zeek.history import ORIG, RESP
from fragtrack.reference.zeek.segment import TCP, Segment
from fragtrack.reference.zeek.tcp import TcpFlow
from fragtrack.reference.zeek.uid import uid
from fragtrack.zeek import ZeekConfig, ZeekRow


class ZeekFlows:
    """Watches packets and tells connections, as Zeek does.

    Any packet opens a flow. Time is the highest time stamp so far; before a packet is looked at,
    all timers that are due by then act, in the order of their times (flows of one time: of their
    numbers).

    Parameters
    ----------
    config : ZeekConfig, optional
        Settings.

    Invariant: at most `max` flows; each flow is in the table under its key, in the order of their
    last packets, and has one live entry in the queue, not behind the first of its timers.
    """

    def __init__(self, config: ZeekConfig | None = None) -> None:
        self.config = config or ZeekConfig()
        self._flows: dict[Key, Flow] = {}
        self._due: dict[int, tuple[int, Flow]] = {}
        self._queue: list[tuple[int, int]] = []
        self._now: int | None = None
        self._ended: list[ZeekRow] = []
        self._counters = {"packets": 0, "opened": 0, "ended": 0, "evicted": 0}

    def see(self, packet: Segment, time_ns: int) -> None:
        """Take a packet with its time stamp, in nanoseconds."""
        self.advance(time_ns)
        self._counters["packets"] += 1
        name = key(packet)
        flow = self._flows.pop(name, None)
        if flow is not None and flow.reused(packet):
            self._tell(flow)
            flow = None
        if flow is None:
            flow = self._open(packet, time_ns)
        self._flows[name] = flow  # as the last one: the order is that of the last packets
        flow.deliver(packet, time_ns)
        self._plan(flow)

    def advance(self, time_ns: int) -> None:
        """Let time pass, without a packet. A step back in time leaves it where it is."""
        if self._now is None or time_ns > self._now:
            self._now = time_ns
        while self._queue and self._queue[0][0] <= self._now:
            due, number = heappop(self._queue)
            planned, flow = self._due.get(number, (None, None))
            if flow is not None and planned == due:
                self._fire(flow, due, self._now)

    def finish(self) -> None:
        """End all flows, in the order of their opening: the input is over."""
        for flow in sorted(self._flows.values(), key=lambda flow: flow.number):
            self._tell(flow)
        self._flows.clear()
        self._queue.clear()

    def take(self) -> list[ZeekRow]:
        """Give the flows that ended since the last call, in the order of ending."""
        ended, self._ended = self._ended, []
        return ended

    def __len__(self) -> int:
        return len(self._flows)

    @property
    def counters(self) -> dict[str, int]:
        """Packets seen; flows opened, ended, and, of those, ended early since there were too many.

        The names are ``packets``, ``opened``, ``ended`` and ``evicted``.
        """
        return dict(self._counters)

    # ------------------------------------------------------------------ flows

    def _open(self, packet: Segment, time: int) -> Flow:
        if len(self._flows) >= self.config.max:
            oldest = next(iter(self._flows))
            self._counters["evicted"] += 1
            self._tell(self._flows.pop(oldest))
        self._counters["opened"] += 1
        kind = TcpFlow if packet.protocol == TCP else Flow
        return kind(packet, self._counters["opened"], time, self.config)

    def _fire(self, flow: Flow, due: int, now: int) -> None:
        """Let the timers of a flow act that are due at a time; end it, or plan anew."""
        for timer in sorted(name for name, time in flow.timers.items() if time == due):
            if flow.fire(timer, now):
                del self._flows[flow.key]
                self._tell(flow)
                return
        del self._due[flow.number]
        self._plan(flow)

    def _plan(self, flow: Flow) -> None:
        """Put a flow in the queue for the first of its timers, unless it comes up before that."""
        due = min(flow.timers.values())
        planned = self._due.get(flow.number)
        if planned is None or due < planned[0]:
            self._due[flow.number] = (due, flow)
            heappush(self._queue, (due, flow.number))
        if len(self._queue) > 2 * len(self._flows) + 64:
            self._queue = [(due, number) for number, (due, _) in self._due.items()]
            heapify(self._queue)

    def _tell(self, flow: Flow) -> None:
        """Make the row of a flow that ended."""
        self._due.pop(flow.number, None)
        self._counters["ended"] += 1
        lasted = flow.last - flow.first
        self._ended.append(
            ZeekRow(
                ts=flow.first,
                uid=uid(flow, self.config.uid_key),
                orig_h=_text(flow, flow.orig),
                orig_p=flow.orig.port,
                resp_h=_text(flow, flow.resp),
                resp_p=flow.resp.port,
                proto=PROTOCOLS.get(flow.protocol, "unknown_transport"),
                duration=lasted or None,
                orig_bytes=flow.payload(ORIG) if lasted else None,
                resp_bytes=flow.payload(RESP) if lasted else None,
                conn_state=flow.state,
                missed_bytes=flow.missed,
                history=str(flow.history) or None,
                orig_pkts=flow.packets[ORIG],
                orig_ip_bytes=flow.octets[ORIG],
                resp_pkts=flow.packets[RESP],
                resp_ip_bytes=flow.octets[RESP],
                ip_proto=flow.protocol,
            )
        )

    def check(self) -> None:
        """Assert the invariants of all flows and of the queue."""
        assert len(self._flows) <= self.config.max
        assert set(self._due) == {flow.number for flow in self._flows.values()}
        entries = set(self._queue)
        for name, flow in self._flows.items():
            assert name == flow.key
            due, same = self._due[flow.number]
            assert same is flow
            assert due <= min(flow.timers.values())
            assert (due, flow.number) in entries
            flow.check()


def _text(flow: Flow, side: Side) -> str:
    return address_text(side.address.to_bytes(4 if flow.version == 4 else 16, "big"))
