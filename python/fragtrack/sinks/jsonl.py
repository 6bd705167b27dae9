"""Tables as JSON lines: one object a row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fragtrack.sinks.rows import Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.sinks.output import Output
    from fragtrack.sinks.rows import Shape


class JsonLines(Table[Row]):
    """One JSON object a line; several values in a cell are an array, absent values are null."""

    def __init__(self, output: Output, shape: Shape[Row]) -> None:
        super().__init__(output, shape)
        self._encode = json.JSONEncoder(separators=(",", ":")).encode

    def write(self, rows: Sequence[Row]) -> None:
        """Write the rows at once."""
        encode, columns, cells = self._encode, self.shape.columns, self.shape.cells
        lines = [encode(dict(zip(columns, cells(row), strict=True))) for row in rows]
        if lines:
            lines.append("")
            self.output.write("\n".join(lines).encode("ascii"))
