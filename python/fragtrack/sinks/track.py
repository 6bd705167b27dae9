"""Where connections, verdicts and events go; formats by the suffix of the name, or as asked for.

========= ========== ======================================================================
format    suffix     what
========= ========== ======================================================================
jsonl     .jsonl     table, one JSON object a line
csv       .csv       table, comma-separated
parquet   .parquet   table, typed columns (extra ``parquet``)
arrow     .arrow     table in Arrow's own file format (the same extra)
conntrack .txt       text of the kernel's tool: connections still in the table at the end as
                     ``conntrack -L`` shows them, events as ``conntrack -E``
zeek      .log       connections as Zeek's conn.log
========= ========== ======================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fragtrack.errors import ConfigError
from fragtrack.sinks import TRACK_TABLES, open_capture, open_rows, table_suffix
from fragtrack.sinks.track_rows import CONNECTIONS, EVENTS, VERDICTS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from fragtrack.sinks.conntrack import EntryList, EventLines
    from fragtrack.sinks.rows import Table
    from fragtrack.sinks.zeek import ConnLog
    from fragtrack.verdicts import Connection, Event, VerdictRow

    Path = str | os.PathLike[str]

FORMATS: Final = {
    **{suffix.removeprefix("."): suffix for suffix in TRACK_TABLES},
    "conntrack": ".txt",
    "zeek": ".log",
}
"""Suffix of each format of connections."""

EVENT_SUFFIXES: Final = (*TRACK_TABLES, ".txt")
"""Suffixes of events."""


def connection_suffix(target: Path, requested: str | None) -> str:
    """Tell the format of connections: as requested, else by the name.

    Raises
    ------
    ConfigError
        If there is no such format, or the name tells none.
    """
    if requested is None:
        return table_suffix(target, FORMATS.values())
    if requested not in FORMATS:
        raise ConfigError(f"format={requested!r}: choose {_or(FORMATS)}")
    return FORMATS[requested]


def open_connections(
    target: Path, suffix: str, *, threads: int = 0
) -> Table[Connection] | EntryList | Log:
    """Open an output for connections.

    Parameters
    ----------
    target
        Path, or ``-``.
    suffix
        Its format, from `connection_suffix`.
    threads
        Threads that help with compressing.

    Raises
    ------
    OSError
        If it cannot be written; as `OutputError` where a library is missing.
    """
    if suffix in TRACK_TABLES:
        return open_rows(target, CONNECTIONS, TRACK_TABLES, suffix=suffix, threads=threads)
    output = open_capture(target, threads=threads)
    if suffix == ".log":
        from fragtrack.sinks.zeek import ConnLog

        return Log(ConnLog(output, opened=None))
    from fragtrack.sinks.conntrack import EntryList

    return EntryList(output)


def open_verdicts(target: Path, *, threads: int = 0) -> Table[VerdictRow]:
    """Open a table of verdicts; errors as for `open_connections`."""
    suffix = table_suffix(target, TRACK_TABLES)
    return open_rows(target, VERDICTS, TRACK_TABLES, suffix=suffix, threads=threads)


def open_events(target: Path, *, threads: int = 0) -> Table[Event] | EventLines:
    """Open an output for events; errors as for `open_connections`."""
    suffix = table_suffix(target, EVENT_SUFFIXES)
    if suffix in TRACK_TABLES:
        return open_rows(target, EVENTS, TRACK_TABLES, suffix=suffix, threads=threads)
    from fragtrack.sinks.conntrack import EventLines

    return EventLines(open_capture(target, threads=threads))


class Log:
    """A conn.log among the outputs of a run.

    It has no times of opening and closing: they would be those of packets, which are known too late
    for the first line.
    """

    def __init__(self, log: ConnLog) -> None:
        self._log = log

    def write(self, rows: Any) -> None:  # noqa: ANN401
        """Add rows."""
        self._log.write(rows)

    def finish(self) -> None:
        """Write the header if no row has come, and finish the output."""
        self._log.finish(closed=None)

    def publish(self) -> None:
        """Make the output appear."""
        self._log.output.publish()

    def discard(self) -> None:
        """Drop what was written."""
        self._log.discard()


def _or(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}"
