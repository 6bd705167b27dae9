"""The rows of a datagram table, and what every format of such a table is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.events import DatagramRow
    from fragtrack.sinks.output import Output

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
"""Names and order of the columns; with hashing ``sha256`` follows. Times are nanoseconds."""


class Table(ABC):
    """A table of datagrams written to an output.

    Parameters
    ----------
    output
        Where the bytes go.
    sha256
        Whether each complete row carries the hash of its payload, as lower-case hexadecimal.
    """

    def __init__(self, output: Output, *, sha256: bool) -> None:
        self.output = output
        self.columns = (*COLUMNS, "sha256") if sha256 else COLUMNS
        self._hashed = sha256

    @abstractmethod
    def write(self, rows: Sequence[DatagramRow]) -> None:
        """Add rows.

        Raises
        ------
        OSError
            If the output cannot be written.
        """

    def finish(self) -> None:
        """Write what is left, and finish the output."""
        self.output.finish()

    def discard(self) -> None:
        """Drop what was written."""
        self.output.discard()

    def cells(self, row: DatagramRow) -> tuple[Any, ...]:
        """Give the values of a row, one per column."""
        values = (
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
        return (*values, sha256_of(row)) if self._hashed else values


def sha256_of(row: DatagramRow) -> str | None:
    """Give the hash of the IP payload, or None where no whole payload came together."""
    if row.payload is None:
        return None
    from hashlib import sha256

    return sha256(row.payload).hexdigest()
