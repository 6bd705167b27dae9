"""A capture file, whichever format: found out, read piece by piece; and the writer for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from fragtrack.errors import CaptureError
from fragtrack.reference.pcap import PcapOutput, PcapReader
from fragtrack.reference.pcapng import PcapngReader
from fragtrack.reference.record import DamagedError
from fragtrack.reference.sections import PcapngOutput

if TYPE_CHECKING:
    from fragtrack.reference.record import Record

__all__ = ["Format", "Input", "NoOutput", "Output", "open_output"]

Format = Literal["pcap", "pcapng"]


class Input:
    """One input, read in pieces.

    Invariant: once `damage` is set, nothing more is read.

    Attributes
    ----------
    name : str
        As the user gave it.
    damage : tuple of (int, str) or None
        Offset in the file, and what is wrong there.
    consumed : int
        Bytes of the records that were read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.damage: tuple[int, str] | None = None
        self.consumed = 0
        self._reader: PcapReader | PcapngReader | None = None

    def read(self, data: memoryview, offset: int, *, final: bool) -> Record | None:
        """Read the record at the start of `data`, which stands at `offset` of the file.

        Parameters
        ----------
        data
            What is there of the file.
        offset
            Bytes.
        final
            Whether that is all there will be.

        Returns
        -------
        Record or None
            None if it is not whole, or if this is damage: then `damage` is set.

        Raises
        ------
        CaptureError
            If the file is empty, or its first record is not that of a capture.
        """
        if self.damage is not None:
            return None  # nothing behind damage can be read
        beginning = offset == 0
        if beginning and not self._open(data, final=final):
            return None
        reader = self._reader
        if reader is None:
            return None
        try:
            record = reader.read(data)
        except DamagedError as damaged:
            self._break(offset, str(damaged))
            return None
        if record is not None:
            self.consumed += len(record.data)
        elif final and len(data):
            self._break(offset, f"cut off record: {len(data)} of {reader.needs(data)} bytes")
        return record

    def _open(self, data: memoryview, *, final: bool) -> bool:
        """Find the format by the first four bytes; False if they are not there yet."""
        if len(data) < 4 and not final:
            return False
        if not len(data):
            raise CaptureError(self.name, 0, "empty file")
        magic = bytes(data[:4])
        if PcapngReader.recognizes(magic):
            self._reader = PcapngReader()
        elif PcapReader.recognizes(magic) or len(magic) < 4:
            self._reader = PcapReader()
        else:
            raise CaptureError(self.name, 0, f"not a capture: starts with bytes {magic.hex(' ')}")
        return True

    def _break(self, offset: int, why: str) -> None:
        if offset == 0:
            raise CaptureError(self.name, 0, f"not a capture: {why}")
        self.damage = offset, why


class Output(Protocol):
    """What a rewriter writes to.

    Attributes
    ----------
    chunks : list of bytes
        What was written and not yet taken.
    written : int
        Packets written.
    """

    chunks: list[bytes]
    written: int

    def other(self, record: Record) -> None:
        """Write a record that holds no packet that could be read."""

    def admit(self, record: Record, place: str) -> None:
        """Look at every packet when it is read; `place` names it."""

    def packet(self, record: Record) -> None:
        """Write a packet as it was read."""

    def datagram(self, record: Record, frame: bytes) -> None:
        """Write a whole datagram in place of the packet that completed it."""

    def finish(self) -> None:
        """Complete the output."""


class NoOutput:
    """Writes nothing, and counts nothing as written."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.written = 0

    def other(self, record: Record) -> None:
        """Write nothing."""

    def admit(self, record: Record, place: str) -> None:
        """Take anything."""

    def packet(self, record: Record) -> None:
        """Write nothing."""

    def datagram(self, record: Record, frame: bytes) -> None:
        """Write nothing."""

    def finish(self) -> None:
        """Write nothing."""


def open_output(name: Format | None) -> Output:
    """Give the writer of a format; None for none."""
    if name == "pcap":
        return PcapOutput()
    if name == "pcapng":
        return PcapngOutput()
    return NoOutput()
