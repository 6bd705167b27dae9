"""Where bytes go: files that appear whole or not at all, special files, objects."""

from __future__ import annotations

import os
import select
import stat
from abc import ABC, abstractmethod
from contextlib import suppress
from errno import EACCES
from typing import Protocol, TypeAlias

STDOUT = "-"

NAME_LIMIT = 200
"""Bytes of the final name that go into the temporary one; file systems end at 255."""


class Writable(Protocol):
    """A binary file object; what its ``write`` returns does not matter."""

    def write(self, data: bytes, /) -> object:
        """Take all the bytes."""


Target: TypeAlias = str | os.PathLike[str] | Writable
"""A path, ``"-"`` for standard output, or a binary file object."""


class Output(ABC):
    """One output.

    Life: `write` any number of times, then `finish` (may still fail), then `publish`; or `discard`
    at any time before `publish`, after which nothing is left behind. With several outputs all are
    finished before the first is published.
    """

    name: str

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write all of `data`.

        Raises
        ------
        OSError
            With the name of the output in ``filename``.
        """

    @abstractmethod
    def finish(self) -> None:
        """Flush and close; all errors of writing have shown when this returns."""

    @abstractmethod
    def publish(self) -> None:
        """Make the bytes appear under the final name."""

    @abstractmethod
    def discard(self) -> None:
        """Drop what was written, where that is possible. Never fails; may be called twice."""


class DescriptorOutput(Output):
    """An output behind a file descriptor.

    Invariant: `_descriptor` is open, or -1. It is looked at before each single write, so that a
    thread that is still at it when the output is discarded writes to no file opened since.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self.name = name
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        """Write through."""
        view = memoryview(data)
        try:
            while view:
                try:
                    view = view[os.write(self._descriptor, view) :]
                except BlockingIOError:
                    select.select([], [self._descriptor], [])
        except OSError as error:
            raise _named(error, self.name) from error

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class AtomicFile(DescriptorOutput):
    """A regular file: written under a temporary name beside it, renamed at `publish`.

    It gets the permissions of any new file, or those of the file it replaces; a symbolic link stays
    one, what it points to is replaced.

    Parameters
    ----------
    path
        The final name.

    Raises
    ------
    OSError
        If the folder cannot be written, or the present file may not.
    """

    def __init__(self, path: str) -> None:
        super().__init__(-1, path)
        self._final = os.path.realpath(path)
        folder, base = os.path.split(self._final)
        base = os.fsdecode(os.fsencode(base)[:NAME_LIMIT])
        self._temporary = os.path.join(folder, f".{base}.{os.urandom(4).hex()}.part")
        try:
            mode = _present_mode(self._final)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._descriptor = os.open(self._temporary, flags, 0o666)
            if mode is not None:
                os.fchmod(self._descriptor, mode)
        except OSError as error:
            self.discard()
            raise _named(error, path) from error

    def finish(self) -> None:
        """Close the temporary file."""
        try:
            self._close()
        except OSError as error:  # quotas and network file systems may report as late as here
            raise _named(error, self.name) from error

    def publish(self) -> None:
        """Rename the temporary file to its final name."""
        try:
            os.replace(self._temporary, self._final)
        except OSError as error:
            raise _named(error, self.name) from error

    def discard(self) -> None:
        """Remove the temporary file."""
        with suppress(OSError):
            self._close()
        with suppress(OSError):
            os.unlink(self._temporary)


class DirectFile(DescriptorOutput):
    """A descriptor written as it is: standard output, ``/dev/null``, a FIFO, a terminal."""

    def __init__(self, descriptor: int, name: str, *, owned: bool) -> None:
        super().__init__(descriptor, name)
        self._owned = owned

    def finish(self) -> None:
        """Close the descriptor, if it is ours."""
        if self._owned:
            try:
                self._close()
            except OSError as error:
                raise _named(error, self.name) from error

    def publish(self) -> None:
        """Nothing to do: the bytes are out."""

    def discard(self) -> None:
        """Close; what is out stays out."""
        with suppress(OSError):
            self.finish()


class ObjectOutput(Output):
    """A binary file object of the caller, who closes it."""

    def __init__(self, target: Writable) -> None:
        name = getattr(target, "name", None)
        self.name = name if isinstance(name, str) else "output"
        self._target = target

    def write(self, data: bytes) -> None:
        """Write through."""
        self._target.write(data)

    def finish(self) -> None:
        """Flush, where the object can."""
        flush = getattr(self._target, "flush", None)
        if flush is not None:
            flush()

    def publish(self) -> None:
        """Nothing to do: the bytes are out."""

    def discard(self) -> None:
        """Nothing to do: what is out stays out."""


def open_output(target: Target) -> Output:
    """Open an output: a path, ``"-"`` for standard output, or a binary file object.

    Raises
    ------
    OSError
        If it cannot be written; ``filename`` is the path.
    """
    if not isinstance(target, (str, os.PathLike)):
        return ObjectOutput(target)
    path = os.fspath(target)
    if path == STDOUT:
        return DirectFile(1, "standard output", owned=False)
    if is_special(path):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            raise _named(error, path) from error
        return DirectFile(descriptor, path, owned=True)
    return AtomicFile(path)


def is_special(path: str) -> bool:
    """Say whether a path is there and is no regular file: it is then written directly."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _present_mode(path: str) -> int | None:
    """Give the permissions of the file that will be replaced, or None; it must be writable."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None
    if not os.access(path, os.W_OK):
        raise PermissionError(EACCES, os.strerror(EACCES))
    return mode


def _named(error: OSError, name: str) -> OSError:
    """Give the same error with the name of the output as the user knows it."""
    return OSError(error.errno, f"cannot write: {error.strerror}", name)
