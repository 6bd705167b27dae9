"""Connections as a conn.log that Zeek's own tools (zeek-cut) read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.sinks.output import Output
    from fragtrack.zeek import ZeekRow

FIELDS: Final = (
    ("ts", "time"),
    ("uid", "string"),
    ("id.orig_h", "addr"),
    ("id.orig_p", "port"),
    ("id.resp_h", "addr"),
    ("id.resp_p", "port"),
    ("proto", "enum"),
    ("service", "string"),
    ("duration", "interval"),
    ("orig_bytes", "count"),
    ("resp_bytes", "count"),
    ("conn_state", "string"),
    ("local_orig", "bool"),
    ("local_resp", "bool"),
    ("missed_bytes", "count"),
    ("history", "string"),
    ("orig_pkts", "count"),
    ("orig_ip_bytes", "count"),
    ("resp_pkts", "count"),
    ("resp_ip_bytes", "count"),
    ("tunnel_parents", "set[string]"),
    ("ip_proto", "count"),
)
"""Names and types of the columns, as in Zeek 8."""
UNSET: Final = "-"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ConnLog:
    """A tab-separated conn.log, with Zeek's header and footer.

    The times in it come from the caller, so that the same input gives the same bytes; both are
    nanoseconds since 1970.

    Parameters
    ----------
    output
        Where the bytes go.
    opened
        Time for the line ``#open``: that of the first packet, or None to leave out the line.
    """

    def __init__(self, output: Output, *, opened: int | None) -> None:
        self.output = output
        self._head = _head(opened)

    def write(self, rows: Sequence[ZeekRow]) -> None:
        """Add rows.

        Raises
        ------
        OSError
            If the output cannot be written.
        """
        lines = [_line(row) for row in rows]
        if lines:
            self._put([*self._head, *lines])
            self._head = []

    def finish(self, *, closed: int | None) -> None:
        """Write the header if no row has come, and the line ``#close``; finish the output.

        Parameters
        ----------
        closed
            Time for that line: that of the last packet, or None to leave out the line.
        """
        foot = [] if closed is None else [f"#close\t{_moment(closed)}"]
        self._put([*self._head, *foot])
        self._head = []
        self.output.finish()

    def discard(self) -> None:
        """Drop what was written."""
        self.output.discard()

    def _put(self, lines: list[str]) -> None:
        if lines:
            self.output.write("".join(f"{line}\n" for line in lines).encode("ascii"))


def _head(opened: int | None) -> list[str]:
    """Give the lines before the first row."""
    names, types = zip(*FIELDS, strict=True)
    return [
        "#separator \\x09",
        "#set_separator\t,",
        "#empty_field\t(empty)",
        f"#unset_field\t{UNSET}",
        "#path\tconn",
        *([] if opened is None else [f"#open\t{_moment(opened)}"]),
        "\t".join(("#fields", *names)),
        "\t".join(("#types", *types)),
    ]


def _line(row: ZeekRow) -> str:
    """Write a row."""
    cells = (
        _seconds(row.ts),
        row.uid,
        row.orig_h,
        row.orig_p,
        row.resp_h,
        row.resp_p,
        row.proto,
        None,
        None if row.duration is None else _seconds(row.duration),
        row.orig_bytes,
        row.resp_bytes,
        row.conn_state,
        None,
        None,
        row.missed_bytes,
        row.history,
        row.orig_pkts,
        row.orig_ip_bytes,
        row.resp_pkts,
        row.resp_ip_bytes,
        None,
        row.ip_proto,
    )
    return "\t".join(UNSET if cell is None else str(cell) for cell in cells)


def _seconds(nanoseconds: int) -> str:
    """Write a time as Zeek does: seconds with six digits, the last one rounded."""
    sign = "-" if nanoseconds < 0 else ""
    seconds, micros = divmod((abs(nanoseconds) + 500) // 1000, 1_000_000)
    return f"{sign}{seconds}.{micros:06}"


def _moment(nanoseconds: int) -> str:
    """Write a time for ``#open`` and ``#close``: Universal Time."""
    moment = _EPOCH + timedelta(seconds=nanoseconds // 1_000_000_000)
    return moment.strftime("%Y-%m-%d-%H-%M-%S")
