"""Inputs that fuzzing found, made small, with the answers that are right for both backends."""

from __future__ import annotations

import pytest

from fragtrack.config import ReassemblyConfig
from fragtrack.errors import OutputError
from fragtrack.testing import Pcapng, ethernet, pcap_header
from tests.backends import reassembler_class
from tests.fragments import fragment
from tests.rewriting import Run

SECOND = 1_000_000_000
LATEST = (1 << 63) - 1  # ns: the last moment that a time stamp can tell


@pytest.mark.parametrize("version", [4, 6])
def test_time_may_stand_at_its_end(backend: str, version: int) -> None:
    """Time stamps behind the year 2262 all become the last moment: no time passes between them."""
    reassembler = reassembler_class(backend)(ReassemblyConfig())
    first = fragment(version, 0, b"A" * 8, more=True)
    other = fragment(version, 0, b"A" * 8, more=True, ident=2)
    last = fragment(version, 8, b"B" * 8, more=False)
    kinds = [reassembler.push(packet, LATEST).kind for packet in (first, other, last)]
    assert kinds == ["held", "held", "complete"]
    reassembler.check()


@pytest.mark.parametrize("source", ["127.0.0.1", "0.0.0.7", "224.0.0.1", "255.255.255.255"])
def test_nobody_answers_such_a_source(backend: str, source: str) -> None:
    """`ip_expire` asks for the route to the quoted packet's source: there is none."""
    reassembler = reassembler_class(backend)(ReassemblyConfig())
    reassembler.push(fragment(4, 0, b"A" * 8, more=True, src=source), 0)
    (gone,) = reassembler.advance(30 * SECOND)
    assert (gone.reason, gone.icmp) == ("timeout", None)


def test_the_highest_link_type_is_a_link_type(backend: str) -> None:
    """65,535 is told apart from "no packet" without being changed."""
    run = Run(backend)
    file = Pcapng().section().interface(link=0xFFFF).packet(b"frame")
    assert run(file.data).output[:24] == pcap_header(link=0xFFFF)
    file.interface(link=1).packet(ethernet(b""), interface=1)
    with pytest.raises(OutputError, match="has link type 1, those before it have 65535,"):
        run(file.data)
    assert run(pcap_header(link=0xFFFF)).output == pcap_header(link=0xFFFF)


def test_a_damaged_block_goes_by_where_its_section_had_no_such_interface(backend: str) -> None:
    """The frame is lost, the block is not: it comes out as it went in, and is no packet."""
    file = Pcapng().section().interface().packet(ethernet(b""), interface=3)
    result = Run(backend, output="pcapng")(file.data)
    assert result.output == file.data
    assert (result.summary["packets"], result.summary["written"]) == (0, 0)
    assert result.damaged is not None
    assert result.damaged[:2] == ("file0", len(file.data) - len(file.blocks[-1]))


@pytest.mark.parametrize("domain", [1 << 56, (1 << 64) - 1])
def test_a_domain_has_56_bits(backend: str, domain: int) -> None:
    """More would be taken for another protocol; nothing is pushed."""
    reassembler = reassembler_class(backend)(ReassemblyConfig())
    with pytest.raises(ValueError, match="domain"):
        reassembler.push(fragment(4, 0, b"A" * 8, more=True), 0, domain)
    assert reassembler.queues == 0
