"""Make ``fragments.pcapng``: a short, busy minute in a network that fragments.

The capture is the same on every run, byte for byte: its times, identifications and
addresses are constants (addresses from the documentation ranges of RFC 5737 and RFC 3849,
MAC addresses from RFC 7042). It holds what an analyst meets: large DNS answers and SIP
requests in fragments, in order and out of order, IPv4 and IPv6, tagged and not; a
duplicate; an overlap attack; a lost fragment; and plain traffic in between.

Usage: ``python make_example.py [OUTPUT]`` (default: ``fragments.pcapng`` beside this file).
"""

import struct
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

START_US = 1_767_614_400_000_000  # 2026-01-05 12:00:00 UTC, in microseconds
UDP, TCP, ICMP, FRAGMENT = 17, 6, 1, 44  # protocol numbers (IANA)
MTU = 1500  # bytes, the link's

CLIENT, RESOLVER = "192.0.2.10", "198.51.100.53"
PHONE, PROXY = "192.0.2.20", "198.51.100.60"
ATTACKER = "203.0.113.66"
CLIENT6, RESOLVER6 = "2001:db8:1::10", "2001:db8:53::53"
PHONE6, PROXY6 = "2001:db8:1::20", "2001:db8:60::60"

Address = IPv4Address | IPv6Address


class Packet(NamedTuple):
    """What the wire carried: seconds after the start, the frame, and a word about it."""

    seconds: float
    frame: bytes
    comment: str | None = None


def main() -> None:
    """Write the capture where the command line says."""
    beside = Path(__file__).with_name("fragments.pcapng")
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else beside
    output.write_bytes(capture())
    print(f"{output}: {output.stat().st_size} bytes")


def capture() -> bytes:
    """Return the whole pcapng file."""
    packets = sorted(scenes(), key=lambda packet: packet.seconds)
    return b"".join([section(), interface(), *(enhanced_packet(packet) for packet in packets)])


# --- the scenes -----------------------------------------------------------------------------


def scenes() -> Iterator[Packet]:
    """Yield every frame; times, not the order here, put them in sequence."""
    yield from plain_traffic()
    yield from dns_in_order()
    yield from sip_last_fragment_first()
    yield from dns_over_ipv6_shuffled()
    yield from one_fragment_twice()
    yield from same_key_on_two_vlans()
    yield from overlap_attack()
    yield from sip_over_ipv6_with_a_loss()
    yield from still_open_at_the_end()


def plain_traffic() -> Iterator[Packet]:
    """Yield packets that no reassembler has to touch."""
    yield Packet(0.000, ethernet(arp(1, CLIENT, RESOLVER), kind=0x0806))
    yield Packet(0.001, ethernet(arp(2, RESOLVER, CLIENT), kind=0x0806))
    yield Packet(0.010, ipv4_frame(CLIENT, RESOLVER, 1, dns_query(1, "www.example.com", 1)))
    yield Packet(0.018, ipv4_frame(RESOLVER, CLIENT, 2, dns_answer(1, "www.example.com", 1)))
    for step in range(4):
        echo = icmp_echo(8 if step % 2 == 0 else 0, step // 2)
        pair = (CLIENT, RESOLVER) if step % 2 == 0 else (RESOLVER, CLIENT)
        seconds = 0.5 + step // 2 + (step % 2) * 0.004
        yield Packet(seconds, ethernet(ipv4(*pair, 10 + step, ICMP, echo)))
    for step, flags in enumerate((0x02, 0x12, 0x10)):  # SYN, SYN and ACK, ACK
        pair = (RESOLVER, CLIENT) if step == 1 else (CLIENT, RESOLVER)
        segment = tcp(*pair, step // 2, flags)
        yield Packet(2.2 + step * 0.003, ethernet(ipv4(*pair, 20 + step, TCP, segment)))
    yield Packet(100.0, ipv4_frame(CLIENT, RESOLVER, 90, dns_query(9, "example.net", 1)))
    query6 = udp(CLIENT6, RESOLVER6, 40053, 53, dns_query(9, "example.net", 28))
    yield Packet(100.1, ethernet(ipv6(CLIENT6, RESOLVER6, UDP, query6)))
    answer = dns_answer(9, "example.net", 1)
    yield Packet(100.2, ipv4_frame(RESOLVER, CLIENT, 91, answer))


def dns_in_order() -> Iterator[Packet]:
    """Yield a DNS answer in order, cut for a tunnel: its last fragment is 1 byte, then padding."""
    yield Packet(1.000, ipv4_frame(CLIENT, RESOLVER, 3, dns_query(2, "big.example.com", 16)))
    answer = dns_answer(2, "big.example.com", 16)
    parts = fragments4(RESOLVER, CLIENT, 0x1A01, dns_reply_udp(answer), mtu=1284)
    for step, part in enumerate(parts):
        yield Packet(1.012 + step * 0.0001, ethernet(part))


def sip_last_fragment_first() -> Iterator[Packet]:
    """Yield a SIP INVITE on VLAN 20 whose second fragment overtakes the first."""
    invite = udp(PHONE, PROXY, 5060, 5060, sip_invite("INVITE", PHONE, PROXY))
    first, last = fragments4(PHONE, PROXY, 0x2B02, invite)
    yield Packet(2.000, ethernet(last, vlans=(20,)), "the last fragment overtook the first")
    yield Packet(2.001, ethernet(first, vlans=(20,)))


def dns_over_ipv6_shuffled() -> Iterator[Packet]:
    """Yield a DNS answer over IPv6, 3 fragments as middle, last, first, and a plain one within."""
    query = udp(CLIENT6, RESOLVER6, 40053, 53, dns_query(3, "big.example.org", 16))
    yield Packet(3.000, ethernet(ipv6(CLIENT6, RESOLVER6, UDP, query)))
    answer = udp(RESOLVER6, CLIENT6, 53, 40053, dns_answer(3, "big.example.org", 16))
    first, middle, last = fragments6(RESOLVER6, CLIENT6, 0x3C03, answer)
    other = udp(CLIENT6, RESOLVER6, 40053, 53, dns_query(4, "example.org", 28))
    yield Packet(3.010, ethernet(middle))
    yield Packet(3.011, ethernet(last))
    yield Packet(3.012, ethernet(ipv6(CLIENT6, RESOLVER6, UDP, other)))
    yield Packet(3.013, ethernet(first))


def one_fragment_twice() -> Iterator[Packet]:
    """Yield a SIP MESSAGE of which a switch repeated the first fragment."""
    text = udp(PROXY, PHONE, 5060, 5060, sip_invite("MESSAGE", PROXY, PHONE))
    first, last = fragments4(PROXY, PHONE, 0x4D04, text)
    yield Packet(4.000, ethernet(first))
    yield Packet(4.001, ethernet(first), "the same fragment again")
    yield Packet(4.002, ethernet(last))


def same_key_on_two_vlans() -> Iterator[Packet]:
    """Yield two DNS answers with equal addresses and identification, on VLAN 10 and VLAN 20."""
    for vlan, name, start in ((10, "ten.example.com", 5.000), (20, "twenty.example.com", 5.0005)):
        answer = dns_reply_udp(dns_answer(vlan, name, 16))
        for step, part in enumerate(fragments4(RESOLVER, CLIENT, 0x5E05, answer)):
            yield Packet(start + step * 0.001, ethernet(part, vlans=(vlan,)))


def overlap_attack() -> Iterator[Packet]:
    """Yield three fragments that read differently on hosts that settle overlaps differently.

    Bytes 256 to 512 come twice. A host where the first bytes stay sees a harmless request, one
    where the last bytes win sees another; a current Linux kernel discards all of it. The UDP
    checksum is 0, not used (RFC 768), so that neither reading is refused for it.
    """
    harmless = sip_invite("OPTIONS", ATTACKER, PROXY)[:992]
    harmful = harmless.replace(b"Subject: harmless", b"Subject: ATTACKER")
    datagram = struct.pack("!HHHH", 5060, 5060, 8 + len(harmless), 0) + harmless
    evil = struct.pack("!HHHH", 5060, 5060, 8 + len(harmless), 0) + harmful
    parts = (
        (datagram[:512], 0, True, "bytes 0 to 512"),
        (evil[256:768], 256, True, "bytes 256 to 768: half of them contradict the last frame"),
        (datagram[768:], 768, False, None),
    )
    for step, (data, offset, more, comment) in enumerate(parts):
        packet = ipv4(ATTACKER, PROXY, 0x6F06, UDP, data, offset=offset, more=more)
        yield Packet(6.000 + step * 0.001, ethernet(packet), comment)


def sip_over_ipv6_with_a_loss() -> Iterator[Packet]:
    """Yield a SIP INVITE over IPv6 whose second fragment was lost."""
    invite = udp(PHONE6, PROXY6, 5060, 5060, sip_invite("INVITE", PHONE6, PROXY6, copies=2))
    first, _lost, last = fragments6(PHONE6, PROXY6, 0x7007, invite)
    yield Packet(7.000, ethernet(first))
    yield Packet(7.001, ethernet(last), "the fragment before this one was lost")


def still_open_at_the_end() -> Iterator[Packet]:
    """Yield a first fragment right before the capture ends."""
    answer = dns_reply_udp(dns_answer(10, "late.example.com", 16))
    first = fragments4(RESOLVER, CLIENT, 0x8108, answer)[0]
    yield Packet(100.3, ethernet(first), "the capture ends before the rest arrives")


# --- applications ---------------------------------------------------------------------------


def dns_name(name: str) -> bytes:
    """Return a domain name as labels (RFC 1035, 3.1)."""
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def dns_query(number: int, name: str, kind: int) -> bytes:
    """Return a query with the EDNS buffer size of 4,096 bytes that invites large answers."""
    header = struct.pack("!6H", number, 0x0100, 1, 0, 0, 1)
    edns = b"\0" + struct.pack("!HHIH", 41, 4096, 0, 0)
    return header + dns_name(name) + struct.pack("!HH", kind, 1) + edns


def dns_answer(number: int, name: str, kind: int) -> bytes:
    """Return an answer: one address, or for TXT (16) 14 strings of 255 bytes."""
    if kind == 1:
        records = [IPv4Address("192.0.2.80").packed]
    else:
        lines = (f"{name} text {step:02d} ".encode() for step in range(14))
        records = [bytes([255]) + (line * 20)[:255] for line in lines]
    header = struct.pack("!6H", number, 0x8180, 1, len(records), 0, 0)
    question = dns_name(name) + struct.pack("!HH", kind, 1)
    body = (struct.pack("!HHHIH", 0xC00C, kind, 1, 300, len(data)) + data for data in records)
    return header + question + b"".join(body)


def dns_reply_udp(answer: bytes) -> bytes:
    """Return the UDP datagram from resolver to client that carries an answer over IPv4."""
    return udp(RESOLVER, CLIENT, 53, 40053, answer)


def sip_invite(method: str, source: str, target: str, copies: int = 1) -> bytes:
    """Return a SIP request (RFC 3261) that its many headers make longer than one packet."""
    host, peer = (f"[{name}]" if ":" in name else name for name in (source, target))
    head = [
        f"{method} sip:bob@{peer} SIP/2.0",
        f"Via: SIP/2.0/UDP {host}:5060;branch=z9hG4bK776asdhds",
        "Max-Forwards: 70",
        "To: Bob <sip:bob@example.com>",
        "From: Alice <sip:alice@example.com>;tag=1928301774",
        f"Call-ID: a84b4c76e66710@{source}",
        f"CSeq: 314159 {method}",
    ]
    notes = [f"X-Note-{step:02d}: {'padding ' * 6}" for step in range(26 * copies)]
    body = f"v=0\r\no=alice 1 1 IN IP4 {source}\r\ns=call\r\nm=audio 49170 RTP/AVP 0\r\n"
    tail = ["Content-Type: application/sdp", f"Content-Length: {len(body)}", "", body]
    return "\r\n".join([*head, "Subject: harmless", *notes, *tail]).encode()


# --- packets --------------------------------------------------------------------------------


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo_header(source: Address, target: Address, protocol: int, length: int) -> bytes:
    """Return what a transport checksum covers besides the segment (RFC 9293, RFC 8200 8.1)."""
    layout = "!BBH" if source.version == 4 else "!IHBB"
    fields = (0, protocol, length) if source.version == 4 else (length, 0, 0, protocol)
    return source.packed + target.packed + struct.pack(layout, *fields)


def udp(source: str, target: str, sport: int, dport: int, data: bytes) -> bytes:
    """Return a UDP datagram with its checksum (RFC 768)."""
    segment = struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data
    pseudo = pseudo_header(ip_address(source), ip_address(target), UDP, len(segment))
    return segment[:6] + struct.pack("!H", checksum(pseudo + segment) or 0xFFFF) + data


def tcp(source: str, target: str, number: int, flags: int) -> bytes:
    """Return a TCP segment without data between port 40080 of the client and port 80."""
    ports = (40080, 80) if source == CLIENT else (80, 40080)
    acknowledged = 1 if flags & 0x10 else 0
    segment = struct.pack("!HHIIBBHHH", *ports, number, acknowledged, 0x50, flags, 65535, 0, 0)
    pseudo = pseudo_header(ip_address(source), ip_address(target), TCP, len(segment))
    return segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]


def icmp_echo(kind: int, number: int) -> bytes:
    """Return an echo request (8) or reply (0) of 56 data bytes (RFC 792)."""
    data = bytes(range(56))
    head = struct.pack("!BBHHH", kind, 0, 0, 77, number)
    return head[:2] + struct.pack("!H", checksum(head + data)) + head[4:] + data


def arp(operation: int, source: str, target: str) -> bytes:
    """Return an ARP request (1) or reply (2) for an IPv4 address (RFC 826)."""
    hosts = (IPv4Address(source).packed, IPv4Address(target).packed)
    head = struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation)
    return head + MACS[0] + hosts[0] + (b"\0" * 6 if operation == 1 else MACS[1]) + hosts[1]


def ipv4(
    source: str,
    target: str,
    number: int,
    protocol: int,
    data: bytes,
    *,
    offset: int = 0,
    more: bool = False,
) -> bytes:
    """Return an IPv4 packet; `offset` in bytes, a multiple of 8 (RFC 791)."""
    flags = offset // 8 | (0x2000 if more else 0)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), number, flags, 64, protocol, 0)
    head += IPv4Address(source).packed + IPv4Address(target).packed
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + data


def ipv6(source: str, target: str, following: int, data: bytes) -> bytes:
    """Return an IPv6 packet; `following` is its next-header number (RFC 8200)."""
    head = struct.pack("!IHBB", 6 << 28, len(data), following, 64)
    return head + IPv6Address(source).packed + IPv6Address(target).packed + data


def fragments4(
    source: str, target: str, number: int, datagram: bytes, mtu: int = MTU
) -> list[bytes]:
    """Return an IPv4 UDP datagram in fragments that fit a link of `mtu` bytes."""
    return [
        ipv4(source, target, number, UDP, datagram[at : at + step], offset=at, more=more)
        for at, step, more in cuts(len(datagram), mtu - 20)
    ]


def fragments6(source: str, target: str, number: int, datagram: bytes) -> list[bytes]:
    """Return an IPv6 UDP datagram in fragments that fit the link (RFC 8200, 4.5)."""
    return [
        ipv6(source, target, FRAGMENT, struct.pack("!BBHI", UDP, 0, at | more, number) + part)
        for at, step, more in cuts(len(datagram), MTU - 48)
        for part in [datagram[at : at + step]]
    ]


def cuts(length: int, room: int) -> list[tuple[int, int, bool]]:
    """Return (offset, size, more follow) of the fragments of `length` bytes."""
    step = room // 8 * 8
    return [(at, step, at + step < length) for at in range(0, length, step)]


# --- frames and file ------------------------------------------------------------------------

MACS = (bytes.fromhex("00005e005301"), bytes.fromhex("00005e005302"))


def ethernet(packet: bytes, *, vlans: tuple[int, ...] = (), kind: int | None = None) -> bytes:
    """Return an Ethernet frame without check sequence, padded to the minimum of 60 bytes."""
    if kind is None:
        kind = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    tags = b"".join(struct.pack("!HH", 0x8100, vlan) for vlan in vlans)
    return (MACS[1] + MACS[0] + tags + struct.pack("!H", kind) + packet).ljust(60, b"\0")


def ipv4_frame(source: str, target: str, number: int, message: bytes) -> bytes:
    """Return a frame with a whole DNS message over IPv4."""
    ports = (40053, 53) if source == CLIENT else (53, 40053)
    return ethernet(ipv4(source, target, number, UDP, udp(source, target, *ports, message)))


def option(code: int, value: bytes) -> bytes:
    """Return a pcapng option, padded to 4 bytes."""
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def block(kind: int, body: bytes) -> bytes:
    """Return a pcapng block; its length stands before and after the body."""
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


def section() -> bytes:
    """Return the section header block, little-endian, version 1.0, length unspecified."""
    words = option(1, b"Made by make_example.py; every address is a documentation address")
    return block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + words + option(0, b""))


def interface() -> bytes:
    """Return the description of the one interface: Ethernet, times in microseconds."""
    names = option(2, b"lab0") + option(9, b"\x06") + option(0, b"")
    return block(1, struct.pack("<HHI", 1, 0, 262_144) + names)


def enhanced_packet(packet: Packet) -> bytes:
    """Return one enhanced packet block, with the comment as its option."""
    time = START_US + round(packet.seconds * 1_000_000)
    size = len(packet.frame)
    head = struct.pack("<IIIII", 0, time >> 32, time & 0xFFFF_FFFF, size, size)
    words = option(1, packet.comment.encode()) + option(0, b"") if packet.comment else b""
    return block(6, head + packet.frame + b"\0" * (-size % 4) + words)


if __name__ == "__main__":
    main()
