"""Strategies: packets of every protocol that is tracked, few endpoints, right and wrong ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fragtrack.testing import (
    gre,
    icmp_error,
    icmp_query,
    icmpv6_error,
    icmpv6_query,
    ipv4,
    ipv6,
    sctp,
    sctp_chunk,
    sctp_init,
    sctp_init_ack,
    tcp,
    tcp_options,
    udp,
    udplite,
)

Parts = tuple[str, str, int, bytes]
"""Source, destination, protocol, and what is behind the IP header."""

FLAGS = ("S", "SA", "A", "PA", "FA", "R", "RA", "F", "SF", "", "SU", "AU", "FAU", "SR", "SE", "SAC")
USUAL = ("S", "SA", "A", "A", "PA", "FA", "R") * 3
CHUNKS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 64)
BASES = (0, 0xFFFF_FF00, 0x7FFF_FF00)

hosts = {
    4: st.sampled_from(["192.0.2.1", "192.0.2.2", "198.51.100.1"]),
    6: st.sampled_from(["2001:db8::1", "2001:db8::2", "fe80::1"]),
}
ports = st.sampled_from([1, 80, 40000])
numbers = st.one_of(
    st.integers(0, 40),
    st.sampled_from([101, 1000, 65_536, 66_000, 66_001, 70_000, 1 << 31, (1 << 32) - 1]),
)


@st.composite
def options(draw: st.DrawFn) -> bytes:
    """TCP options: none, usual ones, and broken ones."""
    if draw(st.booleans()):
        return b""
    if draw(st.integers(0, 9)) == 0:
        words = draw(st.integers(1, 10))
        return draw(st.binary(min_size=4 * words, max_size=4 * words))
    return tcp_options(
        mss=draw(st.sampled_from([None, 1460])),
        wscale=draw(st.sampled_from([None, 0, 7, 14, 15])),
        sack_permitted=draw(st.booleans()),
        timestamps=draw(st.sampled_from([None, (1, 2)])),
        sack=draw(st.sampled_from([(), [(0, draw(numbers))]])),
    )


@st.composite
def segment(draw: st.DrawFn, ends: dict[str, Any], _: int) -> tuple[int, bytes]:
    """TCP."""
    base = draw(st.sampled_from(BASES))
    return 6, tcp(
        draw(st.sampled_from([b"", b"", b"x" * 10, b"y" * 700])),
        **ends,
        sport=draw(ports),
        dport=draw(ports),
        seq=(base + draw(numbers)) & 0xFFFF_FFFF,
        ack=(base + draw(numbers)) & 0xFFFF_FFFF,
        flags=draw(st.sampled_from(FLAGS + USUAL)),
        window=draw(st.sampled_from([0, 1, 1000, 65535])),
        options=draw(options()),
        checksum_value=draw(st.sampled_from([None] * 8 + ["bad", "offload"])),
    )


@st.composite
def datagram(draw: st.DrawFn, ends: dict[str, Any], _: int) -> tuple[int, bytes]:
    """UDP, UDP-Lite."""
    ends = {**ends, "sport": draw(ports), "dport": draw(ports)}
    if draw(st.integers(0, 3)) == 0:
        value = draw(st.sampled_from([None, 0, 0x1234]))
        coverage = draw(st.sampled_from([0, 8, 4]))
        return 136, udplite(b"data", **ends, coverage=coverage, checksum_value=value)
    length = draw(st.sampled_from([None, None, None, 7, 100]))
    value = draw(st.sampled_from([None, None, 0, 0x1234]))
    return 17, udp(b"data", **ends, length=length, checksum_value=value)


@st.composite
def association(draw: st.DrawFn, _: dict[str, Any], __: int) -> tuple[int, bytes]:
    """SCTP."""
    chunk = st.one_of(
        st.sampled_from([sctp_init(1), sctp_init(2), sctp_init_ack(1), sctp_init_ack(2)]),
        st.builds(sctp_chunk, st.sampled_from(CHUNKS), st.integers(0, 1), st.just(b"body")),
    )
    return 132, sctp(
        draw(st.lists(chunk, max_size=3)),
        vtag=draw(st.integers(0, 2)),
        sport=draw(ports),
        dport=draw(ports),
        crc=draw(st.sampled_from([None, None, 0, 1])),
    )


@st.composite
def query(draw: st.DrawFn, ends: dict[str, Any], version: int) -> tuple[int, bytes]:
    """ICMP and ICMPv6 that are no errors."""
    ident, bad = draw(st.integers(1, 2)), draw(st.integers(0, 9)) == 0
    if version == 4:
        kinds = st.sampled_from([0, 8, 8, 8, 13, 14, 17, 9, 19])
        return 1, icmp_query(draw(kinds), ident=ident, bad=bad)
    kinds = st.sampled_from([128, 128, 129, 135, 137, 139, 140, 143, 200])
    return 58, icmpv6_query(draw(kinds), **ends, ident=ident, bad=bad)


@st.composite
def error(draw: st.DrawFn, ends: dict[str, Any], version: int) -> tuple[int, bytes]:
    """ICMP and ICMPv6 errors about packets of these strategies, cut here and there."""
    quoted = draw(packets(version, KINDS[:-1]))[: draw(st.sampled_from([1000, 48, 28, 24, 19]))]
    if version == 4:
        return 1, icmp_error(draw(st.sampled_from([3, 4, 5, 11, 12])), 0, quoted)
    return 58, icmpv6_error(draw(st.sampled_from([1, 2, 3, 4])), 0, quoted, **ends)


@st.composite
def other(draw: st.DrawFn, _: dict[str, Any], __: int) -> tuple[int, bytes]:
    """GRE of both versions, protocols without ports, and bytes without sense."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return 47, gre(b"data", protocol=draw(st.sampled_from([0x0800, 0x880B])))
    if kind == 1:
        call = draw(st.integers(1, 2))
        return 47, gre(b"data", version=1, protocol=0x880B, call_id=call)
    if kind == 2:
        return draw(st.sampled_from([50, 89, 33])), b"whatever"
    return draw(st.sampled_from([6, 17, 132, 1, 58, 47])), draw(st.binary(max_size=30))


KINDS = (*(segment,) * 8, datagram, datagram, association, association, query, other, error)


@st.composite
def packets(draw: st.DrawFn, version: int | None = None, kinds: tuple[Any, ...] = KINDS) -> bytes:
    """One packet from its IP header on."""
    version = version or draw(st.sampled_from([4, 6]))
    ends = {"src": draw(hosts[version]), "dst": draw(hosts[version])}
    protocol, payload = draw(draw(st.sampled_from(kinds))(ends, version))
    if version == 4:
        return ipv4(payload, **ends, protocol=protocol)
    return ipv6(payload, **ends, next_header=protocol)
