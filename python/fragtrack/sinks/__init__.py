"""Where results go. Each format is one row here, found by the suffix of the name.

========== ======================================================= =================
suffix     what                                                    may be compressed
========== ======================================================= =================
.pcap      capture in the classic format; ``.cap`` is the same     yes
.pcapng    capture with interfaces, comments, sections             yes
.jsonl     table, one JSON object a line                           yes
.csv       table, comma-separated                                  yes
.parquet   table, typed columns (extra ``parquet``)                has its own
.arrow     table of tracking, to map into memory (the same extra)  no
========== ======================================================= =================

Compressed: ``.gz``, ``.zst``, ``.bz2`` or ``.xz`` behind it. What tables show of their rows stands
in `rows` (datagrams) and `track_rows` (connections, verdicts, events).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from fragtrack.errors import ConfigError
from fragtrack.sinks.compress import COMPRESSORS, PARALLEL, CompressedOutput
from fragtrack.sinks.output import STDOUT, Output, Writable, is_special, open_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fragtrack.events import DatagramRow
    from fragtrack.reference.capture import Format
    from fragtrack.sinks.output import Target
    from fragtrack.sinks.rows import Shape, Table

    Tables = dict[str, Callable[[], type[Table[Any]]]]

__all__ = [
    "CAPTURES",
    "COMPRESSORS",
    "STDOUT",
    "TABLES",
    "TRACK_TABLES",
    "Output",
    "Writable",
    "capture_suffix",
    "is_special",
    "open_capture",
    "open_rows",
    "open_table",
    "table_suffix",
]

Row = TypeVar("Row")

CAPTURES: dict[str, Format] = {".pcap": "pcap", ".cap": "pcap", ".pcapng": "pcapng"}
"""Capture format by suffix."""


def _jsonl() -> type[Table[Any]]:
    from fragtrack.sinks.jsonl import JsonLines

    return JsonLines


def _csv() -> type[Table[Any]]:
    from fragtrack.sinks.delimited import CommaSeparated

    return CommaSeparated


def _parquet() -> type[Table[Any]]:
    from fragtrack.sinks.parquet import Parquet

    return Parquet


def _arrow() -> type[Table[Any]]:
    from fragtrack.sinks.parquet import ArrowFile

    return ArrowFile


TABLES: Tables = {
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".parquet": _parquet,
}
"""Tables by suffix; each row imports its format only when asked for."""

TRACK_TABLES: Tables = {**TABLES, ".arrow": _arrow}
"""The same for connections, verdicts and events."""

UNCOMPRESSED = {".parquet": "compresses by itself", ".arrow": "is there to be mapped into memory"}
"""Formats that are not readable in a compression, and why."""


def capture_suffix(target: Target, requested: Format | None) -> Format | None:
    """Tell the format of a capture output: as requested, else by its name.

    None stands for "as the first input": standard output, special files and file objects have no
    suffix to go by.

    Raises
    ------
    ConfigError
        If a file name tells no format and none is requested.
    """
    if requested is not None:
        if requested not in CAPTURES.values():
            raise ConfigError(f"format={requested!r}: choose pcap or pcapng")
        return requested
    if not isinstance(target, (str, os.PathLike)) or os.fspath(target) == STDOUT:
        return None
    path = os.fspath(target)
    suffix, _ = _split(path)
    if suffix in CAPTURES:
        return CAPTURES[suffix]
    if is_special(path):
        return None
    raise ConfigError(f"{path}: the name does not tell the format; {_choices(CAPTURES)}")


def table_suffix(target: str | os.PathLike[str], known: Iterable[str] = TABLES) -> str:
    """Tell the format of a table by its name; what has no suffix to go by gets JSON lines.

    Parameters
    ----------
    target
        Path of the table.
    known
        The suffixes that it may have.

    Raises
    ------
    ConfigError
        If a file name tells no format.
    """
    path = os.fspath(target)
    suffix, compression = _split(path)
    if suffix in known and not (compression and suffix in UNCOMPRESSED):
        return suffix
    if path == STDOUT or is_special(path):
        return ".jsonl"
    if suffix in known:
        raise ConfigError(f"{path}: {suffix} {UNCOMPRESSED[suffix]}; leave out {compression}")
    raise ConfigError(f"{path}: the name does not tell the format; {_choices(known)}")


def open_capture(target: Target, *, threads: int = 0) -> Output:
    """Open a capture output, compressed if its suffix says so.

    Parameters
    ----------
    target
        What to open.
    threads
        Threads that help with compressing, where the format can use them.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    output = open_output(target)
    if isinstance(target, (str, os.PathLike)):
        _, compression = _split(os.fspath(target))
        if compression:
            make = PARALLEL.get(compression) if threads else None
            compressor = make(threads) if make else COMPRESSORS[compression]()
            return CompressedOutput(output, compressor)
    return output


def open_table(
    target: str | os.PathLike[str], *, sha256: bool, threads: int = 0
) -> Table[DatagramRow]:
    """Open a datagram table in the format of its suffix; `threads` as for `open_capture`.

    Raises
    ------
    OSError
        If it cannot be written; as `OutputError` where a library is missing.
    ConfigError
        If a file name tells no format.
    """
    from fragtrack.sinks.rows import datagram_shape

    shape = datagram_shape(sha256=sha256)
    return open_rows(target, shape, TABLES, suffix=table_suffix(target), threads=threads)


def open_rows(
    target: str | os.PathLike[str],
    shape: Shape[Row],
    known: Tables,
    *,
    suffix: str,
    threads: int = 0,
) -> Table[Row]:
    """Open a table of any rows.

    Parameters
    ----------
    target
        Path of the table.
    shape
        What it shows.
    known
        The formats that it may have.
    suffix
        The one that it has, from `table_suffix`.
    threads
        As for `open_capture`.

    Raises
    ------
    OSError
        If it cannot be written; as `OutputError` where a library is missing.
    """
    kind: type[Table[Row]] = known[suffix]()
    output = open_capture(target, threads=threads)
    try:
        return kind(output, shape)
    except BaseException:
        output.discard()
        raise


def _split(path: str) -> tuple[str, str]:
    """Give the suffix that names the format, and the one that names the compression or ""."""
    stem, suffix = os.path.splitext(path.lower())
    if suffix in COMPRESSORS:
        return os.path.splitext(stem)[1], suffix
    return suffix, ""


def _choices(known: Iterable[str]) -> str:
    return f"use {', '.join(known)}; to compress add {', '.join(COMPRESSORS)}"
