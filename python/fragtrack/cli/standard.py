"""Standard input and output: who may have them, and what is said on them."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from errno import EBADF
from typing import TYPE_CHECKING, Any, TextIO

from fragtrack.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def check_read_once(names: Sequence[str | None]) -> None:
    """Refuse standard input for more than one of the names."""
    if names.count("-") > 1:
        raise ConfigError("standard input can be read only once")


def check_streams(inputs: Sequence[str], writers: Mapping[str, bool]) -> None:
    """Refuse more than one writer of standard output, and a capture from a terminal.

    Parameters
    ----------
    inputs
        Captures to read.
    writers
        Options that could take standard output, and whether they do.
    """
    taken = [option for option, there in writers.items() if there]
    if len(taken) > 1:
        raise ConfigError(f"only one can have standard output: {' or '.join(taken)}")
    if "-" in inputs and sys.stdin is not None and sys.stdin.isatty():
        raise ConfigError("a capture does not come from a terminal: pipe one in")


def to_terminal(output: str | None) -> bool:
    """Tell whether an output is standard output, and that a terminal."""
    return output == "-" and sys.stdout is not None and sys.stdout.isatty()


@contextmanager
def summary_stream(*targets: str | None) -> Iterator[TextIO | None]:
    """Give the stream for the summary: standard error if a target has standard output.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    stream = sys.stderr if "-" in targets else sys.stdout
    try:
        yield stream
        if stream is not None:
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, f"cannot write: {error.strerror}", "the summary") from error


def print_json(told: Mapping[str, Any], stream: TextIO | None) -> None:
    """Print one JSON object on a line."""
    import json

    if stream is None:
        raise OSError(EBADF, os.strerror(EBADF))
    stream.write(json.dumps(told) + "\n")


def shown(target: str | None) -> str | None:
    """Name a target for people."""
    return "standard output" if target == "-" else target


def ignore(_: str) -> None:
    """Say nothing."""
