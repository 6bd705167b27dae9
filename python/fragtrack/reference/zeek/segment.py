"""What the Zeek view needs of a packet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

ICMP: Final = 1
TCP: Final = 6
UDP: Final = 17
ICMPV6: Final = 58

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10


@dataclass(frozen=True, slots=True)
class Segment:
    """A whole packet: one that came in fragments is seen once, when it is complete.

    Attributes
    ----------
    version : int
        4 or 6.
    src, dst : int
        Addresses.
    protocol : int
        IP protocol number.
    length : int
        What the IP header claims: IPv4 total length, IPv6 payload length and 40. Of a reassembled
        datagram, that of the whole.
    sport, dport : int
        Ports of TCP and UDP; type and code of ICMP; else 0.
    payload : int
        Bytes that the lengths in the headers claim, behind the TCP header with its options, behind
        the 8 bytes of the UDP header (by the length in that header), behind the first 8 bytes of
        the ICMP message; else 0.
    flags, seq, ack, window : int
        TCP only: the byte of flags from FIN (1) to CWR (128); numbers; window as it stands there.
    whole : bool
        TCP only: whether all of `payload` was captured. Where it was not, Zeek sees a gap.
    bad_checksum : bool
        Whether a checksum of TCP, UDP or ICMP is known to be wrong.
    zone : int
        Below 2**64; packets of different zones never meet. Zeek has no zones: 0 for all.
    """

    version: int
    src: int
    dst: int
    protocol: int
    length: int
    sport: int = 0
    dport: int = 0
    payload: int = 0
    flags: int = 0
    seq: int = 0
    ack: int = 0
    window: int = 0
    whole: bool = True
    bad_checksum: bool = False
    zone: int = 0


def read(
    version: int,
    src: int,
    dst: int,
    protocol: int,
    *,
    length: int,
    size: int,
    transport: bytes,
    bad_checksum: bool = False,
    zone: int = 0,
) -> Segment | None:
    """Read the transport header of a packet.

    Parameters
    ----------
    version, src, dst, protocol, length, bad_checksum, zone
        As in `Segment`.
    size : int
        Bytes behind the IP header and its extensions, as claimed.
    transport : bytes
        Those that were captured.

    Returns
    -------
    Segment or None
        None if the header does not fit in the packet, or was not captured. (Zeek opens a
        connection without packets for some of these, and complains in its weird.log.)
    """
    data = transport[:size]
    smallest = {TCP: 20, UDP: 8, ICMP: 8, ICMPV6: 8}.get(protocol, 0)
    if len(data) < smallest:
        return None
    segment = partial(
        Segment, version, src, dst, protocol, length, bad_checksum=bad_checksum, zone=zone
    )
    if protocol == TCP:
        header = (data[12] >> 4) * 4
        if header < 20 or header > len(data):
            return None
        return segment(
            sport=_number(data, 0, 2),
            dport=_number(data, 2, 2),
            payload=size - header,
            flags=data[13],
            seq=_number(data, 4, 4),
            ack=_number(data, 8, 4),
            window=_number(data, 14, 2),
            whole=len(data) == size,
        )
    if protocol == UDP:
        payload = max(0, _number(data, 4, 2) - 8)
        return segment(sport=_number(data, 0, 2), dport=_number(data, 2, 2), payload=payload)
    if protocol in {ICMP, ICMPV6}:
        return segment(sport=data[0], dport=data[1], payload=size - 8)
    return segment()


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")
