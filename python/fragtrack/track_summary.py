"""What a run of tracking found, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fragtrack.sources.base import Damage

PROTOCOLS: Final = {
    1: "icmp",
    6: "tcp",
    17: "udp",
    33: "dccp",
    47: "gre",
    50: "esp",
    51: "ah",
    58: "icmpv6",
    132: "sctp",
    136: "udplite",
}
"""Names of IP protocols; the others are shown by their number."""


@dataclass(frozen=True, slots=True)
class TrackSummary:
    """What a run of tracking found.

    Attributes
    ----------
    packets
        Packets read.
    bytes
        Bytes of capture read, after any inflating.
    connections
        Connections seen.
    open
        Those that were still in the table at the end.
    protocols
        Connections by protocol: a name as ``tcp``, or the number.
    ends
        Connections by the way they ended, as in `fragtrack.Connection`.
    classes
        Packets by class, as in `fragtrack.Verdict`; only those above 0.
    reasons
        Packets by `fragtrack.TrackReason`; only those above 0.
    fragments
        Fragments seen, under ``ipv4`` and ``ipv6``.
    datagrams
        Datagrams that were put together (``complete``) and that were not (``incomplete``).
    orphans
        Fragments that did not become part of a complete datagram, by `fragtrack.Reason`.
    counters
        What the kernel would have counted, by its names.
    seconds
        Wall time of the run.
    damages
        Where inputs broke, one for each that did, in the order of the inputs.
    interrupted
        The run was stopped before the input ended; the numbers are those up to there.
    """

    packets: int = 0
    bytes: int = 0
    connections: int = 0
    open: int = 0
    protocols: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    fragments: dict[str, int] = field(default_factory=dict)
    datagrams: dict[str, int] = field(default_factory=dict)
    orphans: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    damages: tuple[Damage, ...] = ()
    interrupted: bool = False

    @property
    def damaged(self) -> Damage | None:
        """Where the first damaged input broke; None if all could be read."""
        return self.damages[0] if self.damages else None

    def as_dict(self) -> dict[str, Any]:
        """Give the object that ``--json`` prints: plain values only, keys as in the manual."""
        return {
            "packets": self.packets,
            "bytes": self.bytes,
            "connections": {
                "total": self.connections,
                "open": self.open,
                "protocols": dict(self.protocols),
                "ends": dict(self.ends),
            },
            "classes": dict(self.classes),
            "reasons": dict(self.reasons),
            "fragments": dict(self.fragments),
            "datagrams": dict(self.datagrams),
            "orphans": dict(self.orphans),
            "counters": dict(self.counters),
            "seconds": self.seconds,
            "damaged": self.damaged._asdict() if self.damaged else None,
        }


def ranked(counts: Mapping[Any, int]) -> dict[Any, int]:
    """Sort counts, the highest first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def named(protocols: Mapping[int, int]) -> dict[str, int]:
    """Sort counts of protocols, and name these."""
    return {PROTOCOLS.get(n, str(n)): count for n, count in ranked(protocols).items()}
