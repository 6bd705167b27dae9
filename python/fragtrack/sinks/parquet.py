"""Tables by pyarrow (extra ``parquet``): Parquet, and the file format of Arrow itself.

Both have typed columns, and groups of rows that bound the memory needed. What a backend gives as
Arrow goes through without an object for each row.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from fragtrack.errors import OutputError
from fragtrack.sinks.rows import Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.sinks.output import Output
    from fragtrack.sinks.rows import Batch, Shape

GROUP_ROWS = 1 << 16
"""Rows a group holds at most, where they come one by one; else about as many at least."""

GROUP_FRAMES = 1 << 20
"""Frame numbers a group holds at most, give or take the rows of one batch."""

LATEST = (1 << 63) - 1
"""Nanoseconds: the last time a 64-bit time stamp can tell (year 2262)."""


class Columnar(Table[Row]):
    """Groups of rows as they fill up; times are time stamps in UTC with nanoseconds.

    A table is either given rows or batches; these know their schema, which is then that of the
    table. pyarrow is imported by a thread, while there are no rows yet.

    Raises
    ------
    OutputError
        If pyarrow is not installed.
    """

    format: ClassVar[str]

    def __init__(self, output: Output, shape: Shape[Row]) -> None:
        super().__init__(output, shape)
        if not preload():
            raise missing(output.name, self.format)
        self._times = shape.places("time")
        self._lists = shape.places("uint64[]")
        self._file = _File(output)
        self._writer: Any = None
        self._rows: list[tuple[Any, ...]] = []
        self._frames = 0
        self._parts: list[Any] = []
        self._waiting = 0

    def write(self, rows: Sequence[Row]) -> None:
        """Add rows; a full group is written."""
        cells_of = self.shape.cells
        for row in rows:
            cells = list(cells_of(row))
            for place in self._times:
                cells[place] = min(cells[place], LATEST)
            self._frames += sum(len(cells[place]) for place in self._lists)
            self._rows.append(tuple(cells))
            if len(self._rows) >= GROUP_ROWS or self._frames >= GROUP_FRAMES:
                self._flush_rows()

    def add(self, batch: Batch[Row]) -> None:
        """Add rows of a backend as they are; with enough of them a group is written."""
        table = self._arrow().table(batch)
        if self._writer is None:
            self._writer = self.new_writer(self._file, table.schema)
        self._parts.append(table)
        self._waiting += table.num_rows
        if self._waiting >= GROUP_ROWS:
            self._flush_parts()

    def finish(self) -> None:
        """Write the last group and the footer, and finish."""
        self._flush_parts()
        self._flush_rows()
        if self._writer is None:
            self._writer = self.new_writer(self._file, self._schema())
        self._writer.close()
        self._file.closed = True
        super().finish()

    def discard(self) -> None:
        """Drop what was written, and what the writer adds when it is collected."""
        self._file.dead = True
        super().discard()

    @abstractmethod
    def new_writer(self, file: _File, schema: Any) -> Any:  # noqa: ANN401  pyarrow has no types
        """Make the object of pyarrow that writes record batches and tables."""

    def _flush_rows(self) -> None:
        if not self._rows:
            return
        pa = self._arrow()
        schema = self._schema()
        if self._writer is None:
            self._writer = self.new_writer(self._file, schema)
        columns = zip(*self._rows, strict=True)
        arrays = [
            pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)
        ]
        self._writer.write_batch(pa.record_batch(arrays, schema=schema))
        self._rows.clear()
        self._frames = 0

    def _flush_parts(self) -> None:
        if self._waiting:
            self._writer.write_table(self._arrow().concat_tables(self._parts))
        self._parts.clear()
        self._waiting = 0

    def _schema(self) -> Any:  # noqa: ANN401  pyarrow has no types
        pa = self._arrow()
        fields = []
        for name in self.shape.columns:
            kind = self.shape.types.get(name, "string")
            bare = kind.removesuffix("!").removesuffix("[]")
            plain = pa.timestamp("ns", "UTC") if bare == "time" else getattr(pa, bare)()
            whole = pa.list_(plain) if "[]" in kind else plain
            fields.append(pa.field(name, whole, nullable=not kind.endswith("!")))
        return pa.schema(fields)

    def _arrow(self) -> Any:  # noqa: ANN401  pyarrow has no types
        try:
            import pyarrow as pa
        except ImportError as error:
            raise missing(self.output.name, self.format) from error
        return pa


class Parquet(Columnar[Row]):
    """Parquet, compressed inside."""

    format = "Parquet"

    def new_writer(self, file: _File, schema: Any) -> Any:  # noqa: ANN401
        """Make the writer."""
        import pyarrow.parquet as pq

        repeats = [name for name in self.shape.repeats if name in schema.names]
        return pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=repeats or True)


class ArrowFile(Columnar[Row]):
    """The file format of Arrow (IPC), to map into memory."""

    format = "Arrow"

    def new_writer(self, file: _File, schema: Any) -> Any:  # noqa: ANN401
        """Make the writer."""
        import pyarrow.ipc

        return pyarrow.ipc.new_file(file, schema)


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


def preload() -> bool:
    """Have a thread import pyarrow, so that it is there when it is needed.

    Returns
    -------
    bool
        Whether it is installed.
    """
    import sys

    if sys.modules.get("pyarrow") is None:
        from importlib.util import find_spec

        if find_spec("pyarrow") is None:
            return False
    if "pyarrow.parquet" not in sys.modules:
        from threading import Thread

        Thread(target=_import, name="fragtrack-import").start()
    return True


def _import() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        pass  # who needs it will see


def missing(name: str, what: str) -> OutputError:
    """Make the error that says how to get pyarrow."""
    return OutputError(f"{name}: {what} needs pyarrow: pip install 'fragtrack[parquet]'")
