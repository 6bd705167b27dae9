"""Inflate gzip, bzip2 and xz: one generator each, from stored bytes to chunks of content.

Every decoder bounds what one step may inflate, reads several members one after another, gives out
all that can be read before it reports a break, and says where in the stored file it broke.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol

from fragtrack.sources.base import CHUNK
from fragtrack.sources.stream import BrokenInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from fragtrack.sources.stream import Reader

PIECE = 64 << 10
"""Stored bytes per step."""

GZIP = b"\x1f\x8b"
BZIP2 = b"BZh"
XZ = b"\xfd7zXZ\x00"

XZ_MEMORY = 512 << 20
"""Bytes an xz decoder may take; ``xz -9`` needs 65 MiB."""


def gunzip(reader: Reader) -> Iterator[bytes]:
    """Inflate gzip members (RFC 1952); zero bytes behind a member are padding."""
    data = reader.read(PIECE)
    while data:
        inflater = zlib.decompressobj(wbits=31)
        pending = False
        while not inflater.eof:
            if not data and not pending:
                data = reader.read(PIECE)
                if not data:
                    raise BrokenInputError(reader.position, "the gzip data end in the middle")
            before = inflater.copy()
            try:
                content = inflater.decompress(data, CHUNK)
            except zlib.error:
                at = reader.position - len(data)
                at += yield from _salvage(before, data)
                raise BrokenInputError(at, "the gzip data are corrupt") from None
            data = inflater.unconsumed_tail
            pending = len(content) == CHUNK
            if content:
                yield content
        data = _next_member(reader, inflater.unused_data, GZIP, "gzip")


def bunzip2(reader: Reader) -> Iterator[bytes]:
    """Inflate bzip2 streams."""
    from bz2 import BZ2Decompressor

    yield from _members(reader, BZ2Decompressor, BZIP2, "bzip2")


def unxz(reader: Reader) -> Iterator[bytes]:
    """Inflate xz streams; zero bytes behind a stream are padding."""
    import lzma

    def stream() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

    yield from _members(reader, stream, XZ, "xz")


class Inflater(Protocol):
    """What the decoders of ``bz2`` and ``lzma`` share."""

    @property
    def eof(self) -> bool:
        """The end of the stream was reached."""

    @property
    def needs_input(self) -> bool:
        """Nothing more comes out without more bytes."""

    @property
    def unused_data(self) -> bytes:
        """What follows the end of the stream."""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Inflate at most `max_length` bytes."""


def _members(
    reader: Reader, new: Callable[[], Inflater], magic: bytes, kind: str
) -> Iterator[bytes]:
    from lzma import LZMAError

    data = reader.read(PIECE)
    while data:
        inflater = new()
        while not inflater.eof:
            if inflater.needs_input and not data:
                data = reader.read(PIECE)
                if not data:
                    raise BrokenInputError(reader.position, f"the {kind} data end in the middle")
            try:
                content = inflater.decompress(data, CHUNK)
            except (OSError, ValueError, EOFError, LZMAError):
                at = reader.position - len(data)
                raise BrokenInputError(at, f"the {kind} data are corrupt") from None
            data = b""
            if content:
                yield content
        data = _next_member(reader, inflater.unused_data, magic, kind)


def _next_member(reader: Reader, data: bytes, magic: bytes, kind: str) -> bytes:
    """Skip padding; give the first bytes of the next member, or none at the end of the file."""
    while True:
        data = data.lstrip(b"\0")
        if len(data) >= len(magic):
            break
        more = reader.read(PIECE)
        if not more:
            break
        data += more
    if data and not data.startswith(magic):
        at = reader.position - len(data)
        raise BrokenInputError(at, f"bytes that are not {kind} data follow the {kind} data")
    return data


def _salvage(inflater: zlib._Decompress, data: bytes) -> Generator[bytes, None, int]:
    """Inflate byte by byte up to the break; the result is the number of bytes that were good."""
    content: list[bytes] = []
    held = 0
    for at in range(len(data)):
        try:
            content.append(inflater.decompress(data[at : at + 1]))
        except zlib.error:
            break
        held += len(content[-1])
        if held >= CHUNK:
            yield b"".join(content)
            content.clear()
            held = 0
    if held:
        yield b"".join(content)
    return at
