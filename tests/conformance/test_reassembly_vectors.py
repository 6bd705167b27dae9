"""Hand-written sequences, each about one rule, with what must come of every step.

`tests/data/reassembly_vectors.jsonl` holds one sequence a line. A step says what is done, when (ms,
absent: as the step before) and what is wanted:

* ``do``: a fragment, as ``VERSION OFFSET+LENGTH [more] LETTER [name=value]...``, its payload being
  that letter (or ``hex``); ``6plain LENGTH LETTER``: an IPv6 packet that is no fragment; ``raw``:
  the bytes of the step's ``raw``; ``advance``; ``flush``. ``repeat``: so often, ``id=+`` counts up.
* ``want``: the outcome's kind, with the reason or with the payload as runs of letters.
* ``ended``: reason and number of fragments of every datagram given up; ``icmp``: type, code, rest
  about this packet; ``expired_icmp``: type and code of the only error about those given up;
  ``packet``, ``tos``, ``flags``, ``words``: the result's bytes, or fields of its header.

``end`` gives counters (absent ones are 0), reasons and open queues behind the last step.
"""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fragtrack.config import ReassemblyConfig
from fragtrack.testing import builders
from tests.backends import reassembler_class
from tests.fragments import PLAIN, fragment

VECTORS = Path(__file__).parent.parent / "data" / "reassembly_vectors.jsonl"
START = 1_700_000_000_000_000_000
SEQUENCES = [json.loads(line) for line in VECTORS.read_text().splitlines()]
ADDRESSES = {4: ("10.0.0.2", "10.0.0.1"), 6: ("2001:db8:1::2", "2001:db8::1")}


def fields_of(version: int, words: dict[str, str]) -> dict[str, Any]:
    """Translate the fields of a step into those of the builders."""
    src, dst = ADDRESSES[version]
    fields: dict[str, Any] = {"src": words.get("src", src), "dst": words.get("dst", dst)}
    fields["ecn"] = int(words.get("ecn", 0))
    if version == 6:
        return {**fields, "next_header": int(words.get("next", PLAIN))}
    return {
        **fields,
        "protocol": int(words.get("proto", PLAIN)),
        "df": "df" in words,
        "options": bytes.fromhex(words.get("options", "")),
        "header_checksum": "bad" if "badsum" in words else None,
        "total_length": int(words["total"]) if "total" in words else None,
    }


def packet_of(do: str, raw: str, serial: int) -> tuple[bytes, int]:
    """Build the packet of a step; give it with its domain."""
    if do == "raw":
        return bytes.fromhex(raw), 0
    kind, extent, *rest = do.split()
    words = dict(word.partition("=")[::2] for word in rest)
    letter = next(word for word in rest if word.isupper()).encode()
    if kind == "6plain":
        src, dst = ADDRESSES[6]
        data = letter * int(extent)
        packet = builders.ipv6(data, src=src, dst=dst, next_header=PLAIN)
    else:
        start, length = map(int, extent.split("+"))
        data = bytes.fromhex(words["hex"]) if "hex" in words else letter * length
        assert len(data) == length
        ident = words.get("id", "1")
        packet = fragment(
            int(kind),
            start,
            data,
            more="more" in words,
            ident=1000 + serial if ident == "+" else int(ident),
            **fields_of(int(kind), words),
        )
    packet += bytes(int(words.get("pad", 0)))
    return packet[: len(packet) - int(words.get("cut", 0))], int(words.get("domain", 0))


def payload_of(text: str) -> bytes:
    return b"".join(
        letter.encode() * int(length) for letter, length in re.findall(r"([A-Z])(\d+)", text)
    )


def check_outcome(step: dict[str, Any], outcome: Any) -> None:  # noqa: ANN401
    kind, _, detail = step["want"].partition(" ")
    assert outcome.kind == kind
    assert outcome.reason == (detail if kind == "dropped" else None)
    assert (outcome.datagram is not None) == (kind == "complete")
    if kind == "complete":
        assert outcome.datagram.payload == payload_of(detail)
        assert outcome.packet == outcome.datagram.packet
        check_header(step, outcome.packet)
    error = outcome.icmp
    found = None if error is None else [error.type, error.code, error.rest]
    assert found == step.get("icmp")


def check_header(step: dict[str, Any], packet: bytes) -> None:
    version = packet[0] >> 4
    tos = packet[1] if version == 4 else (packet[0] << 4 | packet[1] >> 4) & 0xFF
    assert packet.hex() == step.get("packet", packet.hex())
    assert tos == step.get("tos", tos)
    if version == 4:
        flags, words = int.from_bytes(packet[6:8]), packet[0] & 15
        assert flags == step.get("flags", flags)
        assert words == step.get("words", words)


def check_ended(step: dict[str, Any], ended: list[Any]) -> None:
    assert [[queue.reason, queue.fragments] for queue in ended] == step.get("ended", [])
    errors = [[e.type, e.code] for e in (queue.icmp for queue in ended) if e is not None]
    assert errors == ([step["expired_icmp"]] if "expired_icmp" in step else [])


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence["name"])
def test_as_written(backend: str, sequence: dict[str, Any]) -> None:
    config = ReassemblyConfig(**sequence["config"])
    reassembler = reassembler_class(backend)(config)
    time, serials = 0, count()
    for step in sequence["steps"]:
        time = step.get("at", time)
        now = START + time * 1_000_000
        for _ in range(step.get("repeat", 1)):
            if step["do"] == "advance":
                check_ended(step, reassembler.advance(now))
            elif step["do"] == "flush":
                check_ended(step, reassembler.flush())
            else:
                packet, domain = packet_of(step["do"], step.get("raw", ""), next(serials))
                outcome = reassembler.push(packet, now, domain)
                check_outcome(step, outcome)
                check_ended(step, outcome.given_up)
            reassembler.check()
    end = sequence.get("end", {})
    if "counters" in end:
        assert {name: n for name, n in reassembler.counters.items() if n} == end["counters"]
    if "reasons" in end:
        assert dict(reassembler.reasons) == end["reasons"]
    assert reassembler.queues == end.get("queues", reassembler.queues)


def test_names_are_unique() -> None:
    names = [sequence["name"] for sequence in SEQUENCES]
    assert len(set(names)) == len(names)
