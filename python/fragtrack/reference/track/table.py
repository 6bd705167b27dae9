"""Tables that come out: connections and verdicts, as rows, or as Arrow through pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.verdicts import Connection

ADVICE: Final = "Arrow tables of the reference need pyarrow: pip install 'fragtrack[parquet]'"

OPTIONAL: Final = "?"
"""Marks a column that may lack values."""

CONNECTION_TYPES: Final = {
    "id": "uint64",
    "time_first": "time",
    "time_last": "time",
    "ip_version": "uint8",
    "protocol": "uint8",
    "src": "string",
    "sport": "uint16?",
    "dst": "string",
    "dport": "uint16?",
    "vlan": "string?",
    "state": "string?",
    "assured": "bool_",
    "reply_seen": "bool_",
    "packets_orig": "uint64",
    "bytes_orig": "uint64",
    "packets_reply": "uint64",
    "bytes_reply": "uint64",
    "fragments": "uint32",
    "invalid": "uint32",
    "end": "string",
    "timeout": "uint32?",
    "zone": "uint64",
    "icmp_type": "uint8?",
    "icmp_code": "uint8?",
    "icmp_id": "uint16?",
    "gre_srckey": "uint16?",
    "gre_dstkey": "uint16?",
}
"""Columns of connections, in order, with their Arrow types."""

VERDICT_TYPES: Final = {
    "frame": "uint64",
    "connection": "uint64?",
    "class": "string",
    "direction": "string?",
    "state": "string?",
    "reason": "string?",
    "got": "uint32?",
    "bound": "uint32?",
}
"""Columns of verdicts, in order, with their Arrow types."""


class VerdictRow(NamedTuple):
    """The verdict on one frame; fields as in `fragtrack.verdicts.Verdict`."""

    frame: int
    connection: int | None
    ct_class: str
    direction: str | None
    state: str | None
    reason: str | None
    got: int | None
    bound: int | None


class Connections:
    """Connections, in order.

    Parameters
    ----------
    rows : sequence of Connection
    """

    def __init__(self, rows: Sequence[Connection]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> list[Connection]:
        """Return the connections one by one."""
        return list(self._rows)

    def __arrow_c_schema__(self) -> object:
        """Export the schema (Arrow PyCapsule interface)."""
        return _table(CONNECTION_TYPES, []).schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the table (Arrow PyCapsule interface).

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        """
        cells = [_cells(row) for row in self._rows]
        return _table(CONNECTION_TYPES, cells).__arrow_c_stream__(requested_schema)


class Verdicts:
    """Verdicts, in the order of frames.

    Parameters
    ----------
    rows : sequence of VerdictRow
    """

    def __init__(self, rows: Sequence[VerdictRow]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> list[VerdictRow]:
        """Return the verdicts one by one."""
        return list(self._rows)

    def __arrow_c_schema__(self) -> object:
        """Export the schema (Arrow PyCapsule interface)."""
        return _table(VERDICT_TYPES, []).schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the table (Arrow PyCapsule interface).

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        """
        return _table(VERDICT_TYPES, self._rows).__arrow_c_stream__(requested_schema)


def _cells(row: Connection) -> tuple[Any, ...]:
    """Lay a connection out in columns."""
    named = {name: getattr(row, name, None) for name in CONNECTION_TYPES}
    named["gre_srckey"], named["gre_dstkey"] = row.gre_key or (None, None)
    return tuple(named.values())


def _table(types: dict[str, str], rows: Sequence[tuple[Any, ...]]) -> Any:  # noqa: ANN401
    """Make an Arrow table."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(ADVICE) from error
    times = {"time": pa.timestamp("ns", "UTC")}
    fields = []
    for name, kind in types.items():
        bare = kind.removesuffix(OPTIONAL)
        known = times.get(bare) or getattr(pa, bare)()
        fields.append(pa.field(name, known, nullable=kind.endswith(OPTIONAL)))
    schema = pa.schema(fields)
    arrays = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)
