"""Damaged captures from Python: what could be read is done, and every break is told of."""

from __future__ import annotations

import gzip
import io
import os
from typing import TYPE_CHECKING

import pytest

import fragtrack
from fragtrack import engine
from fragtrack.engine import Backend
from fragtrack.testing import Pcapng
from tests.backends import reassembler_class, rewriter_class
from tests.scenario.command import capture, flood, frames

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def use_backend(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Backend(backend, reassembler_class(backend), rewriter_class(backend))
    monkeypatch.setattr(engine, "_loaded", [chosen])


def test_a_cut_file_among_whole_ones_is_told_and_the_rest_is_done(tmp_path: Path) -> None:
    cut, whole = tmp_path / "cut.pcap", tmp_path / "whole.pcap"
    cut.write_bytes(capture()[:-5])
    whole.write_bytes(capture())
    summary = fragtrack.reassemble([cut, whole])
    assert summary.damaged is not None
    assert summary.damaged.file == str(cut)
    assert summary.damaged.offset == 769
    assert summary.packets == 21


def test_every_damaged_input_is_told_of_in_order(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.pcap" for number in range(4)]
    section = Pcapng().section().interface()
    for time, frame in frames():
        section.packet(frame, time_ns=time)
    contents = [capture()[:-5], capture(), section.data[:-3], flood(1200)[:-10]]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    summary = fragtrack.reassemble(paths)
    assert [damage.file for damage in summary.damages] == [str(paths[at]) for at in (0, 2, 3)]
    assert summary.damages[0].offset == 769
    assert 0 < summary.damages[1].offset < len(section.data)
    assert summary.damages[2].why.startswith("cut off record")
    assert summary.damaged == summary.damages[0]
    alone = [fragtrack.reassemble(paths[at]).damaged for at in (0, 2, 3)]
    assert list(summary.damages) == alone
    assert summary.packets == 10 + 11 + 10 + 2399


def test_compressed_damage_is_where_the_file_breaks(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap.gz"
    packed = gzip.compress(flood(200))
    path.write_bytes(packed[: len(packed) // 2])
    summary = fragtrack.reassemble(path)
    assert summary.damaged == (
        str(path),
        len(packed) // 2,
        "the gzip data end in the middle",
    )
    assert summary.packets > 100

    path.write_bytes(gzip.compress(capture()[:-5]))
    damaged = fragtrack.reassemble(path).damaged
    assert damaged is not None
    assert damaged.offset == 769
    assert damaged.why.endswith("(the offset counts uncompressed bytes)")


def test_a_compressed_file_that_breaks_at_once_says_how(tmp_path: Path) -> None:
    path = tmp_path / "in.pcap.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00garbage")
    with pytest.raises(fragtrack.CaptureError, match="the gzip data"):
        fragtrack.reassemble(path)


def test_a_mapped_file_that_is_cut_during_the_run_keeps_what_was_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "flood.pcap"
    path.write_bytes(flood(3000))
    out = io.BytesIO()
    steps = []

    def progress(done: int, _: int | None) -> None:
        steps.append(done)
        if len(steps) == 2:
            os.truncate(path, 1000)

    summary = fragtrack.reassemble([path, path], out, progress=progress)
    assert len(steps) == 2
    assert summary.damaged is not None
    assert "shrank" in summary.damaged.why
    again = fragtrack.reassemble(io.BytesIO(out.getvalue()))
    assert again.damaged is None
    assert again.packets > 200


def test_a_file_that_has_ended_may_be_cut(tmp_path: Path) -> None:
    paths = [tmp_path / "one.pcap", tmp_path / "two.pcap"]
    for path in paths:
        path.write_bytes(flood(600))

    def progress(done: int, total: int | None) -> None:
        if total is not None and done > total // 2:
            os.truncate(paths[0], 1000)

    untouched = fragtrack.reassemble(paths)
    summary = fragtrack.reassemble(paths, progress=progress)
    assert paths[0].stat().st_size == 1000
    assert summary.damaged is None
    assert summary.datagrams == untouched.datagrams
