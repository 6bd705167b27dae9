"""Whole captures from Python: one call, an iterator, a reassembler; and what breaks on the way."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fragtrack
from fragtrack import engine
from fragtrack.engine import Backend
from fragtrack.sources import CHUNK
from fragtrack.testing import Pcapng, ethernet, fragment, pcap
from tests.backends import reassembler_class, rewriter_class
from tests.scenario.command import (
    SECOND,
    START,
    capture,
    datagram4,
    datagram6,
    flood,
    frames,
)


@pytest.fixture(autouse=True)
def use_backend(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Backend(backend, reassembler_class(backend), rewriter_class(backend))
    monkeypatch.setattr(engine, "_loaded", [chosen])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.pcap"
    path.write_bytes(capture())
    return path


def pieces(number: int, size: int = 2000) -> list[tuple[int, bytes]]:
    return [(START, ethernet(piece)) for piece in fragment(datagram4(number, size), sizes=[1000])]


# --------------------------------------------------------------------------------- reassemble


def test_one_call_rewrites_a_file(source: Path, tmp_path: Path) -> None:
    summary = fragtrack.reassemble(source, tmp_path / "out.pcap")
    assert summary.datagrams == {"complete": 2, "incomplete": 3}
    assert summary.damaged is None
    assert not summary.interrupted
    assert summary.written == 7
    again = fragtrack.reassemble(str(tmp_path / "out.pcap"))
    assert (again.packets, again.written) == (7, 0)


def test_file_objects_in_and_out() -> None:
    out = io.BytesIO()
    summary = fragtrack.reassemble(io.BytesIO(capture()), out)
    assert summary.packets == 11
    assert out.getvalue()[24 + 16 :].startswith(frames()[0][1])
    out = io.BytesIO()
    fragtrack.reassemble([io.BytesIO(capture()), io.BytesIO(capture())], out, format="pcapng")
    assert out.getvalue().count(b"\x0a\x0d\x0d\x0a") == 2


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    data = flood(1500)
    path = tmp_path / "flood.pcap"
    path.write_bytes(data)
    seen: list[tuple[int, int | None]] = []
    fragtrack.reassemble([path, path], progress=lambda *step: seen.append(step))
    assert seen[-1] == (2 * len(data), 2 * len(data))
    assert seen == sorted(seen)
    assert len(seen) > 4
    seen.clear()
    fragtrack.reassemble(io.BytesIO(data), progress=lambda *step: seen.append(step))
    assert seen[-1] == (len(data), None)


def test_a_run_can_be_stopped_between_windows(tmp_path: Path) -> None:
    path = tmp_path / "flood.pcap"
    path.write_bytes(flood(1500))
    for origin in (path, io.BytesIO(flood(1500))):
        out, done = io.BytesIO(), [0]
        summary = fragtrack.reassemble(
            origin,
            out,
            progress=lambda read, _, done=done: done.append(read),
            stopped=lambda done=done: done[-1] > CHUNK * 3 // 2,
        )
        assert summary.interrupted
        assert summary.damaged is None
        assert 0 < summary.packets < 3000
        again = fragtrack.reassemble(io.BytesIO(out.getvalue()))
        assert again.damaged is None
        assert again.packets == summary.written


def test_a_run_stopped_before_it_began_leaves_the_old_output(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out.pcap").write_bytes(b"before")
    summary = fragtrack.reassemble(source, tmp_path / "out.pcap", stopped=lambda: True)
    assert summary.interrupted
    assert summary.packets == 0
    assert (tmp_path / "out.pcap").read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 2


def test_an_exception_of_the_caller_leaves_nothing(source: Path, tmp_path: Path) -> None:
    def progress(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fragtrack.reassemble(source, tmp_path / "out.pcap", progress=progress)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    "wrong",
    [
        {"policy": "windowz"},
        {"limits": "none"},
        {"incomplete": "maybe"},
        {"format": "erf"},
        {"datagrams": "t.xls"},
        {"memory": -1},
    ],
)
def test_wrong_settings_are_errors_before_anything_is_touched(
    source: Path, tmp_path: Path, wrong: dict[str, object]
) -> None:
    with pytest.raises(fragtrack.ConfigError):
        fragtrack.reassemble(source, tmp_path / "out.pcap", **wrong)
    assert list(tmp_path.iterdir()) == [source]


def test_no_input_is_an_error() -> None:
    with pytest.raises(fragtrack.ConfigError, match="no input"):
        fragtrack.reassemble([])


def test_what_cannot_be_read_or_written_is_the_usual_error(source: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        fragtrack.reassemble(tmp_path / "missing")
    assert caught.value.filename == str(tmp_path / "missing")
    with pytest.raises(FileNotFoundError) as caught:
        fragtrack.reassemble(source, tmp_path / "no" / "out.pcap")
    assert caught.value.filename == str(tmp_path / "no" / "out.pcap")
    with pytest.raises(fragtrack.CaptureError, match="looks like text"):
        fragtrack.reassemble(io.BytesIO(b"some text"))
    assert issubclass(fragtrack.OutputError, OSError)


def test_many_inputs_are_one_capture(tmp_path: Path) -> None:
    paths = []
    filler = [(START, ethernet(datagram4(7, 60_000)[:60_000]))] * 20
    for number in range(20):
        path = tmp_path / f"{number:02}.pcap"
        # each file ends with the first half of a datagram whose second half opens the next one
        data = pcap([*pieces(number)[1:], *filler, *pieces(number + 1)[:1]])
        path.write_bytes(data)
        paths.append(path)
    assert paths[0].stat().st_size > CHUNK
    summary = fragtrack.reassemble(paths)
    assert summary.datagrams["complete"] == 19
    assert summary.reasons == {"end": 2}


def test_a_second_pipe_is_opened_when_the_first_one_ends(tmp_path: Path) -> None:
    fifos = [tmp_path / "one", tmp_path / "two"]
    parts = [pcap(pieces(1)[:1]), pcap(pieces(1)[1:])]
    for fifo in fifos:
        os.mkfifo(fifo)

    def write() -> None:
        for fifo, part in zip(fifos, parts, strict=True):
            fifo.write_bytes(part)

    writer = threading.Thread(target=write)
    writer.start()
    out = io.BytesIO()
    summary = fragtrack.reassemble(fifos, out)
    writer.join()
    assert summary.datagrams["complete"] == 1
    assert out.getvalue() == pcap([(START, ethernet(datagram4(1, 2000)))])


# ---------------------------------------------------------------------------------- datagrams


def test_datagrams_of_a_capture(source: Path) -> None:
    found = list(fragtrack.datagrams(source))
    assert [(d.ip_version, d.id, d.frames) for d in found] == [(4, 1, (3, 5, 2)), (6, 1, (6, 7))]
    assert found[0].packet == datagram4(1)
    assert found[0].payload == datagram4(1)[20:]
    assert found[1].packet == datagram6()
    assert found[0].time_first == START + SECOND


def test_incomplete_datagrams_on_request(source: Path) -> None:
    found = list(fragtrack.datagrams([source], incomplete=True))
    assert [d.outcome for d in found] == ["complete", "complete", "overlap", "timeout", "end"]
    assert found[2].payload is None
    assert found[2].packet is None


def test_datagrams_come_while_the_input_is_read() -> None:
    class Slow(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 3000))

    slow = Slow(flood(100))
    with fragtrack.datagrams(slow) as found:
        first = next(found)
        assert first.id == 0
        assert slow.tell() < 10_000
        assert found.summary().datagrams["complete"] >= 1
    with pytest.raises(StopIteration):
        next(found)


def test_datagrams_tell_of_damage() -> None:
    found = fragtrack.datagrams(io.BytesIO(capture()[:-5]), policy="first")
    assert found.damaged is None
    assert sum(1 for _ in found) == 2
    assert found.damaged is not None
    assert found.summary().damaged == found.damaged


def test_datagrams_complain_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fragtrack.datagrams(tmp_path / "missing")
    with pytest.raises(fragtrack.ConfigError):
        fragtrack.datagrams(io.BytesIO(capture()), policy="none")


# -------------------------------------------------------------------------------- reassembler


def test_the_reassembler_is_the_backend_with_a_front() -> None:
    r = fragtrack.Reassembler(limits="kernel", timeout4=10, local=["192.0.2.0/24"])
    assert r.config.timeout4 == 10
    assert r.config.hash_key is not None
    first, last = fragment(datagram4(1), sizes=[24])
    assert r.push(first, 0).kind == "held"
    assert (r.queues, r.memory > 0) == (1, True)
    r.check()
    outcome = r.push(last, 5)
    assert (outcome.kind, outcome.packet) == ("complete", datagram4(1))
    assert r.counters["ReasmOKs"] == r.counters4["ReasmOKs"] == 1
    assert r.counters6["ReasmOKs"] == 0
    assert r.push(first, 10).kind == "held"
    assert [gone.reason for gone in r.advance(10 + 10 * SECOND)] == ["timeout"]
    r.push(first, 11 * SECOND)
    assert [gone.reason for gone in r.flush()] == ["end"]
    assert r.reasons == {"timeout": 1, "end": 1}
    assert repr(r) == (
        "<fragtrack.Reassembler policy=linux path=local limits=kernel queues=0 memory=0>"
    )


def test_the_reassembler_refuses_what_cannot_be() -> None:
    with pytest.raises(fragtrack.ConfigError):
        fragtrack.Reassembler(policy="none")
    with pytest.raises(TypeError):
        fragtrack.Reassembler(colour="red")


# -------------------------------------------------------------------------------- the package


def test_public_names_are_there_and_documented() -> None:
    for name in fragtrack.__all__:
        assert getattr(fragtrack, name) is not None
    assert set(dir(fragtrack)) == set(fragtrack.__all__)
    assert fragtrack.backend_name() in ("native", "reference")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fragtrack.nothing  # type: ignore[attr-defined]


def test_without_a_native_module_the_reference_is_used_with_a_warning(tmp_path: Path) -> None:
    code = (
        "import sys, warnings\n"
        "sys.modules['fragtrack._core'] = None\n"
        "import fragtrack\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    fragtrack.Reassembler(), fragtrack.Reassembler()\n"
        "print(fragtrack.backend_name(), [str(w.message)[:16] for w in caught])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(fragtrack.__file__).parents[1])},
    )
    assert done.stdout == "reference ['no native module']\n"


def test_formats_of_several_kinds_in_one_output(tmp_path: Path) -> None:
    ng = tmp_path / "b.pcapng"
    section = Pcapng().section("big").interface(tsresol=9)
    for time, frame in pieces(3):
        section.packet(frame, time_ns=time)
    ng.write_bytes(section.data)
    plain = tmp_path / "a.pcap"
    plain.write_bytes(pcap(pieces(2)))
    for name in ("out.pcap", "out.pcapng"):
        summary = fragtrack.reassemble([plain, ng], tmp_path / name)
        assert summary.datagrams["complete"] == summary.written == 2
        assert fragtrack.reassemble(tmp_path / name).packets == 2
