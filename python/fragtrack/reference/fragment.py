"""What the header parsers hand over, and addresses as text."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragtrack.events import Reason

View = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Plain:
    """A packet that is no fragment; `length` bytes of it belong to it."""

    length: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A packet a host drops before it looks for a datagram.

    `fragment` tells whether its bytes show it to be a fragment; only then does its
    reason count as a fragment's.
    """

    reason: Reason
    counters: tuple[str, ...]
    fragment: bool


@dataclass(frozen=True, slots=True)
class Fragment:
    """One fragment, read.

    Attributes
    ----------
    version : int
        4 or 6.
    src, dst : bytes
        Addresses.
    protocol : int
        IPv4 protocol, or next header of the IPv6 fragment header.
    ident : int
        Identification, 16 or 32 bits.
    start, end : int
        The bytes of the datagram it carries, half-open.  An IPv4 fragment with
        MF set is cut down to a multiple of 8 (``ip_frag_queue``).
    more : bool
        More fragments follow.
    ecn : int
        The two ECN bits.
    dont_fragment : bool
        IPv4 DF.
    packet : bytes or memoryview
        The packet, cut at its IP length.
    header : int
        Bytes of the unfragmentable part: IPv4 header with options, or IPv6 header
        and the extension headers before the fragment header.
    data : int
        Where its data starts in `packet`.
    next_header : int
        IPv6: where in the unfragmentable part the next header field is that
        announces the fragment header.
    """

    version: int
    src: bytes
    dst: bytes
    protocol: int
    ident: int
    start: int
    end: int
    more: bool
    ecn: int
    dont_fragment: bool
    packet: View
    header: int
    data: int
    next_header: int

    @property
    def atomic(self) -> bool:
        """Whether it is a whole datagram behind a fragment header (RFC 6946)."""
        return self.start == 0 and not self.more

    @property
    def unaligned(self) -> bool:
        """Whether more fragments follow but its end is no multiple of 8."""
        return self.more and self.end % 8 != 0

    @property
    def quotable(self) -> View:
        """Header and used data: what an ICMP error about it may quote."""
        return self.packet[: self.data + self.end - self.start]


def address_text(address: bytes) -> str:
    """Return an address in the canonical form of RFC 5952."""
    if len(address) == 4:
        return str(ipaddress.IPv4Address(address))
    if address.startswith(b"\0" * 10 + b"\xff\xff"):
        return f"::ffff:{ipaddress.IPv4Address(address[12:])}"
    return str(ipaddress.IPv6Address(address))
