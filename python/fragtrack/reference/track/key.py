"""Which connection a packet belongs to: tuples, their inverse, and the bucket of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fragtrack.reference.siphash import siphash13
from fragtrack.reference.track.finding import Finding, TrackReason

if TYPE_CHECKING:
    from fragtrack.reference.track.packet import Packet

ICMP, TCP, UDP, GRE, ICMPV6, SCTP, UDPLITE = 1, 6, 17, 47, 58, 132, 136

HEADERS: Final = {TCP: 20, UDP: 8, UDPLITE: 8, SCTP: 12}
"""Protocols with ports, and the bytes of their fixed headers."""

ANSWERS: Final = {
    ICMP: {8: 0, 13: 14, 15: 16, 17: 18},
    ICMPV6: {128: 129, 139: 140},
}
"""ICMP queries and the types that answer them (``invmap``)."""
REQUESTS: Final = {
    protocol: {answer: request for request, answer in pairs.items()}
    for protocol, pairs in ANSWERS.items()
}

LEAST_BUCKETS: Final = 1024
MASK64: Final = (1 << 64) - 1
MASK32: Final = (1 << 32) - 1


class Endpoint(NamedTuple):
    """One end: an address, and a port or what stands for it (GRE key, ICMP id, ICMP type and code).

    Endpoints are ordered by address, then port.
    """

    address: int
    port: int


class Tuple(NamedTuple):
    """One direction of a connection (``struct nf_conntrack_tuple``).

    For an ICMP query or answer the source port is the identifier, the destination port holds type
    (upper byte) and code.
    """

    zone: int
    family: int
    protocol: int
    src: Endpoint
    dst: Endpoint

    @property
    def icmp(self) -> tuple[int, int, int] | None:
        """Type, code and identifier, for ICMP."""
        if self.protocol not in ANSWERS:
            return None
        return self.dst.port >> 8, self.dst.port & 0xFF, self.src.port


class Key(NamedTuple):
    """A connection, whoever sent the packet: two tuples with the same key are its directions."""

    zone: int
    family: int
    protocol: int
    lower: Endpoint
    upper: Endpoint


def inverse(given: Tuple) -> Tuple | None:
    """Return the tuple of the answer; None for an ICMP type without (``nf_ct_invert_tuple``)."""
    icmp = given.icmp
    if icmp is None:
        return given._replace(src=given.dst, dst=given.src)
    kind, code, ident = icmp
    pairs = ANSWERS[given.protocol] | REQUESTS[given.protocol]
    if kind not in pairs:
        return None
    src = Endpoint(given.dst.address, ident)
    return given._replace(src=src, dst=Endpoint(given.src.address, pairs[kind] << 8 | code))


def key_of(given: Tuple) -> Key:
    """Return what both directions have in common.

    Endpoints in their order; for ICMP who asks comes first.
    """
    if given.icmp is None:
        ends = sorted((given.src, given.dst))
    else:
        answered = given.icmp[0] in REQUESTS[given.protocol]
        asking = inverse(given) if answered else given
        assert asking is not None  # an answer has a request
        ends = [asking.src, asking.dst]
    return Key(given.zone, given.family, given.protocol, *ends)


def tuple_of(packet: Packet, zone: int) -> Tuple | Finding:
    """Return the tuple of a packet (``nf_ct_get_tuple``), or why there is none."""
    transport = packet.transport
    ports = (0, 0)
    if packet.protocol in HEADERS:
        if len(transport) < 4:
            return Finding(TrackReason.short, len(transport), HEADERS[packet.protocol])
        ports = int.from_bytes(transport[:2], "big"), int.from_bytes(transport[2:4], "big")
    elif packet.protocol in ANSWERS:
        if len(transport) < 8:
            return Finding(TrackReason.short, len(transport), 8)
        ports = int.from_bytes(transport[4:6], "big"), int.from_bytes(transport[:2], "big")
    elif packet.protocol == GRE:
        call = _call(transport)
        if isinstance(call, Finding):
            return call
        ports = 0, call
    src, dst = Endpoint(packet.src, ports[0]), Endpoint(packet.dst, ports[1])
    return Tuple(zone, packet.family, packet.protocol, src, dst)


def _call(header: bytes) -> int | Finding:
    """Return the call id of PPTP (GRE version 1), 0 for other versions (``gre_pkt_to_tuple``).

    A header too short to tell counts as another version.
    """
    if len(header) < 8 or header[1] & 7 != 1:
        return 0
    protocol = int.from_bytes(header[2:4], "big")
    if protocol != 0x880B:  # PPP
        return Finding(TrackReason.gre, protocol)
    return int.from_bytes(header[6:8], "big")


class Hasher:
    """The hash that spreads connections over buckets.

    Multilinear (Lemire and Kaser 2014): a sum of 32-bit words, each times a secret 64-bit number
    of its own, behind one more of them; the upper half is the hash.

    Parameters
    ----------
    key : int
        128 bits; SipHash draws the secret numbers out of it.
    """

    __slots__ = ("_secret",)

    def __init__(self, key: int) -> None:
        self._secret = tuple(siphash13(key, [number]) for number in range(13))

    def hash(self, key: Key) -> int:
        """Return the 32-bit hash of a key."""
        total = self._secret[0]
        for at, word in enumerate(_words(key)):
            total += self._secret[2 * at + 1] * (word & MASK32)
            total += self._secret[2 * at + 2] * (word >> 32)
        return (total & MASK64) >> 32


def _words(key: Key) -> list[int]:
    rest = key.lower.port << 48 | key.upper.port << 32 | key.protocol
    lower, upper = key.lower.address, key.upper.address
    if key.family == 4:
        return [lower << 32 | upper, rest, key.zone]
    return [lower >> 64, lower & MASK64, upper >> 64, upper & MASK64, rest, key.zone]


def bucket_bits(most: int) -> int:
    """Return the binary logarithm of the number of buckets for so many connections."""
    return (max(LEAST_BUCKETS, most) - 1).bit_length()
