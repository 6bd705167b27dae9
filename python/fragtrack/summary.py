"""What a run found and did, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fragtrack.sources.base import Damage


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run found and did.

    Attributes
    ----------
    packets
        Packets read.
    bytes
        Bytes of capture read, after any inflating.
    fragments
        Fragments seen, under ``ipv4`` and ``ipv6``.
    datagrams
        Datagrams that were put together (``complete``) and that were not (``incomplete``).
    written
        Packets written to the output.
    reasons
        Fragments that did not become part of a complete datagram, by reason; only those above 0.
    given_up
        Datagrams that were not put together, by reason; only those above 0. A fragment that is
        refused before it belongs to any datagram is in `reasons` alone.
    anomalies
        What is odd about the input and cost nothing, by name.
    seconds
        Wall time of the run.
    damages
        Where inputs broke, one for each that did, in the order of the inputs.
    interrupted
        The run was stopped before the input ended; everything up to there is in the output.
    """

    packets: int = 0
    bytes: int = 0
    fragments: dict[str, int] = field(default_factory=dict)
    datagrams: dict[str, int] = field(default_factory=dict)
    written: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    given_up: dict[str, int] = field(default_factory=dict)
    anomalies: dict[str, int] = field(default_factory=dict)
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
            "fragments": dict(self.fragments),
            "datagrams": dict(self.datagrams),
            "written": self.written,
            "reasons": dict(self.reasons),
            "anomalies": dict(self.anomalies),
            "seconds": self.seconds,
            "damaged": self.damaged._asdict() if self.damaged else None,
        }
