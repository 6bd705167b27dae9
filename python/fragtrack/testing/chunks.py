"""Builders of SCTP (RFC 9260): packets, chunks, the CRC32c."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ABORT",
    "COOKIE_ACK",
    "COOKIE_ECHO",
    "DATA",
    "ERROR",
    "HEARTBEAT",
    "HEARTBEAT_ACK",
    "INIT",
    "INIT_ACK",
    "SACK",
    "SCTP",
    "SHUTDOWN",
    "SHUTDOWN_ACK",
    "SHUTDOWN_COMPLETE",
    "crc32c",
    "sctp",
    "sctp_abort",
    "sctp_chunk",
    "sctp_cookie_ack",
    "sctp_cookie_echo",
    "sctp_data",
    "sctp_heartbeat",
    "sctp_init",
    "sctp_init_ack",
    "sctp_sack",
    "sctp_shutdown",
    "sctp_shutdown_ack",
    "sctp_shutdown_complete",
]

SCTP: Final = 132

DATA: Final = 0
INIT: Final = 1
INIT_ACK: Final = 2
SACK: Final = 3
HEARTBEAT: Final = 4
HEARTBEAT_ACK: Final = 5
ABORT: Final = 6
SHUTDOWN: Final = 7
SHUTDOWN_ACK: Final = 8
ERROR: Final = 9
COOKIE_ECHO: Final = 10
COOKIE_ACK: Final = 11
SHUTDOWN_COMPLETE: Final = 14

_POLYNOMIAL: Final = 0x82F6_3B78  # Castagnoli's, bits reversed


def _remainders() -> Iterable[int]:
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        yield value


_TABLE: Final = tuple(_remainders())


def crc32c(data: bytes) -> int:
    """Compute the CRC32c (RFC 9260 appendix A), as a number whose lowest byte is sent first.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    value = 0xFFFF_FFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFF_FFFF


def sctp(
    chunks: bytes | Iterable[bytes] = b"",
    *,
    vtag: int = 0,
    sport: int = 1024,
    dport: int = 9899,
    crc: int | Literal["bad"] | None = None,
) -> bytes:
    """Build an SCTP packet.

    Parameters
    ----------
    chunks
        One chunk or several, as the functions beside this one build them.
    vtag
        Verification tag: that of the receiver.
    sport, dport
        Ports.
    crc
        Checksum field, as a number whose lowest byte is sent first; ``"bad"`` flips one bit of
        the right one.

    Examples
    --------
    >>> sctp(sctp_cookie_ack(), vtag=7, sport=1, dport=2).hex(" ", 4)
    '00010002 00000007 fba4c6d0 0b000004'
    """
    body = chunks if isinstance(chunks, bytes) else b"".join(chunks)
    head = struct.pack(">HHI", sport, dport, vtag)
    if crc is None or crc == "bad":
        crc = crc32c(head + bytes(4) + body) ^ (crc == "bad")
    return head + struct.pack("<I", crc) + body


def sctp_chunk(kind: int, flags: int = 0, body: bytes = b"", *, length: int | None = None) -> bytes:
    """Build a chunk, padded with zeros to a multiple of 4 bytes.

    Parameters
    ----------
    kind, flags
        Chunk type and flag byte.
    body
        What follows the four bytes of the chunk header.
    length
        Length field, if it shall lie; the true one leaves the padding out.

    Examples
    --------
    >>> sctp_chunk(9, 0, b"abcde").hex(" ", 4)
    '09000009 61626364 65000000'
    """
    size = 4 + len(body) if length is None else length
    return struct.pack(">BBH", kind, flags, size) + body + bytes(-len(body) % 4)


def sctp_init(tag: int, *, window: int = 65535, streams: int = 10, tsn: int = 1) -> bytes:
    """Build an INIT, which announces the `tag` that packets to its sender must carry.

    >>> sctp_init(0xABCD).hex(" ", 4)
    '01000014 0000abcd 0000ffff 000a000a 00000001'
    """
    return sctp_chunk(INIT, 0, struct.pack(">IIHHI", tag, window, streams, streams, tsn))


def sctp_init_ack(
    tag: int,
    *,
    window: int = 65535,
    streams: int = 10,
    tsn: int = 1,
    cookie: bytes = b"cookie..",
) -> bytes:
    """Build an INIT ACK with its sender's `tag`, and the state cookie (parameter 7).

    >>> sctp_init_ack(0xABCD)[20:].hex(" ", 4)
    '0007000c 636f6f6b 69652e2e'
    """
    fixed = struct.pack(">IIHHI", tag, window, streams, streams, tsn)
    parameter = struct.pack(">HH", 7, 4 + len(cookie)) + cookie + bytes(-len(cookie) % 4)
    return sctp_chunk(INIT_ACK, 0, fixed + parameter)


def sctp_cookie_echo(cookie: bytes = b"cookie..") -> bytes:
    """Build a COOKIE ECHO.

    >>> sctp_cookie_echo(b"1234").hex(" ", 4)
    '0a000008 31323334'
    """
    return sctp_chunk(COOKIE_ECHO, 0, cookie)


def sctp_cookie_ack() -> bytes:
    """Build a COOKIE ACK."""
    return sctp_chunk(COOKIE_ACK)


def sctp_data(payload: bytes, *, tsn: int = 1, stream: int = 0, sequence: int = 0) -> bytes:
    """Build a DATA chunk that holds a whole message.

    >>> sctp_data(b"hi").hex(" ", 4)
    '00030012 00000001 00000000 00000000 68690000'
    """
    return sctp_chunk(DATA, 3, struct.pack(">IHHI", tsn, stream, sequence, 0) + payload)


def sctp_sack(tsn: int = 1, *, window: int = 65535) -> bytes:
    """Build a SACK chunk: all up to `tsn` has arrived."""
    return sctp_chunk(SACK, 0, struct.pack(">IIHH", tsn, window, 0, 0))


def sctp_heartbeat(information: bytes = b"info", *, ack: bool = False) -> bytes:
    """Build a HEARTBEAT, or the HEARTBEAT ACK that sends its information back.

    >>> sctp_heartbeat(b"1234", ack=True).hex(" ", 4)
    '0500000c 00010008 31323334'
    """
    parameter = struct.pack(">HH", 1, 4 + len(information)) + information
    return sctp_chunk(HEARTBEAT_ACK if ack else HEARTBEAT, 0, parameter)


def sctp_shutdown(tsn: int = 1) -> bytes:
    """Build a SHUTDOWN: all up to `tsn` has arrived, and nothing more is to be sent."""
    return sctp_chunk(SHUTDOWN, 0, struct.pack(">I", tsn))


def sctp_shutdown_ack() -> bytes:
    """Build a SHUTDOWN ACK."""
    return sctp_chunk(SHUTDOWN_ACK)


def sctp_shutdown_complete(*, reflected: bool = False) -> bytes:
    """Build a SHUTDOWN COMPLETE; `reflected` (T bit): the tag is the one of the packet answered."""
    return sctp_chunk(SHUTDOWN_COMPLETE, int(reflected))


def sctp_abort(*, reflected: bool = False) -> bytes:
    """Build an ABORT; `reflected` (T bit): the tag is the one of the packet answered."""
    return sctp_chunk(ABORT, int(reflected))
