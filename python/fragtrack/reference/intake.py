"""What everything that takes captures through has in common: inputs one after the other.

Frame numbers count the packets of an input from 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from fragtrack.reference.capture import Input
from fragtrack.reference.record import NO_PACKET

if TYPE_CHECKING:
    from fragtrack.reference.record import Record

__all__ = ["Intake", "held_cost"]

BUDGET = 1 << 20
FREE = 128  # bytes around a frame in its record that cost nothing to hold


class Intake(ABC):
    """Reads the records of captures.

    Notes
    -----
    For each input: `begin`, `feed` until all is consumed, `end`.
    """

    def __init__(self) -> None:
        self._input = Input("")
        self._number = 0
        self._damaged: tuple[str, int, str] | None = None
        self._packets = 0
        self._bytes = 0

    def begin(self, name: str) -> None:
        """Begin an input; its frames are numbered from 1."""
        self._damaged = None
        self._input = Input(name)
        self._number = 0

    def feed(
        self,
        buffer: bytes | bytearray | memoryview,
        start: int,
        stop: int,
        *,
        final: bool,
        stable: bool,
        base: int = 0,
        budget: int = BUDGET,
    ) -> int:
        """Process the whole records in ``buffer[start:stop]``.

        Parameters
        ----------
        buffer
            Bytes of the input; index 0 stands at offset `base` of the file.
        start, stop
            Where to begin, and how far the bytes are there.
        final
            No more will come: a record that is not whole is damage.
        stable
            The buffer stays as it is. This implementation copies what it holds, and does not care.
        base
            Offset in the file.
        budget
            Return early, at a record's end, once so many bytes are consumed.

        Returns
        -------
        int
            Where to go on: the end of the last record processed, or `stop` if nothing behind it
            can be read.

        Raises
        ------
        CaptureError
            If the input is empty or no capture.
        OutputError
            If the output format, where there is one, cannot hold a frame.
        """
        del stable
        at = start
        with memoryview(buffer) as view:
            while at - start < budget:
                with view[at:stop] as data:
                    record = self._input.read(data, base + at, final=final)
                if record is None:
                    break
                if record.damage is not None:
                    self._note_damage(base + at, record.damage)
                if record.link != NO_PACKET:
                    self._packets += 1
                    self._number += 1
                self._take(record)
                self._bytes += len(record.data)
                at += len(record.data)
        if self._input.damage is None:
            return at
        self._note_damage(*self._input.damage)
        return stop

    def end(self) -> None:
        """End the input; what it left open may go on in the next one."""
        self._input = Input("")

    @property
    def damaged(self) -> tuple[str, int, str] | None:
        """The first damage in the last input begun: its name, the offset, what is wrong."""
        return self._damaged

    @abstractmethod
    def _take(self, record: Record) -> None:
        """Take the next record through: the packet `_number`, or one that holds no packet."""

    def _note_damage(self, offset: int, why: str) -> None:
        if self._damaged is None:
            self._damaged = self._input.name, offset, why


def held_cost(record: Record) -> int:
    """Give the bytes of memory that a record counts for while it is held."""
    return record.captured + max(0, len(record.data) - record.captured - FREE)
