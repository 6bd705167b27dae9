"""Where captures come from. Each kind is one row of `KINDS`; the content decides, not the name."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from fragtrack.sources import compressed, zstd
from fragtrack.sources.base import CHUNK, RECORD_LIMIT, Damage, Source, Window
from fragtrack.sources.file import SMALLEST, MappedFile
from fragtrack.sources.foreign import describe
from fragtrack.sources.stream import Readable, Reader, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fragtrack.reference.capture import Format
    from fragtrack.sources.base import Stopped

    Input = str | os.PathLike[str] | Readable

__all__ = [
    "CHUNK",
    "KINDS",
    "RECORD_LIMIT",
    "Damage",
    "Kind",
    "MappedFile",
    "Reader",
    "Source",
    "Stream",
    "Window",
    "capture_format",
    "describe",
    "name_of",
    "open_source",
]

STDIN = "-"


class Kind(NamedTuple):
    """A way in which captures are stored.

    Attributes
    ----------
    name
        For messages and the documentation.
    magics
        First bytes, any of which tells this kind.
    decode
        From stored bytes to chunks of content.
    """

    name: str
    magics: tuple[bytes, ...]
    decode: Callable[[Reader], Iterator[bytes]]


KINDS: tuple[Kind, ...] = (
    Kind("gzip", (compressed.GZIP,), compressed.gunzip),
    Kind("zstd", zstd.MAGICS, zstd.unzstd),
    Kind("bzip2", (compressed.BZIP2,), compressed.bunzip2),
    Kind("xz", (compressed.XZ,), compressed.unxz),
)
"""Compressed ways; what matches no row is taken as it is."""

LONGEST_MAGIC = max(len(magic) for kind in KINDS for magic in kind.magics)

PCAP = frozenset(
    bytes.fromhex(magic)
    for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "a1b2cd34", "34cdb2a1")
)
PCAPNG = b"\x0a\x0d\x0d\x0a"


def capture_format(head: bytes) -> Format | None:
    """Tell ``"pcap"`` or ``"pcapng"`` by the first four bytes of the content, or None."""
    if head[:4] in PCAP:
        return "pcap"
    return "pcapng" if head[:4] == PCAPNG else None


def name_of(origin: Input) -> str:
    """Give the name an input goes by in messages."""
    if isinstance(origin, (str, os.PathLike)):
        path = os.fspath(origin)
        return "standard input" if path == STDIN else path
    name = getattr(origin, "name", None)
    return name if isinstance(name, str) else "input"


def open_source(
    origin: Input, *, stable: bool = True, stopped: Stopped | None = None, ahead: bool = False
) -> Source:
    """Open an input: a path, ``"-"`` for standard input, or a binary file object.

    Parameters
    ----------
    origin
        What to open.
    stable
        Whether fragments may refer to a mapped file after its end; this costs two file
        descriptors as long as the rewriter lives.
    stopped
        Asked while a pipe has nothing to give, so that a wait can be ended.
    ahead
        Whether what is not mapped is read, and inflated, by a thread of its own.

    Raises
    ------
    OSError
        If it cannot be opened or read; `filename` is the name of the input.
    """
    name = name_of(origin)
    if ahead and stopped is None:
        stopped = _never  # its wait can be ended all the same, by closing
    try:
        if not isinstance(origin, (str, os.PathLike)):
            return _from_reader(Reader(origin, owned=False), name, None, ahead=ahead)
        stdin = os.fspath(origin) == STDIN
        descriptor = 0 if stdin else os.open(origin, os.O_RDONLY | os.O_CLOEXEC)
        return _from_descriptor(
            descriptor, name, stable=stable, owned=not stdin, stopped=stopped, ahead=ahead
        )
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def _from_descriptor(
    descriptor: int,
    name: str,
    *,
    stable: bool,
    owned: bool,
    stopped: Stopped | None,
    ahead: bool,
) -> Source:
    state = os.fstat(descriptor)
    regular = stat.S_ISREG(state.st_mode)
    size = state.st_size if regular else None
    # Standard input may be a file that somebody has read a part of: only its rest is the input.
    whole = regular and os.lseek(descriptor, 0, os.SEEK_CUR) == 0
    reader = Reader(descriptor, owned=owned, stopped=None if regular else stopped)
    try:
        if whole and state.st_size >= SMALLEST and _kind(reader.peek(LONGEST_MAGIC)) is None:
            try:
                return MappedFile(descriptor, name, state.st_size, stable=stable, owned=owned)
            except (OSError, ValueError):
                pass  # a file system without mappings: read it
        return _from_reader(reader, name, size, ahead=ahead)
    except OSError:
        reader.close()
        raise


def _from_reader(reader: Reader, name: str, size: int | None, *, ahead: bool) -> Source:
    kind = _kind(reader.peek(LONGEST_MAGIC))
    return Stream(reader, name, size=size, decode=kind.decode if kind else None, ahead=ahead)


def _never() -> bool:
    return False


def _kind(head: bytes) -> Kind | None:
    for kind in KINDS:
        if head.startswith(kind.magics):
            return kind
    return None
