"""The command among other processes: signals, closed pipes, full disks, terminals."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fragtrack.testing import ethernet, fragment, pcap, pcap_record
from tests.backends import rewriter_class
from tests.scenario.command import START, Command, capture, datagram4, flood

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

PATIENCE = 60
"""Seconds a process gets to do what it should; nothing here takes long."""


@pytest.fixture
def command(backend: str, tmp_path: Path) -> Command:
    rewriter_class(backend)  # skips where it is missing
    return Command(tmp_path, backend)


def wait_for(what: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until something is so; a process that ends before is a failure."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def temporary_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob(".*.part"))


def start_on_a_pipe(command: Command, *args: str) -> subprocess.Popen[bytes]:
    """Start reading standard input, give it a part of a capture, wait until that is written."""
    process = command.popen("reassemble", "-", *args, stdin=-1)
    assert process.stdin is not None
    # A whole datagram, the first fragment of another, and half a record.
    pieces = [*fragment(datagram4(1), sizes=[24]), fragment(datagram4(2), sizes=[24])[0]]
    data = pcap((START, ethernet(piece)) for piece in pieces)
    process.stdin.write(data + pcap_record(bytes(60))[:30])
    process.stdin.flush()
    return process


# ------------------------------------------------------------------------------------ signals


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_leaves_a_valid_shorter_file_and_says_so(
    command: Command, number: int, status: int
) -> None:
    process = start_on_a_pipe(command, "-o", "out.pcap", "--datagrams", "t.jsonl", "-q")
    wait_for(lambda: temporary_size(command.folder) > 0, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (status, b"")
    assert err == (
        b"fragtrack: interrupted: out.pcap and t.jsonl: valid, with everything up to there\n"
    )
    first = (START, ethernet(datagram4(1)))
    open_piece = (START, ethernet(fragment(datagram4(2), sizes=[24])[0]))
    assert (command.folder / "out.pcap").read_bytes() == pcap([first, open_piece])
    rows = [json.loads(row) for row in (command.folder / "t.jsonl").read_text().splitlines()]
    assert [row["outcome"] for row in rows] == ["complete", "end"]
    assert command.names() == ["out.pcap", "t.jsonl"]


def test_a_signal_before_the_first_byte_leaves_nothing(command: Command) -> None:
    fifo = command.folder / "fifo"
    os.mkfifo(fifo)
    process = command.popen("reassemble", "fifo", "-o", "out.pcap")
    writer = os.open(fifo, os.O_WRONLY)  # returns when the command has opened the other end
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    os.close(writer)
    assert process.returncode == 130
    assert err == b"fragtrack: interrupted before anything was read; no output is left behind\n"
    assert command.names() == ["fifo"]


def test_a_second_signal_ends_what_the_first_could_not(command: Command) -> None:
    (command.folder / "in.pcap").write_bytes(flood(300))
    process = command.popen("reassemble", "in.pcap", "-o", "-", "-q")
    assert process.stdout is not None
    wait_for(lambda: os.read(process.stdout.fileno(), 1) != b"", process)  # it writes, then waits
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err == b"fragtrack: interrupted; no output is left behind\n"


def test_an_ignored_signal_stays_ignored(command: Command) -> None:
    process = command.popen(
        "reassemble",
        "-",
        "--json",
        stdin=-1,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert process.stdin is not None
    process.stdin.write(capture()[:500])
    process.stdin.flush()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.stdin.write(capture()[500:])
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["packets"] == 11


# ---------------------------------------------------------------------------- pipes and disks


@pytest.mark.parametrize("options", [["-o", "-"], ["--datagrams", "-"], ["--json"]])
def test_a_reader_that_goes_away_is_no_news(command: Command, options: list[str]) -> None:
    (command.folder / "in.pcap").write_bytes(flood(1000))
    read, write = os.pipe()
    process = command.popen("reassemble", "in.pcap", *options, stdout=write)
    os.close(read)
    os.close(write)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (141, b"")


@pytest.mark.parametrize(
    ("name", "limit", "options"),
    [
        ("out.pcap", 10_000, ()),
        ("out.pcap.gz", 10_000, ()),
        ("out.pcap", 1000, ("--threads", "4")),
        ("out.pcap.zst", 1000, ("--threads", "4")),
    ],
)
def test_a_full_disk_leaves_nothing_behind(
    command: Command, name: str, limit: int, options: tuple[str, ...]
) -> None:
    (command.folder / "in.pcap").write_bytes(flood(1000))
    process = command.popen(
        *("reassemble", "in.pcap", "-o", name, "--datagrams", "t.jsonl", *options),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (3, b"")
    assert err.endswith(b": cannot write: File too large\n")
    assert err.count(b"\n") == 1
    assert command.names() == ["in.pcap"]


def test_a_summary_that_cannot_be_printed(command: Command) -> None:
    (command.folder / "in.pcap").write_bytes(capture())
    with Path("/dev/full").open("wb") as full:
        process = command.popen("reassemble", "in.pcap", "--json", stdout=full)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3
    assert err == b"fragtrack: the summary: cannot write: No space left on device\n"


def test_closed_standard_streams_are_not_taken_for_files(command: Command) -> None:
    (command.folder / "in.pcap").write_bytes(capture())

    def run(closed: int, *args: str) -> tuple[int, bytes]:
        process = command.popen("reassemble", *args, preexec_fn=lambda: os.close(closed))
        err = process.communicate(timeout=PATIENCE)[1]
        return process.returncode, err

    assert run(1, "in.pcap", "-o", "out.pcap") == (0, b"")
    assert run(1, "in.pcap", "-o", "-") == (
        3,
        b"fragtrack: standard output: cannot write: Bad file descriptor\n",
    )
    assert run(1, "in.pcap", "--json") == (
        3,
        b"fragtrack: the summary: cannot write: Bad file descriptor\n",
    )
    assert run(0, "-", "-o", "out.pcap") == (3, b"fragtrack: standard input: Bad file descriptor\n")
    assert run(2, "missing.pcap", "-o", "out.pcap") == (3, b"")
    assert (command.folder / "in.pcap").read_bytes() == capture()


def test_a_pipe_is_written_as_it_is_read(command: Command) -> None:
    process = start_on_a_pipe(command, "-o", "-", "-q")
    assert process.stdout is not None
    assert process.stdin is not None
    expected = pcap([(START, ethernet(datagram4(1)))])
    got = b""
    while len(got) < len(expected):
        got += os.read(process.stdout.fileno(), len(expected) - len(got))
    assert got == expected
    process.stdin.close()
    process.stdin = None
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert b"damaged at offset" in err


# ---------------------------------------------------------------------------------- terminals


def read_terminal(descriptor: int) -> bytes:
    """Read what a terminal shows until nobody is left to write on it."""
    shown = b""
    try:
        while more := os.read(descriptor, 4096):
            shown += more
    except OSError:  # EIO is how Linux says that the other side is closed
        pass
    return shown


def test_a_terminal_gets_color_and_no_capture(command: Command) -> None:
    (command.folder / "in.pcap").write_bytes(capture())
    command.environment.update(TERM="xterm")
    command.environment.pop("NO_COLOR", None)
    for options, expected in ((["-o", "out.pcap"], 0), (["-o", "-"], 2)):
        screen, terminal = pty.openpty()
        process = command.popen("reassemble", "in.pcap", *options, stdout=terminal)
        os.close(terminal)
        shown = read_terminal(screen)
        _, err = process.communicate(timeout=PATIENCE)
        os.close(screen)
        assert process.returncode == expected
        if expected:
            assert shown == b""
            assert err == (
                b"fragtrack: a capture is not for a terminal: use -o FILE, or pipe it on\n"
            )
        else:
            assert shown.startswith(b"\x1b[1min.pcap\x1b[0m  11 packets")


def test_a_terminal_is_no_source_of_captures(command: Command) -> None:
    screen, terminal = pty.openpty()
    process = command.popen("reassemble", "-", "--json", stdin=terminal)
    _, err = process.communicate(timeout=PATIENCE)
    os.close(terminal)
    os.close(screen)
    assert process.returncode == 2
    assert err == b"fragtrack: a capture does not come from a terminal: pipe one in\n"


@pytest.mark.parametrize("options", [[], ["-q"]])
def test_a_long_run_shows_a_bar_on_a_terminal(command: Command, options: list[str]) -> None:
    command.environment.update(TERM="xterm")
    screen, terminal = pty.openpty()
    process = command.popen("reassemble", "-", "--json", *options, stdin=-1, stderr=terminal)
    os.close(terminal)
    assert process.stdin is not None
    data = flood(400)
    for at in range(0, len(data), 100_000):
        process.stdin.write(data[at : at + 100_000])
        process.stdin.flush()
        time.sleep(0.2)  # longer in all than the bar's patience
    process.stdin.close()
    process.stdin = None
    shown = read_terminal(screen)
    os.close(screen)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert (b"reading" in shown) == (not options)
