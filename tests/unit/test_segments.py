"""The builders of transport packets against bytes and sums made by hand."""

from __future__ import annotations

import doctest
import importlib
import ipaddress
import struct

import pytest

from fragtrack.testing import (
    Talk,
    checksum,
    crc32c,
    gre,
    icmp_error,
    icmp_query,
    icmpv6_error,
    icmpv6_query,
    icmpv6_redirect,
    sctp,
    sctp_abort,
    sctp_chunk,
    sctp_cookie_ack,
    sctp_cookie_echo,
    sctp_data,
    sctp_heartbeat,
    sctp_init,
    sctp_init_ack,
    sctp_sack,
    sctp_shutdown,
    sctp_shutdown_ack,
    sctp_shutdown_complete,
    tcp,
    tcp_flags,
    tcp_options,
    udplite,
)

ENDS = {4: ("192.0.2.1", "198.51.100.2"), 6: ("2001:db8::1", "2001:db8::2")}


def summed(version: int, protocol: int, segment: bytes) -> int:
    """Sum a segment with its pseudo header: 0 if its checksum is right (RFC 9293, RFC 8200)."""
    packed = b"".join(ipaddress.ip_address(end).packed for end in ENDS[version])
    if version == 4:
        return checksum(packed + struct.pack(">BBH", 0, protocol, len(segment)) + segment)
    return checksum(packed + struct.pack(">II", len(segment), protocol) + segment)


def ends(version: int) -> dict[str, str]:
    return dict(zip(("src", "dst"), ENDS[version], strict=True))


@pytest.mark.parametrize("name", ["segments", "chunks", "talk"])
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"fragtrack.testing.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


# ---------------------------------------------------------------------------------------- TCP


def test_tcp_by_hand() -> None:
    # Pseudo header c000+0201+c633+6402+0006+0016, header 0007+0009+0001+0002+5018+ffff, data 6869.
    assert tcp(b"hi", sport=7, dport=9, seq=1, ack=2, flags="PA") == bytes.fromhex(
        "000700090000000100000002 5018ffff5b170000 6869"
    )


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("payload", [b"", b"odd", b"even"])
def test_tcp_sums_to_zero(version: int, payload: bytes) -> None:
    options = tcp_options(mss=1460, wscale=7)
    assert summed(version, 6, tcp(payload, options=options, **ends(version))) == 0
    broken = tcp(payload, checksum_value="bad", **ends(version))
    assert summed(version, 6, broken) in {1, 0xFFFE}


@pytest.mark.parametrize("version", [4, 6])
def test_tcp_as_a_sender_leaves_it_to_its_network_card(version: int) -> None:
    segment = tcp(b"data", checksum_value="offload", **ends(version))
    packed = b"".join(ipaddress.ip_address(end).packed for end in ENDS[version])
    words = struct.unpack(f">{len(packed) // 2}H", packed)
    total = sum(words) + 6 + len(segment)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert segment[16:18] == struct.pack(">H", total)


def test_tcp_fields_can_lie() -> None:
    segment = tcp(b"", seq=-1, ack=1 << 32 | 5, urgent=3, data_offset=15, checksum_value=7)
    assert segment[4:12] == b"\xff\xff\xff\xff\0\0\0\x05"
    assert segment[12] == 0xF0
    assert segment[16:20] == b"\0\x07\0\x03"


def test_flags_are_letters_or_a_byte() -> None:
    assert [tcp_flags(letter) for letter in "FSRPAUEC"] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert tcp(flags=0x5A)[13] == 0x5A
    with pytest.raises(ValueError, match="flag 'X' is none of FSRPAUEC"):
        tcp_flags("SX")


def test_options_are_padded_to_words() -> None:
    assert tcp_options() == b""
    assert tcp_options(wscale=14) == b"\x03\x03\x0e\x01"
    assert tcp_options(sack_permitted=True) == b"\x04\x02\x01\x01"
    assert tcp_options(timestamps=(1, 2)) == bytes.fromhex("080a0000000100000002 0101")
    blocks = tcp_options(sack=[(-1, 5), (1 << 32, 7)])
    assert blocks == bytes.fromhex("0512 ffffffff00000005 0000000000000007 0101")
    assert tcp(options=b"\x03\x03\x07")[12:24:11] == b"\x60\x01"


# ------------------------------------------------------------------------------ UDP-Lite, GRE


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("coverage", [0, 8, 10, 11])
def test_udplite_sums_what_it_covers(version: int, coverage: int) -> None:
    whole = udplite(b"xyz", coverage=coverage, **ends(version))
    covered = whole[: coverage or None]
    rest = whole[len(covered) :]
    # The length in the pseudo header is that of the whole (RFC 3828 section 3.2).
    assert summed(version, 136, covered + bytes(len(rest))) == 0


def test_udplite_fields_can_lie() -> None:
    assert udplite(b"", coverage=5, checksum_value=0)[4:] == b"\0\x05\0\0"


def test_gre_by_hand() -> None:
    assert gre(b"x") == b"\0\0\x08\0x"
    assert gre(b"x", sequence=1, key=2) == bytes.fromhex("30000800 00000002 00000001") + b"x"
    pptp = gre(b"xy", version=1, call_id=7, sequence=1, acknowledgment=2)
    assert pptp == bytes.fromhex("3081880b 00020007 00000001 00000002") + b"xy"
    assert gre(version=1, protocol=0x0800)[:4] == bytes.fromhex("00010800")


# --------------------------------------------------------------------------------------- ICMP


def test_icmp_messages_sum_to_zero() -> None:
    for message in (icmp_query(17, b"q", ident=9), icmp_error(3, 4, b"quote", rest=1400)):
        assert checksum(message) == 0
    assert icmp_error(5, 1, b"quote", rest=0xC0000209)[4:8] == b"\xc0\0\x02\x09"
    assert checksum(icmp_query(8, bad=True)) != 0
    asked = icmp_query(8, code=3, ident=0x102, sequence=0x304)
    assert (asked[:2], asked[4:]) == (b"\x08\x03", b"\1\2\3\4")


def test_icmpv6_messages_sum_to_zero() -> None:
    query = icmpv6_query(139, b"q", code=1, **ends(6))
    error = icmpv6_error(2, 0, b"quote", rest=1280, **ends(6))
    assert summed(6, 58, query) == summed(6, 58, error) == 0
    assert summed(6, 58, icmpv6_error(1, 4, b"quote", bad=True, **ends(6))) != 0


def test_icmpv6_redirect_by_hand() -> None:
    message = icmpv6_redirect(bytes(44), src=ENDS[6][0], dst=ENDS[6][1], target="fe80::2")
    assert summed(6, 58, message) == 0
    assert message[:2] == b"\x89\0"
    assert message[8:24] == ipaddress.ip_address("fe80::2").packed
    assert message[40:42] == b"\x04\x07"  # 8 bytes and 48 of the packet, in units of 8
    assert len(icmpv6_redirect(b"", header_option=False)) == 40


# --------------------------------------------------------------------------------------- SCTP


def test_crc32c_as_published() -> None:
    # RFC 3720 appendix B.4.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


def test_sctp_carries_its_crc_lowest_byte_first() -> None:
    packet = sctp([sctp_cookie_ack()], vtag=7, sport=1, dport=2)
    bare = packet[:8] + bytes(4) + packet[12:]
    assert packet[8:12] == struct.pack("<I", crc32c(bare))
    assert sctp(crc=0)[8:12] == bytes(4)
    broken = sctp([sctp_cookie_ack()], vtag=7, sport=1, dport=2, crc="bad")
    assert int.from_bytes(broken[8:12]) ^ int.from_bytes(packet[8:12]) == 1 << 24


def test_chunks_are_padded_and_tell_their_length() -> None:
    assert sctp_chunk(9, 2, b"abcde") == b"\x09\x02\0\x09abcde\0\0\0"
    assert sctp_chunk(9, length=3) == b"\x09\0\0\x03"
    kinds = [
        sctp_data(b"x"),
        sctp_init(1),
        sctp_init_ack(1),
        sctp_sack(),
        sctp_heartbeat(),
        sctp_heartbeat(ack=True),
        sctp_abort(),
        sctp_shutdown(),
        sctp_shutdown_ack(),
        sctp_cookie_echo(),
        sctp_cookie_ack(),
        sctp_shutdown_complete(),
    ]
    assert [chunk[0] for chunk in kinds] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 14]
    for chunk in kinds:
        assert len(chunk) == int.from_bytes(chunk[2:4]) + 3 & ~3
    assert sctp_abort(reflected=True)[1] == sctp_shutdown_complete(reflected=True)[1] == 1
    assert sctp_init(0xABCD)[4:8] == sctp_init_ack(0xABCD)[4:8] == b"\0\0\xab\xcd"


# --------------------------------------------------------------------------------------- Talk


def numbers(packet: bytes) -> tuple[int, int]:
    start = 20 if packet[0] >> 4 == 4 else 40
    seq, ack = struct.unpack_from(">II", packet, start + 4)
    return seq, ack


@pytest.mark.parametrize("version", [4, 6])
def test_a_talk_keeps_the_numbers_of_both_sides(version: int) -> None:
    talk = Talk(version=version, client_isn=100, server_isn=0xFFFF_FFFF)
    told = [numbers(packet) for packet in talk.handshake()]
    told.append(numbers(talk.client("PA", b"GET")))
    told.append(numbers(talk.server("PA", b"12345")))
    told += [numbers(packet) for packet in talk.goodbye()]
    assert told == [
        (100, 0),
        (0xFFFF_FFFF, 101),
        (101, 0),
        (101, 0),
        (0, 104),
        (104, 5),
        (5, 105),
        (105, 6),
    ]


def test_a_talk_can_repeat_and_lie() -> None:
    talk = Talk()
    talk.handshake()
    talk.client("PA", b"data")
    assert numbers(talk.client("PA", b"data", seq=1)) == (1001, 5001)
    assert numbers(talk.client("R", seq=7)) == (1007, 0)
    assert numbers(talk.server("A", ack=3)) == (5001, 1003)
    assert talk.client.next == 5
    assert numbers(talk.client("S")) == (1000, 0)
    assert talk.client.next == 5
    assert numbers(talk.client("SA", options=tcp_options(mss=9), ip={"ttl": 9})) == (1000, 5001)


def test_a_side_of_a_talk_can_start_again() -> None:
    talk = Talk()
    talk.handshake()
    talk.client.restart(70_000)
    assert numbers(talk.client("S")) == (70_000, 0)
    assert talk.client.next == 1
    assert talk.client.at(1) == 70_001
    assert talk.client.at(-70_001) == 0xFFFF_FFFF


def test_the_addresses_of_a_talk_say_its_version() -> None:
    talk = Talk("2001:db8::7", "2001:db8::8", sport=7, dport=8)
    packet = talk.client("S", window=9, ip={"hop_limit": 3})
    assert packet[0] >> 4 == 6
    assert packet[7] == 3
    assert packet[40:44] == b"\0\x07\0\x08"
    assert packet[54:56] == b"\0\x09"
    assert talk.server("SA")[40:44] == b"\0\x08\0\x07"
