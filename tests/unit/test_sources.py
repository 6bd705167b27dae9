"""Sources: every kind gives the same content, in bounded windows, and says where it breaks."""

from __future__ import annotations

import io
import os
import random
import threading
from typing import TYPE_CHECKING

import pytest

from fragtrack.sources import (
    CHUNK,
    KINDS,
    RECORD_LIMIT,
    MappedFile,
    Stream,
    capture_format,
    describe,
    name_of,
    open_source,
)
from fragtrack.sources.foreign import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

    from fragtrack.sources import Source


def content(size: int, seed: int = 1) -> bytes:
    """Bytes that compress, but not to nothing."""
    words = random.Random(seed).choices(
        [b"fragment", b"offset", b"\0\0\0\1", b"\x9c\x41\x07\xe2"], k=64
    )
    return (b"".join(words) * (size // 256 + 1))[:size]


def drain(source: Source, record: int = 1000) -> bytes:
    """Take whole records of a fixed size, and the rest at the end, as a rewriter does."""
    taken = []
    position = 0
    for window in source.windows():
        size = window.stop - window.start
        usable = size if window.final else size - size % record
        assert window.base + window.start == position
        taken.append(bytes(window.buffer[window.start : window.start + usable]))
        window.start += usable
        position += usable
    return b"".join(taken)


def read_all(path: Path, record: int = 1000) -> tuple[bytes, Source]:
    source = open_source(path)
    data = drain(source, record)
    source.close()
    return data, source


# ------------------------------------------------------------------------------------- plain


@pytest.mark.parametrize("size", [0, 1, 999, CHUNK - 1, CHUNK, 3 * CHUNK + 17])
def test_a_plain_file_comes_out_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content(size))
    data, source = read_all(path)
    assert data == content(size)
    assert source.damage is None
    assert source.size == source.position == size


def test_large_files_are_mapped_and_small_ones_read(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(bytes(CHUNK))
    large = open_source(path)
    path.write_bytes(bytes(100))
    small = open_source(path)
    assert isinstance(large, MappedFile)
    assert large.stable
    assert isinstance(small, Stream)
    assert not small.stable
    for source in (large, small):
        source.close()


def test_where_mapping_fails_the_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(19, "No such device")

    path = tmp_path / "capture"
    path.write_bytes(content(2 * CHUNK))
    monkeypatch.setattr("mmap.mmap", refuse)
    source = open_source(path)
    assert isinstance(source, Stream)
    assert drain(source) == content(2 * CHUNK)
    source.close()


def test_the_head_is_not_consumed(tmp_path: Path) -> None:
    for size in (10, 2 * CHUNK):
        path = tmp_path / "capture"
        path.write_bytes(content(size))
        source = open_source(path)
        assert source.head(32) == content(size)[:32]
        assert drain(source) == content(size)
        source.close()


def test_a_mapped_file_that_shrinks_is_damage_and_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content(4 * CHUNK))
    source = open_source(path)
    windows = source.windows()
    window = next(windows)
    window.start += CHUNK
    os.truncate(path, 100)
    assert list(windows) == []
    assert source.damage == (
        str(path),
        100,
        f"the file shrank from {4 * CHUNK} to 100 bytes while it was read",
    )
    assert source.lost() is not None
    source.close()


def test_a_file_that_grows_is_read_up_to_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content(2 * CHUNK))
    source = open_source(path)
    with path.open("ab") as file:
        file.write(b"more")
    assert drain(source) == content(2 * CHUNK)
    source.close()


def test_a_consumer_that_stops_short_ends_the_input(tmp_path: Path) -> None:
    for size in (100, 2 * CHUNK):
        path = tmp_path / "capture"
        path.write_bytes(bytes(size))
        source = open_source(path)
        offered = [window.final for window in source.windows()]
        assert offered[-1]
        assert len(offered) < 5
        source.close()


def test_a_mapping_in_use_outlives_its_source(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content(CHUNK))
    source = open_source(path)
    window = next(iter(source.windows()))
    held = memoryview(window.buffer)
    source.close()
    assert bytes(held[:100]) == content(CHUNK)[:100]
    held.release()


# ------------------------------------------------------------------------------------ streams


def test_a_fifo_and_a_file_object_come_out_whole(tmp_path: Path) -> None:
    data = content(3 * CHUNK + 5)
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    got, source = read_all(path)
    writer.join()
    assert got == data
    assert source.size is None
    assert source.position == len(data)
    assert drain(open_source(io.BytesIO(data))) == data


def test_a_stream_holds_one_chunk_besides_the_open_record() -> None:
    data = content(8 * CHUNK)
    sizes = []
    for window in open_source(io.BytesIO(data)).windows():
        sizes.append(window.stop - window.start)
        window.start = window.stop - min(1000, window.stop - window.start) * (not window.final)
    assert max(sizes) <= CHUNK + 1000


def test_a_large_record_is_joined_in_steps_that_grow() -> None:
    class Trickle(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 4096))

    data = content(RECORD_LIMIT - CHUNK)
    source = open_source(Trickle(data))
    copied = 0
    before = None
    for window in source.windows():
        if window.buffer is not before:
            copied += len(window.buffer)
            before = window.buffer
        if window.final:
            assert bytes(window.buffer) == data
            window.start = window.stop
    assert copied < 40 * len(data)
    assert source.damage is None


def test_a_record_without_end_is_damage_where_it_starts() -> None:
    class Endless:
        def __init__(self) -> None:
            self.given = 0

        def read(self, size: int) -> bytes:
            self.given += size
            return bytes(size)

    endless = Endless()
    source = open_source(endless)
    consumed = 0
    for window in source.windows():
        if not consumed:
            consumed = window.start = 1234
    assert source.damage == ("input", 1234, "a record is not complete within 16 MiB")
    assert endless.given < 2 * RECORD_LIMIT


def test_a_read_that_fails_in_the_middle_is_damage() -> None:
    class Failing(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            if self.tell() >= 500:
                raise OSError(5, "Input/output error")
            return super().read(min(size or 0, 100, 500 - self.tell()))

    source = open_source(Failing(content(1000)))
    assert drain(source, 10) == content(1000)[:500]
    assert source.damage == ("input", 500, "reading failed: Input/output error")


def test_a_wait_for_a_pipe_ends_when_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    keep = os.open(path, os.O_RDWR)
    os.write(keep, b"12345678")
    asked = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) > 1

    source = open_source(path, stopped=stopped)
    assert drain(source) == b"12345678"
    assert len(asked) > 1
    source.close()
    os.close(keep)


# --------------------------------------------------------------------------- what it is, names


@pytest.mark.parametrize(
    ("head", "form"),
    [
        ("a1b2c3d4", "pcap"),
        ("d4c3b2a1", "pcap"),
        ("a1b23c4d", "pcap"),
        ("4d3cb2a1", "pcap"),
        ("a1b2cd34", "pcap"),
        ("34cdb2a1", "pcap"),
        ("0a0d0d0a", "pcapng"),
        ("", None),
        ("a1b2", None),
        ("7f454c46", None),
    ],
)
def test_captures_are_known_by_four_bytes(head: str, form: str | None) -> None:
    assert capture_format(bytes.fromhex(head) + b"rest" * bool(head)) == form


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (b"", "not a capture: it is empty"),
        (b"Hello, world\n", "not a capture: it looks like text"),
        (b"\x7fELF\x02\x01", "not a capture: it starts with the bytes 7f 45 4c 46"),
        (
            b"\x04\x22\x4d\x18\x64\x40",
            (
                "not a capture but lz4 data; unpack it first, for example: "
                "lz4 -dc FILE | fragtrack reassemble - -o OUTPUT"
            ),
        ),
        (
            b"snoop\0\0\0\0\0\0\2",
            (
                "not a capture but a snoop capture; convert it first, for example: "
                "editcap -F pcapng FILE OUTPUT.pcapng"
            ),
        ),
    ],
)
def test_what_is_no_capture_is_described(head: bytes, line: str) -> None:
    assert describe(head) == line


def test_no_format_hides_another() -> None:
    magics = [magic for magic, _, _ in FORMATS] + [magic for kind in KINDS for magic in kind.magics]
    for magic in magics:
        assert [other for other in magics if magic.startswith(other)] == [magic]


def test_names_are_those_the_user_gave(tmp_path: Path) -> None:
    assert name_of("-") == "standard input"
    assert name_of("a/../b.pcap") == "a/../b.pcap"
    assert name_of(tmp_path) == str(tmp_path)
    assert name_of(io.BytesIO()) == "input"
    with (tmp_path / "x").open("wb") as file:
        assert name_of(file) == str(tmp_path / "x")


@pytest.mark.parametrize("name", ["missing", "folder", "file/below"])
def test_what_cannot_be_opened_is_an_error_with_the_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    path = str(tmp_path / name)
    with pytest.raises(OSError, match=r"irectory") as caught:
        open_source(path)
    assert caught.value.filename == path
