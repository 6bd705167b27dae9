"""Datagram table as JSON lines: one object a row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fragtrack.sinks.rows import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.events import DatagramRow
    from fragtrack.sinks.output import Output


class JsonLines(Table):
    """One JSON object a line; `frames` is an array, absent values are null."""

    def __init__(self, output: Output, *, sha256: bool) -> None:
        super().__init__(output, sha256=sha256)
        self._encode = json.JSONEncoder(separators=(",", ":")).encode

    def write(self, rows: Sequence[DatagramRow]) -> None:
        """Write the rows at once."""
        encode, columns = self._encode, self.columns
        lines = [encode(dict(zip(columns, self.cells(row), strict=True))) for row in rows]
        if lines:
            lines.append("")
            self.output.write("\n".join(lines).encode("ascii"))
