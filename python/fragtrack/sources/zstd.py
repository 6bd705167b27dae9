"""Inflate Zstandard (RFC 8878): frames are walked here, the library gets block after block.

Handing over one block at a time (at most 128 KiB of content each, RFC 8878 section 3.1.1.2.4)
bounds what one step may inflate, loses nothing in front of a corrupt block, and tells a cut-off
file from a whole one: the streaming reader of the library ends silently in both cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragtrack.sources.base import CHUNK
from fragtrack.sources.stream import BrokenInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fragtrack.sources.stream import Reader

FRAME = b"\x28\xb5\x2f\xfd"
SKIPPABLE = tuple(bytes((0x50 + n, 0x2A, 0x4D, 0x18)) for n in range(16))
MAGICS = (FRAME, *SKIPPABLE)

WINDOW = 1 << 31
"""Bytes of history a frame may ask for: what ``zstd --long=31``, the widest setting, writes."""

CUT = "the zstd data end in the middle"
CORRUPT = "the zstd data are corrupt"


class _Bytes:
    """The stored bytes, to be taken in exact amounts."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._data = b""
        self._at = 0

    @property
    def position(self) -> int:
        return self._reader.position - (len(self._data) - self._at)

    def take(self, count: int) -> bytes:
        """Give exactly `count` bytes, or fewer only at the end of the file."""
        while len(self._data) - self._at < count:
            more = self._reader.read(CHUNK)
            if not more:
                break
            self._data = self._data[self._at :] + more
            self._at = 0
        taken = self._data[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def need(self, count: int) -> bytes:
        """Give exactly `count` bytes, or break."""
        taken = self.take(count)
        if len(taken) < count:
            raise BrokenInputError(self._reader.position, CUT)
        return taken


def unzstd(reader: Reader) -> Iterator[bytes]:
    """Inflate frames and pass over skippable ones, joined into chunks worth a call each."""
    stored = _Bytes(reader)
    while magic := stored.take(4):
        if magic in SKIPPABLE:
            left = int.from_bytes(stored.need(4), "little")
            while left:
                left -= len(stored.need(min(left, CHUNK)))
        elif magic == FRAME:
            yield from _frame(stored)
        elif len(magic) < 4:
            raise BrokenInputError(reader.position, CUT)
        else:
            why = "bytes that are not zstd data follow the zstd data"
            raise BrokenInputError(stored.position - 4, why)


def _frame(stored: _Bytes) -> Iterator[bytes]:
    """Inflate one frame; what is good is given out before a break is reported."""
    import zstandard

    inflate = zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj().decompress
    chunks: list[bytes] = []
    held = 0
    at = stored.position - len(FRAME)
    try:
        header, checksum = _header(stored)
        inflate(header)
        last = False
        while not last:
            at = stored.position
            block = stored.need(3)
            word = int.from_bytes(block, "little")
            last = bool(word & 1)
            # type 1 repeats a single byte; type 3 is reserved, and left to the library to refuse
            size = 1 if word >> 1 & 3 == 1 else word >> 3
            content = inflate(block + stored.need(size))
            chunks.append(content)
            held += len(content)
            if held >= CHUNK:
                yield b"".join(chunks)
                chunks.clear()
                held = 0
        at = stored.position
        if checksum:
            inflate(stored.need(4))
    except (BrokenInputError, zstandard.ZstdError) as error:
        if held:
            yield b"".join(chunks)
        if isinstance(error, BrokenInputError):
            raise
        why = "the zstd window is too large" if "memory" in str(error) else CORRUPT
        raise BrokenInputError(at, why) from None
    if held:
        yield b"".join(chunks)


def _header(stored: _Bytes) -> tuple[bytes, bool]:
    """Take a frame header (RFC 8878 section 3.1.1.1); say whether a checksum ends the frame."""
    descriptor = stored.need(1)[0]
    single = descriptor >> 5 & 1
    window = 0 if single else 1
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    content = (single, 2, 4, 8)[descriptor >> 6]
    rest = stored.need(window + dictionary + content)
    return FRAME + bytes((descriptor,)) + rest, bool(descriptor & 4)
