"""A TCP segment, read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique
from typing import TYPE_CHECKING, Final

from fragtrack.reference.track import checksums
from fragtrack.reference.track.finding import Finding, TrackReason
from fragtrack.reference.track.sequence import MASK

if TYPE_CHECKING:
    from fragtrack.reference.track.packet import Packet
    from fragtrack.track_config import TrackConfig

HEADER: Final = 20
FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))
IGNORED: Final = PSH | ECE | CWR
VALID: Final = frozenset(
    (SYN, SYN | URG, SYN | ACK, RST, RST | ACK, FIN | ACK, FIN | ACK | URG, ACK, ACK | URG)
)
"""Flags that go together (``tcp_valid_flags``)."""


@unique
class Kind(IntEnum):
    """Class of a segment (``get_conntrack_index``): the first that fits."""

    SYN = 0
    SYNACK = 1
    FIN = 2
    ACK = 3
    RST = 4
    NONE = 5


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment.

    Attributes
    ----------
    seq, ack, end : int
        Numbers; `end` is behind the last byte, SYN and FIN included.
    flags : int
    window : int
        As it stands there, not scaled.
    has_options : bool
    options : bytes
        As far as they were captured.
    kind : Kind
    """

    seq: int
    ack: int
    end: int
    flags: int
    window: int
    has_options: bool
    options: bytes
    kind: Kind

    @property
    def syn(self) -> bool:
        """Whether SYN is set."""
        return bool(self.flags & SYN)

    @property
    def rst(self) -> bool:
        """Whether RST is set."""
        return bool(self.flags & RST)

    @property
    def has_ack(self) -> bool:
        """Whether ACK is set."""
        return bool(self.flags & ACK)


def kind_of(flags: int) -> Kind:
    """Return the class of a segment with these flags."""
    if flags & RST:
        return Kind.RST
    if flags & SYN:
        return Kind.SYNACK if flags & ACK else Kind.SYN
    if flags & FIN:
        return Kind.FIN
    return Kind.ACK if flags & ACK else Kind.NONE


def read(packet: Packet, config: TrackConfig) -> Segment | Finding:
    """Read a segment, or say what is wrong with it (``tcp_error``)."""
    short = packet.short(HEADER)
    if short:
        return short
    data = packet.transport
    offset, flags = (data[12] >> 4) * 4, data[13]
    if not HEADER <= offset <= packet.size:
        return Finding(TrackReason.offset, offset, packet.size)
    wrong = checksums.internet(packet, config, field=16, protocol=packet.protocol, offload=True)
    if wrong:
        return wrong
    if flags & ~IGNORED not in VALID:
        return Finding(TrackReason.flags, flags & ~IGNORED)
    seq = int.from_bytes(data[4:8], "big")
    occupied = packet.size - offset + bool(flags & SYN) + bool(flags & FIN)
    return Segment(
        seq=seq,
        ack=int.from_bytes(data[8:12], "big"),
        end=seq + occupied & MASK,
        flags=flags,
        window=int.from_bytes(data[14:16], "big"),
        has_options=offset > HEADER,
        options=data[HEADER:offset],
        kind=kind_of(flags),
    )
