"""Datagram table as Parquet, by pyarrow (extra ``parquet``): typed columns, bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragtrack.errors import OutputError
from fragtrack.sinks.rows import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.events import DatagramRow
    from fragtrack.sinks.output import Output

GROUP_ROWS = 1 << 16
"""Rows a row group holds at most."""

GROUP_FRAMES = 1 << 20
"""Frame numbers a row group holds at most, give or take the rows of one batch."""

LATEST = (1 << 63) - 1
"""Nanoseconds: the last time a 64-bit time stamp can tell (year 2262)."""


class Parquet(Table):
    """Row groups as they fill up; times are time stamps in UTC with nanoseconds.

    Raises
    ------
    OutputError
        If pyarrow is not installed.
    """

    def __init__(self, output: Output, *, sha256: bool) -> None:
        super().__init__(output, sha256=sha256)
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise missing(output.name) from error
        time = pa.timestamp("ns", "UTC")
        types = {
            "time_first": time,
            "time_last": time,
            "ip_version": pa.uint8(),
            "protocol": pa.uint8(),
            "id": pa.uint32(),
            "fragments": pa.uint32(),
            "frames": pa.list_(pa.uint64()),
            "length": pa.uint32(),
        }
        fields = [(name, types.get(name, pa.string())) for name in self.columns]
        self._schema = pa.schema(fields)
        self._batch = pa.record_batch
        self._array = pa.array
        self._file = _File(output)
        self._writer = pq.ParquetWriter(self._file, self._schema, compression="zstd")
        self._rows: list[tuple[Any, ...]] = []
        self._frames = 0

    def write(self, rows: Sequence[DatagramRow]) -> None:
        """Add rows; a full row group is written."""
        for row in rows:
            first, last, *rest = self.cells(row)
            self._rows.append((min(first, LATEST), min(last, LATEST), *rest))
            self._frames += len(row.frames)
            if len(self._rows) >= GROUP_ROWS or self._frames >= GROUP_FRAMES:
                self._flush()

    def finish(self) -> None:
        """Write the last row group and the footer, and finish."""
        self._flush()
        self._writer.close()
        self._file.closed = True
        super().finish()

    def discard(self) -> None:
        """Drop what was written, and what the writer adds when it is collected."""
        self._file.dead = True
        super().discard()

    def _flush(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [
                self._array(column, type=field.type)
                for column, field in zip(columns, self._schema, strict=True)
            ]
            self._writer.write_batch(self._batch(arrays, schema=self._schema))
            self._rows.clear()
            self._frames = 0


class _File:
    """An output in the shape pyarrow writes to.

    Once the table is discarded or a write has failed, the writer still wants to write a footer when
    it is collected; that goes nowhere.
    """

    def __init__(self, output: Output) -> None:
        self.closed = False
        self.dead = False
        self._output = output
        self._position = 0

    def write(self, data: bytes) -> int:
        if not self.dead:
            try:
                self._output.write(bytes(data))
            except OSError:
                self.dead = True
                raise
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def missing(name: str) -> OutputError:
    """Make the error that says how to get pyarrow."""
    return OutputError(f"{name}: Parquet needs pyarrow: pip install 'fragtrack[parquet]'")
