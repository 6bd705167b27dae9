"""A comparison in lines for a person: the numbers first, then what needs looking at, aligned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fragtrack.conntrack.convert import from_connection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fragtrack.conntrack.compare import Comparison, Difference, Pair
    from fragtrack.conntrack.entry import Entry

_LABELS: Final = {
    "packets_orig": "packets",
    "bytes_orig": "bytes",
    "packets_reply": "reply packets",
    "bytes_reply": "reply bytes",
}
_YES: Final = {"assured": "ASSURED", "unreplied": "UNREPLIED"}

Row = tuple[str, str, str]
"""Kind, connection, what there is to say."""


def report(comparison: Comparison, limit: int | None) -> list[str]:
    """Tell a comparison in lines."""
    c = comparison
    kinds: list[tuple[str, list[Row]]] = [
        ("different", [("differs", _name(p.entry), _told(p)) for p in c.different]),
        ("reversed", [("reversed", _name(p.entry), _turned(p)) for p in c.reversed]),
        ("ended in the capture", [("ended", _name(p.entry), _ended(p)) for p in c.ended]),
        ("only in the dump", [("dump only", _name(e), _state(e)) for e in c.only_dump]),
        (
            "only in the capture",
            [
                ("capture only", _name(entry), f"{_state(entry)} (connection {row.id})".lstrip())
                for row in c.only_capture
                for entry in (from_connection(row),)
            ],
        ),
    ]
    counts = [f"{len(c.same)} the same", *(f"{len(rows)} {kind}" for kind, rows in kinds if rows)]
    shown: list[Row] = []
    hidden: list[str] = []
    for kind, rows in kinds:
        shown += rows[:limit]
        if limit is not None and len(rows) > limit:
            hidden.append(f"... and {len(rows) - limit} more {kind}")
    return [", ".join(counts), *_aligned(shown), *hidden]


def _aligned(rows: Sequence[Row]) -> list[str]:
    widths = [max((len(row[n]) for row in rows), default=0) for n in (0, 1)]
    return [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]


def _name(entry: Entry) -> str:
    """Name an entry: protocol, both ends, and what else tells it apart."""
    side = entry.original
    name = entry.protocol_name
    if name == "unknown":
        name = f"proto {entry.protocol}"
    text = f"{name} {_end(side.src, side.sport)} > {_end(side.dst, side.dport)}"
    if side.icmp_type is not None:
        text += f" type {side.icmp_type} id {side.icmp_id}"
    if side.srckey or side.dstkey:
        text += f" keys 0x{side.srckey or 0:x} 0x{side.dstkey or 0:x}"
    zone = entry.zone or side.zone
    return f"{text} zone {zone}" if zone else text


def _end(address: str, port: int | None) -> str:
    if port is None:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _state(entry: Entry) -> str:
    words = [] if entry.state is None else [entry.state]
    words += ["UNREPLIED"] if entry.unreplied else []
    words += ["ASSURED"] if entry.assured else []
    words += [entry.offload] if entry.offload is not None else []
    words += [f"{entry.timeout} s left"] if entry.timeout is not None else []
    return " ".join(words)


def _told(pair: Pair) -> str:
    return "; ".join(_difference(difference) for difference in pair.differences) or "nothing else"


def _turned(pair: Pair) -> str:
    text = "the capture has it the other way round"
    return f"{text}; {_told(pair)}" if pair.differences else text


def _ended(pair: Pair) -> str:
    return (
        f"dump {_state(pair.entry)}, capture: {pair.connection.end}"
        f" (connection {pair.connection.id})"
    )


def _difference(difference: Difference) -> str:
    name = difference.field
    if name in _YES:
        has, lacks = ("dump", "capture") if difference.dump else ("capture", "dump")
        return f"{_YES[name]} in the {has}, not in the {lacks}"
    dump, capture = difference.dump, difference.capture
    return f"{_LABELS.get(name, name)} {dump} in the dump, {capture} in the capture"
