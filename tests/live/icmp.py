"""Random ICMP and ICMPv6: queries, errors about all kinds of packets, discovery."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from fragtrack.testing import (
    fragment_header,
    gre,
    hop_by_hop,
    icmp_error,
    icmp_query,
    icmpv6_error,
    icmpv6_query,
    icmpv6_redirect,
    ipv4,
    ipv6,
    sctp,
    sctp_init,
    tcp,
    udp,
    udplite,
)
from tests.live.tuples import GRE, ICMP, ICMPV6, PAIRS, SCTP, TCP, UDP

if TYPE_CHECKING:
    import random

    from tests.live.flow import Flow

SETTINGS = ({"icmp_timeout": 41, "icmpv6_timeout": 42}, {"checksum": 0})
DISCOVERY = (130, 131, 132, 133, 134, 135, 136, 143, 151, 152)


def draw(rng: random.Random, flow: Flow) -> None:
    """Fill a flow with ICMP of the IP version that it has."""
    talk = Pings(rng, flow)
    for _ in range(rng.randint(2, 10)):
        chance, side = rng.random(), rng.randrange(2)
        if chance < 0.5:
            talk.ping(int(rng.random() < 0.35))
        elif chance < 0.62:
            talk.odd(side)
        elif chance < 0.72:
            talk.other(side)
        elif chance < 0.93:
            talk.complain(side)
        elif flow.steps:
            flow.again(rng)


class Pings:
    """Two hosts that query one another."""

    def __init__(self, rng: random.Random, flow: Flow) -> None:
        self.rng = rng
        self.flow = flow
        self.number = ICMP if flow.version == 4 else ICMPV6
        pairs = PAIRS[self.number]
        self.kind = rng.choice((8, 8, 13, 15, 17) if flow.version == 4 else (128, 128, 139))
        self.kinds = (self.kind, pairs[self.kind])
        self.ident = rng.getrandbits(16)

    def query(
        self, side: int, kind: int, code: int = 0, *, ident: int | None = None, bad: bool = False
    ) -> bytes:
        """Build a query or something that looks like one."""
        ident = self.ident if ident is None else ident
        data = self.rng.randbytes(self.rng.choice((0, 4, 12)))
        sequence = len(self.flow.steps)
        if self.flow.version == 4:
            return icmp_query(kind, data, code=code, ident=ident, sequence=sequence, bad=bad)
        ends = self.flow.between(side)
        return icmpv6_query(kind, data, code=code, ident=ident, sequence=sequence, bad=bad, **ends)

    def write(self, side: int, message: bytes, note: str) -> None:
        """Write a message."""
        fields = self.flow.extras(self.rng)
        self.flow.send(side, self.number, message, note, **fields)

    def ping(self, side: int) -> None:
        """Write a request or its answer, mostly by the right side."""
        kind = self.kinds[side if self.rng.random() < 0.9 else 1 - side]
        self.write(side, self.query(side, kind), f"type {kind}")

    def odd(self, side: int) -> None:
        """Write a query that is broken, or of another kind."""
        rng = self.rng
        kind = rng.choice((*self.kinds, *DISCOVERY, rng.randrange(256)))
        if self.flow.version == 6 and (kind < 128 or kind == 137):
            kind = 128
        code = rng.choice((0, 0, 1, 255))
        ident = rng.choice((self.ident, self.ident ^ 1))
        message = self.query(side, kind, code, ident=ident, bad=rng.random() < 0.2)
        if rng.random() < 0.2:
            message = message[: rng.randrange(9)]
        self.write(side, message, f"type {kind}/{code} {len(message)} bytes")

    def other(self, side: int) -> None:
        """Write a packet of another protocol, which errors may quote later."""
        rng, flow = self.rng, self.flow
        ends = flow.between(side)
        ports = (1000, 53) if side == 0 else (53, 1000)
        named: dict[str, Any] = {"sport": ports[0], "dport": ports[1]}
        number, payload = rng.choice(
            (
                (UDP, udp(b"data", **named, **ends)),
                (TCP, tcp(flags="S", seq=5, **named, **ends)),
                (SCTP, sctp(sctp_init(5), **named)),
                (GRE, gre(b"data")),
                (GRE, gre(b"data", version=1, call_id=7)),
                (99, b"data"),
            )
        )
        flow.send(side, number, payload, f"protocol {number}")

    def quoted(self, side: int) -> bytes:
        """Choose what an error of a side is about: something the other said, often changed."""
        rng, flow = self.rng, self.flow
        said = [step.packet for step in flow.steps if step.side != side and step.packet]
        truly = said and rng.random() < 0.75
        quote = rng.choice(said[-4:]) if truly else self.never_said(1 - side)
        chance = rng.random()
        if flow.version == 4 and chance < 0.2 and len(quote) >= 20:
            first, flags = rng.choice(((0x45, 0x2000), (0x45, 1), (0x44, 0), (0x4F, 0), (0x65, 0)))
            quote = bytes([first]) + quote[1:6] + struct.pack(">H", flags) + quote[8:]
        elif flow.version == 6 and chance < 0.2 and len(quote) >= 40:
            header = rng.choice((fragment_header(id=1, more=True), hop_by_hop()))
            if rng.random() < 0.3:
                header = fragment_header(id=1, offset=8)
            ends = flow.between(1 - side)
            quote = ipv6(quote[40:], next_header=quote[6], extensions=[header], **ends)
        if rng.random() < 0.4:
            head = 20 if flow.version == 4 else 40
            quote = quote[: head + rng.choice((-1, 0, 1, 3, 4, 7, 8, 20))]
        return quote

    def never_said(self, side: int) -> bytes:
        """Build a packet of a side that it did not send."""
        rng, flow = self.rng, self.flow
        ends = flow.between(side)
        number, payload = rng.choice(
            (
                (UDP, udp(b"data", sport=rng.getrandbits(16), **ends)),
                (136, udplite(b"data", **ends)),
                (self.number, self.query(side, rng.choice((*self.kinds, 3, 10, 42, 133, 200)))),
                (GRE, gre(b"data", version=1, protocol=0x0800, call_id=7)),
                (98, b""),
                (59, b""),
            )
        )
        if flow.version == 4:
            return ipv4(payload, protocol=number, **ends)
        return ipv6(payload, next_header=number, **ends)

    def complain(self, side: int) -> None:
        """Write an error."""
        rng, flow = self.rng, self.flow
        quote, ends = self.quoted(side), flow.between(side)
        if rng.random() < 0.2:
            ends["src"] = flow.address(side, 1)
        if rng.random() < 0.1:
            ends["dst"] = flow.address(1 - side, 2)
        bad = rng.random() < 0.05
        if flow.version == 4:
            kind = rng.choice((3, 3, 3, 4, 5, 11, 12, 6))
            error = icmp_error(kind, rng.randrange(16), quote, rest=rng.getrandbits(16), bad=bad)
            flow.send(side, ICMP, error, f"error {kind} quotes {len(quote)}", **ends)
        elif rng.random() < 0.25:
            self.redirect(side, quote, ends)
        else:
            kind = rng.choice((1, 1, 2, 3, 4, 0, 5, 127))
            rest = rng.getrandbits(16)
            error = icmpv6_error(kind, rng.randrange(8), quote, rest=rest, bad=bad, **ends)
            flow.send(side, ICMPV6, error, f"error {kind} quotes {len(quote)}", **ends)

    def redirect(self, side: int, quote: bytes, ends: dict[str, Any]) -> None:
        """Write a redirect of a router."""
        rng = self.rng
        if rng.random() < 0.9:
            ends["src"] = "fe80::1"
        there = rng.random() < 0.9
        message = icmpv6_redirect(quote, header_option=there, **ends)
        if rng.random() < 0.1:
            message = message[: rng.choice((8, 39, 40, 41, 47, 48, 60))]
        hops = rng.choice((255, 255, 255, 64))
        note = f"redirect quotes {len(quote)} of {ends['src']}"
        self.flow.send(side, ICMPV6, message, note, hop_limit=hops, **ends)
