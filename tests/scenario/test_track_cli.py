"""``fragtrack track`` as its users meet it: the summary, the formats, each line of complaint."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path

import pytest

from fragtrack.cli.track_report import MEANING, ORPHANS
from fragtrack.events import Reason
from fragtrack.testing import Talk, ethernet, fragment, icmpv6_echo, ipv4, ipv6, pcap, udp
from fragtrack.verdicts import TrackReason
from tests.backends import follower_class
from tests.scenario.command import SECOND, START, Command

SUMMARY = """\
in.pcap  20 packets, 1.5 KiB in # s
  connections  4 (tcp 2, udp 1, icmpv6 1)
  ended        still open 2, closed 1, reset 1; 3 still in the table
  packets      established 10, invalid 4, new 4, held 2
  reasons      5 packets
    ack_above              1  invalid    acknowledges data that was not seen; packets missing
    checksum               1  invalid    wrong checksum; corrupt, or left to the network card
    no_entry               1  invalid    belongs to none and begins none; it was over, or is older
    reset                  1  killed     a reset before any answer; nobody listens there
    seq_above              1  invalid    beyond the receiver's window; forged, or packets missing
  fragments    3 (3 IPv4, 0 IPv6)
  datagrams    1 put together, 1 incomplete
  orphans      1 fragment of none that was put together
    end                    1  the input ended first; if the capture goes on elsewhere, give both
  note         Checksums: the network card fills them in behind a capture on the sender; if so, add
               --set checksum=ignore
               Windows: if packets are missing from the capture, add --set gap_tolerant=1 to go on
               behind each gap
               To see which: fragtrack track in.pcap --verdicts verdicts.csv
"""

COUNTS = {
    "packets": 20,
    "bytes": 1504,
    "connections": {
        "total": 4,
        "open": 3,
        "protocols": {"tcp": 2, "udp": 1, "icmpv6": 1},
        "ends": {"open": 2, "closed": 1, "reset": 1},
    },
    "classes": {"new": 4, "established": 10, "invalid": 4, "held": 2},
    "reasons": {"checksum": 1, "no_entry": 1, "seq_above": 1, "ack_above": 1, "reset": 1},
    "fragments": {"ipv4": 3, "ipv6": 0},
    "datagrams": {"complete": 1, "incomplete": 1},
    "orphans": {"end": 1},
    "counters": {
        "packets": 18,
        "found": 13,  # with the three invalid ones that have an entry
        "new": 4,
        "invalid": 4,
        "ignore": 0,
        "delete": 1,
        "insert": 4,
        "insert_failed": 0,
        "drop": 0,
        "early_drop": 0,
        "icmp_error": 0,
        "entries": 3,
    },
    "damaged": None,
}

LIST = """\
tcp      6 115 TIME_WAIT src=192.0.2.1 dst=198.51.100.2 sport=40000 dport=80 packets=7 bytes=290 \
src=198.51.100.2 dst=192.0.2.1 sport=80 dport=40000 packets=3 bytes=150 [ASSURED] mark=0 use=1
udp      17 28 src=192.0.2.1 dst=198.51.100.2 sport=1024 dport=53 packets=1 bytes=92 [UNREPLIED] \
src=198.51.100.2 dst=192.0.2.1 sport=53 dport=1024 packets=0 bytes=0 mark=0 use=1
icmpv6   58 30 src=2001:db8::1 dst=2001:db8::2 type=128 code=0 id=1 packets=1 bytes=52 \
[UNREPLIED] src=2001:db8::2 dst=2001:db8::1 type=129 code=0 id=1 packets=0 bytes=0 mark=0 use=1
"""


def frames() -> list[tuple[int, bytes]]:
    """Build a capture's frames.

    A connection from begin to end, with two segments in it that cannot be; one that is refused; a
    stray reset; a datagram in fragments, and one that lacks some; a ping; a wrong checksum.
    """
    one, two = Talk(), Talk(sport=40001, dport=81)
    packets = [
        *((0, packet) for packet in one.handshake()),
        (0, one.client("PA", b"GET /")),
        (0, one.server("PA", b"200" * 10)),
        (0, one.client("A")),
        (1, one.client("A", ack=900)),
        (1, one.client("PA", b"GET /", seq=1)),
        (2, one.client("PA", b"x", seq=700_000)),
    ]
    one.client.next = 6
    packets += [
        *((3, packet) for packet in one.goodbye()),
        (4, two.client("S")),
        (4, two.server("RA")),
        (5, Talk(sport=5).client("RA")),
        *((6, piece) for piece in fragment(ipv4(udp(b"a" * 64), id=7), sizes=[24])),
        (7, fragment(ipv4(udp(b"b" * 64), id=8), sizes=[24])[0]),
        (8, ipv6(icmpv6_echo(b"ping"), next_header=58)),
        (8, ipv4(udp(b"bad", checksum_value=1), id=9)),
    ]
    return [(START + at * SECOND, ethernet(packet)) for at, packet in packets]


@pytest.fixture
def command(backend: str, tmp_path: Path) -> Command:
    follower_class(backend)  # skips where it is missing
    (tmp_path / "in.pcap").write_bytes(pcap(frames()))
    return Command(tmp_path, backend)


def track(command: Command, *args: str, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run ``fragtrack track``; give status, standard output without times, standard error."""
    done = command("track", *args, stdin=stdin)
    out, err = (
        re.sub(r" in \d+\.\d\d s\n", " in # s\n", text.decode())
        for text in (done.stdout, done.stderr)
    )
    return done.returncode, out, err


# --------------------------------------------------------------------------------- the summary


def test_without_an_output_it_tells_what_it_found(command: Command) -> None:
    assert track(command, "in.pcap") == (0, SUMMARY, "")
    assert command.names() == ["in.pcap"]


def test_every_reason_has_a_meaning_that_fits_a_line() -> None:
    assert set(MEANING) == set(TrackReason)
    assert set(ORPHANS) == set(Reason)
    assert max(map(len, MEANING.values())) <= 59


def test_outputs_are_in_the_summary(command: Command) -> None:
    options = ("-o", "c.csv", "--verdicts", "v.jsonl", "--events", "e.txt")
    status, out, err = track(command, "in.pcap", *options)
    assert (status, err) == (0, "")
    assert "  output       4 connections in c.csv\n" in out
    assert "  verdicts     20 packets in v.jsonl\n" in out
    assert "  events       in e.txt\n" in out
    assert out.endswith("               To see which: 'reason' in v.jsonl\n")
    assert command.names() == ["c.csv", "e.txt", "in.pcap", "v.jsonl"]
    assert "  output       3 connections in t.txt\n" in track(command, "in.pcap", "-o", "t.txt")[1]
    assert "  output       Zeek's view in c.log\n" in track(command, "in.pcap", "-o", "c.log")[1]


def test_the_command_that_shows_more_has_the_same_settings(command: Command) -> None:
    options = ("--profile", "pre-6.1", "--limits", "kernel", "--set", "udp_timeout=5")
    _, out, _ = track(command, "in.pcap", *options)
    assert out.endswith(f"fragtrack track in.pcap {' '.join(options)} --verdicts verdicts.csv\n")
    _, out, _ = track(command, "-", stdin=pcap(frames()))
    assert out.endswith("To see which: add --verdicts verdicts.csv\n")


def test_nothing_odd_needs_no_notes(command: Command) -> None:
    (command.folder / "few.pcap").write_bytes(pcap(frames()[:3]))
    assert track(command, "few.pcap")[1] == (
        "few.pcap  3 packets, 234 bytes in # s\n"
        "  connections  1 (tcp 1)\n"
        "  ended        still open 1; 1 still in the table\n"
        "  packets      established 2, new 1\n"
    )
    (command.folder / "none.pcap").write_bytes(pcap([]))
    assert track(command, "none.pcap")[1] == (
        "none.pcap  0 packets, 24 bytes in # s\n  connections  none\n"
    )


def test_json_is_one_object_with_these_keys(command: Command) -> None:
    status, out, err = track(command, "in.pcap", "--json")
    assert (status, err) == (0, "")
    counts = json.loads(out)
    assert out.count("\n") == 1
    assert counts.pop("seconds") > 0
    assert counts == COUNTS
    assert list(counts) == list(COUNTS)


def test_quiet_says_nothing(command: Command) -> None:
    assert track(command, "in.pcap", "-q", "--verdicts", "v.csv") == (0, "", "")


# --------------------------------------------------------------------------------- the formats


def test_verdicts_tell_what_was_compared(command: Command) -> None:
    status, out, err = track(command, "in.pcap", "--verdicts", "-")
    assert status == 0
    assert err.startswith("in.pcap  20 packets")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["frame"] for row in rows] == list(range(1, 21))
    odd = {row["frame"]: row["detail"] for row in rows if row["class"] == "invalid"}
    assert odd == {
        7: "ACK 5900 is over the upper bound 5031 (acknowledged data not seen yet)",
        9: "SEQ 701000 is over the upper bound 66541 (over the window of the receiver)",
        15: "no connection is known, and a RST does not begin one",
        20: "checksum 0x0001 where 0x490a is right",
    }


def test_connections_as_a_table(command: Command) -> None:
    status, out, _ = track(command, "in.pcap", "-o", "-", "--format", "csv", "-q")
    assert status == 0
    rows = list(csv.DictReader(out.splitlines()))
    assert [(row["id"], row["end"], row["invalid"]) for row in rows] == [
        ("2", "reset", "0"),
        ("1", "closed", "2"),
        ("3", "open", "1"),
        ("4", "open", "0"),
    ]


def test_the_text_of_the_kernel(command: Command) -> None:
    assert track(command, "in.pcap", "--format", "conntrack", "-q") == (0, LIST, "")
    assert track(command, "in.pcap", "-o", "t.txt.gz", "-q") == (0, "", "")
    assert gzip.decompress((command.folder / "t.txt.gz").read_bytes()).decode() == LIST
    track(command, "in.pcap", "--events", "e.txt", "-q")
    events = (command.folder / "e.txt").read_text().splitlines()
    assert events[0] == (
        "[1700000000.000000]\t    [NEW] tcp      6 120 SYN_SENT src=192.0.2.1 dst=198.51.100.2 "
        "sport=40000 dport=80 [UNREPLIED] src=198.51.100.2 dst=192.0.2.1 sport=80 dport=40000"
    )


def test_a_log_as_zeek(command: Command) -> None:
    status, out, _ = track(command, "in.pcap", "--format", "zeek", "-q")
    assert status == 0
    rows = [line.split("\t") for line in out.splitlines() if not line.startswith("#")]
    assert [row[11] for row in rows] == ["SF", "REJ", "OTH", "S0", "OTH"]


def test_a_comparison_with_a_dump(command: Command) -> None:
    (command.folder / "same.txt").write_text(LIST)
    status, out, err = track(command, "in.pcap", "--compare", "same.txt", "-q")
    assert (status, err) == (0, "")
    assert out == "same.txt  3 the same\n"
    _, out, _ = track(command, "in.pcap", "--compare", "-", "-q", stdin=LIST.encode())
    assert out == "standard input  3 the same\n"
    (command.folder / "other.txt").write_text(LIST.replace("TIME_WAIT", "ESTABLISHED"))
    status, out, _ = track(command, "in.pcap", "--compare", "other.txt")
    assert status == 0
    assert out.startswith(SUMMARY + "other.txt  2 the same, 1 different\n    differs  tcp ")
    _, out, _ = track(command, "in.pcap", "--compare", "other.txt", "--json")
    assert not json.loads(out)["comparison"]["agrees"]


# --------------------------------------------------------------------------------- settings


def test_settings_reach_the_engine(command: Command) -> None:
    def reasons(*options: str) -> dict[str, int]:
        status, out, _ = track(command, "in.pcap", "--json", *options)
        assert status == 0
        found: dict[str, int] = json.loads(out)["reasons"]
        return found

    usual = COUNTS["reasons"]
    assert reasons() == usual
    assert "checksum" not in reasons("--set", "nf_conntrack_checksum=0")
    assert reasons("--set", "gap_tolerant=1")["resynchronized"]
    assert reasons("--set", "max=1", "--set", "udp_timeout=1")["table_full"]


# ---------------------------------------------------------------------- every line of complaint


def complaints() -> list[tuple[str, int, str]]:
    """Read arguments, exit status and line from the golden file."""
    text = (Path(__file__).parents[1] / "golden" / "track_complaints.txt").read_text()
    pairs = re.findall(r"^\$ (.*)\n(\d+) (.*)$", text, re.MULTILINE)
    return [(line, int(status), complaint) for line, status, complaint in pairs]


@pytest.mark.parametrize(("line", "expected", "complaint"), complaints())
def test_it_complains_in_one_line_and_leaves_nothing(
    command: Command, line: str, expected: int, complaint: str
) -> None:
    (command.folder / "text.pcap").write_bytes(b"No capture at all, whatever its name says.\n")
    (command.folder / "text.txt").write_bytes(b"no entry\n")
    before = command.names()
    assert track(command, *line.split()) == (expected, "", f"fragtrack: {complaint}\n")
    assert command.names() == before


def test_damage_has_its_line_and_the_rest_its_rows(command: Command) -> None:
    (command.folder / "cut.pcap").write_bytes(pcap(frames())[:-5])
    status, out, err = track(command, "cut.pcap", "-o", "-", "-q")
    assert status == 1
    assert out.count("\n") == 4
    assert err.startswith("fragtrack: cut.pcap: damaged at offset ")
    assert err.endswith("; all that could be read was processed\n")


def test_help_has_examples(command: Command) -> None:
    done = command("track", "--help")
    assert done.returncode == 0
    assert b"fragtrack track in.pcap --format conntrack\n" in done.stdout
    assert b"track" in command("--help").stdout
