"""With threads: the same results, the same complaints, the same endings."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest
import zstandard

import fragtrack
from fragtrack import engine
from fragtrack.engine import Backend
from fragtrack.testing import ethernet, fragment, pcap, pcap_record
from tests.backends import reassembler_class, rewriter_class
from tests.scenario.command import START, Command, capture, datagram4, flood

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE = 60
THREADS = (1, 2, 3, 5)


@pytest.fixture
def command(backend: str, tmp_path: Path) -> Command:
    chosen = Backend(backend, reassembler_class(backend), rewriter_class(backend))
    engine._loaded[:] = [chosen]
    return Command(tmp_path, backend)


@pytest.fixture(autouse=True)
def the_backend_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_loaded", list(engine._loaded))


def temporary_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob(".*.part"))


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


# ----------------------------------------------------------------------------------- results


@pytest.mark.parametrize("packed", [".gz", ".zst", ""])
def test_any_number_of_threads_gives_the_same(command: Command, packed: str) -> None:
    data = flood(1200)
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[packed]
    (command.folder / "in").write_bytes(pack(data))
    (command.folder / "small.pcap").write_bytes(capture())
    results = set()
    for threads in THREADS:
        names = [f"out{threads}.pcap", f"out{threads}.pcap.zst", f"t{threads}.jsonl"]
        plain, stored, table = (command.folder / name for name in names)
        options = ("in", "small.pcap", "--threads", str(threads), "--json")
        status, told, err = command.reassemble(
            *options, "-o", names[0], "--datagrams", names[2], "--hash"
        )
        assert (status, err) == (0, "")
        assert command.reassemble(*options, "-o", names[1])[0] == 0
        counts = json.loads(told)
        del counts["seconds"]
        unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(stored.read_bytes())
        assert unpacked == plain.read_bytes()
        results.add((json.dumps(counts), plain.read_bytes(), table.read_bytes()))
    assert len(results) == 1


def test_pipes_and_tables_in_every_format(command: Command) -> None:
    for form in ("jsonl", "csv.gz", "parquet"):
        found = set()
        for threads in THREADS:
            name = f"{threads}.{form}"
            done = command(
                *("reassemble", "-", "-o", "-", "-q", "--datagrams", name),
                *("--threads", str(threads)),
                stdin=gzip.compress(capture()),
            )
            assert (done.returncode, done.stderr) == (0, b"")
            table = (command.folder / name).read_bytes()
            found.add((done.stdout, gzip.decompress(table) if "gz" in form else table))
        assert len(found) == 1


def test_a_pipe_is_still_written_as_it_is_read(command: Command) -> None:
    process = command.popen("reassemble", "-", "-o", "-", "-q", "--threads", "3", stdin=-1)
    assert process.stdin is not None
    assert process.stdout is not None
    expected = pcap([(START, ethernet(datagram4(1)))])
    pieces = fragment(datagram4(1), sizes=[24])
    process.stdin.write(pcap((START, ethernet(piece)) for piece in pieces))
    process.stdin.flush()
    got = b""
    while len(got) < len(expected):
        got += os.read(process.stdout.fileno(), len(expected) - len(got))
    assert got == expected
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    process.stdout.close()
    process.stderr.close()  # type: ignore[union-attr]


# ------------------------------------------------------------------------------------ errors


class FullDisk(io.RawIOBase):
    """Takes so many bytes, then no more."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self.room -= len(data)
        if self.room < 0:
            raise OSError(28, "No space left on device", "full")
        return len(data)


class Bad(io.BytesIO):
    """Breaks while it is read."""

    def read1(self, size: int | None = -1, /) -> bytes:
        data = super().read1(size or -1)
        if not data:
            raise OSError(5, "Input/output error")
        return data


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize("threads", THREADS)
def test_an_error_of_the_output_is_raised(threads: int, tmp_path: Path) -> None:
    table = tmp_path / "t.jsonl"
    for room in (0, 1_000_000):
        with pytest.raises(OSError, match="No space left"):
            fragtrack.reassemble(
                io.BytesIO(flood(1200)), FullDisk(room), datagrams=table, threads=threads
            )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize("threads", THREADS)
def test_a_failing_read_is_damage_behind_what_was_read(threads: int) -> None:
    data = flood(1200)
    summary = fragtrack.reassemble(Bad(data), io.BytesIO(), threads=threads)
    assert summary.packets == 2400
    assert summary.damaged is not None
    assert summary.damaged.offset == len(data)
    assert summary.damaged.why == "reading failed: Input/output error"


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize("threads", THREADS)
def test_compressed_data_that_break_are_told_of_as_ever(threads: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap.gz"
    packed = gzip.compress(flood(1200))
    path.write_bytes(packed[: len(packed) // 2])
    summary = fragtrack.reassemble([path, path], io.BytesIO(), threads=threads)
    cut = (str(path), len(packed) // 2, "the gzip data end in the middle")
    assert summary.damages == (cut, cut)
    assert summary.packets > 1000


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize("threads", THREADS)
def test_the_first_error_wins(threads: int, tmp_path: Path) -> None:
    """A capture that the output cannot hold, behind more data than the disk can."""
    other = tmp_path / "raw.pcap"
    other.write_bytes(pcap([(START, datagram4(1))], link=101))
    origins = [io.BytesIO(flood(1200)), other]
    with pytest.raises(OSError, match="No space left"):
        fragtrack.reassemble(origins, FullDisk(2_400_000), format="pcap", threads=threads)
    origins = [io.BytesIO(flood(1200)), other]
    with pytest.raises(fragtrack.OutputError, match="link type"):
        fragtrack.reassemble(origins, FullDisk(10_000_000), format="pcap", threads=threads)


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize("threads", THREADS)
def test_an_exception_of_the_caller_leaves_nothing(threads: int, tmp_path: Path) -> None:
    steps = []

    def progress(*_: object) -> None:
        steps.append(_)
        if len(steps) == 2:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        fragtrack.reassemble(
            io.BytesIO(flood(3000)),
            tmp_path / "out.pcap.gz",
            datagrams=tmp_path / "t.csv",
            sha256=True,
            progress=progress,
            threads=threads,
        )
    assert list(tmp_path.iterdir()) == []
    wait_for(lambda: threading.active_count() == before)


def test_no_threads_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(fragtrack.ConfigError, match="threads=0: it must be a whole number"):
        fragtrack.reassemble(tmp_path / "in.pcap", threads=0)


def test_a_reader_that_goes_away_is_no_news(command: Command) -> None:
    (command.folder / "in.pcap").write_bytes(flood(1000))
    read, write = os.pipe()
    process = command.popen("reassemble", "in.pcap", "-o", "-", "--threads", "2", stdout=write)
    os.close(read)
    os.close(write)
    assert process.communicate(timeout=PATIENCE)[1] == b""
    assert process.returncode == 141


# ----------------------------------------------------------------------------------- signals


@pytest.mark.parametrize("threads", ["2", "3", "4"])
def test_a_signal_leaves_a_valid_shorter_file(command: Command, threads: str) -> None:
    args = ("reassemble", "-", "-o", "out.pcap", "--datagrams", "t.jsonl", "-q")
    process = command.popen(*args, "--threads", threads, stdin=-1)
    assert process.stdin is not None
    pieces = [*fragment(datagram4(1), sizes=[24]), fragment(datagram4(2), sizes=[24])[0]]
    data = pcap((START, ethernet(piece)) for piece in pieces)
    process.stdin.write(data + pcap_record(bytes(60))[:30])
    process.stdin.flush()
    wait_for(lambda: temporary_size(command.folder) > 0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err == (
        b"fragtrack: interrupted: out.pcap and t.jsonl: valid, with everything up to there\n"
    )
    first = (START, ethernet(datagram4(1)))
    assert (command.folder / "out.pcap").read_bytes() == pcap([first, (START, ethernet(pieces[2]))])
    assert command.names() == ["out.pcap", "t.jsonl"]


@pytest.mark.parametrize("threads", ["2", "4"])
def test_a_second_signal_ends_what_is_stuck_in_a_pipe(command: Command, threads: str) -> None:
    (command.folder / "in.pcap").write_bytes(flood(6000))
    process = command.popen(
        *("reassemble", "in.pcap", "-o", "-", "-q", "--datagrams", "t.csv", "--threads", threads)
    )
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 1) != b""  # it writes, then waits for a reader
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    assert time.monotonic() - begin < 20
    assert process.stderr is not None
    assert process.stderr.read() == b"fragtrack: interrupted; no output is left behind\n"
    assert process.returncode == 130
    assert command.names() == ["in.pcap"]
    process.stdout.close()
    process.stderr.close()
