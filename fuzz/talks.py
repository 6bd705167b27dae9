"""Drawn conversations: TCP that mostly makes sense, and everything else that is tracked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragtrack.testing import (
    Talk,
    fragment,
    gre,
    icmp_error,
    icmp_query,
    icmpv6_error,
    icmpv6_query,
    ipv4,
    ipv6,
    sctp,
    sctp_abort,
    sctp_chunk,
    sctp_cookie_ack,
    sctp_cookie_echo,
    sctp_heartbeat,
    sctp_init,
    sctp_init_ack,
    sctp_shutdown,
    sctp_shutdown_ack,
    sctp_shutdown_complete,
    tcp_options,
    udp,
    udplite,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

HOSTS = {4: ("192.0.2.1", "192.0.2.9"), 6: ("2001:db8::1", "2001:db8::9")}
LIFE = ("cS", "sSA", "cA", "cPA", "sA", "sPA", "cA", "cFA", "sFA", "cA")
ODD = ("S", "SA", "A", "PA", "FA", "R", "RA", "F", "SF", "", "SR", "AU", "SEC")
JUMPS = (0, 1, -1, 100, -100, 1000, 65_535, 65_536, 66_000, -66_000, -66_001, 1 << 31)
NUMBERS = (0, 1, 1000, 0xFFFF_FFF0, 0x7FFF_FFF0)


def packets(random: Random, count: int) -> list[bytes]:
    """Draw packets of a few conversations at once."""
    lanes = [_lane(random, number) for number in range(random.choice([1, 1, 2, 4]))]
    drawn: list[bytes] = []
    while len(drawn) < count:
        packet = next(random.choice(lanes))
        if drawn and random.random() < 0.06:
            packet = _error(random, random.choice(drawn))
        drawn += _mangled(random, packet)
    return drawn


def _mangled(random: Random, packet: bytes) -> list[bytes]:
    """Leave a packet as it is, mostly; or lose, cut, change or fragment it."""
    how = random.random()
    if how < 0.03:
        return []
    if how < 0.05:
        return [packet[: random.randrange(len(packet))]]
    if how < 0.08:
        changed = bytearray(packet)
        changed[random.randrange(min(len(packet), 80))] ^= 1 << random.randrange(8)
        return [bytes(changed)]
    if how < 0.12 and len(packet) > 68:
        pieces = list(fragment(packet, sizes=[16]))
        random.shuffle(pieces)
        return pieces
    if how < 0.14:
        return [packet + bytes(random.randrange(1, 20))]
    return [packet]


def _lane(random: Random, number: int) -> Iterator[bytes]:
    version = random.choice([4, 6])
    kind = random.choice([_tcp, _tcp, _tcp, _sctp, _others])
    return kind(random, version, 1000 + number)


def _wrapped(random: Random, version: int, protocol: int, payload: bytes, side: int) -> bytes:
    hosts = HOSTS[version]
    src, dst = hosts if side == 0 else hosts[::-1]
    if random.random() < 0.05:
        dst = src
    if version == 4:
        return ipv4(payload, src=src, dst=dst, protocol=protocol)
    return ipv6(payload, src=src, dst=dst, next_header=protocol)


def _tcp(random: Random, version: int, port: int) -> Iterator[bytes]:
    """Live over and over; now and then leave a step out, or do something odd."""
    hosts = HOSTS[version]
    while True:
        talk = Talk(
            client=hosts[0],
            server=hosts[1],
            version=version,
            sport=port,
            dport=80,
            client_isn=random.choice(NUMBERS),
            server_isn=random.choice(NUMBERS),
            window=random.choice([65535, 1000, 1, 0]),
        )
        sides = {"c": talk.client, "s": talk.server}
        for step in LIFE[: random.randrange(2, len(LIFE) + 1)]:
            if random.random() < 0.05:
                continue
            yield sides[step[0]](step[1:], _payload(random, step), options=_options(random, step))
            while random.random() < 0.3:
                yield _odd(random, sides[random.choice("cs")])


def _payload(random: Random, step: str) -> bytes:
    return random.choice([b"x" * 10, b"y" * 500, b"z" * 1400]) if "P" in step else b""


def _options(random: Random, step: str) -> bytes:
    if random.random() < 0.1:
        return random.randbytes(4 * random.randrange(1, 6))
    if "S" in step:
        scale = random.choice([None, 0, 7, 14, 15])
        return tcp_options(mss=1460, wscale=scale, sack_permitted=random.random() < 0.6)
    return random.choice([b"", b"", tcp_options(timestamps=(1, 2))])


def _odd(random: Random, side: Any) -> bytes:  # noqa: ANN401
    """Draw a segment somewhere around where this side is."""
    seq = side.next + random.choice(JUMPS) if random.random() < 0.5 else side.next
    ack = side.peer.next + random.choice(JUMPS) if random.random() < 0.4 else side.peer.next
    options = b""
    if random.random() < 0.2:
        edge = side.peer.at(side.peer.next + random.choice(JUMPS)) & 0xFFFF_FFFF
        options = tcp_options(sack=[(edge, edge)])
    value = random.choice([None] * 15 + [0, 0x1234])
    payload = random.choice([b"", b"", b"data", b"w" * 1400])
    flags = random.choice(ODD)
    return bytes(side(flags, payload, seq=seq, ack=ack, options=options, checksum_value=value))


def _sctp(random: Random, version: int, port: int) -> Iterator[bytes]:
    tags = [random.randrange(3), random.randrange(3)]
    chunks = (
        lambda: sctp_init(random.randrange(3)),
        lambda: sctp_init_ack(random.randrange(3)),
        sctp_cookie_echo,
        sctp_cookie_ack,
        sctp_heartbeat,
        lambda: sctp_heartbeat(ack=True),
        sctp_shutdown,
        sctp_shutdown_ack,
        sctp_shutdown_complete,
        sctp_abort,
        lambda: sctp_chunk(random.choice([0, 3, 9, 64]), random.randrange(2), b"body"),
    )
    while True:
        side = random.randrange(2)
        drawn = [random.choice(chunks)() for _ in range(random.choice([1, 1, 1, 2, 3, 0]))]
        ends = (port, 38412) if side == 0 else (38412, port)
        tag = random.choice([tags[side], tags[side], 0, 1])
        packet = sctp(drawn, vtag=tag, sport=ends[0], dport=ends[1])
        yield _wrapped(random, version, 132, packet, side)


def _others(random: Random, version: int, port: int) -> Iterator[bytes]:
    hosts = HOSTS[version]
    while True:
        side = random.randrange(2)
        src, dst = hosts if side == 0 else hosts[::-1]
        ends = {"src": src, "dst": dst}
        ports = {"sport": port, "dport": 53} if side == 0 else {"sport": 53, "dport": port}
        kind = random.randrange(6)
        if kind == 0:
            protocol, payload = 17, udp(b"query", **ends, **ports)
        elif kind == 1:
            protocol, payload = 136, udplite(b"query", **ends, **ports, coverage=8)
        elif kind == 2 and version == 4:
            protocol, payload = 1, icmp_query(random.choice([0, 8, 8, 13, 14, 30]), ident=port)
        elif kind == 2:
            number = random.choice([128, 128, 129, 135, 139, 200])
            protocol, payload = 58, icmpv6_query(number, **ends, ident=port)
        elif kind == 3:
            call = random.choice([None, port])
            one = call is not None
            payload = gre(b"inner", protocol=0x880B if one else 0x0800, version=one, call_id=call)
            protocol = 47
        else:
            protocol, payload = random.choice([(50, b"sealed bytes"), (89, b"hello")])
        yield _wrapped(random, version, protocol, payload, side)


def _error(random: Random, about: bytes) -> bytes:
    """Draw an ICMP error about a packet, to its sender or to somebody else."""
    quote = about[: random.choice([28, 60, 1000, 19])]
    version = about[0] >> 4 if about else 4
    if version != 6:
        return _wrapped(random, 4, 1, icmp_error(random.choice([3, 5, 11]), 0, quote), 1)
    ends = {"src": HOSTS[6][1], "dst": HOSTS[6][0]}
    return _wrapped(random, 6, 58, icmpv6_error(random.choice([1, 2, 3]), 0, quote, **ends), 1)
