"""Whole captures with one call: rewrite them, or walk over their datagrams."""

from __future__ import annotations

import os
import stat
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from fragtrack import engine, sinks
from fragtrack.checks import check_threads
from fragtrack.config import ReassemblyConfig
from fragtrack.errors import ConfigError
from fragtrack.outputs import Outputs
from fragtrack.run import Pass
from fragtrack.sources import name_of
from fragtrack.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from fragtrack.events import DatagramRow
    from fragtrack.outputs import Work
    from fragtrack.reference.capture import Format
    from fragtrack.reference.rewriter import Rewriter
    from fragtrack.run import Input, Progress
    from fragtrack.sinks.output import Output, Target
    from fragtrack.sinks.rows import Table
    from fragtrack.sources import Damage
    from fragtrack.sources.base import Stopped

    Inputs = Input | Sequence[Input]

Incomplete = Literal["keep", "drop"]


def reassemble(
    inputs: Inputs,
    output: Target | None = None,
    *,
    policy: str = "linux",
    limits: str = "capture",
    incomplete: Incomplete = "keep",
    datagrams: str | os.PathLike[str] | None = None,
    sha256: bool = False,
    format: Format | None = None,  # noqa: A002  the option is called --format
    threads: int = 1,
    progress: Progress | None = None,
    stopped: Stopped | None = None,
    **config: Any,
) -> Summary:
    """Rewrite captures with whole datagrams in place of fragments.

    Parameters
    ----------
    inputs
        A path, ``"-"`` for standard input, a binary file object, or several of these: they are
        read as one capture, so that a datagram may begin in one and end in the next.
    output
        Where the capture goes: a path whose suffix tells the format (``.pcap``, ``.pcapng``, with
        ``.gz``, ``.zst``, ``.bz2`` or ``.xz`` behind it), ``"-"`` for standard output, or a binary
        file object. None: only count. A file appears under its name when it is whole.
    policy, limits, **config
        Fields of `fragtrack.ReassemblyConfig`.
    incomplete
        ``keep``: fragments that belong to no complete datagram are written as they are;
        ``drop``: they are not.
    datagrams
        Path of a table with a row for each datagram, complete or not: ``.jsonl``, ``.csv`` or
        ``.parquet``.
    sha256
        Whether that table has the hash of each complete payload.
    format
        ``pcap`` or ``pcapng`` whatever the name says. For outputs without a suffix to go by, None
        stands for the format of the first input.
    threads
        How many threads may work: with 2, hashing, compressing and writing have one of their own;
        with 3, reading and inflating have one, too; what is beyond that compresses ``.zst``. The
        results are the same. File objects are then used by those threads.
    progress
        Called now and then with the bytes read and the bytes to read (None if unknown).
    stopped
        Asked now and then, maybe by another thread; when it says yes the run ends in good order,
        its output shorter.

    Returns
    -------
    Summary
        Counts, and where the input was damaged if it was.

    Raises
    ------
    ConfigError
        If a setting cannot be, or an output is also an input.
    CaptureError
        If an input is no capture.
    OutputError
        If the output cannot hold what the input has, as pcap cannot hold two link types.
    OSError
        If an input cannot be read or an output not written; ``filename`` tells which. As with every
        exception, no output file is left behind or changed.

    Examples
    --------
    >>> import fragtrack
    >>> fragtrack.reassemble("in.pcapng", "whole.pcapng").datagrams  # doctest: +SKIP
    {'complete': 812, 'incomplete': 3}
    """
    begin = time.perf_counter()
    settings = ReassemblyConfig(policy=policy, limits=limits, **config)
    if incomplete not in ("keep", "drop"):
        raise ConfigError(f"incomplete={incomplete!r}: choose keep or drop")
    check_threads(threads)
    origins = as_list(inputs)
    form = None if output is None else sinks.capture_suffix(output, format)
    if datagrams is not None:
        sinks.table_suffix(datagrams)
    refuse_overwriting(origins, [target for target in (output, datagrams) if target is not None])
    work = Pass(origins, stopped=stopped, ahead=threads >= 3)
    with closing(work), Outputs(threads) as outputs:
        table = capture = None
        if datagrams is not None:
            table = outputs.add(sinks.open_table(datagrams, sha256=sha256, threads=outputs.spare))
        if output is not None:
            capture = outputs.add(sinks.open_capture(output, threads=outputs.spare))
        rewriter = engine.new_rewriter(
            settings,
            output=None if output is None else form or work.format or "pcapng",
            keep_incomplete=incomplete == "keep",
            rows=datagrams is not None,
            payloads=datagrams is not None and sha256,
        )
        for step in work.steps(rewriter, progress):
            outputs.put(_results(step, capture, table))
        outputs.finish(publish=work.began)
    return _summary(work, rewriter.summary(), time.perf_counter() - begin)


def datagrams(
    inputs: Inputs,
    *,
    incomplete: bool = False,
    policy: str = "linux",
    limits: str = "capture",
    **config: Any,
) -> Datagrams:
    """Walk over the datagrams of captures that arrived in fragments.

    Parameters
    ----------
    inputs
        As for `reassemble`.
    incomplete
        Whether datagrams that did not come together are given as well; their `outcome` is the
        reason, their `payload` and `packet` are None.
    policy, limits, **config
        Fields of `fragtrack.ReassemblyConfig`.

    Returns
    -------
    Datagrams
        An iterator of `fragtrack.events.DatagramRow`, in the order in which they ended.

    Raises
    ------
    ConfigError
        If a setting cannot be.
    CaptureError
        If an input is no capture.
    OSError
        If an input cannot be read.

    Examples
    --------
    >>> import fragtrack
    >>> for datagram in fragtrack.datagrams("in.pcapng"):  # doctest: +SKIP
    ...     print(datagram.src, datagram.dst, datagram.frames, len(datagram.payload))
    """
    settings = ReassemblyConfig(policy=policy, limits=limits, **config)
    return Datagrams(Pass(as_list(inputs)), settings, incomplete=incomplete)


class Datagrams:
    """Iterator of datagrams; also a context manager that closes the inputs.

    Attributes
    ----------
    damaged
        Where an input broke, as soon as that is known; None so far.
    """

    def __init__(self, work: Pass, config: ReassemblyConfig, *, incomplete: bool) -> None:
        self._work = work
        self._begin = time.perf_counter()
        self._rewriter = engine.new_rewriter(config, output=None, rows=True, payloads=True)
        self._rows = self._walk(incomplete=incomplete)

    def __iter__(self) -> Self:
        """Give itself."""
        return self

    def __next__(self) -> DatagramRow:
        """Give the next datagram."""
        return next(self._rows)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the inputs."""
        self.close()

    @property
    def damaged(self) -> Damage | None:
        """Where an input broke, as far as is known by now."""
        return next(iter(self._work.damages), None)

    def summary(self) -> Summary:
        """Give the counts so far."""
        return _summary(self._work, self._rewriter.summary(), time.perf_counter() - self._begin)

    def close(self) -> None:
        """Stop, and close the inputs."""
        self._rows.close()
        self._work.close()

    def _walk(self, *, incomplete: bool) -> Generator[DatagramRow]:
        try:
            for rewriter in self._work.steps(self._rewriter):
                for row in rewriter.take_rows():
                    if incomplete or row.outcome == "complete":
                        yield row
        finally:
            self._work.close()


def _results(
    rewriter: Rewriter, capture: Output | None, table: Table[DatagramRow] | None
) -> list[Work]:
    """Give what is to be written of what the rewriter has by now."""
    work: list[Work] = []
    if capture is not None and (data := rewriter.take()):
        work.append((capture.write, data))
    if table is not None and (rows := rewriter.take_rows()):
        work.append((table.write, rows))
    return work


def as_list(inputs: Inputs) -> list[Input]:
    """Make a list of one or several inputs.

    Raises
    ------
    ConfigError
        If there is none.
    """
    if isinstance(inputs, (str, os.PathLike)) or hasattr(inputs, "read"):
        return [cast("Input", inputs)]
    origins = list(inputs)
    if not origins:
        raise ConfigError("no input")
    return origins


def refuse_overwriting(origins: Sequence[Input], targets: Sequence[Target]) -> None:
    """Refuse an output that is an input, or is another output, by whatever name.

    Raises
    ------
    ConfigError
        If it is.
    """
    taken = {_identity(origin, 0): name_of(origin) for origin in origins}
    taken.pop(None, None)
    for target in targets:
        identity = _identity(target, 1)
        name = name_of(cast("Input", target))
        if identity in taken:
            same = taken[identity]
            what = "an input" if same == name else f"the input {same}"
            raise ConfigError(f"{name}: is also {what}; choose another output")
    names = [os.fspath(target) for target in targets if isinstance(target, (str, os.PathLike))]
    seen = set()
    for name in names:
        if not sinks.is_special(name):
            path = os.path.realpath(name)
            if path in seen:
                raise ConfigError(f"{name}: is named for two outputs")
            seen.add(path)


def _identity(end: object, standard: int) -> tuple[int, int] | None:
    """Give device and inode of a regular file; `standard` is the descriptor behind ``-``."""
    if not isinstance(end, (str, os.PathLike)):
        return None
    try:
        state = os.fstat(standard) if os.fspath(end) == "-" else os.stat(end)
    except OSError:
        return None
    return (state.st_dev, state.st_ino) if stat.S_ISREG(state.st_mode) else None


def _summary(work: Pass, counts: dict[str, Any], seconds: float) -> Summary:
    return Summary(
        **counts,
        seconds=round(seconds, 6),
        damages=work.damages,
        interrupted=work.interrupted,
    )
