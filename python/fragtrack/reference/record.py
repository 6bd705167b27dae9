"""One record of a capture: what the readers give and the writers take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from fragtrack.reference.pcap import PcapFile
    from fragtrack.reference.pcapng import Section

__all__ = [
    "LARGEST_BLOCK",
    "NO_PACKET",
    "PCAP_HEADER",
    "PCAP_RECORD",
    "DamagedError",
    "Endian",
    "Record",
    "clamp",
]

#: Kinds of record beside the block types of pcapng, which are 32-bit numbers.
PCAP_HEADER, PCAP_RECORD = -1, -2

#: The link type of a record that holds no packet.
NO_PACKET = -1

#: A byte order, as `struct` writes it.
Endian = Literal["<", ">"]

#: The longest record that is read, in bytes: what a stream may have to hold at once.
LARGEST_BLOCK = 16 << 20

NANOSECONDS = 1_000_000_000


class DamagedError(Exception):
    """Nothing behind this place can be read; the argument says why."""


@dataclass(slots=True, eq=False, kw_only=True)
class Record:
    """One record, copied out of the input.

    Attributes
    ----------
    data : bytes
        The whole record: its header, the frame, padding, options.
    kind : int
        Block type of pcapng, or `PCAP_HEADER`, `PCAP_RECORD`.
    owner : PcapFile or Section
        What gives its fields their meaning: byte order, units of time, interfaces.
    link : int
        Link type of the frame; `NO_PACKET` if there is none.
    head : int
        Bytes in front of the frame.
    captured, wire : int
        Length of the frame, here and on the wire.
    time : int
        Nanoseconds since the epoch, within 64 signed bits.
    interface : int
        Its number within the section; 0 for pcap.
    damage : str or None
        Why the record can only be passed on; reading goes on behind it.
    """

    data: bytes
    kind: int
    owner: PcapFile | Section
    link: int = NO_PACKET
    head: int = 0
    captured: int = 0
    wire: int = 0
    time: int = 0
    interface: int = 0
    damage: str | None = None

    @property
    def frame(self) -> bytes:
        """The captured bytes."""
        return self.data[self.head : self.head + self.captured]


def clamp(value: int, bits: int, *, signed: bool = False) -> int:
    """Bring a value into the range of an integer of so many bits.

    >>> clamp(300, 8), clamp(-1, 8), clamp(200, 8, signed=True)
    (255, 0, 127)
    """
    low = -(1 << (bits - 1)) if signed else 0
    return min(max(value, low), low + (1 << bits) - 1)
