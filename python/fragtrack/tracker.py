"""Packets in, verdicts out: the tracker to call from a program that has the packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fragtrack import engine
from fragtrack.checks import check_number, check_one_of
from fragtrack.track_config import TrackConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fragtrack.conntrack import Form
    from fragtrack.reference.track.table import Connections
    from fragtrack.verdicts import Event, Verdict

FORMS: Final = ("list", "extended", "procfs", "xml", "save")
"""Forms of a dump."""


class Tracker:
    """Follow connections as Linux does.

    No clock is read: time is what `push` and `advance` say. The methods are those of the backend
    themselves, thus cost one attribute look-up. Fragments are put together first, as in front of
    the kernel's connection tracking.

    Parameters
    ----------
    profile
        Whose rules: ``linux-6.18``, or ``pre-6.1``.
    limits
        Of that reassembly, as in `fragtrack.ReassemblyConfig`: ``capture`` or ``kernel``.
    keep_events, keep_ended
        Whether what happens is kept for `events`, and what ends for `ended`. Both grow until they
        are asked for: a program that never asks should turn them off.
    **config
        Further fields of `fragtrack.TrackConfig`: the kernel's sysctls without their prefix
        ``nf_conntrack_``, for example ``tcp_loose=False``, and ``checksum``, ``max``,
        ``gap_tolerant``.

    Raises
    ------
    ConfigError
        If a value cannot be.

    Examples
    --------
    >>> from fragtrack.testing import Talk
    >>> talk = Talk()
    >>> t = Tracker(tcp_loose=False)
    >>> t.push(talk.client("S"), 0).ct_class, t.push(talk.server("SA"), 1_000_000).state
    ('new', 'SYN_RECV')
    >>> t.push(talk.client("A", seq=10_000_000), 2_000_000).detail
    'SEQ 10001000 is over the upper bound 66536 (over the window of the receiver)'
    """

    __slots__ = {
        "_backend": "The object of the backend.",
        "_config": "The settings.",
        "advance": "``advance(time_ns) -> None``: let time pass; what runs out ends.",
        "connections": (
            "``connections() -> Connections``: those in the table, in order of creation. "
            "``rows()`` gives them one by one; pyarrow, polars and duckdb read the whole table."
        ),
        "ended": "``ended() -> Connections``: those that ended since the last call, in order.",
        "events": "``events() -> list[Event]``: what happened since the last call, in order.",
        "flush": (
            "``flush() -> None``: the input is over; open fragments are given up, connections stay."
        ),
        "inspect": (
            "``inspect(connection) -> dict | None``: the private TCP state of a connection, by its "
            "number: for each direction end, maxend, maxwin, maxack, scale and flags (``win``), "
            "the repetitions (``retrans``), class and direction of the last segment (``last``). "
            "None if it is gone, or not TCP."
        ),
        "push": (
            "``push(packet, time_ns, zone=0) -> Verdict``: take one packet, bytes from its IP "
            "header on, that arrived at `time_ns` (nanoseconds). Packets of different zones never "
            "meet. Bad packets are verdicts, not errors."
        ),
    }

    push: Callable[..., Verdict]
    advance: Callable[[int], None]
    flush: Callable[[], None]
    connections: Callable[[], Connections]
    ended: Callable[[], Connections]
    events: Callable[[], list[Event]]
    inspect: Callable[[int], dict[str, Any] | None]

    def __init__(
        self,
        profile: str = "linux-6.18",
        *,
        limits: str = "capture",
        keep_events: bool = True,
        keep_ended: bool = True,
        **config: Any,
    ) -> None:
        self._config = engine.keyed(TrackConfig(profile=profile, **config))
        backend = engine.new_tracker(
            self._config, limits=limits, events=keep_events, ended=keep_ended
        )
        self._backend = backend
        self.push = backend.push
        self.advance = backend.advance
        self.flush = backend.flush
        self.connections = backend.connections
        self.ended = backend.take_ended
        self.events = backend.take_events
        self.inspect = backend.inspect

    @property
    def config(self) -> TrackConfig:
        """The settings, with the hash key that was drawn."""
        return self._config

    @property
    def counters(self) -> dict[str, int]:
        """What the kernel would count, by its names; ``entries`` are the connections now."""
        return self._backend.counters

    @property
    def reasons(self) -> dict[str, int]:
        """Packets by the name of their `fragtrack.TrackReason`."""
        return self._backend.reasons

    @property
    def fragments(self) -> dict[str, int]:
        """Fragments ``seen``; datagrams that were ``complete``, and ``incomplete`` ones."""
        return self._backend.fragments

    @property
    def orphans(self) -> dict[str, int]:
        """Fragments that did not become part of a datagram, by `fragtrack.Reason`."""
        return self._backend.orphans

    def pages(self, limit: int = 65_536) -> Iterator[Connections]:
        """Walk over the connections in the table without holding up the packets.

        Between two pages packets may be pushed. A connection that is in the table all the time
        comes exactly once, in no order that can be relied on; one that comes or goes meanwhile may
        be there or not, as in a dump of the kernel.

        Parameters
        ----------
        limit
            Connections a page, at most.

        Raises
        ------
        ConfigError
            If it is not a whole number from 1 on.
        """
        check_number("limit", limit, 1, (1 << 31) - 1)
        cursor: int | None = 0
        while cursor is not None:
            page, cursor = self._backend.page(cursor, limit)
            yield page

    def dump(self, form: Form = "list") -> str:
        """Write the table as the kernel's own tool does, a line for each connection.

        Parameters
        ----------
        form
            ``list`` as ``conntrack -L``, ``extended`` (``-o extended``), ``procfs`` (as
            ``/proc/net/nf_conntrack``), ``xml`` or ``save`` (``-o xml``, ``-o save``).

        Raises
        ------
        ConfigError
            If there is no such form.
        """
        check_one_of("form", form, FORMS)
        from fragtrack.conntrack import format_entry, from_connection

        rows = self.connections().rows()
        return "".join(f"{format_entry(from_connection(row), form=form)}\n" for row in rows)

    def check(self) -> None:
        """Assert every invariant from scratch.

        Raises
        ------
        AssertionError
            If one does not hold.
        """
        self._backend.check()

    def __len__(self) -> int:
        """Count the connections in the table."""
        return len(self._backend)

    def __repr__(self) -> str:
        """Show what it is and how full."""
        return f"<fragtrack.Tracker profile={self._config.profile} connections={len(self)}>"
