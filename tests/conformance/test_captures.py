"""Public captures against the values of three peers (tshark, scapy, a Linux 6.18 kernel).

The captures and values lie beside a development checkout, see their README there. Every datagram
that the peers agree on must come out with the same bytes, and nothing else may. Where the peers
disagree, `DECIDED` says who is right and why. Rows for packets inside tunnels are named in
`INSIDE_A_TUNNEL`: those packets are not looked into yet.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.backends import BACKENDS, rewriter_class
from tests.rewriting import Result, Run

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPTURES = Path(__file__).parents[2].parent / "shared" / "captures"
TOP_LAYERS = frozenset({"outer", "vlan", "mpls", "ppp"})

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures beside the checkout"),
]


class Key(NamedTuple):
    """A datagram by its content."""

    version: int
    src: str
    dst: str
    id: int
    length: int
    sha256: str


class Decision(NamedTuple):
    """The right outcome where the peers disagree: the peer whose bytes are right, or the reason."""

    right: str
    why: str


LAST_CAME_FIRST = Decision(
    "linux", "RFC 791 lets fragments come in any order; scapy wants the last one last"
)
LATE_DUPLICATES = Decision(
    "linux",
    "duplicates inside one run are ignored, and one that comes after completion opens a queue of "
    "its own; scapy refuses any repetition",
)
TEARDROP = Decision(
    "last_conflict", "the last fragment ends at 28, below the 32 bytes held: ip_frag_queue step 4"
)
OVERLAP = Decision("overlap", "shares bytes with a run without lying inside it (RFC 5722)")
TWO_NEXT_HEADERS = Decision(
    "linux",
    "one datagram after the other under one id: each is whole when its last fragment comes, so "
    "they do not meet; scapy's function knows the id only",
)
EXTENSION_OVERFLOW = Decision(
    "oversize",
    "65,528 bytes behind an 8-byte hop-by-hop header exceed a payload length of 65,535: "
    "ip6_frag_reasm drops the complete datagram",
)

#: File, id, instance -> who is right.
DECIDED: dict[tuple[str, int, int], Decision] = {
    ("filesamples__teardrop.pcap", 242, 0): TEARDROP,
    ("peafowl__teardrop.pcap", 242, 0): TEARDROP,
    **{
        ("jnetpcap__test-vlan.pcap", number, 0): LAST_CAME_FIRST
        for number in (35421, 15206, 35492, 15240, 35506, 15262, 35569, 15284, 35617, 15299)
    },
    ("ouster-sdk__duplicate_id.pcap", 21723, 0): Decision(
        "linux",
        "frame 1 lost its companions 88 s before the id came round: its timer (30 s) ended it; "
        "tshark has no timer and mixes old bytes in",
    ),
    ("pcapplusplus__ip4_fragments.pcap", 7843, 0): LATE_DUPLICATES,
    ("pcapplusplus__ip4_fragments.pcap", 7844, 0): LATE_DUPLICATES,
    ("pcapplusplus__ip4_fragments.pcap", 7845, 0): LATE_DUPLICATES,
    ("reassembler__fragments3.pcap", 19754, 0): LAST_CAME_FIRST,
    ("reassembler__fragments3.pcap", 19754, 1): LAST_CAME_FIRST,
    ("snabb__tcp-ipv4-3frags-bound-reversed.pcap", 16963, 0): LAST_CAME_FIRST,
    ("suricata-verify__frag-1.pcap", 1, 0): Decision(
        "tshark",
        "frame 8 repeats the range of frame 6 with other bytes: a duplicate, the first bytes stay. "
        "Linux put the same together (completing frame 9) but did not deliver it for its ICMPv6 "
        "checksum, so it shows no hash; scapy appends the duplicate",
    ),
    ("suricata-verify__frag-6.pcap", 6, 0): OVERLAP,
    ("suricata-verify__frag-15.pcap", 1536669411, 0): Decision(
        "end",
        "the last fragment reaches 65,543 bytes: refused on arrival with a parameter problem "
        "(ip6_frag_queue), so the datagram stays open; tshark has no limit",
    ),
    ("yanet__009_nat64stateless__005-send.pcap", 305419896, 0): TWO_NEXT_HEADERS,
    ("yanet__009_nat64stateless__005-send.pcap", 305419896, 1): TWO_NEXT_HEADERS,
    ("yanet__026_nat64stateless_range_ports_fragmentation__003-send.pcap", 305441442, 0): OVERLAP,
    ("yanet__026_nat64stateless_range_ports_fragmentation__003-send.pcap", 305441444, 0): OVERLAP,
    ("yanet__026_nat64stateless_range_ports_fragmentation__003-send.pcap", 305441446, 0): Decision(
        "linux", "frame 21 lies inside the run of frames 19 and 20: a duplicate; scapy appends it"
    ),
    ("yanet__026_nat64stateless_range_ports_fragmentation__003-send.pcap", 305441447, 0): Decision(
        "linux", "frame 24 lies inside the run of frame 23: a duplicate, the first bytes stay"
    ),
    ("zeek__fragmented-1.pcap", 242, 0): Decision(
        "past_last",
        "frame 2 said that the datagram ends at 164, frame 3 holds bytes up to 304: "
        "ip_frag_queue step 5",
    ),
    ("zeek__ipv6-reassembly-state-leak.pcap", 2684354560, 0): EXTENSION_OVERFLOW,
    ("zeek__ipv6-reassembly-state-leak.pcap", 2684354561, 0): EXTENSION_OVERFLOW,
}

#: Atomic fragments that local delivery refuses: the values describe them, no peer delivered them.
REFUSED_ATOMIC = {
    ("suricata-verify__frag-10.pcap", 167815850): (
        "nested",
        "its next header is a second fragment header: parameter problem (ipv6_frag_rcv)",
    ),
}

#: File, layer -> rows about packets inside a tunnel, or inside a reassembled datagram.
INSIDE_A_TUNNEL = {
    ("open5gs__ipsec_to_ipsec_call.pcapng", "ip4/gtp"): 21,
    ("open5gs__ipsec_to_ipsec_call.pcapng", "reassembled/gtp"): 3,
    ("peafowl__6in6_inner.pcap", "ip6/6in"): 1,
    ("suricata-verify__security-8550__input.pcap", "reassembled/gre"): 1,
    ("yanet__027_decap_fragment__001-send.pcap", "vlan/ip6/ipip"): 1,
}

#: Packets that a reader finds in files which are corrupt, where tshark's guess is another.
OTHER_PACKET_COUNT = {
    # The length of the first record was changed; tshark takes the file for a variant of pcap with
    # longer record headers and so finds a second packet in the middle of the first one's bytes.
    "suricata-verify__fuzz.pcap": 1,
}


@cache
def manifest() -> dict[str, dict[str, str]]:
    with (CAPTURES / "manifest.csv").open(newline="") as lines:
        return {row["file"]: row for row in csv.DictReader(lines)}


@cache
def expected() -> dict[str, list[dict[str, Any]]]:
    rows = defaultdict(list)
    for line in (CAPTURES / "expected.jsonl").read_text().splitlines():
        row = json.loads(line)
        rows[row["file"]].append(row)
    return rows


@cache
def content(name: str) -> bytes:
    data = (CAPTURES / name).read_bytes()
    if name.endswith(".gz"):
        return gzip.decompress(data)
    if name.endswith(".zst"):
        zstandard = pytest.importorskip("zstandard")
        inflated: bytes = zstandard.ZstdDecompressor().decompressobj().decompress(data)
        return inflated
    return data


def names() -> list[str]:
    if not CAPTURES.is_dir():
        return []
    return [name for name in manifest() if not name.endswith(".lz4")]


def names_without_fragments() -> list[str]:
    counts = ("ip_fragments_v4", "ip_fragments_v6")
    return [
        name for name in names() if not any(int(manifest()[name][kind] or 0) for kind in counts)
    ]


@cache
def analyzed(backend: str, name: str) -> Result:
    return Run(backend, output=None)(content(name))


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    rewriter_class(request.param)
    name: str = request.param
    return name


def complete(result: Result) -> Counter[Key]:
    return Counter(
        Key(
            row.ip_version,
            row.src,
            row.dst,
            row.id,
            row.length,
            hashlib.sha256(row.payload or b"").hexdigest(),
        )
        for row in result.rows
        if row.outcome == "complete"
    )


def right(name: str) -> Iterator[Key]:
    """Give the datagrams of a capture that must come out."""
    for row in expected()[name]:
        if row["layer"] not in TOP_LAYERS or row["result"] == "incomplete":
            continue
        value = row
        if row["result"] == "disagreement":
            decision = DECIDED[name, row["id"], row["instance"]]
            if decision.right not in row["peers"]:
                continue
            value = row["peers"][decision.right]
            value = {"payload_length": value["length"], "sha256": value["sha256"]}
        elif (name, row["id"]) in REFUSED_ATOMIC:
            continue
        length, sha256 = value["payload_length"], value["sha256"]
        yield Key(row["version"], row["src"], row["dst"], row["id"], length, sha256)


@pytest.mark.parametrize("name", names())
def test_every_packet_is_read(backend: str, name: str) -> None:
    result = analyzed(backend, name)
    row = manifest()[name]
    assert result.summary["packets"] == OTHER_PACKET_COUNT.get(name, int(row["packets"]))
    assert (result.damaged is not None) == bool(row["reader_note"])
    if "corrupt" not in row["kinds"] and result.damaged is None:
        assert result.summary["bytes"] == len(content(name))


@pytest.mark.parametrize("name", names())
def test_exactly_the_right_datagrams_come_out(backend: str, name: str) -> None:
    assert complete(analyzed(backend, name)) == Counter(right(name))


@pytest.mark.parametrize("name", names())
def test_every_fragment_is_accounted_for(backend: str, name: str) -> None:
    result = analyzed(backend, name)
    used = sum(row.fragments for row in result.rows if row.outcome == "complete")
    lost = sum(result.summary["reasons"].values())
    assert sum(result.summary["fragments"].values()) == used + lost


@pytest.mark.parametrize(("name", "number", "instance"), DECIDED)
def test_where_the_peers_disagree(backend: str, name: str, number: int, instance: int) -> None:
    decision = DECIDED[name, number, instance]
    (row,) = (
        row
        for row in expected()[name]
        if row["result"] == "disagreement"
        and (row["id"], row["instance"]) == (number, instance)
        and row["layer"] in TOP_LAYERS
    )
    ours = [found for found in analyzed(backend, name).rows if found.id == number]
    if decision.right in row["peers"]:
        completing = row["peers"][decision.right]["completing_frame"]
        (found,) = (each for each in ours if max(each.frames) == completing)
        assert found.outcome == "complete"
        assert found.length == row["peers"][decision.right]["length"]
    else:
        assert "complete" not in {found.outcome for found in ours}
        assert decision.right in {found.outcome for found in ours}


@pytest.mark.parametrize(("name", "number"), REFUSED_ATOMIC)
def test_refused_atomic_fragments(backend: str, name: str, number: int) -> None:
    reason, _ = REFUSED_ATOMIC[name, number]
    result = analyzed(backend, name)
    assert [row for row in result.rows if row.id == number] == []
    assert result.summary["reasons"] == {reason: 1}


def test_every_disagreement_is_decided() -> None:
    rows = [row for rows in expected().values() for row in rows]
    open_rows = {
        (row["file"], row["id"], row["instance"])
        for row in rows
        if row["result"] == "disagreement" and row["layer"] in TOP_LAYERS
    }
    assert open_rows == set(DECIDED)


def test_rows_inside_tunnels_are_known() -> None:
    rows = [row for rows in expected().values() for row in rows]
    inside = Counter((row["file"], row["layer"]) for row in rows if row["layer"] not in TOP_LAYERS)
    assert inside == INSIDE_A_TUNNEL


# ---------------------------------------------------------------------------------- rewriting


def with_unknown_section_lengths(data: bytes) -> bytes:
    """Walk over the blocks of a pcapng file by hand."""
    patched, at, order = bytearray(data), 0, "<"
    while at < len(data):
        if data[at : at + 4] == b"\n\r\r\n":
            order = "<" if data[at + 8] == 0x4D else ">"
            patched[at + 16 : at + 24] = b"\xff" * 8
        at += int.from_bytes(data[at + 4 : at + 8], "little" if order == "<" else "big")
    return bytes(patched)


@pytest.mark.parametrize("name", names_without_fragments())
def test_captures_without_fragments_come_out_as_they_are(backend: str, name: str) -> None:
    analysis = analyzed(backend, name)
    assert sum(analysis.summary["fragments"].values()) == 0
    data = content(name)
    form = "pcapng" if data[:4] == b"\n\r\r\n" else "pcap"
    output = Run(backend, output=form)(data).output
    if form == "pcapng":
        assert output == with_unknown_section_lengths(data)
    else:
        assert output[:16] == data[:16]
        assert output[20:] == data[20 : analysis.summary["bytes"]]


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("chunk", [0, 4096])
def test_rewriting_leaves_no_datagram_in_pieces(backend: str, name: str, chunk: int) -> None:
    data = content(name)
    form = "pcapng" if data[:4] == b"\n\r\r\n" else "pcap"
    first = Run(backend, output=form, chunk=chunk)(data)
    assert complete(first) == complete(analyzed(backend, name))
    again = Run(backend, output=form)(first.output)
    assert again.damaged is None or first.damaged is not None
    assert again.summary["packets"] == first.summary["written"]
    atomic = sum(len(row.frames) == 1 for row in first.rows if row.outcome == "complete")
    assert again.summary["datagrams"]["complete"] == atomic
    counts = first.summary
    dropped = counts["reasons"].get("duplicate", 0)
    whole = [row for row in first.rows if row.outcome == "complete"]
    pieces = sum(row.fragments for row in whole)
    assert counts["written"] == counts["packets"] - dropped - pieces + len(whole)


# ---------------------------------------------------------------------------------- bug reports


def reports() -> list[str]:
    return sorted(path.stem for path in (CAPTURES / "bugs").glob("*.json"))


@pytest.mark.parametrize("name", reports())
def test_bug_reports(backend: str, name: str) -> None:
    report = json.loads((CAPTURES / "bugs" / f"{name}.json").read_text())
    data = (CAPTURES / "bugs" / report["input"]).read_bytes()
    result = Run(backend)(data)
    outcome = report["right_outcome"]
    whole = [row for row in result.rows if row.outcome == "complete"]
    assert [
        (row.id, row.length, hashlib.sha256(row.payload or b"").hexdigest(), max(row.frames))
        for row in whole
    ] == [
        (row["id"], row["payload_length"], row["payload_sha256"], row["completing_frame"])
        for row in outcome.get("datagrams", [])
    ]
    assert [sorted(row.frames) for row in whole] == [
        row["frames"] for row in outcome.get("datagrams", [])
    ]
    lost = [(row.id, sorted(row.frames)) for row in result.rows if row.outcome == "timeout"]
    assert lost == [(row["id"], row["frames"]) for row in outcome.get("timed_out", [])]
    if "connections" in outcome:  # about TCP: there is nothing to put together
        assert result.rows == []
        assert result.output[24:] == data[24:]
