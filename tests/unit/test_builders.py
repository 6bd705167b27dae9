"""The builders against bytes written by hand, and against the standard library."""

from __future__ import annotations

import doctest
import importlib
import ipaddress
import struct

import pytest

from fragtrack import testing
from fragtrack.testing import (
    ATOMIC,
    Option,
    Pcapng,
    VirtualClock,
    checksum,
    cisco_hdlc,
    comment,
    destination_options,
    ethernet,
    fragment,
    fragment_header,
    hop_by_hop,
    icmp_echo,
    icmpv6_echo,
    ipv4,
    ipv6,
    ipv6_fragment,
    mpls,
    null,
    options_header,
    pattern,
    pcap,
    pcap_header,
    pcap_record,
    ppp,
    pppoe,
    routing,
    sll,
    sll2,
    udp,
)

MODULES = ["", ".builders", ".captures", ".clock", ".links", ".transport"]


def hexed(text: str) -> bytes:
    return bytes.fromhex(text)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(f"fragtrack.testing{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_everything_named_is_there() -> None:
    assert sorted(testing.__all__, key=str.lower) == sorted(set(testing.__all__), key=str.lower)
    for name in testing.__all__:
        assert hasattr(testing, name)


# ------------------------------------------------------------------------------- transport


def test_checksum_of_a_header_from_the_literature() -> None:
    # The header that many textbooks use: 4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7.
    header = hexed("450000730000400040110000c0a80001c0a800c7")
    assert checksum(header) == 0xB861
    assert checksum(header[:10] + hexed("b861") + header[12:]) == 0


def test_checksum_of_odd_length() -> None:
    assert checksum(b"\x01") == 0xFEFF


def test_udp_by_hand() -> None:
    # c000+0201+c633+6402 +0011+000a +0007+0009+000a+6869 = 54d6 folded; complement ab29.
    assert udp(b"hi", sport=7, dport=9) == hexed("00070009000aab296869")
    assert udp(b"hi", sport=7, dport=9, checksum_value=0) == hexed("00070009000a00006869")
    assert udp(b"hi", sport=7, dport=9, length=4)[4:6] == hexed("0004")


def test_udp_over_ipv6_sums_to_zero() -> None:
    data = udp(b"odd", src="2001:db8::1", dst="2001:db8::2")
    addresses = (
        ipaddress.ip_address("2001:db8::1").packed + ipaddress.ip_address("2001:db8::2").packed
    )
    assert checksum(addresses + struct.pack(">IHBB", len(data), 0, 0, 17) + data) == 0


def test_icmp_by_hand() -> None:
    assert icmp_echo(b"ping") == hexed("0800192d0001000170696e67")
    assert icmp_echo(b"ping", reply=True) == hexed("0000212d0001000170696e67")
    assert icmp_echo(b"ping", bad=True) == hexed("0800192c0001000170696e67")


def test_icmpv6_sums_to_zero() -> None:
    data = icmpv6_echo(b"ping")
    addresses = (
        ipaddress.ip_address("2001:db8::1").packed + ipaddress.ip_address("2001:db8::2").packed
    )
    assert checksum(addresses + struct.pack(">IHBB", len(data), 0, 0, 58) + data) == 0
    assert icmpv6_echo(b"", reply=True)[0] == 129


def test_pattern_tells_letter_and_offset() -> None:
    assert pattern(17, "Q") == b"Q000000:Q000008:Q"
    assert pattern(0) == b""


# ------------------------------------------------------------------------------------ IPv4


def test_ipv4_by_hand() -> None:
    packet = ipv4(b"12345678", id=0xABCD, mf=True, offset=16)
    assert packet == hexed("4500001cabcd20024011c2cac0000201c63364023132333435363738")


def test_ipv4_flags_tos_options() -> None:
    packet = ipv4(b"", df=True, reserved=True, tos=0xB8, ecn=3, options=b"\x07\x03\x04", ttl=9)
    assert packet[0] == 0x46
    assert packet[1] == 0xBB
    assert packet[6:8] == hexed("c000")
    assert packet[8] == 9
    assert packet[20:] == hexed("07030400")
    assert checksum(packet) == 0


def test_ipv4_lies_as_asked() -> None:
    packet = ipv4(b"abc", total_length=9, header_words=4, version=5, header_checksum=0x1234)
    assert packet[0] == 0x54
    assert packet[2:4] == hexed("0009")
    assert packet[10:12] == hexed("1234")
    bad, good = ipv4(b"", header_checksum="bad"), ipv4(b"")
    assert int.from_bytes(bad[10:12]) ^ int.from_bytes(good[10:12]) == 1


@pytest.mark.parametrize("offset", [-8, 4, 65536])
def test_offsets_that_cannot_be_written(offset: int) -> None:
    with pytest.raises(ValueError, match="offset"):
        ipv4(b"", offset=offset)
    with pytest.raises(ValueError, match="offset"):
        fragment_header(offset=offset)


def test_too_many_options() -> None:
    with pytest.raises(ValueError, match="44 bytes of options"):
        ipv4(b"", options=bytes(41))


# ------------------------------------------------------------------------------------ IPv6


def test_ipv6_by_hand() -> None:
    packet = ipv6(b"Z", hop_limit=1, traffic_class=0xB8, ecn=1, flow_label=0x12345)
    assert packet == hexed(
        "6b9123450001110120010db800000000000000000000000120010db80000000000000000000000025a"
    )


def test_ipv6_fragment_by_hand() -> None:
    packet = ipv6_fragment(b"12345678", id=0xDEADBEEF, offset=0x1230, more=True)
    assert packet[4:8] == hexed("00102c40")
    assert packet[40:] == hexed("11001231deadbeef3132333435363738")


def test_fragment_header_reserved_bits() -> None:
    header = fragment_header(reserved=0xAA, reserved_bits=3, id=1)
    assert header.body == hexed("aa000600000001")


def test_ipv6_chain_by_hand() -> None:
    packet = ipv6(
        b"",
        extensions=[hop_by_hop(), routing(), fragment_header(id=5), destination_options(bytes(12))],
        next_header=59,
    )
    assert packet[6] == 0
    assert packet[40:48] == hexed("2b00010400000000")
    assert packet[48:56] == hexed("2c00fd0000000000")
    assert packet[56:64] == hexed("3c00000000000005")
    assert packet[64:] == hexed("3b01") + bytes(12) + hexed("0100")


@pytest.mark.parametrize("length", range(20))
def test_options_headers_are_multiples_of_8(length: int) -> None:
    packet = ipv6(b"", extensions=[options_header(60, b"\x05" * length)])
    assert (len(packet) - 40) % 8 == 0
    assert packet[41] == (len(packet) - 40) // 8 - 1


# --------------------------------------------------------------------------- fragmentation


def test_fragment_ipv4_by_hand() -> None:
    whole = ipv4(b"A" * 8 + b"B" * 8 + b"C" * 3, id=0x0102, df=True)
    first, second, third = fragment(whole, sizes=[8, 8])
    assert first[2:8] == hexed("001c01026000")
    assert second[2:8] == hexed("001c01026001")
    assert third[2:8] == hexed("001701024002")
    assert [piece[20:] for piece in (first, second, third)] == [b"A" * 8, b"B" * 8, b"CCC"]
    assert all(checksum(piece[:20]) == 0 for piece in (first, second, third))


def test_fragment_ipv4_copies_only_copied_options() -> None:
    # NOP, record route (7, not copied), router alert (148, copied).
    options = hexed("01070704000000ff94040000")
    first, second = fragment(ipv4(bytes(24), options=options), sizes=[8])
    assert first[0] == second[0] + 2
    assert second[20:24] == hexed("94040000")


def test_a_fragment_can_be_cut_again() -> None:
    (piece,) = fragment(ipv4(bytes(64), mf=True, offset=800), sizes=[])
    assert piece[6:8] == hexed("2064")
    first, second = fragment(piece, sizes=[32])
    assert first[6:8] == hexed("2064")
    assert second[6:8] == hexed("2068")


def test_fragment_ipv6_by_hand() -> None:
    whole = ipv6(
        b"A" * 8 + b"B" * 4, extensions=[hop_by_hop(), destination_options()], next_header=17
    )
    first, second, third = fragment(whole, sizes=[8, 8], id=0x11223344)
    # Hop-by-hop stays in front and names the fragment header; destination options are data.
    assert first[4:8] == hexed("00180040")
    assert first[40:64] == hexed("2c000104000000003c000001112233441100010400000000")
    assert second[40:] == hexed("2c000104000000003c00000911223344") + b"A" * 8
    assert third[40:] == hexed("2c000104000000003c00001011223344") + b"B" * 4


def test_fragment_ipv6_behind_the_last_routing_header() -> None:
    whole = ipv6(bytes(16), extensions=[destination_options(), routing()])
    first, _ = fragment(whole, sizes=[8])
    assert first[40:64] == hexed("2b000104000000002c00fd00000000001100000100000001")


def test_atomic() -> None:
    (piece,) = fragment(ipv6(b"whole"), sizes=ATOMIC, id=6)
    assert piece[40:] == hexed("1100000000000006") + b"whole"


@pytest.mark.parametrize("mtu", [28, 68, 576, 1500])
def test_mtu(mtu: int) -> None:
    whole = ipv4(pattern(4000))
    pieces = fragment(whole, mtu=mtu)
    assert all(len(piece) <= mtu for piece in pieces)
    assert b"".join(piece[20:] for piece in pieces) == whole[20:]


def test_fragment_wants_one_of_sizes_and_mtu() -> None:
    with pytest.raises(ValueError, match="either"):
        fragment(ipv4(b""))
    with pytest.raises(ValueError, match="either"):
        fragment(ipv4(b""), sizes=[8], mtu=68)
    with pytest.raises(ValueError, match="12 bytes"):
        fragment(ipv4(bytes(99)), sizes=[12])
    with pytest.raises(ValueError, match="0 bytes"):
        fragment(ipv4(bytes(99)), mtu=20)


# ----------------------------------------------------------------------------------- links

IP4, IP6 = hexed("45"), hexed("60")


def test_ethernet_by_hand() -> None:
    assert ethernet(IP4) == hexed("020000000002 020000000001 0800 45")
    assert ethernet(IP6, minimum=18, padding=b"\xee") == hexed(
        "020000000002 020000000001 86dd 60 eeeeee"
    )
    assert ethernet(IP4, vlans=[0x600A, 20], tag_types=[0x9100])[12:] == hexed(
        "9100 600a 8100 0014 0800 45"
    )
    assert ethernet(IP4, session=0x1234)[12:] == hexed("8864 1100 1234 0003 0021 45")
    assert ethernet(IP4, labels=[1, 0xFFFFF])[12:] == hexed("8847 00001040 fffff140 45")
    assert ethernet(IP6, vlans=[5], snap=True)[12:] == hexed("8100 0005 0009 aaaa03 000000 86dd 60")
    assert ethernet(b"", ethertype=0x0806)[12:] == hexed("0806")


def test_other_links_by_hand() -> None:
    assert pppoe(IP6, 9, compressed=True) == hexed("1100 0009 0002 57 60")
    assert pppoe(IP4, length=0, code=0xA7) == hexed("11a7 0001 0000 0021 45")
    assert ppp(IP4) == hexed("ff03 0021 45")
    assert ppp(IP6, address=False, compressed=True) == hexed("57 60")
    assert mpls(IP4, [3], ttl=1) == hexed("00003101 45")
    assert null(IP4) == hexed("02000000 45")
    assert null(IP6, order="big", family=24) == hexed("00000018 60")
    assert cisco_hdlc(IP6, address=0x8F) == hexed("8f00 86dd 60")
    assert sll(IP6) == hexed("0000 0001 0006 0200000000010000 86dd 60")
    assert sll(IP4, vlans=[7])[14:] == hexed("8100 0007 0800 45")
    assert sll2(IP4) == hexed("0800 0000 00000001 0001 00 06 0200000000010000 45")


# -------------------------------------------------------------------------------- captures


def test_pcap_by_hand() -> None:
    assert pcap([(1_000_002_003, b"abc")], order="big", link=101, snaplen=96) == hexed(
        "a1b2c3d4 0002 0004 00000000 00000000 00000060 00000065"
        "00000001 00000002 00000003 00000003 616263"
    )
    assert pcap([(1_000_002_003, b"a")], resolution="ns")[:4] == hexed("4d3cb2a1")
    assert pcap([(1_000_002_003, b"a")], resolution="ns")[24:32] == hexed("01000000 d3070000")


def test_modified_pcap_by_hand() -> None:
    assert pcap_header(modified=True)[:4] == hexed("34cdb2a1")
    assert pcap_record(b"a", modified=True, wire=9) == hexed(
        "00000000 00000000 01000000 09000000 0000000000000000 61"
    )


def test_pcap_record_lies_as_asked() -> None:
    record = pcap_record(b"a", captured=7, seconds=5, fraction=2_000_000, order="big")
    assert record == hexed("00000005 001e8480 00000007 00000007 61")


def test_pcapng_by_hand() -> None:
    file = Pcapng().section("big", options=[Option(4, b"abcde")])
    file.interface(link=1, snaplen=0, tsresol=3, tsoffset=-1)
    file.packet(b"xyz", time_ns=5_000_000, wire=60, options=[comment("hi")])
    section, interface, packet = file.blocks
    assert section == hexed(
        "0a0d0d0a 0000002c 1a2b3c4d 0001 0000 ffffffffffffffff"
        "0004 0005 6162636465000000 0000 0000 0000002c"
    )
    assert interface == hexed(
        "00000001 0000002c 0001 0000 00000000"
        "0009 0001 03000000 000e 0008 ffffffffffffffff 0000 0000 0000002c"
    )
    assert packet == hexed(
        "00000006 00000030 00000000 00000000 000003ed 00000003 0000003c 78797a00"
        "0001 0002 68690000 0000 0000 00000030"
    )


def test_pcapng_other_blocks_by_hand() -> None:
    file = Pcapng().section().interface().simple(b"abcd", wire=9)
    file.obsolete(b"a", interface=0, drops=2, time_ns=1000).statistics(3).block(0xBAD, b"zz")
    assert file.blocks[2:] == (
        hexed("03000000 14000000 09000000 61626364 14000000"),
        hexed("02000000 24000000 0000 0200 00000000 01000000 01000000 01000000 61000000 24000000"),
        hexed("05000000 18000000 03000000 00000000 00000000 18000000"),
        hexed("ad0b0000 10000000 7a7a0000 10000000"),
    )


def test_pcapng_binary_time_units() -> None:
    file = Pcapng().section().interface(tsresol=0x81)
    assert file.ticks(1_500_000_000) == 3
    assert file.ticks(1_500_000_000, interface=4) == 1_500_000


# ----------------------------------------------------------------------------------- clock


def test_virtual_clock() -> None:
    clock = VirtualClock(start_ns=7)
    assert clock() == 7
    assert clock.advance(0.5) == 500_000_007
    assert clock.advance(-0.5, ns=1) == 8
    assert clock.set(3) == 3
    assert repr(clock) == "VirtualClock(start_ns=3)"
