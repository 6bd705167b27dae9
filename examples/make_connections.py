"""Make ``connections.pcapng``: a few minutes at a firewall, with what makes it say INVALID.

The capture is the same on every run, byte for byte: its times, ports and numbers are constants,
its addresses those for documentation (RFC 5737, RFC 3849, RFC 7042). Each scene is a connection,
or what was meant to be one; what is odd has a comment in the capture.

Usage: ``python make_connections.py [OUTPUT]`` (default: ``connections.pcapng`` beside this file).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fragtrack.testing import (
    Option,
    Pcapng,
    Talk,
    comment,
    ethernet,
    fragment,
    icmp_echo,
    icmp_error,
    ipv4,
    ipv6,
    pattern,
    sctp,
    sctp_cookie_ack,
    sctp_cookie_echo,
    sctp_data,
    sctp_init,
    sctp_init_ack,
    sctp_sack,
    sctp_shutdown,
    sctp_shutdown_ack,
    sctp_shutdown_complete,
    tcp_options,
    udp,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

START = 1_767_614_400_000_000_000  # 2026-01-05 12:00:00 UTC, in nanoseconds
ICMP, TCP, UDP, SCTP = 1, 6, 17, 132  # protocol numbers (IANA)

CLIENT, SERVER, RESOLVER = "192.0.2.10", "198.51.100.80", "198.51.100.53"
CLIENT6, RESOLVER6 = "2001:db8:1::10", "2001:db8:53::53"
ROUTER, EXCHANGE = "203.0.113.1", "198.51.100.99"


class Packet(NamedTuple):
    """What the wire carried: seconds after the start, the packet, a word about it, its VLAN."""

    seconds: float
    packet: bytes
    comment: str | None = None
    vlan: int | None = None


def main() -> None:
    """Write the capture where the command line says."""
    beside = Path(__file__).with_name("connections.pcapng")
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else beside
    output.write_bytes(capture())
    print(f"{output}: {output.stat().st_size} bytes")


def capture() -> bytes:
    """Return the whole pcapng file."""
    words = Option(1, b"Made by make_connections.py; every address is a documentation address")
    file = Pcapng().section(options=[words]).interface(options=[Option(2, b"lab0")])
    for packet in sorted(scenes(), key=lambda packet: packet.seconds):
        tags = () if packet.vlan is None else (packet.vlan,)
        file.packet(
            ethernet(packet.packet, vlans=tags),
            time_ns=START + round(packet.seconds * 1_000_000_000),
            options=[comment(packet.comment)] if packet.comment else [],
        )
    return file.data


# --- the scenes -----------------------------------------------------------------------------


def scenes() -> Iterator[Packet]:
    """Yield every packet; times, not the order here, put them in sequence."""
    yield from ordinary()
    yield from dns()
    yield from refused()
    yield from never_answered()
    yield from out_of_the_window()
    yield from forged_resets()
    yield from ping()
    yield from fragmented()
    yield from association()
    yield from picked_up()
    yield from strays()


def spread(start: float, packets: list[bytes], step: float = 0.010) -> Iterator[Packet]:
    """Yield packets one after the other."""
    for number, packet in enumerate(packets):
        yield Packet(start + number * step, packet)


def talk(port: int, *, window: int = 64_000, isn: int = 100_000) -> Talk:
    """Return two endpoints whose initial numbers are round."""
    return Talk(
        CLIENT, SERVER, sport=port, dport=80, window=window, client_isn=isn, server_isn=5 * isn
    )


def ordinary() -> Iterator[Packet]:
    """Yield a connection from the SYN to the last ACK, and an ICMP error about a packet of it."""
    web = talk(50_001)
    options = tcp_options(mss=1460, wscale=7, sack_permitted=True)
    yield from spread(0.0, web.handshake(client=options, server=options))
    request = b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
    # The capture was taken on the client, whose network card finishes checksums.
    asked = web.client("PA", request, checksum_value="offload")
    yield Packet(0.03, asked, "the network card has not filled in the checksum yet")
    large = web.server("A", pattern(1460))
    yield Packet(0.05, large)
    quote = icmp_error(3, 4, large[:28], rest=1400)
    error = ipv4(quote, src=ROUTER, dst=SERVER, protocol=ICMP)
    yield Packet(0.06, error, "fragmentation needed: an error about the frame before")
    yield from spread(0.07, [web.client("A"), web.server("PA", b"</html>"), web.client("A")])
    yield from spread(0.50, web.goodbye())


def dns() -> Iterator[Packet]:
    """Yield a query and its answer over IPv6."""
    ask = udp(bytes(40), src=CLIENT6, dst=RESOLVER6, sport=40_053)
    tell = udp(bytes(120), src=RESOLVER6, dst=CLIENT6, sport=53, dport=40_053)
    yield Packet(1.000, ipv6(ask, src=CLIENT6, dst=RESOLVER6))
    yield Packet(1.012, ipv6(tell, src=RESOLVER6, dst=CLIENT6))


def refused() -> Iterator[Packet]:
    """Yield a SYN that is answered by a RST."""
    closed = talk(50_002)
    yield from spread(2.0, [closed.client("S"), closed.server("RA", seq=0)])


def never_answered() -> Iterator[Packet]:
    """Yield a SYN that is sent three times."""
    silent = talk(50_003)
    for seconds in (3.0, 4.0, 6.0):
        yield Packet(seconds, silent.client("S"))


def out_of_the_window() -> Iterator[Packet]:
    """Yield a segment below the window and one above it; the receiver offers 1,000 bytes."""
    slow = talk(50_004, window=1000)
    yield from spread(7.0, slow.handshake())
    for step in range(3):
        data = [slow.client("PA", pattern(800)), slow.server("A")]
        yield from spread(7.1 + step * 0.1, data)
    old = slow.client("PA", pattern(800), seq=1)
    yield Packet(7.5, old, "the first data again, acknowledged long ago")
    far = slow.client("PA", pattern(800), seq=20_001)
    yield Packet(7.6, far, "20,000 bytes ahead where 1,000 are allowed")


def forged_resets() -> Iterator[Packet]:
    """Yield resets with wrong numbers, and the one that counts."""
    target = talk(50_005)
    yield from spread(8.0, target.handshake())
    yield from spread(8.1, [target.client("PA", pattern(500)), target.server("A")])
    yield Packet(8.3, target.client("R", seq=100), "forged: below what is acknowledged")
    yield Packet(8.4, target.client("R", seq=900), "forged: within the window, not exact")
    yield from spread(8.5, [target.server("PA", pattern(100)), target.client("A")])
    yield Packet(9.0, target.client("R"), "the real one")


def ping() -> Iterator[Packet]:
    """Yield an echo request and its reply, and a reply that nobody asked for."""
    ask, tell = icmp_echo(bytes(56), ident=77), icmp_echo(bytes(56), ident=77, reply=True)
    yield Packet(10.000, ipv4(ask, src=CLIENT, dst=RESOLVER, protocol=ICMP))
    yield Packet(10.004, ipv4(tell, src=RESOLVER, dst=CLIENT, protocol=ICMP))
    stray = icmp_echo(bytes(56), ident=78, reply=True)
    packet = ipv4(stray, src=RESOLVER, dst=CLIENT, protocol=ICMP)
    yield Packet(10.5, packet, "nobody asked for this reply")


def fragmented() -> Iterator[Packet]:
    """Yield a query, and its answer of 3,000 bytes in three fragments, the last one first."""
    ask = udp(bytes(40), src=CLIENT, dst=RESOLVER, sport=40_054)
    yield Packet(11.000, ipv4(ask, src=CLIENT, dst=RESOLVER))
    tell = udp(pattern(3000), src=RESOLVER, dst=CLIENT, sport=53, dport=40_054)
    first, middle, last = fragment(ipv4(tell, src=RESOLVER, dst=CLIENT, id=0x1A01), mtu=1500)
    yield from spread(11.02, [last, first, middle], 0.0001)


def association() -> Iterator[Packet]:
    """Yield an SCTP association from the INIT to the SHUTDOWN COMPLETE."""
    ours, theirs = 0x1111_1111, 0x2222_2222
    story = (
        (True, 0, sctp_init(ours)),
        (False, ours, sctp_init_ack(theirs)),
        (True, theirs, sctp_cookie_echo()),
        (False, ours, sctp_cookie_ack()),
        (True, theirs, sctp_data(b"hello")),
        (False, ours, sctp_sack()),
        (True, theirs, sctp_shutdown()),
        (False, ours, sctp_shutdown_ack()),
        (True, theirs, sctp_shutdown_complete()),
    )
    for step, (outward, vtag, chunk) in enumerate(story):
        ports = (36_412, 36_422) if outward else (36_422, 36_412)
        ends = (CLIENT, EXCHANGE) if outward else (EXCHANGE, CLIENT)
        segment = sctp(chunk, vtag=vtag, sport=ports[0], dport=ports[1])
        packet = ipv4(segment, src=ends[0], dst=ends[1], protocol=SCTP)
        yield Packet(12.0 + step * 0.01, packet)


def picked_up() -> Iterator[Packet]:
    """Yield the middle of a connection on VLAN 20 that began before the capture."""
    old = talk(50_006)
    old.handshake()
    for step in range(2):
        yield Packet(13.00 + step * 0.1, old.client("PA", pattern(100)), vlan=20)
        yield Packet(13.05 + step * 0.1, old.server("PA", pattern(300)), vlan=20)


def strays() -> Iterator[Packet]:
    """Yield packets of a connection that nobody knows, and a query long after all that."""
    gone = talk(50_007)
    gone.handshake()
    yield Packet(14.0, gone.server("RA"), "a reset behind a connection that is forgotten")
    broken = talk(50_008).client("S", checksum_value="bad")
    yield Packet(15.0, broken, "damaged on the way")
    ask = udp(bytes(40), src=CLIENT, dst=RESOLVER, sport=40_055)
    yield Packet(300.0, ipv4(ask, src=CLIENT, dst=RESOLVER), "five minutes later")


if __name__ == "__main__":
    main()
