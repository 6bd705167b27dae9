"""Link layers: where the IP packet is in a frame, in bytes written by hand."""

from __future__ import annotations

import doctest
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragtrack.reference import link
from fragtrack.reference.link import Decoded, LengthField, NotIpError, decode, patch_lengths
from fragtrack.testing import cisco_hdlc, ethernet, mpls, null, ppp, pppoe, sll, sll2

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESSES = "020000000002020000000001"
LINKS = sorted(link.LINKS)


def at(offset: int, version: int, domain: int = 0, *lengths: LengthField) -> Decoded:
    return Decoded(offset, version, domain, lengths)


def domain(*vlans: int) -> int:
    packed = len(vlans) << 48
    for level, vlan in enumerate(vlans):
        packed |= vlan << 12 * level
    return packed


def test_examples_in_docstrings() -> None:
    result = doctest.testmod(link)
    assert result.attempted > 0
    assert result.failed == 0


PPPOE = LengthField("pppoe", 18, 20)

FOUND = [
    # Ethernet
    (1, ADDRESSES + "080045", at(14, 4)),
    (1, ADDRESSES + "86dd60", at(14, 6)),
    (1, ADDRESSES + "080060", at(14, 6)),  # the nibble decides
    (1, ADDRESSES + "8100600a080045", at(18, 4, domain(10))),  # priority is not part of it
    (1, ADDRESSES + "88a8000a8100f0140800" + "45", at(22, 4, domain(10, 20))),
    (1, ADDRESSES + "9100000192000002930000038100ffff86dd60", at(30, 6, domain(1, 2, 3, 4095))),
    (1, ADDRESSES + "8100000" + "0" + "080045", at(18, 4, domain(0))),
    # PPPoE
    (1, ADDRESSES + "886411001234000300" + "2145", at(22, 4, 0, LengthField("pppoe", 18, 20))),
    (1, ADDRESSES + "8864110000010002" + "5760", at(21, 6, 0, PPPOE)),
    (1, ADDRESSES + "8864110000010005ff03002145", at(24, 4, 0, PPPOE)),
    (
        1,
        ADDRESSES + "8100000588641100000100030021" + "45",
        at(26, 4, domain(5), LengthField("pppoe", 22, 24)),
    ),
    (1, ADDRESSES + "8864110000010007" + "0281" + "00001140" + "45", at(26, 4, 0, PPPOE)),
    # MPLS
    (1, ADDRESSES + "88470000114045", at(18, 4)),
    (1, ADDRESSES + "884800001040fffff14060", at(22, 6)),
    (1, ADDRESSES + "8847" + "00001040" * 15 + "00001140" + "45", at(78, 4)),
    # IEEE 802.3 with SNAP
    (1, ADDRESSES + "0009aaaa03000000080045", at(22, 4, 0, LengthField("802.3", 12, 14))),
    (
        1,
        ADDRESSES + "810000050009aaaa03000000" + "86dd60",
        at(26, 6, domain(5), LengthField("802.3", 16, 18)),
    ),
    (1, ADDRESSES + "05dcaaaa03000000080045", at(22, 4, 0, LengthField("802.3", 12, 14))),
    # BSD loopback
    (0, "0200000045", at(4, 4)),
    (0, "0000000245", at(4, 4)),
    (0, "1e00000060", at(4, 6)),
    (108, "0000001860", at(4, 6)),
    (108, "1c00000060", at(4, 6)),
    (0, "0a00000060", at(4, 6)),
    # PPP
    (9, "ff03002145", at(4, 4)),
    (9, "002145", at(2, 4)),
    (50, "ff032145", at(3, 4)),
    (50, "5760", at(1, 6)),
    (9, "02810000114060", at(6, 6)),
    # PPPoE without Ethernet
    (51, "110000010003002145", at(8, 4, 0, LengthField("pppoe", 4, 6))),
    # raw
    (101, "45", at(0, 4)),
    (12, "60", at(0, 6)),
    (14, "4f", at(0, 4)),
    (228, "45", at(0, 4)),
    (229, "60", at(0, 6)),
    # Linux cooked
    (113, "0000000100060200000000010000080045", at(16, 4)),
    (113, "000000010006020000000001000081000007" + "86dd60", at(20, 6, domain(7))),
    (276, "0800000000000001000100060200000000010000" + "45", at(20, 4)),
    (276, "8100000000000001000100060200000000010000" + "0007080045", at(24, 4, domain(7))),
    # Cisco HDLC
    (104, "0f00080045", at(4, 4)),
    (104, "8f0086dd60", at(4, 6)),
]


@pytest.mark.parametrize(("kind", "frame", "expected"), FOUND)
def test_found(kind: int, frame: str, expected: Decoded) -> None:
    assert decode(kind, bytes.fromhex(frame)) == expected


@pytest.mark.parametrize(("kind", "frame", "expected"), FOUND)
def test_cut_short_in_front_of_the_packet(kind: int, frame: str, expected: Decoded) -> None:
    whole = bytes.fromhex(frame)
    for size in range(expected.offset + 1):
        with pytest.raises(NotIpError):
            decode(kind, whole[:size])


@pytest.mark.parametrize(
    ("kind", "frame", "why"),
    [
        (1, ADDRESSES + "0806" + "0001", "ethertype 0x0806"),
        (1, ADDRESSES + "080055", "IP version 5"),
        (1, ADDRESSES + "81000001" * 5 + "080045", "more than 4 VLAN tags"),
        (1, ADDRESSES + "8847" + "00001040" * 16 + "0000114045", "more than 16 MPLS labels"),
        (1, ADDRESSES + "88470000114000000000", "IP version 0"),  # a control word is not guessed
        (1, ADDRESSES + "8863110900000000", "ethertype 0x8863"),
        (1, ADDRESSES + "886421000001000300" + "2145", "PPPoE version, type and code 0x2100"),
        (1, ADDRESSES + "886411a70001000300" + "2145", "PPPoE version, type and code 0x11a7"),
        (1, ADDRESSES + "8864110000010004c0210101", "PPP protocol 0xc021"),
        (1, ADDRESSES + "0026424203" + "0" * 20, "IEEE 802.3 length 38"),
        (1, ADDRESSES + "0009aaaa030000f8080045", "IEEE 802.3 length 9"),
        (1, ADDRESSES + "0009aaaa03000000810045", "IEEE 802.3 length 9"),
        (1, ADDRESSES + "05dd" + "45", "ethertype 0x05dd"),
        (0, "0700000045", "address family 0x07000000"),
        (0, "0200000060", "IP version 6"),
        (0, "1e00000045", "IP version 4"),
        (9, "ff03c02145", "PPP protocol 0xc021"),
        (9, "ff4545", "PPP protocol 0x00ff"),
        (101, "00", "IP version 0"),
        (228, "60", "IP version 6"),
        (229, "45", "IP version 4"),
        (113, "00000001000602000000000100000004" + "aaaa0300000008004500", "ethertype 0x0004"),
        (276, "0004000000000001000100060200000000010000" + "45", "ethertype 0x0004"),
        (104, "0f000004" + "45", "ethertype 0x0004"),
        (104, "0500080045", "Cisco HDLC address 0x0500"),
        (147, "45", "link type 147"),
        (1, "", "cut short at byte 0"),
    ],
)
def test_not_ip(kind: int, frame: str, why: str) -> None:
    with pytest.raises(NotIpError, match=why):
        decode(kind, bytes.fromhex(frame))


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(
    ("kind", "wrap", "offset"),
    [
        (1, ethernet, 14),
        (1, lambda p: ethernet(p, vlans=[1, 2, 3, 4]), 30),
        (1, lambda p: ethernet(p, vlans=[1], session=2), 26),
        (1, lambda p: ethernet(p, vlans=[1], labels=[3, 4]), 26),
        (1, lambda p: ethernet(p, snap=True), 22),
        (9, ppp, 4),
        (50, lambda p: ppp(p, address=False, compressed=True), 1),
        (51, pppoe, 8),
        (1, lambda p: ethernet(mpls(p, [7]), ethertype=0x8848), 18),
        (0, null, 4),
        (108, lambda p: null(p, order="big"), 4),
        (113, lambda p: sll(p, vlans=[9]), 20),
        (276, lambda p: sll2(p, vlans=[9, 8]), 28),
        (104, cisco_hdlc, 4),
    ],
)
def test_builders_are_understood(
    kind: int, wrap: Callable[[bytes], bytes], offset: int, version: int
) -> None:
    packet = bytes([version << 4]) + bytes(40)
    found = decode(kind, wrap(packet))
    assert (found.offset, found.version) == (offset, version)


# ---------------------------------------------------------------------------------- lengths


def test_pppoe_length_follows_the_packet() -> None:
    found = decode(51, bytes.fromhex("110000010003002145"))
    header = bytes.fromhex("1100000100030021")
    assert patch_lengths(header, found.lengths, 1000).hex() == "1100000103ea0021"
    assert patch_lengths(header, found.lengths, 65533).hex() == "11000001ffff0021"
    assert patch_lengths(header, found.lengths, 65535).hex() == "11000001ffff0021"


def test_802_3_length_stays_when_it_would_become_an_ethertype() -> None:
    header = bytes.fromhex(ADDRESSES + "0009aaaa030000000800")
    found = decode(1, header + b"\x45")
    assert patch_lengths(header, found.lengths, 100)[12:14].hex() == "006c"
    assert patch_lengths(header, found.lengths, 1492)[12:14].hex() == "05dc"
    assert patch_lengths(header, found.lengths, 1493)[12:14].hex() == "0009"


def test_vlan_ids() -> None:
    assert link.vlan_ids(0) == ()
    assert link.vlan_ids(domain(0)) == (0,)
    assert link.vlan_ids(domain(1, 2, 3, 4095)) == (1, 2, 3, 4095)


# ------------------------------------------------------------------------------------- laws


@given(st.sampled_from([*LINKS, 147]), st.binary(max_size=120))
def test_any_frame_is_found_or_refused(kind: int, frame: bytes) -> None:
    try:
        found = decode(kind, frame)
    except NotIpError:
        return
    assert 0 <= found.offset < len(frame)
    assert frame[found.offset] >> 4 == found.version
    assert len(link.vlan_ids(found.domain)) <= 4
    header = frame[: found.offset]
    patched = patch_lengths(header, found.lengths, len(frame) - found.offset)
    assert len(patched) == len(header)
    again = decode(kind, patched + frame[found.offset :])
    assert again == found
