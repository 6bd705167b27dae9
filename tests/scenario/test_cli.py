"""The command as its users meet it: formats, streams, statuses, and each line of complaint."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest
import zstandard

from fragtrack.testing import Pcapng, ethernet, fragment, ipv4, mpls, pcap, udp
from tests.backends import rewriter_class
from tests.scenario.command import (
    SECOND,
    START,
    Command,
    capture,
    datagram4,
    datagram6,
    flood,
    frames,
)

WHOLE = pcap(
    [
        frames()[0],
        (START + SECOND, ethernet(datagram4(1))),
        (START + 2 * SECOND, ethernet(datagram6())),
        *frames()[7:],
    ]
)
"""What comes out of `capture`, incomplete fragments kept."""

COMPLETE = pcap(
    [
        frames()[0],
        (START + SECOND, ethernet(datagram4(1))),
        (START + 2 * SECOND, ethernet(datagram6())),
    ]
)
"""The same with incomplete fragments dropped."""

COUNTS = {
    "packets": 11,
    "bytes": 851,
    "fragments": {"ipv4": 8, "ipv6": 2},
    "datagrams": {"complete": 2, "incomplete": 3},
    "written": 7,
    "reasons": {"duplicate": 1, "overlap": 2, "timeout": 1, "end": 1},
    "anomalies": {},
    "damaged": None,
}

SUMMARY = """\
in.pcap  11 packets, 851 bytes in # s
  fragments  10 (8 IPv4, 2 IPv6)
  datagrams  2 put together, 3 incomplete
  not used   5 fragments; written as they were (duplicates left out)
    overlap                2  shares bytes with another where the policy forbids it; see --policy
    duplicate              1  all its bytes were there already; harmless
    end                    1  the input ended first; if the capture goes on elsewhere, give both
    timeout                1  the rest did not come in time; lost, or see --timeout4, --timeout6
  output     7 packets in out.pcap
  note       The policy cost 1 datagram (overlap 1).
             To see which: fragtrack reassemble in.pcap --datagrams lost.jsonl
"""


@pytest.fixture
def command(backend: str, tmp_path: Path) -> Command:
    rewriter_class(backend)  # skips where it is missing
    (tmp_path / "in.pcap").write_bytes(capture())
    return Command(tmp_path, backend)


# ----------------------------------------------------------------------------- what it is for


def test_whole_datagrams_stand_where_their_last_piece_stood(command: Command) -> None:
    status, out, err = command.reassemble("in.pcap", "-o", "out.pcap")
    assert (status, err) == (0, "")
    head, rest = out.split("\n", 1)
    assert head.startswith("in.pcap  11 packets, 851 bytes in ")
    assert "in.pcap  11 packets, 851 bytes in # s\n" + rest == SUMMARY
    assert (command.folder / "out.pcap").read_bytes() == WHOLE
    assert command.names() == ["in.pcap", "out.pcap"]


def test_incomplete_fragments_can_be_dropped(command: Command) -> None:
    status, out, err = command.reassemble("in.pcap", "-o", "out.pcap", "--incomplete", "drop")
    assert (status, err) == (0, "")
    assert "  not used   5 fragments; left out\n" in out
    assert (command.folder / "out.pcap").read_bytes() == COMPLETE


def test_quiet_says_nothing(command: Command) -> None:
    assert command.reassemble("in.pcap", "-o", "out.pcap", "--quiet") == (0, "", "")


def test_json_is_one_object_with_these_keys(command: Command) -> None:
    status, out, err = command.reassemble("in.pcap", "-o", "out.pcap", "--json")
    assert (status, err) == (0, "")
    counts = json.loads(out)
    assert out.count("\n") == 1
    assert counts.pop("seconds") > 0
    assert counts == COUNTS
    assert list(counts) == list(COUNTS)


def test_without_an_output_it_only_counts(command: Command) -> None:
    status, out, _ = command.reassemble("in.pcap", "--json")
    assert status == 0
    assert json.loads(out)["written"] == 0
    assert json.loads(out)["reasons"] == COUNTS["reasons"]
    assert command.names() == ["in.pcap"]


def test_options_reach_the_engine(command: Command) -> None:
    def reasons(*options: str) -> dict[str, int]:
        status, out, _ = command.reassemble("in.pcap", "--json", *options)
        assert status == 0
        found: dict[str, int] = json.loads(out)["reasons"]
        return found

    assert reasons("--policy", "first") == {"duplicate": 1, "timeout": 3, "end": 1}
    assert reasons("--timeout4", "100") == {"duplicate": 1, "overlap": 2, "end": 2}
    assert reasons("--memory", "0", "--reclaim", "refuse")["memory"] >= 8
    assert reasons("--limits", "kernel", "--memory", "0")["memory"] >= 8


def test_two_inputs_are_one_capture(command: Command) -> None:
    pieces = [(START, ethernet(piece)) for piece in fragment(datagram4(9), sizes=[24])]
    (command.folder / "one.pcap").write_bytes(pcap(pieces[:1]))
    (command.folder / "two.pcap").write_bytes(pcap(pieces[1:]))
    status, out, _ = command.reassemble("one.pcap", "two.pcap", "-o", "out.pcap")
    assert status == 0
    assert out.startswith("2 inputs  2 packets")
    assert (command.folder / "out.pcap").read_bytes() == pcap([(START, ethernet(datagram4(9)))])


def test_what_a_limit_cost_is_said(command: Command) -> None:
    _, out, _ = command.reassemble(
        "in.pcap", "--datagrams", "t.csv", "--memory", "0", "-q", "--json"
    )
    assert json.loads(out)["reasons"].get("evicted", 0) > 0
    status, out, _ = command.reassemble("in.pcap", "--datagrams", "t.csv", "--memory", "0")
    assert status == 0
    assert "  note       The limits cost " in out
    assert "To see which: 'outcome' in t.csv\n" in out
    _, out, _ = command.reassemble("in.pcap", "-o", "out.pcap", "--memory", "0", "--timeout6", "9")
    again = "fragtrack reassemble in.pcap --timeout6 9 --memory 0 --datagrams lost.jsonl\n"
    assert out.endswith(f"To see which: {again}")


# ---------------------------------------------------------------------------- streams, formats


def test_standard_input_and_output(command: Command) -> None:
    done = command("reassemble", "-", "-o", "-", stdin=capture())
    assert done.returncode == 0
    assert done.stdout == WHOLE
    assert done.stderr.startswith(b"standard input  11 packets")
    assert b"  output     7 packets in standard output\n" in done.stderr


def test_standard_output_has_the_format_of_the_first_input_or_the_one_asked_for(
    command: Command,
) -> None:
    section = Pcapng().section().interface().packet(frames()[0][1]).data
    done = command("reassemble", "-", "-o", "-", "-q", stdin=section)
    assert done.stdout[:4] == b"\x0a\x0d\x0d\x0a"
    done = command("reassemble", "in.pcap", "-o", "-", "--format", "pcapng", "-q")
    assert done.stdout[:4] == b"\x0a\x0d\x0d\x0a"
    again = command("reassemble", "-", "-o", "-", "--format", "pcap", "-q", stdin=done.stdout)
    assert again.stdout[:4] == WHOLE[:4]
    assert len(again.stdout) == len(WHOLE)


def test_compressed_in_and_out(command: Command) -> None:
    folder = command.folder
    (folder / "in.gz").write_bytes(gzip.compress(capture()))
    (folder / "in.any").write_bytes(zstandard.ZstdCompressor().compress(capture()))
    assert command.reassemble("in.gz", "-o", "out.pcap.zst", "-q")[0] == 0
    assert command.reassemble("in.any", "-o", "out.pcap.gz", "-q")[0] == 0
    assert command("reassemble", "-", "-o", "out.pcap.xz", "-q", stdin=gzip.compress(capture()))
    assert gzip.decompress((folder / "out.pcap.gz").read_bytes()) == WHOLE
    unpacked = zstandard.ZstdDecompressor().decompressobj()
    assert unpacked.decompress((folder / "out.pcap.zst").read_bytes()) == WHOLE
    status, out, _ = command.reassemble("out.pcap.xz", "--json")
    assert status == 0
    assert json.loads(out)["packets"] == 7


def test_many_windows_give_what_one_gives(command: Command) -> None:
    data = flood(1500)
    (command.folder / "flood.pcap").write_bytes(data)
    (command.folder / "flood.gz").write_bytes(gzip.compress(data, 1))
    outputs = set()
    for name in ("flood.pcap", "flood.gz"):
        assert command.reassemble(name, "-o", "out.pcap", "-q") == (0, "", "")
        outputs.add(hashlib.sha256((command.folder / "out.pcap").read_bytes()).digest())
    done = command("reassemble", "-", "-o", "-", "-q", stdin=data)
    outputs.add(hashlib.sha256(done.stdout).digest())
    assert len(outputs) == 1
    assert len(done.stdout) == 24 + 1500 * (16 + 14 + 20 + 8 + 2000)


# ------------------------------------------------------------------------------------- tables


def test_tables_say_which_frames_made_which_datagram(command: Command) -> None:
    status, out, err = command.reassemble("in.pcap", "--datagrams", "-", "--hash")
    assert status == 0
    assert err.startswith("in.pcap  11 packets")
    rows = [json.loads(line) for line in out.splitlines()]
    seen = [(row["ip_version"], row["id"], row["frames"], row["outcome"]) for row in rows]
    assert seen == [
        (4, 1, [3, 5, 2], "complete"),
        (6, 1, [6, 7], "complete"),
        (4, 3, [8, 9], "overlap"),
        (4, 4, [10], "timeout"),
        (4, 5, [11], "end"),
    ]
    assert rows[0]["sha256"] == hashlib.sha256(datagram4(1)[20:]).hexdigest()
    assert rows[2]["sha256"] is None
    assert rows[0]["time_first"] == START + SECOND
    assert rows[0]["length"] == 48


def test_tables_go_with_a_capture(command: Command) -> None:
    for name in ("t.jsonl", "t.csv", "t.parquet", "t.csv.gz"):
        status, out, _ = command.reassemble("in.pcap", "-o", "out.pcap", "--datagrams", name)
        assert status == 0
        assert f"  table      5 datagrams in {name}\n" in out
    assert (command.folder / "out.pcap").read_bytes() == WHOLE


# ---------------------------------------------------------------------- every line of complaint


def write_inputs(folder: Path) -> None:
    """Write what the lines below are about."""
    (folder / "cut.pcap").write_bytes(capture()[:-10])
    (folder / "cut.gz").write_bytes(gzip.compress(capture(), mtime=0)[:-20])
    (folder / "empty.pcap").write_bytes(b"")
    (folder / "text.pcap").write_bytes(b"No capture at all.\n")
    (folder / "packed.lz4").write_bytes(b"\x04\x22\x4d\x18" + bytes(40))
    (folder / "folder").mkdir()
    (folder / "link.pcap").symlink_to("in.pcap")
    (folder / "hard.pcap").hardlink_to(folder / "in.pcap")
    two = Pcapng().section().interface(link=1).interface(link=101)
    two.packet(ethernet(mpls(ipv4(udp(b"x")), [5]))).packet(ipv4(udp(b"x")), interface=1)
    (folder / "two.pcapng").write_bytes(two.data)


def complaints() -> list[tuple[str, int, str]]:
    """Read arguments, exit status and line from the golden file."""
    text = (Path(__file__).parents[1] / "golden" / "complaints.txt").read_text()
    pairs = re.findall(r"^\$ (.*)\n(\d+) (.*)$", text, re.MULTILINE)
    return [(line, int(status), complaint) for line, status, complaint in pairs]


@pytest.mark.parametrize(("line", "expected", "complaint"), complaints())
def test_it_complains_in_one_line_and_leaves_nothing(
    command: Command, line: str, expected: int, complaint: str
) -> None:
    write_inputs(command.folder)
    before = command.names()
    status, out, err = command.reassemble(*line.split())
    complaint = complaint.format(size=(command.folder / "cut.gz").stat().st_size)
    assert (status, out, err) == (expected, "", f"fragtrack: {complaint}\n")
    assert command.names() == before


def test_an_input_on_standard_input_that_is_the_output(command: Command) -> None:
    path = command.folder / "in.pcap"
    with path.open("rb") as file:
        done = command.popen("reassemble", "-", "-o", "in.pcap", stdin=file)
    assert done.communicate()[1] == (
        b"fragtrack: in.pcap: is also the input standard input; choose another output\n"
    )
    assert done.returncode == 2
    assert path.read_bytes() == capture()


def test_a_capture_that_cannot_be_read_keeps_the_old_output(command: Command) -> None:
    write_inputs(command.folder)
    (command.folder / "out.pcap").write_bytes(b"before")
    assert command.reassemble("in.pcap", "empty.pcap", "-o", "out.pcap")[0] == 3
    assert (command.folder / "out.pcap").read_bytes() == b"before"


def test_damage_is_in_the_json_and_the_rest_in_the_output(command: Command) -> None:
    write_inputs(command.folder)
    status, out, err = command.reassemble("cut.pcap", "in.pcap", "-o", "out.pcap", "--json")
    assert status == 1
    damaged = json.loads(out)["damaged"]
    assert list(damaged) == ["file", "offset", "why"]
    assert (damaged["file"], damaged["offset"]) == ("cut.pcap", 769)
    assert json.loads(out)["packets"] == 21
    assert err.count("\n") == 1


def test_every_damaged_input_has_its_line(command: Command) -> None:
    write_inputs(command.folder)
    size = (command.folder / "cut.gz").stat().st_size
    done = "; all that could be read was processed\n"
    status, out, err = command.reassemble("cut.gz", "in.pcap", "cut.pcap", "--json")
    assert status == 1
    assert json.loads(out)["damaged"]["file"] == "cut.gz"
    assert err == (
        f"fragtrack: cut.gz: damaged at offset {size}: the gzip data end in the middle{done}"
        f"fragtrack: cut.pcap: damaged at offset 769: cut off record: 72 of 82 bytes{done}"
    )


# ------------------------------------------------------------------------------- the rest of it


def test_help_and_version(command: Command) -> None:
    done = command("--help")
    assert done.returncode == 0
    assert b"reassemble" in done.stdout
    done = command("reassemble", "--help")
    assert done.returncode == 0
    assert b"fragtrack reassemble in.pcapng -o whole.pcapng" in done.stdout
    done = command("--version")
    assert done.returncode == 0
    assert done.stdout.startswith(b"fragtrack ")
    done = command()
    assert done.returncode == 2
    assert done.stderr == b"fragtrack: a command is missing; see 'fragtrack --help'\n"


def test_a_traceback_only_where_it_is_asked_for(command: Command) -> None:
    command.environment["FRAGTRACK_DEBUG"] = "1"
    status, _, err = command.reassemble("missing.pcap", "--json")
    assert status == 1
    assert err.startswith("Traceback")
