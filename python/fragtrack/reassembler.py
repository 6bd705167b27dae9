"""Packets in, outcomes out: the reassembler to call from a program that has the packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragtrack import engine
from fragtrack.config import ReassemblyConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from fragtrack.batch import Batch
    from fragtrack.events import GivenUp, Outcome
    from fragtrack.reference.reassembler import Reassembler as Backend


class Reassembler:
    """Put IP fragments together as a Linux host does.

    No clock is read: time is what `push` and `advance` say. The methods are those of the backend
    themselves, thus cost one attribute look-up.

    Parameters
    ----------
    policy
        Who wins where fragments overlap: ``linux`` (what current kernels do), ``rfc5722``,
        ``first``, ``last``, ``bsd``, ``bsd-right``, ``linux-old``, ``windows`` or ``solaris``.
    path
        ``local``: the reassembler of local delivery. ``netfilter``: the one in front of
        connection tracking, which differs for IPv6.
    limits
        ``capture``: room for everything that can be put together. ``kernel``: what a host has.
    timeout4, timeout6
        Seconds from the first fragment until an incomplete datagram is given up.
    memory
        Bytes per family that held fragments may take; None: 512 MiB with limits ``capture``,
        4 MiB with ``kernel``.
    max_dist
        IPv4: how many fragments of the same source may come in between two of one datagram
        (``ipfrag_max_dist``); 0 is without limit; None: 0 with limits ``capture``, 64 with
        ``kernel``.
    **config
        Further fields of `fragtrack.ReassemblyConfig`.

    Raises
    ------
    ConfigError
        If a value cannot be.

    Examples
    --------
    >>> from fragtrack.testing import fragment, ipv4, udp
    >>> first, last = fragment(ipv4(udp(b"hello " * 8)), sizes=[16])
    >>> r = Reassembler(policy="linux")
    >>> r.push(first, 0).kind, r.push(last, 1_000_000).kind
    ('held', 'complete')
    """

    __slots__ = {
        "_backend": "The object of the backend.",
        "_config": "The settings.",
        "advance": "``advance(time_ns) -> list[GivenUp]``: let time pass; what expired comes back.",
        "flush": "``flush() -> list[GivenUp]``: give up everything open (reason ``end``).",
        "push": (
            "``push(packet, time_ns, domain=0) -> Outcome``: take one packet, bytes from its IP "
            "header on, that arrived at `time_ns` (nanoseconds) in `domain` (fragments of "
            "different domains, such as VLANs, never mix). Bad packets are outcomes, not errors."
        ),
        "push_batch": (
            "``push_batch(buffer, offsets, lengths, times_ns, *, domain=0) -> Batch``: take many "
            "packets that lie in one buffer, with one call. The columns are arrays of integers "
            "(``array``, numpy). What became of each packet, and where the whole datagrams are, "
            "comes back as columns too, see `fragtrack.batch.Batch`. Raises ValueError if the "
            "columns differ in length or a packet lies outside the buffer."
        ),
    }

    push: Callable[..., Outcome]
    advance: Callable[[int], list[GivenUp]]
    flush: Callable[[], list[GivenUp]]
    push_batch: Callable[..., Batch]

    def __init__(  # noqa: PLR0917  the documented order
        self,
        policy: str = "linux",
        path: str = "local",
        limits: str = "capture",
        timeout4: float = 30,
        timeout6: float = 60,
        memory: int | None = None,
        max_dist: int | None = None,
        **config: Any,
    ) -> None:
        self._config = engine.keyed(
            ReassemblyConfig(
                policy=policy,
                path=path,
                limits=limits,
                timeout4=timeout4,
                timeout6=timeout6,
                memory=memory,
                max_dist=max_dist,
                **config,
            )
        )
        backend = engine.new_reassembler(self._config)
        self._backend = backend
        self.push = backend.push
        self.advance = backend.advance
        self.flush = backend.flush
        self.push_batch = getattr(backend, "push_batch", None) or _one_by_one(backend)

    @property
    def config(self) -> ReassemblyConfig:
        """The settings, with the hash key that was drawn."""
        return self._config

    @property
    def counters(self) -> dict[str, int]:
        """Counters by their kernel names (``ReasmReqds`` and so on), both families together."""
        return self._backend.counters

    @property
    def counters4(self) -> dict[str, int]:
        """The counters of IPv4."""
        return self._backend.counters4

    @property
    def counters6(self) -> dict[str, int]:
        """The counters of IPv6."""
        return self._backend.counters6

    @property
    def reasons(self) -> dict[str, int]:
        """Fragments that did not become part of a complete datagram, by reason."""
        return self._backend.reasons

    @property
    def queues(self) -> int:
        """Datagrams that are open."""
        return self._backend.queues

    @property
    def memory(self) -> int:
        """Bytes held, by the cost model of the limits, both families together."""
        return self._backend.memory

    def check(self) -> None:
        """Assert every invariant from scratch.

        Raises
        ------
        AssertionError
            If one does not hold.
        """
        self._backend.check()

    def __repr__(self) -> str:
        """Show what it is and how full."""
        c = self._config
        return (
            f"<fragtrack.Reassembler policy={c.policy} path={c.path} limits={c.limits} "
            f"queues={self.queues} memory={self.memory}>"
        )


def _one_by_one(backend: Backend) -> Callable[..., Batch]:
    from functools import partial

    from fragtrack.batch import push_each

    return partial(push_each, backend.push)
