"""What rows of tracking show: connections, verdicts, events."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from fragtrack.sinks.rows import Shape
from fragtrack.verdicts import VERDICT_COLUMNS, explain

if TYPE_CHECKING:
    from collections.abc import Callable

    from fragtrack.verdicts import Connection, Event, VerdictRow

_TYPES: Final = {
    "id": "uint64!",
    "time_first": "time!",
    "time_last": "time!",
    "ip_version": "uint8!",
    "protocol": "uint8!",
    "src": "string!",
    "sport": "uint16",
    "dst": "string!",
    "dport": "uint16",
    "vlan": "string",
    "state": "string",
    "assured": "bool_!",
    "reply_seen": "bool_!",
    "packets_orig": "uint64!",
    "bytes_orig": "uint64!",
    "packets_reply": "uint64!",
    "bytes_reply": "uint64!",
    "fragments": "uint32!",
    "invalid": "uint32!",
    "end": "string!",
    "timeout": "uint32",
    "zone": "uint64!",
    "icmp_type": "uint8",
    "icmp_code": "uint8",
    "icmp_id": "uint16",
    "gre_srckey": "uint16",
    "gre_dstkey": "uint16",
}
"""Columns of connections, in order, and their types."""

_GRE: Final = ("gre_srckey", "gre_dstkey")
_REPEATS: Final = ("protocol", "src", "dst", "dport", "vlan", "state", "end", "timeout")

_plain: Callable[[Connection], tuple[Any, ...]] = attrgetter(
    *(name for name in _TYPES if name not in _GRE)
)


def _connection(row: Connection) -> tuple[Any, ...]:
    return (*_plain(row), *(row.gre_key or (None, None)))


def _verdict(row: VerdictRow) -> tuple[Any, ...]:
    _, _, ct_class, _, _, reason, got, bound = row
    if reason is None or ct_class in {"held", "dropped"}:
        return (*row, None)
    return (*row, explain(reason, got, bound))


def _event(row: Event) -> tuple[Any, ...]:
    return (row.kind, row.time, row.frame, *_connection(row.connection))


CONNECTIONS: Final[Shape[Connection]] = Shape(tuple(_TYPES), _connection, _TYPES, _REPEATS)
"""Connections; the same columns in every format."""

VERDICTS: Final[Shape[VerdictRow]] = Shape(
    (*VERDICT_COLUMNS, "detail"),
    _verdict,
    {
        "frame": "uint64!",
        "connection": "uint64",
        "class": "string!",
        "got": "uint32",
        "bound": "uint32",
    },
    ("class", "direction", "state", "reason"),
)
"""Verdicts. `detail` tells `got` and `bound` in words; Parquet and Arrow go without it."""

EVENTS: Final[Shape[Event]] = Shape(
    ("kind", "time", "frame", *_TYPES),
    _event,
    {"kind": "string!", "time": "time!", "frame": "uint64", **_TYPES},
    ("kind", *_REPEATS),
)
"""Events, and the connection as it was right then."""
