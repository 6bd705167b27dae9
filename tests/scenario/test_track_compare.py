"""``fragtrack track --compare``: which dumps it takes, and that a long capture changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fragtrack.testing import ethernet, ipv4, pcap, udp
from tests.backends import follower_class
from tests.scenario.command import SECOND, START, Command

if TYPE_CHECKING:
    from pathlib import Path

FLOWS = 50
TUPLE = (
    "src=192.0.2.1 dst=198.51.100.2 sport={0} dport=53 [UNREPLIED] "
    "src=198.51.100.2 dst=192.0.2.1 sport=53 dport={0}"
)
ENTRY = f"udp      17 29 {TUPLE} mark=0 use=1\n"
SAVED = (
    "-s 192.0.2.1 -d 198.51.100.2 -r 198.51.100.2 -q 192.0.2.1 -p udp --sport 1 --dport 53 "
    "--reply-port-src 53 --reply-port-dst 1 -t 29\n"
)
ADVICE = "not an entry of a table; save 'conntrack -L -o extended' instead"


@pytest.fixture
def command(backend: str, tmp_path: Path) -> Command:
    """Give a capture of flows, a minute apart, so that only the last one is in the table."""
    follower_class(backend)  # skips where it is missing
    frames = [
        ethernet(ipv4(udp(b"?", src="192.0.2.1", dst="198.51.100.2", sport=number)))
        for number in range(1, FLOWS + 1)
    ]
    times = range(START, START + FLOWS * 60 * SECOND, 60 * SECOND)
    (tmp_path / "in.pcap").write_bytes(pcap(zip(times, frames, strict=True)))
    return Command(tmp_path, backend)


def test_those_that_ended_are_found_and_counted(command: Command) -> None:
    dump = "".join(ENTRY.format(number) for number in (3, FLOWS, 999))
    done = command("track", "in.pcap", "--compare", "-", "--json", stdin=dump.encode())
    assert (done.returncode, done.stderr) == (0, b"")
    told = json.loads(done.stdout)["comparison"]
    assert list(told) == [
        "agrees",
        "same",
        "ended_total",
        "different",
        "reversed",
        "ended",
        "only_dump",
        "only_capture",
    ]
    assert (told["same"], told["ended_total"]) == (1, FLOWS - 1)
    assert [(each["connection"], each["end"]) for each in told["ended"]] == [(3, "timeout")]
    assert [each["sport"] for each in told["only_dump"]] == [999]
    assert told["agrees"] is False
    assert told["different"] == told["reversed"] == told["only_capture"] == []


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("new", f"    [NEW] udp      17 30 {TUPLE}\n"),
        ("update", f"[1700000000.000000]\t [UPDATE] udp      17 30 {TUPLE}\n"),
        ("destroy", f"[DESTROY] udp      17 {TUPLE}\n"),
        ("destroy", f"-D {SAVED}"),
    ],
)
def test_events_are_no_table(command: Command, kind: str, line: str) -> None:
    (command.folder / "events.txt").write_text(ENTRY.format(1) + "\n" + line.format(2))
    done = command("track", "in.pcap", "--compare", "events.txt", "-o", "c.csv")
    complaint = f"fragtrack: events.txt: line 3: an event ({kind}), {ADVICE}\n"
    assert (done.returncode, done.stdout, done.stderr.decode()) == (3, b"", complaint)
    assert command.names() == ["events.txt", "in.pcap"]


def test_a_table_as_it_is_saved_is_one(command: Command) -> None:
    done = command("track", "in.pcap", "-q", "--compare", "-", stdin=f"-A {SAVED}".encode())
    assert done.returncode == 0
    assert done.stdout.startswith(b"standard input  0 the same, 1 ended in the capture, 1 only in")
