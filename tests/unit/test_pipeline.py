"""Threads around the engine: the same pieces in the same order, errors in their place, an end."""

from __future__ import annotations

import io
import threading
import time
from typing import TYPE_CHECKING

import pytest
import zstandard

from fragtrack import pipeline
from fragtrack.pipeline import DEPTH, Ahead, Behind
from fragtrack.sinks import open_capture
from fragtrack.sources import CHUNK, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 30
"""Seconds until something that should happen at once counts as not happening."""


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    end = time.monotonic() + PATIENCE
    while threading.active_count() > before:
        assert time.monotonic() < end
        time.sleep(0.001)


class Gate:
    """Work that waits until it is let through."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self, piece: int) -> None:
        self.entered.set()
        assert self.open.wait(PATIENCE)
        self.done.append(piece)


# ------------------------------------------------------------------------------------- behind


def test_pieces_are_worked_on_in_order_by_one_thread() -> None:
    done: list[tuple[int, int]] = []
    behind = Behind[int](lambda piece: done.append((piece, threading.get_ident())))
    for piece in range(1000):
        behind.put(piece)
    behind.finish()
    assert [piece for piece, _ in done] == list(range(1000))
    threads = {thread for _, thread in done}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_only_so_many_pieces_wait() -> None:
    gate = Gate()
    behind = Behind[int](gate)
    given: list[int] = []

    def give() -> None:
        for piece in range(50):
            behind.put(piece)
            given.append(piece)

    giver = threading.Thread(target=give)
    giver.start()
    assert gate.entered.wait(PATIENCE)
    time.sleep(0.05)
    assert len(given) <= DEPTH + 1
    gate.open.set()
    giver.join()
    behind.finish()
    assert gate.done == list(range(50))


def test_the_first_error_ends_the_work_and_is_raised() -> None:
    done = []

    def work(piece: int) -> None:
        done.append(piece)
        raise OSError(piece, "full", "disk")

    def give() -> None:
        for piece in range(1, 1000):
            behind.put(piece)

    behind = Behind[int](work)
    with pytest.raises(OSError, match="full") as caught:
        give()
    assert caught.value.errno == 1
    with pytest.raises(OSError, match="full"):
        behind.finish()
    assert behind.stop(drop=True) is caught.value
    assert done == [1]


def test_what_waits_is_done_or_dropped() -> None:
    for drop in (False, True):
        gate = Gate()
        behind = Behind[int](gate)
        for piece in range(DEPTH):
            behind.put(piece)
        assert gate.entered.wait(PATIENCE)
        threading.Timer(0.05, gate.open.set).start()
        assert behind.stop(drop=drop) is None
        assert gate.done == ([0] if drop else list(range(DEPTH)))


def test_work_that_is_stuck_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "GRACE", 0.05)
    gate = Gate()
    behind = Behind[int](gate)
    for piece in range(DEPTH + 1):
        behind.put(piece)
    assert gate.entered.wait(PATIENCE)
    assert behind.stop(drop=True) is None
    assert gate.done == []
    gate.open.set()


# -------------------------------------------------------------------------------------- ahead


def test_pieces_come_in_order_before_and_after_the_start() -> None:
    threads = []

    def pieces() -> Iterator[int]:
        for piece in range(100):
            threads.append(threading.get_ident())
            yield piece

    ahead = Ahead(pieces())
    assert [next(ahead) for _ in range(3)] == [0, 1, 2]
    ahead.begin()
    assert list(ahead) == list(range(3, 100))
    assert list(ahead) == []
    ahead.stop()
    assert set(threads[:3]) == {threading.get_ident()}
    assert len(set(threads)) == 2


def test_an_error_stands_behind_the_pieces_before_it() -> None:
    def pieces() -> Iterator[int]:
        yield from range(DEPTH - 1)
        raise OSError(5, "broken")

    ahead = Ahead(pieces())
    ahead.begin()
    time.sleep(0.02)  # by now the error is there
    assert [next(ahead) for _ in range(DEPTH - 1)] == list(range(DEPTH - 1))
    for _ in range(2):
        with pytest.raises(OSError, match="broken"):
            next(ahead)
    ahead.stop()


def test_only_so_many_are_taken_ahead() -> None:
    taken = []

    def pieces() -> Iterator[int]:
        for piece in range(50):
            taken.append(piece)
            yield piece

    ahead = Ahead(pieces())
    ahead.begin()
    time.sleep(0.05)
    assert len(taken) <= DEPTH + 1
    ahead.stop()


def test_an_endless_iterator_can_be_stopped() -> None:
    ahead = Ahead(iter(lambda: b"", None))
    ahead.begin()
    assert next(ahead) == b""
    ahead.stop()


class Never(io.RawIOBase):
    """Gives something once, then nothing comes until it is let go."""

    def __init__(self, first: bytes) -> None:
        self.first = first
        self.go = threading.Event()

    def read1(self, size: int) -> bytes:
        data, self.first = self.first[:size], self.first[size:]
        if not data:
            self.go.wait(PATIENCE)
        return data


def test_a_source_with_a_thread_can_be_closed_in_the_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "GRACE", 0.05)
    never = Never(bytes(2 * CHUNK))
    source = open_source(never, ahead=True)
    assert next(source.windows()).stop > 0
    source.close()
    never.go.set()


# ---------------------------------------------------------------------------- threads of zstd


def test_threads_of_zstd_give_the_same_content_however_many(tmp_path: Path) -> None:
    data = b"".join(number.to_bytes(3) for number in range(3 << 20))
    stored = []
    for threads in (0, 1, 3):
        path = tmp_path / f"{threads}.pcap.zst"
        output = open_capture(path, threads=threads)
        for at in range(0, len(data), 1_000_000):
            output.write(data[at : at + 1_000_000])
        output.finish()
        output.publish()
        stored.append(path.read_bytes())
        assert zstandard.ZstdDecompressor().decompressobj().decompress(stored[-1]) == data
    assert stored[1] == stored[2]
