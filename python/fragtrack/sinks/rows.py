"""What every format of a table is, whatever its rows; and what a row of datagrams shows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fragtrack.events import DatagramRow
    from fragtrack.sinks.output import Output

Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)


class Shape(NamedTuple, Generic[Row]):
    """What a table shows of its rows.

    Attributes
    ----------
    columns
        Names of the columns, in order.
    cells
        Gives the values of a row, one per column.
    types
        Arrow types of columns; those that are not here hold text. ``time`` stands for nanoseconds
        since 1970, ``[]`` at the end for several values in one cell, ``!`` for never null.
    repeats
        Columns whose values come again and again, which Parquet then stores once; empty leaves
        the choice to Parquet.
    """

    columns: tuple[str, ...]
    cells: Callable[[Row], tuple[Any, ...]]
    types: Mapping[str, str]
    repeats: tuple[str, ...] = ()

    def places(self, kind: str) -> tuple[int, ...]:
        """Give the positions of the columns of a type."""
        return tuple(
            place
            for place, name in enumerate(self.columns)
            if self.types.get(name, "string").removesuffix("!") == kind
        )


class Batch(Protocol[Row_co]):
    """Rows as a backend gives them: one by one, or as Arrow without an object for each."""

    def __len__(self) -> int:
        """Count the rows."""

    def rows(self) -> Sequence[Row_co]:
        """Give them one by one."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export them (Arrow PyCapsule interface)."""


class Table(ABC, Generic[Row]):
    """A table written to an output.

    Parameters
    ----------
    output
        Where the bytes go.
    shape
        What it shows.
    """

    def __init__(self, output: Output, shape: Shape[Row]) -> None:
        self.output = output
        self.shape = shape

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> None:
        """Add rows.

        Raises
        ------
        OSError
            If the output cannot be written.
        """

    def add(self, batch: Batch[Row]) -> None:
        """Add rows of a backend."""
        self.write(batch.rows())

    def finish(self) -> None:
        """Write what is left, and finish the output."""
        self.output.finish()

    def publish(self) -> None:
        """Make the output appear."""
        self.output.publish()

    def discard(self) -> None:
        """Drop what was written."""
        self.output.discard()


COLUMNS = (
    "time_first",
    "time_last",
    "ip_version",
    "src",
    "dst",
    "protocol",
    "id",
    "vlan",
    "tunnel",
    "fragments",
    "frames",
    "length",
    "outcome",
    "policy",
)
"""Columns of datagrams; with hashing ``sha256`` follows. Times are nanoseconds."""

TYPES = {
    "time_first": "time",
    "time_last": "time",
    "ip_version": "uint8",
    "protocol": "uint8",
    "id": "uint32",
    "fragments": "uint32",
    "frames": "uint64[]",
    "length": "uint32",
}


def datagram_shape(*, sha256: bool) -> Shape[DatagramRow]:
    """Give the shape of datagrams.

    Parameters
    ----------
    sha256
        Whether each complete row carries the hash of its payload, as lower-case hexadecimal.
    """
    if sha256:
        return Shape((*COLUMNS, "sha256"), _hashed_cells, TYPES)
    return Shape(COLUMNS, _cells, TYPES)


def _cells(row: DatagramRow) -> tuple[Any, ...]:
    return (
        row.time_first,
        row.time_last,
        row.ip_version,
        row.src,
        row.dst,
        row.protocol,
        row.id,
        row.vlan,
        row.tunnel,
        row.fragments,
        row.frames,
        row.length,
        row.outcome,
        row.policy,
    )


def _hashed_cells(row: DatagramRow) -> tuple[Any, ...]:
    return (*_cells(row), sha256_of(row))


def sha256_of(row: DatagramRow) -> str | None:
    """Give the hash of the IP payload, or None where no whole payload came together."""
    if row.payload is None:
        return None
    from hashlib import sha256

    return sha256(row.payload).hexdigest()
