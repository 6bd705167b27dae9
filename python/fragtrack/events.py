"""What comes out of a reassembler: reasons, outcomes, datagrams, errors to send.

Plain data, shared by both backends.  Times are nanoseconds, lengths are bytes,
frame numbers are 1-based.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final, Literal

Kind = Literal["whole", "held", "complete", "dropped"]


@unique
class Reason(IntEnum):
    """Why a fragment did not become part of a complete datagram.

    The value is the code in event columns and never changes its meaning.  Every
    fragment that is not used gets exactly one reason, so fragments seen equal
    fragments used plus the sum over all reasons.
    """

    duplicate = 1
    overlap = 2
    last_conflict = 3
    past_last = 4
    empty = 5
    too_far = 6
    ecn = 7
    oversize = 8
    timeout = 9
    memory = 10
    evicted = 11
    truncated = 12
    header = 13
    checksum = 14
    unaligned = 15
    chain = 16
    fragment_header = 17
    nested = 18
    end = 19
    abandoned = 20

    @property
    def description(self) -> str:
        """The reason in a sentence fragment fit for a table or a message."""
        return describe[self]


describe: Final[dict[Reason, str]] = {
    Reason.duplicate: "all its bytes are held already; this fragment alone is dropped",
    Reason.overlap: "shares bytes with held data where the policy forbids it",
    Reason.last_conflict: "a last fragment that ends elsewhere than known, or below held data",
    Reason.past_last: "data beyond the known end of the datagram",
    Reason.empty: "carries no usable byte",
    Reason.too_far: "too many other fragments of the same source came in between (max_dist)",
    Reason.ecn: "the fragments' ECN fields may not be mixed (RFC 3168, 5.3)",
    Reason.oversize: "more than 65,535 bytes",
    Reason.timeout: "the datagram did not become complete in time",
    Reason.memory: "refused because the memory limit was reached",
    Reason.evicted: "pushed out to make room for others",
    Reason.truncated: "the capture holds fewer bytes than the packet had",
    Reason.header: "impossible IP version, header length or total length",
    Reason.checksum: "wrong IPv4 header checksum",
    Reason.unaligned: "IPv6, more fragments follow, but the length is no multiple of 8",
    Reason.chain: "IPv6 first fragment without the whole header chain (RFC 7112)",
    Reason.fragment_header: "IPv6 fragment header cut short, or payload length 0",
    Reason.nested: "a second fragment header inside the datagram",
    Reason.end: "the input ended while the datagram was incomplete",
    Reason.abandoned: "belongs to a datagram that was discarded for an overlap (RFC 5722)",
}


@dataclass(slots=True)
class IcmpError:
    """An ICMP or ICMPv6 error that a Linux host would send.

    Attributes
    ----------
    version : int
        4 or 6.
    type, code : int
        ICMP type and code.
    rest : int
        Bytes 4 to 8 of the message as a big-endian number (the pointer of a
        parameter problem).
    src, dst : str
        Sender (destination of the quoted packet) and receiver (its source).
    quote : bytes
        The quoted packet, from its IP header on, cut as the kernel cuts it.
    """

    version: int
    type: int
    code: int
    rest: int
    src: str
    dst: str
    quote: bytes


@dataclass(slots=True)
class GivenUp:
    """An incomplete datagram that ended.

    Attributes
    ----------
    version : int
        4 or 6.
    src, dst : str
        Addresses of the datagram.
    protocol : int
        IPv4 protocol; for IPv6 the next header of the fragment that holds byte
        0, or, without one, of the fragment that opened the queue.
    id : int
        Identification.
    domain : int
        Key beyond IP (VLAN tags).
    reason : str
        Name of a :class:`Reason`.
    fragments : int
        Accepted fragments, and the one that killed the datagram, if one did.
    frames : tuple of int
        Their frame numbers in arrival order.
    time_first, time_last : int
        When the first and the last of them arrived, ns (when the queue was
        created, if there is none).
    length : int
        Highest end known, bytes; that of the killing fragment included.
    icmp : IcmpError or None
        What a host would send about it.
    offsets : tuple of int
        Byte offset in the datagram of each of `frames`, in the same order.
    held : tuple
        The objects handed in with the fragments that were held before the
        current call, in arrival order (empty for a plain reassembler).
    """

    version: int
    src: str
    dst: str
    protocol: int
    id: int
    domain: int
    reason: str
    fragments: int
    frames: tuple[int, ...]
    time_first: int
    time_last: int
    length: int
    icmp: IcmpError | None = None
    offsets: tuple[int, ...] = field(default=(), repr=False, compare=False)
    held: tuple[object, ...] = field(default=(), repr=False, compare=False)


@dataclass(slots=True)
class Datagram:
    """A complete datagram.

    Attributes
    ----------
    version, src, dst, protocol, id, domain
        As in :class:`GivenUp`.
    frames : tuple of int
        Frame numbers of the fragments that supply a byte, in offset order.
    fragments : int
        ``len(frames)``.
    time_first, time_last : int
        When the first accepted fragment and the completing one arrived, ns.
    length : int
        ``len(payload)``.
    payload : bytes
        What the fragments carried: the bytes after the IPv4 header, or after
        the unfragmentable part.
    packet : bytes
        The whole packet from its IP header on.
    """

    version: int
    src: str
    dst: str
    protocol: int
    id: int
    domain: int
    frames: tuple[int, ...]
    fragments: int
    time_first: int
    time_last: int
    length: int
    payload: bytes
    packet: bytes


@dataclass(slots=True)
class Outcome:
    """What became of one packet.

    Attributes
    ----------
    kind : str
        ``whole`` (no fragment, or let through untouched), ``held``,
        ``complete`` or ``dropped``.
    packet : bytes or None
        whole: the packet, cut at its IP length; complete: the datagram.
    reason : str or None
        Name of a :class:`Reason`, only for dropped.
    icmp : IcmpError or None
        The error Linux would send because of this packet.
    given_up : tuple of GivenUp
        Datagrams that ended inside this call: by timers, to make room, or
        because this packet killed them; in that order.
    datagram : Datagram or None
        Only for complete.
    """

    kind: Kind
    packet: bytes | None = None
    reason: str | None = None
    icmp: IcmpError | None = None
    given_up: tuple[GivenUp, ...] = ()
    datagram: Datagram | None = None


@dataclass(slots=True)
class DatagramRow:
    """One datagram of a capture, complete or not: a row of the datagram table.

    Attributes
    ----------
    time_first, time_last : int
        Nanoseconds since the epoch.
    ip_version, src, dst, protocol, id
        The key of the datagram.
    vlan : str or None
        VLAN identifiers, outermost first, joined by dots.
    tunnel : str or None
        Tunnel path; None outside tunnels.
    fragments : int
        Fragments it was made of (incomplete: that were held, and the killing
        one).
    frames : tuple of int
        Their 1-based frame numbers in offset order.
    length : int
        IP payload bytes (incomplete: highest end known).
    outcome : str
        ``complete`` or the name of a :class:`Reason`.
    policy : str
        Overlap policy in force.
    payload, packet : bytes or None
        Only if asked for, and complete.
    """

    time_first: int
    time_last: int
    ip_version: int
    src: str
    dst: str
    protocol: int
    id: int
    vlan: str | None
    tunnel: str | None
    fragments: int
    frames: tuple[int, ...]
    length: int
    outcome: str
    policy: str
    payload: bytes | None = None
    packet: bytes | None = None
