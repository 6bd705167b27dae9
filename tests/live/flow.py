"""A flow: what two ends say to each other through a machine that tracks connections."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fragtrack.testing import (
    Extension,
    destination_options,
    fragment,
    hop_by_hop,
    ipv4,
    ipv6,
    routing,
)

if TYPE_CHECKING:
    import random

CLIENT, SERVER = 0, 1
AUTHENTICATION = Extension(51, bytes(6))  # 8 bytes: a length of 0 words beyond the first two


@dataclass(slots=True)
class Step:
    """One packet, or (`packet` is None) a look at what has happened by then.

    Attributes
    ----------
    side
        Whose network it comes from: 0 the client's, 1 the server's.
    at
        Milliseconds from the first step.
    whole
        Of a fragment: the packet that it is a piece of.
    """

    side: int
    packet: bytes | None
    note: str = ""
    at: int = 0
    whole: bytes | None = None


@dataclass(slots=True)
class Flow:
    """Packets between a client and a server that nobody else talks to.

    Attributes
    ----------
    kind
        Which generator made it.
    version
        IP version.
    number
        Chooses the addresses: flows of different numbers never meet.
    settings
        Sysctls that differ from the default, without ``net.netfilter.nf_conntrack_``.
    now
        Milliseconds at which the next step happens.
    """

    kind: str
    version: int
    number: int
    settings: dict[str, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    now: int = 0

    @property
    def ends(self) -> tuple[str, str]:
        """Addresses of the client and of the server."""
        return self.address(CLIENT), self.address(SERVER)

    def address(self, side: int, other: int = 0) -> str:
        """Give the address of an end, or of the `other`-th stranger (1 to 3) in its network."""
        host = 256 + self.number % 8000 * 8 + other
        if self.version == 4:
            return str(ipaddress.IPv4Address((198 << 24) + (18 + side << 16) + host))
        return str(ipaddress.IPv6Address(f"2001:db8:{'ab'[side]}::{host:x}"))

    def between(self, side: int) -> dict[str, Any]:
        """Give `src` and `dst` of what a side sends."""
        return {"src": self.address(side), "dst": self.address(1 - side)}

    def wrap(self, side: int, protocol: int, payload: bytes, **fields: Any) -> bytes:
        """Put a payload into an IP packet of a side."""
        fields = {**self.between(side), **fields}
        if self.version == 4:
            fields.setdefault("id", len(self.steps) + 1)
            return ipv4(payload, protocol=protocol, **fields)
        return ipv6(payload, next_header=protocol, **fields)

    def add(self, side: int, packet: bytes | None, note: str = "") -> None:
        """Write a whole packet."""
        self.steps.append(Step(side, packet, note, self.now))

    def send(self, side: int, protocol: int, payload: bytes, note: str = "", **fields: Any) -> None:
        """Write a payload in an IP packet of a side."""
        self.add(side, self.wrap(side, protocol, payload, **fields), note)

    def extras(self, rng: random.Random) -> dict[str, Any]:
        """Choose, for a few packets, IP options or extension headers as a host may send them."""
        if rng.random() < 0.9:
            return {}
        if self.version == 4:
            return {"options": rng.choice((b"\1\1\1\0", b"\1" * 8, bytes(40))), "tos": 8}
        known = (hop_by_hop(), routing(), AUTHENTICATION, destination_options())
        return {"extensions": [header for header in known if rng.random() < 0.5]}

    def again(self, rng: random.Random, *, reach: int = 4) -> None:
        """Write one of the last packets once more."""
        step = rng.choice(self.steps[-reach:])
        self.add(step.side, step.packet, f"{step.note} again")

    def wait(self, milliseconds: int) -> None:
        """Let time pass, and look: what has run out is gone, and announced, before what follows."""
        self.now += milliseconds
        self.add(CLIENT, None, "look")

    def cut(self, rng: random.Random) -> None:
        """Replace one of the packets by its fragments, sometimes out of order or incomplete."""
        at = rng.randrange(len(self.steps))
        step = self.steps[at]
        if step.packet is None or len(step.packet) < (52 if self.version == 4 else 72):
            return
        size = rng.choice((24, 32, 64, 256))
        pieces = fragment(step.packet, [size], id=at + 1)
        if rng.random() < 0.3:
            rng.shuffle(pieces)
        if rng.random() < 0.1:
            pieces.pop(rng.randrange(len(pieces)))
        self.steps[at : at + 1] = [
            Step(step.side, piece, f"{step.note} fragment", step.at, step.packet)
            for piece in pieces
        ]

    def pad(self, rng: random.Random) -> None:
        """Put bytes behind the end of one of the packets, as Ethernet does with short ones."""
        step = rng.choice(self.steps)
        if step.packet is not None:
            step.packet += rng.randbytes(rng.randint(1, 20))
