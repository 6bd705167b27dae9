"""Whole captures with one call: their connections, and a verdict on each packet."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from fragtrack import engine
from fragtrack.checks import check_threads
from fragtrack.errors import ConfigError, FragtrackError
from fragtrack.files import as_list, refuse_overwriting
from fragtrack.outputs import Outputs
from fragtrack.run import Pass
from fragtrack.sinks import TRACK_TABLES, table_suffix
from fragtrack.sinks import track as sinks
from fragtrack.sources import name_of
from fragtrack.track_config import TrackConfig
from fragtrack.track_summary import TrackSummary, named, ranked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fragtrack.conntrack import Comparison, Entry
    from fragtrack.files import Inputs
    from fragtrack.outputs import Work
    from fragtrack.reference.follower import Follower
    from fragtrack.reference.track.table import Connections
    from fragtrack.run import Progress
    from fragtrack.sources.base import Stopped
    from fragtrack.verdicts import Connection

    Path = str | os.PathLike[str]

TURN = 16
"""Steps of the pass between two times of taking what was found: 4 MiB of capture."""


def track(
    inputs: Inputs,
    output: Path | None = None,
    *,
    profile: str = "linux-6.18",
    format: str | None = None,  # noqa: A002  the option is called --format
    verdicts: Path | None = None,
    events: Path | None = None,
    compare: Path | None = None,
    limits: str = "capture",
    settings: Mapping[str, object] | None = None,
    keep: bool | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    stopped: Stopped | None = None,
    **config: Any,
) -> Tracked:
    """Follow the connections of captures, as Linux does.

    Parameters
    ----------
    inputs
        A path, ``"-"`` for standard input, a binary file object, or several of these: they are
        read as one capture, so that a connection may begin in one and go on in the next.
    output
        Where connections go: a path whose suffix tells the format (``.jsonl``, ``.csv``, which may
        have ``.gz``, ``.zst``, ``.bz2`` or ``.xz`` behind it; ``.parquet``, ``.arrow``), or ``"-"``
        for standard output. A file appears under its name when it is whole.
    profile, **config
        Fields of `fragtrack.TrackConfig`.
    format
        ``jsonl``, ``csv``, ``parquet``, ``arrow``, ``conntrack`` (what ``conntrack -L`` shows: the
        connections still in the table at the end; also by the suffix ``.txt``) or ``zeek`` (a
        conn.log; also by the suffix ``.log``), whatever the name of the output says.
    verdicts
        Path of a table with a row for each packet that holds IP.
    events
        Path of a table with a row for each event; ``.txt``: as ``conntrack -E -o timestamp`` shows
        them.
    compare
        Path of a dump of the kernel's table (``conntrack -L`` and others) to compare with what is
        in the table at the end; ``"-"`` is standard input.
    limits
        Of the reassembly in front, as in `fragtrack.ReassemblyConfig`.
    settings
        Settings as text, by the names of the kernel: ``{"nf_conntrack_tcp_loose": "0"}``. They go
        before those of `config`.
    keep
        Whether the result holds the connections; None: if there is no `output`.
    threads, progress, stopped
        As for `fragtrack.reassemble`.

    Returns
    -------
    Tracked
        The connections, to read as a table, and a summary.

    Raises
    ------
    ConfigError
        If a setting cannot be, or an output is also an input.
    CaptureError
        If an input is no capture.
    OutputError
        If a library is missing that an output needs.
    OSError
        If an input cannot be read or an output not written; ``filename`` tells which. As with every
        exception, no output file is left behind or changed.

    Examples
    --------
    >>> import fragtrack, pyarrow
    >>> found = fragtrack.track("in.pcapng")  # doctest: +SKIP
    >>> pyarrow.table(found).group_by("end").aggregate([([], "count_all")])  # doctest: +SKIP
    >>> found.summary.reasons  # doctest: +SKIP
    {'ack_above': 12, 'no_entry': 3}
    """
    begin = time.perf_counter()
    plan = TrackConfig(profile=profile, **config)
    if settings:
        plan = plan.set(dict(settings))
    check_threads(threads)
    if format is not None and output is None:
        raise ConfigError(f"format={format!r} is that of an output, which is not asked for")
    suffix = None if output is None else sinks.connection_suffix(output, format)
    _check_names(verdicts, events)
    origins = as_list(inputs)
    targets = [target for target in (output, verdicts, events) if target is not None]
    refuse_overwriting(origins if compare is None else [*origins, compare], targets)
    dump = None if compare is None else _Dump(compare)
    follower = engine.new_follower(
        plan,
        limits=limits,
        verdicts=verdicts is not None,
        events=events is not None,
        zeek=suffix == ".log",
    )
    work = Pass(origins, stopped=stopped, ahead=threads >= 3)
    with closing(work), Outputs(threads) as outputs:
        results = _Results(
            outputs,
            keep=output is None if keep is None else keep,
            compare=None if dump is None else dump.add,
        )
        results.open(output, suffix, verdicts, events)
        turn = TURN if events is None else 1  # an event is an object of hundreds of bytes
        for number, step in enumerate(work.steps(follower, progress), 1):
            if not number % turn:
                outputs.put(results.take(step))
        outputs.put(results.take(follower, last=True))
        outputs.finish(publish=work.began)
    summary = _summary(work, follower, time.perf_counter() - begin)
    comparison = None if dump is None else dump.compare()
    return Tracked(summary, results.kept, comparison)


class Tracked:
    """What a run of tracking found.

    It is a table of connections, in the order in which they ended, then those still in the table:
    ``pyarrow.table(found)``, ``polars.DataFrame(found)`` and duckdb read it without copying.

    Attributes
    ----------
    summary
        Counts, and where the input was damaged if it was.
    comparison
        How it compares with the dump that was given; None without one.
    """

    def __init__(
        self,
        summary: TrackSummary,
        connections: Connections | None,
        comparison: Comparison | None = None,
    ) -> None:
        self.summary = summary
        self.comparison = comparison
        self._connections = connections

    def __len__(self) -> int:
        """Count the connections."""
        return self.summary.connections

    def __bool__(self) -> bool:
        """Say yes: it is a result, even without a connection."""
        return True

    def rows(self) -> list[Connection]:
        """Give the connections one by one.

        Raises
        ------
        FragtrackError
            If they went to an output.
        """
        return self._held().rows()

    def __arrow_c_schema__(self) -> object:
        """Export the schema (Arrow PyCapsule interface)."""
        return self._held().__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the connections (Arrow PyCapsule interface)."""
        return self._held().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Show how much was found."""
        found = self.summary
        return f"<fragtrack.Tracked packets={found.packets} connections={found.connections}>"

    def _held(self) -> Connections:
        if self._connections is None:
            raise FragtrackError("the connections went to the output; keep=True keeps them, too")
        return self._connections


class _Results:
    """Takes what a follower has found, and gives the outputs their work.

    Parameters
    ----------
    outputs
        Where sinks are opened.
    keep
        Hold all connections; they are then taken at the end, in one piece.
    compare
        What takes the rows of all connections, piece by piece.
    """

    def __init__(
        self, outputs: Outputs, *, keep: bool, compare: Callable[[list[Connection]], object] | None
    ) -> None:
        self.kept: Connections | None = None
        self._outputs = outputs
        self._keep = keep
        self._compare = compare
        self._add: Callable[[Any], object] | None = None
        self._log: Callable[[Any], object] | None = None
        self._verdicts: Callable[[Any], object] | None = None
        self._events: Callable[[Any], object] | None = None

    def open(
        self, output: Path | None, suffix: str | None, verdicts: Path | None, events: Path | None
    ) -> None:
        """Open the outputs."""
        add, spare = self._outputs.add, self._outputs.spare
        if output is not None and suffix is not None:
            sink = add(sinks.open_connections(output, suffix, threads=spare))
            if isinstance(sink, sinks.Log):
                self._log = sink.write
            else:
                self._add = sink.add
        if verdicts is not None:
            self._verdicts = add(sinks.open_verdicts(verdicts, threads=spare)).add
        if events is not None:
            self._events = add(sinks.open_events(events, threads=spare)).write

    def take(self, follower: Follower, *, last: bool = False) -> list[Work]:
        """Take what is new, and give what is to be done with it."""
        work: list[Work] = []
        if last or not self._keep:
            self._connections(follower, work, last=last)
        if self._verdicts is not None:
            work.append((self._verdicts, follower.take_verdicts()))
        if self._events is not None and (events := follower.take_events()):
            work.append((self._events, events))
        if self._log is not None:
            work.append((self._log, follower.take_zeek()))
        return work

    def _connections(self, follower: Follower, work: list[Work], *, last: bool) -> None:
        found = follower.take_connections()
        if last and self._keep:
            self.kept = found
        if self._compare is not None:
            self._compare(found.rows())
        if self._add is not None and (len(found) or last):
            work.append((self._add, found))


class _Dump:
    """A dump of the kernel's table, to compare with.

    It is read before the work begins, so that a wrong one shows early.
    """

    def __init__(self, path: Path) -> None:
        from fragtrack.conntrack.compare import Comparer

        name = os.fspath(path)
        source = 0 if name == "-" else name
        try:
            with open(source, encoding="utf-8", errors="replace", closefd=source != 0) as file:
                comparer = Comparer(_table_of(file))
        except FragtrackError as error:
            raise FragtrackError(f"{name_of(name)}: {error}") from error
        except OSError as error:
            raise OSError(error.errno, error.strerror, name_of(name)) from error
        self.add = comparer.add
        self.compare = comparer.finish


def _table_of(lines: Iterable[str]) -> Iterator[Entry]:
    """Read the entries of a table; events tell what happened, and not what there is."""
    from fragtrack.conntrack import parse

    number = 0

    def counted() -> Iterator[str]:
        nonlocal number
        for at, line in enumerate(lines, 1):
            number = at
            yield line

    for entry in parse(counted()):  # it reads no line ahead: the last one is that of the entry
        if entry.event is not None:
            raise FragtrackError(
                f"line {number}: an event ({entry.event}), not an entry of a table; "
                "save 'conntrack -L -o extended' instead"
            )
        yield entry


def _check_names(verdicts: Path | None, events: Path | None) -> None:
    if verdicts is not None:
        table_suffix(verdicts, TRACK_TABLES)
    if events is not None:
        table_suffix(events, sinks.EVENT_SUFFIXES)


def _summary(work: Pass, follower: Follower, seconds: float) -> TrackSummary:
    counts: dict[str, Any] = follower.summary()
    del counts["ip"]
    counts["protocols"] = named(counts["protocols"])
    counts["ends"] = ranked(counts["ends"])
    return TrackSummary(
        **counts,
        seconds=round(seconds, 6),
        damages=work.damages,
        interrupted=work.interrupted,
    )
