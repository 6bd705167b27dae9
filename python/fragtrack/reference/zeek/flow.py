"""A flow: packets between two endpoints, counted by role, and the timers that end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fragtrack.reference.zeek.history import ORIG, RESP, History, Tally
from fragtrack.reference.zeek.segment import ICMP, ICMPV6, TCP, UDP, Segment

if TYPE_CHECKING:
    from fragtrack.zeek import ZeekConfig

INACTIVITY: Final = "inactivity"

COUNTERPART4: Final = {
    kind: other
    for pair in ((8, 0), (10, 9), (13, 14), (15, 16), (17, 18))
    for kind, other in (pair, pair[::-1])
}
"""ICMP types that belong together, both ways."""
COUNTERPART6: Final = {
    kind: other
    for pair in ((128, 129), (130, 131), (133, 134), (135, 136), (139, 140), (144, 145))
    for kind, other in (pair, pair[::-1])
}
"""ICMPv6 types that belong together, both ways."""
REPLIES4: Final = frozenset({0, 14, 16, 18})
"""ICMP types that nobody sends unasked."""
REPLIES6: Final = frozenset({129, 140, 145})
"""ICMPv6 types that nobody sends unasked."""
BROADCAST: Final = (4, 0xFFFF_FFFF)
"""IP version and address."""

PROTOCOLS: Final = {TCP: "tcp", UDP: "udp", ICMP: "icmp", ICMPV6: "icmp"}


class Side(NamedTuple):
    """Address, and port or what stands for it."""

    address: int
    port: int


class Key(NamedTuple):
    """What packets of one flow share. One-way ICMP messages never meet their reverse."""

    zone: int
    version: int
    protocol: int
    lower: Side
    upper: Side


def sides(packet: Segment) -> tuple[Side, Side, bool]:
    """Give source and destination with their ports, and whether nothing can answer."""
    if packet.protocol in {TCP, UDP}:
        ports, one_way = (packet.sport, packet.dport), False
    elif packet.protocol in {ICMP, ICMPV6}:
        table = COUNTERPART4 if packet.protocol == ICMP else COUNTERPART6
        other = table.get(packet.sport)
        one_way = other is None
        ports = (packet.sport, packet.dport if other is None else other)
    else:
        ports, one_way = (packet.protocol, packet.protocol), False
    return Side(packet.src, ports[0]), Side(packet.dst, ports[1]), one_way


def key(packet: Segment) -> Key:
    """Give the key of a packet."""
    source, destination, one_way = sides(packet)
    if not one_way and destination < source:
        source, destination = destination, source
    return Key(packet.zone, packet.version, packet.protocol, source, destination)


class Flow:
    """A flow of UDP, ICMP, or a protocol without ports.

    Attributes
    ----------
    number : int
        In the order of opening, from 1.
    first, last : int
        Times of the first packet, and of the last one that counts for the duration, ns.
    orig, resp : Side
        Originator and responder.
    packets, octets : list of int
        By role: packets, and their lengths by the IP header.
    sizes : list of (int or None)
        By role: bytes of payload; None before the first packet. Not for TCP.
    timers : dict
        When which timer is due.
    """

    def __init__(self, packet: Segment, number: int, time: int, config: ZeekConfig) -> None:
        self.config = config
        self.number = number
        self.key = key(packet)
        self.version = packet.version
        self.protocol = packet.protocol
        self.first = self.last = time
        source, destination, _ = sides(packet)
        self.opener = (source, destination)
        self.orig, self.resp = source, destination
        self.packets = [0, 0]
        self.octets = [0, 0]
        self.sizes: list[int | None] = [None, None]
        self.checksums = (Tally(), Tally())
        self.missed = 0
        self.history = History()
        self.inactivity = config.nanoseconds(_INACTIVITY.get(packet.protocol, _OTHER))
        self.timers = {INACTIVITY: time + self.inactivity}
        if self.starts_at_server(packet) and (packet.version, packet.dst) != BROADCAST:
            self.orig, self.resp = destination, source
            self.history.flip()

    def starts_at_server(self, packet: Segment) -> bool:
        """Say whether the first packet comes from what is likely the responder."""
        if packet.protocol == UDP:
            servers = self.config.udp_server_ports
            return packet.sport in servers and packet.dport not in servers
        if not self.config.icmp_by_type:
            return False
        replies = {ICMP: REPLIES4, ICMPV6: REPLIES6}.get(packet.protocol, frozenset())
        return packet.sport in replies

    def role(self, packet: Segment) -> int:
        """Give the role of the sender."""
        source, _, _ = sides(packet)
        return ORIG if source == self.orig else RESP

    def reused(self, packet: Segment) -> bool:
        """Say whether a packet starts another connection between the same endpoints."""
        del packet
        return False

    def deliver(self, packet: Segment, time: int) -> None:
        """Take a packet."""
        role = self.role(packet)
        bad = packet.bad_checksum and packet.protocol in PROTOCOLS
        if bad and packet.protocol == UDP and self.checksums[role].more():
            self.history.add(role, "C")
        if not bad or packet.protocol == UDP:
            self.count(role, packet)
        if bad:
            return
        self.last = max(self.last, time)
        if packet.protocol in PROTOCOLS:
            self.sizes[role] = (self.sizes[role] or 0) + packet.payload
        if packet.protocol == UDP:
            self.history.once(role, "D", "D")

    def count(self, role: int, packet: Segment) -> None:
        """Count a packet."""
        self.packets[role] += 1
        self.octets[role] += packet.length

    def fire(self, timer: str, now: int) -> bool:
        """Let a timer act that is due; say whether the flow ends."""
        del now
        due = self.timers.pop(timer)
        if self.last + self.inactivity <= due:
            return True
        self.timers[timer] = self.last + self.inactivity
        return False

    def payload(self, role: int) -> int:
        """Give the bytes of payload that a role sent."""
        return self.sizes[role] or 0

    @property
    def state(self) -> str:
        """The state as conn.log names it."""
        if self.protocol != UDP:
            return "OTH"
        orig, resp = (size is not None for size in self.sizes)
        if orig:
            return "SF" if resp else "S0"
        return "SHR" if resp else "OTH"

    def check(self) -> None:
        """Assert the invariants."""
        assert self.first <= self.last
        assert INACTIVITY in self.timers
        self.history.check()


_INACTIVITY: Final = {
    TCP: "udp_inactivity_timeout",  # until the handshake is over
    UDP: "udp_inactivity_timeout",
    ICMP: "icmp_inactivity_timeout",
    ICMPV6: "icmp_inactivity_timeout",
}
_OTHER: Final = "unknown_ip_inactivity_timeout"
