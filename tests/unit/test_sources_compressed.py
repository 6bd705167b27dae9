"""Compressed sources: each kind inflates in bounded steps, and says where it breaks."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from typing import TYPE_CHECKING

import pytest
import zstandard

from fragtrack.sources import CHUNK, KINDS, open_source
from fragtrack.sources.zstd import FRAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fragtrack.sources import Source

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}

KIND_NAMES = [kind.name for kind in KINDS]


def content(size: int, seed: int = 1) -> bytes:
    """Bytes that compress, but not to nothing."""
    words = random.Random(seed).choices(
        [b"fragment", b"offset", b"\0\0\0\1", b"\x9c\x41\x07"], k=64
    )
    return (b"".join(words) * (size // 256 + 1))[:size]


def read_all(path: Path) -> tuple[bytes, Source]:
    source = open_source(path)
    taken = []
    for window in source.windows():
        taken.append(bytes(window.buffer[window.start : window.stop]))
        window.start = window.stop
    source.close()
    return b"".join(taken), source


def test_every_kind_has_a_packer() -> None:
    assert set(PACK) == set(KIND_NAMES)


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("size", [0, 1, 1000, 3 * CHUNK + 17])
def test_compressed_content_comes_out_whatever_the_name(
    tmp_path: Path, kind: str, size: int
) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(PACK[kind](content(size)))
    data, source = read_all(path)
    assert data == content(size)
    assert source.damage is None
    assert source.inflated
    assert source.position == source.size


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_several_members_are_one_content(tmp_path: Path, kind: str) -> None:
    parts = [content(5000), b"", content(70_000, 2), content(1, 3)]
    path = tmp_path / "capture"
    path.write_bytes(b"".join(map(PACK[kind], parts)))
    data, source = read_all(path)
    assert data == b"".join(parts)
    assert source.damage is None


@pytest.mark.parametrize("kind", KIND_NAMES)
@pytest.mark.parametrize("missing", [1, 3, 9, 2000])
def test_a_cut_file_gives_its_start_and_says_that_it_is_cut(
    tmp_path: Path, kind: str, missing: int
) -> None:
    whole = random.Random(5).randbytes(300_000)
    packed = PACK[kind](whole)
    path = tmp_path / "capture"
    path.write_bytes(packed[:-missing])
    data, source = read_all(path)
    assert whole.startswith(data)
    assert source.damage is not None
    assert source.damage.offset == len(packed) - missing
    assert source.damage.why == f"the {kind} data end in the middle"
    if kind in ("gzip", "zstd"):
        assert len(data) >= len(whole) - missing - 140_000 * (kind == "zstd")


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_a_corrupt_file_gives_what_stands_before_the_break(tmp_path: Path, kind: str) -> None:
    whole = random.Random(6).randbytes(2_000_000)
    packed = bytearray(PACK[kind](whole))
    at = len(packed) * 3 // 4
    packed[at : at + 64] = bytes(byte ^ 0xFF for byte in packed[at : at + 64])
    path = tmp_path / "capture"
    path.write_bytes(packed)
    data, source = read_all(path)
    assert source.damage is not None
    assert source.damage.why == f"the {kind} data are corrupt"
    # Incompressible content is stored, so that a check at the end may be what tells.
    assert len(data) > len(whole) // 3 or kind == "bzip2"
    assert whole[: at - 200_000].startswith(data[: at - 200_000])


def test_a_gzip_break_loses_nothing_in_front_of_it(tmp_path: Path) -> None:
    lines = b"".join(b"packet number %d\n" % number for number in range(20_000))
    first, second = gzip.compress(lines, mtime=0), bytearray(gzip.compress(lines, mtime=0))
    second[len(second) // 2 :] = random.Random(7).randbytes(len(second) - len(second) // 2)
    path = tmp_path / "capture"
    path.write_bytes(first + second)
    data, source = read_all(path)
    assert len(data) > len(lines) * 1.4
    assert data[: len(lines) * 7 // 5] == (lines + lines)[: len(lines) * 7 // 5]
    assert source.damage is not None
    assert source.damage.why == "the gzip data are corrupt"
    assert len(first) < source.damage.offset < len(first) + len(second)


def test_padding_behind_gzip_members_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    member = gzip.compress(b"abc", mtime=0)
    path.write_bytes(member + bytes(70_000) + member + bytes(512))
    data, source = read_all(path)
    assert data == b"abcabc"
    assert source.damage is None


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_other_bytes_behind_compressed_data_are_damage(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "capture"
    packed = PACK[kind](b"abc" * 1000)
    path.write_bytes(packed + b"garbage")
    data, source = read_all(path)
    assert data == b"abc" * 1000
    why = f"bytes that are not {kind} data follow the {kind} data"
    assert source.damage == (str(path), len(packed), why)


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zstd"])
def test_a_bomb_is_inflated_in_bounded_steps(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(PACK[kind](bytes(64 * CHUNK)))
    source = open_source(path)
    total = largest = 0
    for window in source.windows():
        largest = max(largest, window.stop - window.start)
        total += window.stop - window.start
        window.start = window.stop
    assert total == 64 * CHUNK
    assert largest <= 3 * CHUNK


def test_skippable_zstd_frames_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    skippable = b"\x5a\x2a\x4d\x18" + (2 * CHUNK).to_bytes(4, "little") + bytes(2 * CHUNK)
    path.write_bytes(skippable + PACK["zstd"](b"abc") + skippable)
    data, source = read_all(path)
    assert data == b"abc"
    assert source.damage is None


@pytest.mark.parametrize("level", [-5, 1, 3, 19])
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("sized", [False, True])
def test_zstd_frames_of_every_shape(
    tmp_path: Path, level: int, checksum: bool, sized: bool
) -> None:
    whole = content(700_000) + random.Random(1).randbytes(200_000) + bytes(600_000)
    compressor = zstandard.ZstdCompressor(
        level=level, write_checksum=checksum, write_content_size=sized
    )
    stream = compressor.compressobj(size=len(whole) if sized else -1)
    path = tmp_path / "capture"
    path.write_bytes(stream.compress(whole) + stream.flush())
    data, source = read_all(path)
    assert data == whole
    assert source.damage is None


def test_a_wrong_zstd_checksum_is_damage_behind_the_content(tmp_path: Path) -> None:
    packed = bytearray(PACK["zstd"](b"abc" * 100))
    packed[-1] ^= 1
    path = tmp_path / "capture"
    path.write_bytes(packed)
    data, source = read_all(path)
    assert data == b"abc" * 100
    assert source.damage == (str(path), len(packed) - 4, "the zstd data are corrupt")


def test_a_zstd_header_alone_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(FRAME)
    data, source = read_all(path)
    assert data == b""
    assert source.damage == (str(path), 4, "the zstd data end in the middle")
