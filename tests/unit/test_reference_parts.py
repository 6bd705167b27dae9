"""The small parts of the reference, against values worked out elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fragtrack.reference import icmp, ipv4, ipv6
from fragtrack.reference.cost import fragment_cost, queue_cost
from fragtrack.reference.fragment import Plain, Rejected, address_text
from fragtrack.reference.queue import Key
from fragtrack.reference.reassembler import is_fragment
from fragtrack.reference.siphash import siphash13
from fragtrack.reference.table import key_words
from fragtrack.testing import builders


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="this Python hashes otherwise")
def test_siphash_as_the_interpreter_hashes() -> None:
    """With a seed of 0 Python hashes bytes by SipHash-1-3 with a key of 0."""
    code = "print(*(hash(bytes(range(8 * n))) for n in range(1, 8)))"
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True
    )
    for count, value in enumerate(told.stdout.split(), 1):
        data = bytes(range(8 * count))
        words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
        assert siphash13(0, words) == int(value) % (1 << 64)


def test_key_words() -> None:
    key = Key(4, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]), 17, 0xBEEF, 1 << 48 | 5)
    assert key_words(key) == [0x0A000001_0A000002, 1 << 48 | 5, 0xBEEF | 17 << 32 | 4 << 40]
    key = Key(6, bytes(15) + b"\1", bytes(15) + b"\2", 0, 0xDEADBEEF, 0)
    assert key_words(key) == [0, 1, 0, 2, 0, 0xDEADBEEF | 6 << 40]


@pytest.mark.parametrize(
    ("length", "cost"),
    [
        *[(20, 832), (192, 832), (193, 1280), (640, 1280), (641, 2304), (1664, 2304)],
        *[(3712, 4352), (7808, 8448), (7809, 12_544), (11_904, 12_544), (65_535, 69_888)],
    ],
)
def test_kernel_buffers(length: int, cost: int) -> None:
    assert fragment_cost("kernel", length, 0) == cost


def test_capture_costs() -> None:
    assert fragment_cost("capture", 100, 114) == 192 + 114
    assert (queue_cost("capture", 4), queue_cost("capture", 6)) == (128, 128)
    assert (queue_cost("kernel", 4), queue_cost("kernel", 6)) == (200, 184)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (bytes([192, 0, 2, 1]), "192.0.2.1"),
        (bytes(16), "::"),
        (b"\x20\x01\x0d\xb8" + bytes(11) + b"\1", "2001:db8::1"),
        (bytes(10) + b"\xff\xff" + bytes([192, 0, 2, 1]), "::ffff:192.0.2.1"),
        (bytes(12) + bytes([192, 0, 2, 1]), "::c000:201"),
    ],
)
def test_address_text(address: bytes, text: str) -> None:
    assert address_text(address) == text


@pytest.mark.parametrize(
    ("next_header", "length", "incomplete"),
    [
        *[(6, 19, True), (6, 20, False), (17, 7, True), (17, 8, False), (58, 7, True)],
        *[(58, 8, False), (253, 0, True), (253, 1, False), (59, 0, False), (50, 0, True)],
        (60, 1, False),
    ],
)
def test_header_chain(next_header: int, length: int, incomplete: bool) -> None:
    packet = builders.ipv6_fragment(bytes(length), more=True, next_header=next_header)
    assert ipv6.chain_incomplete(packet, 40) == incomplete
    later = builders.ipv6_fragment(bytes(length), offset=8, more=True, next_header=next_header)
    assert not ipv6.chain_incomplete(later, 40)


def test_where_the_fragment_header_is() -> None:
    before = [builders.hop_by_hop(), builders.destination_options(), builders.routing()]
    located = ipv6.locate(builders.ipv6_fragment(b"A" * 8, before=before))
    assert isinstance(located, ipv6.Located)
    assert (located.at, located.next_header, located.cut) == (64, 56, False)
    assert ipv6.read(located).data == 72


def test_what_is_no_fragment() -> None:
    assert isinstance(ipv6.locate(builders.ipv6(b"A" * 8)), Plain)
    assert isinstance(ipv4.parse(builders.ipv4(b"A" * 8), verify=True), Plain)
    assert not is_fragment(b"")
    assert not is_fragment(builders.ipv4(b"A"))
    assert is_fragment(builders.ipv4(b"A", mf=True))
    assert is_fragment(builders.ipv4(b"A", offset=8))
    assert is_fragment(builders.ipv6_fragment(b"A"))
    assert not is_fragment(builders.ipv6(b"A"))


def test_jumbogram_is_left_as_long_as_it_came() -> None:
    packet = builders.ipv6_fragment(b"A" * 8, before=[builders.hop_by_hop()], payload_length=0)
    located = ipv6.locate(packet)
    assert isinstance(located, ipv6.Located)
    assert located.packet == packet
    without = builders.ipv6_fragment(b"A" * 8, payload_length=0)
    located = ipv6.locate(without)
    assert isinstance(located, ipv6.Located)
    assert located.packet == without[:40]


def test_cut_inside_the_header_is_a_header_error_to_the_kernel() -> None:
    packet = builders.ipv4(b"A" * 8, mf=True, options=b"\1" * 8)
    rejected = ipv4.parse(packet[:24], verify=False)
    assert isinstance(rejected, Rejected)
    assert (rejected.reason.name, rejected.counters) == ("truncated", ("InHdrErrors",))


@pytest.mark.parametrize(
    ("kind", "answered"),
    [
        (0, True),
        (3, False),
        (5, False),
        (6, False),
        (8, True),
        (11, False),
        (13, True),
        (19, False),
    ],
)
def test_no_error_about_an_icmp_error(kind: int, answered: bool) -> None:
    parsed = ipv4.parse(builders.ipv4(bytes([kind]) * 8, protocol=1, mf=True), verify=True)
    assert not isinstance(parsed, Plain | Rejected)
    assert (icmp.time_exceeded(parsed) is not None) == answered


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        ("224.0.0.1", "10.0.0.1"),
        ("10.0.0.1", "239.1.1.1"),
        ("10.0.0.1", "255.255.255.255"),
        ("0.0.0.0", "10.0.0.1"),  # noqa: S104
        ("127.0.0.1", "127.0.0.1"),
    ],
)
def test_nobody_answers_groups(src: str, dst: str) -> None:
    parsed = ipv4.parse(builders.ipv4(b"A" * 8, src=src, dst=dst, mf=True), verify=True)
    assert not isinstance(parsed, Plain | Rejected)
    assert icmp.time_exceeded(parsed) is None


def test_icmpv6_without_its_type_is_answered_only_as_a_fragment() -> None:
    first = builders.ipv6_fragment(b"", more=True, next_header=58)
    atomic = builders.ipv6_fragment(b"", next_header=58)
    assert icmp.parameter_problem(first, 3, 0) is not None
    assert icmp.parameter_problem(atomic, 3, 0) is None
    error = builders.ipv6_fragment(b"\1" * 8, more=True, next_header=58)
    assert icmp.parameter_problem(error, 0, 4) is None


def test_quotes_are_cut() -> None:
    parsed = ipv4.parse(builders.ipv4(b"A" * 1000, mf=True), verify=True)
    assert not isinstance(parsed, Plain | Rejected)
    error = icmp.time_exceeded(parsed)
    assert error is not None
    assert len(error.quote) == 548
    problem = icmp.parameter_problem(builders.ipv6_fragment(b"A" * 1400, more=True), 0, 4)
    assert problem is not None
    assert len(problem.quote) == 1232
