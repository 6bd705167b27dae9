"""Captures read whole by the reference, record by record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragtrack.reference.capture import Input
from fragtrack.reference.record import NO_PACKET

if TYPE_CHECKING:
    from fragtrack.reference.record import Record


def hexed(text: str) -> bytes:
    """Give the bytes of a hex text."""
    return bytes.fromhex(text)


def read_all(data: bytes, *, final: bool = True) -> tuple[list[Record], Input]:
    """Read the records of a file; the input knows of damage."""
    source = Input("file")
    records: list[Record] = []
    at = 0
    while True:
        record = source.read(memoryview(data)[at:], at, final=final)
        if record is None:
            return records, source
        records.append(record)
        at += len(record.data)


def packets(data: bytes) -> list[Record]:
    """Read the records that hold a packet."""
    return [record for record in read_all(data)[0] if record.link != NO_PACKET]


def damage(data: bytes) -> tuple[int, str] | None:
    """Give what ends the reading, and where."""
    return read_all(data)[1].damage
