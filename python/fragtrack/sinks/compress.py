"""Compressed outputs: one row per suffix, each a way to make a compressor of the library's level.

The same content gives the same bytes: no time stamp, no name goes in. Threads of zstd cut the
content into larger jobs than a single pass does, so their stored bytes are others, but the same for
any number of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fragtrack.sinks.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable


class Compressor(Protocol):
    """What zlib, bz2, lzma and zstandard share."""

    def compress(self, data: bytes, /) -> bytes:
        """Take content, give what is ready of the stored bytes."""

    def flush(self) -> bytes:
        """Give the rest."""


def gzip() -> Compressor:
    """Make a gzip compressor, level 6; the header carries no time."""
    import zlib

    return zlib.compressobj(6, zlib.DEFLATED, 31)


def zstd(threads: int = 0) -> Compressor:
    """Make a Zstandard compressor, level 3, with a checksum over the content.

    With `threads` it compresses in as many of its own, while the caller goes on.
    """
    import zstandard

    return zstandard.ZstdCompressor(level=3, write_checksum=True, threads=threads).compressobj()


def bzip2() -> Compressor:
    """Make a bzip2 compressor, level 9 as the command does."""
    import bz2

    return bz2.BZ2Compressor()


def xz() -> Compressor:
    """Make an xz compressor, preset 6 as the command does."""
    import lzma

    return lzma.LZMACompressor()


COMPRESSORS: dict[str, Callable[[], Compressor]] = {
    ".gz": gzip,
    ".zst": zstd,
    ".bz2": bzip2,
    ".xz": xz,
}
"""By suffix."""

PARALLEL: dict[str, Callable[[int], Compressor]] = {".zst": zstd}
"""Those that can use threads of their own."""


class CompressedOutput(Output):
    """Another output, whose bytes are compressed on their way."""

    def __init__(self, inner: Output, compressor: Compressor) -> None:
        self.name = inner.name
        self._inner = inner
        self._compressor = compressor

    def write(self, data: bytes) -> None:
        """Compress, and write what is ready."""
        if ready := self._compressor.compress(data):
            self._inner.write(ready)

    def finish(self) -> None:
        """Write the end of the compressed data and close."""
        self._inner.write(self._compressor.flush())
        self._inner.finish()

    def publish(self) -> None:
        """Pass on."""
        self._inner.publish()

    def discard(self) -> None:
        """Pass on."""
        self._inner.discard()
