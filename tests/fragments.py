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


def icmp_row(error: Any) -> tuple[Any, ...] | None:  # noqa: ANN401
    """Give everything an ICMP error says."""
    if error is None:
        return None
    return (error.version, error.type, error.code, error.rest, error.src, error.dst, error.quote)


def given_up_row(queue: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """Give everything a given-up datagram says."""
    return (
        queue.version,
        queue.src,
        queue.dst,
        queue.protocol,
        queue.id,
        queue.domain,
        queue.reason,
        queue.fragments,
        tuple(queue.frames),
        queue.time_first,
        queue.time_last,
        queue.length,
        icmp_row(queue.icmp),
    )


def datagram_row(datagram: Any) -> tuple[Any, ...] | None:  # noqa: ANN401
    """Give everything a datagram says."""
    if datagram is None:
        return None
    return (
        datagram.version,
        datagram.src,
        datagram.dst,
        datagram.protocol,
        datagram.id,
        datagram.domain,
        tuple(datagram.frames),
        datagram.fragments,
        datagram.time_first,
        datagram.time_last,
        datagram.length,
        datagram.payload,
        datagram.packet,
    )


def outcome_row(outcome: Any) -> dict[str, Any]:  # noqa: ANN401
    """Give everything an outcome says."""
    return {
        "kind": outcome.kind,
        "reason": outcome.reason,
        "packet": outcome.packet,
        "icmp": icmp_row(outcome.icmp),
        "given_up": [given_up_row(queue) for queue in outcome.given_up],
        "datagram": datagram_row(outcome.datagram),
    }


def state_row(reassembler: Any) -> dict[str, Any]:  # noqa: ANN401
    """Give everything a reassembler tells about itself."""
    return {
        "counters4": dict(reassembler.counters4),
        "counters6": dict(reassembler.counters6),
        "reasons": dict(reassembler.reasons),
        "queues": reassembler.queues,
        "memory": reassembler.memory,
    }
