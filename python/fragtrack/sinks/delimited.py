"""Tables as comma-separated values (RFC 4180, lines ending with a line feed)."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from fragtrack.sinks.rows import Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.sinks.output import Output
    from fragtrack.sinks.rows import Shape

TRUTH = {True: "true", False: "false"}


class CommaSeparated(Table[Row]):
    """A header line, then one line a row.

    Several values in a cell are joined by spaces, absent values are empty.
    """

    def __init__(self, output: Output, shape: Shape[Row]) -> None:
        super().__init__(output, shape)
        self._lists = shape.places("uint64[]")
        self._flags = shape.places("bool_")
        self._text = io.StringIO()
        self._writer = csv.writer(self._text, lineterminator="\n")
        self._writer.writerow(shape.columns)

    def write(self, rows: Sequence[Row]) -> None:
        """Write the rows at once."""
        for row in rows:
            cells = list(self.shape.cells(row))
            for place in self._lists:
                cells[place] = " ".join(map(str, cells[place]))
            for place in self._flags:
                cells[place] = TRUTH[cells[place]]
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
