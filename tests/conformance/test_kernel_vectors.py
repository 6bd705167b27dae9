"""Every recorded answer of a Linux 6.18 kernel to a fragment sequence, reproduced.

The recording holds 3,000 sequences (`kernel_oracle/README.md` beside it says how it was made).
After every packet, what was delivered, the ICMP errors, the counters, the open queues and the
memory must be the kernel's. No sequence is left out. Two things need saying:

* ``thresh``: the memory limits are judged by the cost model, buffer sizes of a TUN device. It
  reproduces the recorded memory of every step; the netfilter path of IPv6 shows none, but its
  refusals come out right as well.
* Behind the fragment header of an atomic fragment the kernel goes on in the headers, and refuses
  a destination options header that is cut short (``ipv6_destopt_rcv``). The datagram has been
  delivered by then; :func:`refused_later` accounts for it.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from fragtrack.config import ReassemblyConfig
from tests.backends import reassembler_class
from tests.conftest import SHARED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fragtrack.events import IcmpError

pytestmark = pytest.mark.shared

VECTORS = SHARED / "kernel_oracle" / "vectors" / "reassembly_linux618.jsonl.gz"
START = 1_700_000_000_000_000_000  # any epoch will do
HOST = ("198.18.0.1/32", "198.18.0.2/32")

SETTINGS = {
    "ipv4/ipfrag_time": "timeout4",
    "ipv4/ipfrag_high_thresh": "memory",
    "ipv4/ipfrag_max_dist": "max_dist",
    "ipv6/ip6frag_time": "timeout6",
    "ipv6/ip6frag_high_thresh": "memory",
    "netfilter/nf_conntrack_frag6_timeout": "timeout6",
    "netfilter/nf_conntrack_frag6_high_thresh": "memory",
}
UNUSED = {  # the kernel keeps them for compatibility
    "ipv4/ipfrag_low_thresh",
    "ipv6/ip6frag_low_thresh",
    "netfilter/nf_conntrack_frag6_low_thresh",
}


@cache
def sequences() -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Read the recording, by path and kind."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    if VECTORS.is_file():
        with gzip.open(VECTORS, "rt") as lines:
            next(lines)
            for line in lines:
                sequence = json.loads(line)
                groups.setdefault((sequence["path"], sequence["kind"]), []).append(sequence)
    return groups


def cases() -> list[Any]:
    """List the groups, or one that says why there are none."""
    missing = pytest.mark.skip(reason="no ../shared: the kernel's answers are not here")
    return sorted(sequences()) or [pytest.param("v4-local", "allen", marks=missing)]


def config_of(sequence: dict[str, Any]) -> ReassemblyConfig:
    changed: dict[str, Any] = {
        SETTINGS[name]: value
        for name, value in sequence.get("sysctl", {}).items()
        if name not in UNUSED
    }
    path = "local" if sequence["path"].endswith("-local") else "netfilter"
    return ReassemblyConfig(limits="kernel", path=path, local=HOST, **changed)


def as_recorded(error: IcmpError) -> dict[str, Any]:
    return {
        "type": error.type,
        "code": error.code,
        "rest": f"{error.rest:08x}",
        "src": error.src,
        "dst": error.dst,
        "quote": error.quote.hex(),
    }


def refused_later(packet: bytes) -> bool:
    """Tell whether the kernel's options handler refuses what was delivered."""
    at, header = 40, packet[6]
    while header in {0, 43, 44, 60}:
        length = 8 if header == 44 else (packet[at + 1] + 1) * 8 if at + 1 < len(packet) else 8
        if header == 60 and at + length > len(packet):
            return True
        header, at = packet[at], at + length
    return False


def changes(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in after if after[name] != before[name]}


def answers(sequence: dict[str, Any], reassembler: Any) -> Iterable[dict[str, Any]]:  # noqa: ANN401
    """Yield what the reassembler makes of every step, in the words of the recording."""
    before = dict(reassembler.counters)
    for step in sequence["steps"]:
        time = START + step.get("t", 0) * 1_000_000
        answer: dict[str, Any] = {"out": [], "icmp": []}
        if "pkt" in step:
            outcome = reassembler.push(bytes.fromhex(step["pkt"]), time)
            ended, errors = outcome.given_up, [outcome.icmp]
            if outcome.packet is not None:
                answer["out"].append(outcome.packet.hex())
        else:
            ended, errors = reassembler.advance(time), []
        errors = [*(queue.icmp for queue in ended), *errors]
        answer["icmp"] = [as_recorded(error) for error in errors if error is not None]
        after = dict(reassembler.counters)
        answer["cnt"] = changes(before, after)
        before = after
        if (
            sequence["path"] == "v6-local"
            and answer["out"]
            and refused_later(bytes.fromhex(answer["out"][0]))
        ):
            answer["out"] = []
            answer["cnt"]["InHdrErrors"] = answer["cnt"].get("InHdrErrors", 0) + 1
        answer["q"], answer["mem"] = reassembler.queues, reassembler.memory
        yield answer


@pytest.mark.parametrize(("path", "kind"), cases())
def test_as_the_kernel(backend: str, path: str, kind: str) -> None:
    make = reassembler_class(backend)
    for sequence in sequences()[path, kind]:
        reassembler = make(config_of(sequence))
        for number, answer in enumerate(answers(sequence, reassembler)):
            recorded = sequence["steps"][number]["a"]
            want = {"out": [], "icmp": [], "cnt": {}, **recorded}
            want.pop("drop", None)
            answered = {name: answer[name] for name in want}
            assert answered == want, (sequence["i"], number, sequence.get("note"))
            reassembler.check()
        reassembler.flush()
        assert (reassembler.memory, reassembler.queues) == (0, 0)


def test_the_recording_is_whole() -> None:
    if not VECTORS.is_file():
        pytest.skip("no ../shared: the kernel's answers are not here")
    groups = sequences()
    assert sum(map(len, groups.values())) == 3000
    assert {path for path, _ in groups} == {"v4-local", "v4-nf", "v6-local", "v6-nf"}
