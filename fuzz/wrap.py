"""Random frames and capture files around random packets; each depends on the `Random` alone."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from generate import SECOND, packets, times

from fragtrack.testing import captures, links

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


def capture(random: Random, count: int) -> bytes:
    """Draw a whole capture file."""
    inner = list(zip(times(random, count), packets(random, count), strict=True))
    return _pcap(random, inner) if random.random() < 0.45 else _pcapng(random, inner)


def _pcap(random: Random, inner: list[tuple[int, bytes]]) -> bytes:
    link = random.choice(LINK_TYPES)
    order: captures.ByteOrder = "big" if random.random() < 0.3 else "little"
    modified = random.random() < 0.1
    resolution: captures.Resolution = "ns" if random.random() < 0.3 and not modified else "us"
    high = random.choice([0, 0, 0, 0xF400_0000])
    data = captures.pcap_header(
        link=link | high,
        order=order,
        resolution=resolution,
        modified=modified,
        snaplen=random.choice([262144, 65535, 0, 96, 1 << 31]),
    )
    for time, packet in inner:
        frame = LINKS[link](random, packet)
        wire = len(frame)
        if random.random() < 0.03:
            frame = frame[: random.randrange(len(frame) + 1)]
        odd = random.random() < 0.02
        data += captures.pcap_record(
            frame,
            time_ns=time,
            order=order,
            resolution=resolution,
            modified=modified,
            wire=wire,
            seconds=min(time // SECOND, 0xFFFF_FFFF),
            fraction=random.choice([999_999, 1_000_000, 0xFFFF_FFFF]) if odd else None,
        )
    return data


def _pcapng(random: Random, inner: list[tuple[int, bytes]]) -> bytes:
    file = captures.Pcapng()
    interfaces = _section(random, file)
    for time, packet in inner:
        if random.random() < 0.04:
            interfaces = _section(random, file)
        elif random.random() < 0.03:
            interfaces.append(_interface(random, file))
        number = random.randrange(len(interfaces)) if interfaces else 0
        link = interfaces[number] if interfaces else 1
        _block(random, file, time, number, LINKS[link](random, packet))
    return file.data


def _options(random: Random) -> list[captures.Option]:
    drawn = [
        captures.comment("a comment"),
        captures.Option(2, struct.pack("<I", 1)),
        captures.Option(3, b"\x02" + bytes(4)),
        captures.Option(4, bytes(8)),
        captures.Option(2988, b"\0\0\0\x2acustom"),
        captures.Option(0x8001, random.randbytes(random.randrange(9))),
        captures.Option(5, b"abc", length=random.choice([0, 3, 200, 65535])),
        captures.Option(0, b""),
    ]
    return [random.choice(drawn) for _ in range(random.choice([0, 0, 0, 1, 2, 4]))]


def _section(random: Random, file: captures.Pcapng) -> list[int]:
    order: captures.ByteOrder = "big" if random.random() < 0.3 else "little"
    length = random.choice([-1, -1, -1, 0, 48])
    file.section(order, length=length, options=_options(random))
    return [_interface(random, file) for _ in range(random.choice([0, 1, 1, 1, 1, 2, 3]))]


def _interface(random: Random, file: captures.Pcapng) -> int:
    link = random.choice(LINK_TYPES) if random.random() < 0.3 else 1
    file.interface(
        link=link,
        snaplen=random.choice([262144, 262144, 0, 60, 65535]),
        tsresol=random.choice([None, None, 6, 9, 9, 3, 0, 12, 18, 0x8A, 0x94]),
        tsoffset=random.choice([None, None, None, 1, -1]),
        options=_options(random),
    )
    return link


def _block(random: Random, file: captures.Pcapng, time: int, number: int, frame: bytes) -> None:
    wire = len(frame)
    if random.random() < 0.03:
        frame = frame[: random.randrange(len(frame) + 1)]
    ticks = max(0, min(file.ticks(time, number), (1 << 64) - 1))
    kind = random.random()
    if kind < 0.05:
        file.simple(frame, wire=wire)
    elif kind < 0.12 and ticks == file.ticks(time, number):
        file.obsolete(frame, time_ns=time, interface=number, wire=wire, options=_options(random))
    elif kind < 0.15:
        file.statistics(number, options=_options(random))
    elif kind < 0.18:
        file.block(random.choice([4, 10, 0xBAD, 0x8000_0001]), random.randbytes(12))
    else:
        options = _options(random)
        file.packet(frame, ticks=ticks, interface=number, wire=wire, options=options)


def _ethernet(random: Random, inner: bytes) -> bytes:
    tags = random.choice([0, 0, 0, 0, 1, 1, 2, 4, 5])
    kind = random.random()
    return links.ethernet(
        inner,
        vlans=[random.choice([1, 1, 2, 0x2001, 0xFFF]) for _ in range(tags)],
        tag_types=[random.choice([0x8100, 0x88A8, 0x9100, 0x9200, 0x9300]) for _ in range(tags)],
        labels=[16] * random.choice([1, 2, 16, 17]) if kind < 0.06 else (),
        session=random.choice([1, 7]) if 0.06 < kind < 0.12 else None,
        snap=0.12 < kind < 0.16,
        minimum=random.choice([0, 60]),
    )


def _pppoe(random: Random, inner: bytes) -> bytes:
    compressed = random.random() < 0.5
    length = random.choice([None, None, None, 0, 9, 65535])
    return links.pppoe(inner, compressed=compressed, length=length, code=random.random() < 0.1)


def _null(random: Random, inner: bytes) -> bytes:
    order: captures.ByteOrder = "big" if random.random() < 0.5 else "little"
    return links.null(inner, order=order, family=random.choice([0, 0, 0, 24, 28]))


def _ppp(random: Random, inner: bytes) -> bytes:
    return links.ppp(inner, address=random.random() < 0.5, compressed=random.random() < 0.5)


def _tags(random: Random) -> list[int]:
    return [random.choice([1, 2]) for _ in range(random.choice([0, 0, 0, 1, 2]))]


LINKS: dict[int, Callable[[Random, bytes], bytes]] = {
    links.LINK_ETHERNET: _ethernet,
    links.LINK_NULL: _null,
    links.LINK_LOOP: _null,
    links.LINK_PPP: _ppp,
    links.LINK_PPP_HDLC: _ppp,
    links.LINK_PPPOE: _pppoe,
    links.LINK_C_HDLC: lambda random, inner: links.cisco_hdlc(
        inner, address=random.choice([0x0F, 0x8F])
    ),
    links.LINK_SLL: lambda random, inner: links.sll(inner, vlans=_tags(random)),
    links.LINK_SLL2: lambda random, inner: links.sll2(inner, vlans=_tags(random)),
    **{
        number: lambda _, inner: inner
        for number in (12, 14, links.LINK_RAW, links.LINK_IPV4, links.LINK_IPV6, 147, 0xFFFF)
    },
}
LINK_TYPES = [links.LINK_ETHERNET] * 8 + list(LINKS)
