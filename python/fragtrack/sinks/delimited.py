"""Datagram table as comma-separated values (RFC 4180, lines ending with a line feed)."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from fragtrack.sinks.rows import COLUMNS, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.events import DatagramRow
    from fragtrack.sinks.output import Output

FRAMES = COLUMNS.index("frames")


class CommaSeparated(Table):
    """A header line, then one line a row; `frames` joined by spaces, absent values empty."""

    def __init__(self, output: Output, *, sha256: bool) -> None:
        super().__init__(output, sha256=sha256)
        self._text = io.StringIO()
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._writer.writerow(self.columns)

    def write(self, rows: Sequence[DatagramRow]) -> None:
        """Write the rows at once."""
        for row in rows:
            cells = list(self.cells(row))
            cells[FRAMES] = " ".join(map(str, row.frames))
            self._writer.writerow(cells)
        self._flush()

    def finish(self) -> None:
        """Write the header if no row has come, and finish."""
        self._flush()
        super().finish()

    def _flush(self) -> None:
        if text := self._text.getvalue():
            self.output.write(text.encode("ascii"))
            self._text.seek(0)
            self._text.truncate()
