"""Which connection a packet is about: its tuple, as the kernel keys it."""

from __future__ import annotations

import struct
from typing import Any

Key = tuple[bytes, bytes, int, *tuple[int, ...]]
"""Source, destination, protocol; then two ports, or two GRE keys, or an ICMP identifier, type and
code, or nothing."""

TCP, UDP, GRE, SCTP, UDPLITE = 6, 17, 47, 132, 136
ICMP, ICMPV6 = 1, 58
REDIRECT = 137
ERRORS4 = frozenset({3, 4, 5, 11, 12})
PAIRS = {
    ICMP: {8: 0, 0: 8, 13: 14, 14: 13, 15: 16, 16: 15, 17: 18, 18: 17},
    ICMPV6: {128: 129, 129: 128, 139: 140, 140: 139},
}
FRAGMENT, AUTHENTICATION = 44, 51
EXTENSIONS = frozenset({0, 43, FRAGMENT, AUTHENTICATION, 60})


def key_of(packet: bytes, version: int | None = None) -> Key | None:
    """Give the tuple; of an ICMP error that of the packet it quotes; None if there is none.

    A quoted packet is read as one of the `version` that quotes it, whatever it says itself.
    """
    try:
        if version is None:
            version = packet[0] >> 4
            end = int.from_bytes(packet[2:4] if version == 4 else packet[4:6])
            packet = packet[: end if version == 4 else 40 + end]
        return _key4(packet) if version == 4 else _key6(packet)
    except (IndexError, struct.error):
        return None


def backwards(key: Key) -> Key:
    """Give the tuple of the answer."""
    src, dst, protocol, *rest = key
    if protocol in PAIRS:
        ident, kind, code = rest
        return (dst, src, protocol, ident, PAIRS[protocol].get(kind, kind), code)
    return (dst, src, protocol, *reversed(rest))


def shown(key: Key) -> list[str | int]:
    """Give a tuple as JSON can hold it."""
    src, dst, *rest = key
    return [src.hex(), dst.hex(), *rest]


def unshown(values: list[Any]) -> Key:
    """Take a tuple back."""
    src, dst, *rest = values
    return (bytes.fromhex(src), bytes.fromhex(dst), *rest)


def _key4(packet: bytes) -> Key | None:
    if len(packet) < 20 or int.from_bytes(packet[6:8]) & 0x1FFF:
        return None
    at = (packet[0] & 15) * 4
    if packet[9] == ICMP and packet[at] in ERRORS4:
        return key_of(packet[at + 8 :], 4)
    return _key(packet[12:16], packet[16:20], packet[9], packet[at:])


def _key6(packet: bytes) -> Key | None:
    if len(packet) < 40:
        return None
    protocol, at = packet[6], 40
    while protocol in EXTENSIONS:
        if protocol == FRAGMENT and int.from_bytes(packet[at + 2 : at + 4]) & 0xFFF8:
            return None
        length = (packet[at + 1] + 1) * 8
        if protocol == FRAGMENT:
            length = 8
        elif protocol == AUTHENTICATION:
            length = (packet[at + 1] + 2) * 4
        protocol, at = packet[at], at + length
    if protocol == ICMPV6 and packet[at] < 128:
        return key_of(packet[at + 8 :], 6)
    if protocol == ICMPV6 and packet[at] == REDIRECT:
        return key_of(packet[at + 48 :], 6)
    return _key(packet[8:24], packet[24:40], protocol, packet[at:])


def _key(src: bytes, dst: bytes, protocol: int, payload: bytes) -> Key | None:
    if protocol in {TCP, UDP, SCTP, UDPLITE}:
        return (src, dst, protocol, *struct.unpack_from(">HH", payload))
    if protocol in PAIRS:
        (ident,) = struct.unpack_from(">H", payload, 4)
        return (src, dst, protocol, ident, payload[0], payload[1])
    if protocol == GRE:
        return (src, dst, GRE, 0, _call(payload))
    return (src, dst, protocol)


def _call(payload: bytes) -> int:
    """Give the call of PPTP's GRE (version 1): it is a key of its own in each direction."""
    if len(payload) >= 8 and payload[1] & 7 == 1:
        return int.from_bytes(payload[6:8])
    return 0
