"""Fragments of a given range, and outcomes as plain rows that can be compared across backends."""

from __future__ import annotations

from typing import Any

from fragtrack.testing import builders

UNIT = 8  # bytes: what a fragment offset counts
PLAIN = 253  # a protocol number for experiments: nothing inside is looked at


def fragment(
    version: int,
    start: int,
    data: bytes,
    *,
    more: bool,
    ident: int = 1,
    **fields: Any,
) -> bytes:
    """Build one fragment that carries `data` from byte `start` on."""
    if version == 4:
        fields = {"protocol": PLAIN, **fields}
        return builders.ipv4(data, id=ident, offset=start, mf=more, **fields)
    fields = {"next_header": PLAIN, **fields}
    return builders.ipv6_fragment(data, id=ident, offset=start, more=more, **fields)


def outcome_row(outcome: Any) -> dict[str, Any]:  # noqa: ANN401
    """Give everything an outcome says."""
    names = ("kind", "reason", "packet", "icmp", "datagram")
    row = {name: getattr(outcome, name) for name in names}
    return row | {"given_up": list(outcome.given_up)}


def state_row(reassembler: Any) -> dict[str, Any]:  # noqa: ANN401
    """Give everything a reassembler tells about itself."""
    return {
        "counters4": dict(reassembler.counters4),
        "counters6": dict(reassembler.counters6),
        "reasons": dict(reassembler.reasons),
        "queues": reassembler.queues,
        "memory": reassembler.memory,
    }
