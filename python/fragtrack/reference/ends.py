"""How a datagram ends that nobody completed: its time is up, or others need its memory."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from fragtrack.events import Reason
from fragtrack.reference import icmp

if TYPE_CHECKING:
    from fragtrack.config import ReassemblyConfig
    from fragtrack.reference.ledger import Ledger
    from fragtrack.reference.queue import Key, Queue


class Ends:
    """Counts, answers and reports queues that a table has removed.

    A poisoned queue ends in silence: it was counted and reported when it was poisoned.
    """

    __slots__ = ("_answer_all", "_ledger", "_local", "_netfilter")

    def __init__(self, config: ReassemblyConfig, ledger: Ledger) -> None:
        self._ledger = ledger
        self._netfilter = config.path == "netfilter"
        self._answer_all = not self._netfilter or config.local is None
        self._local = [ipaddress.ip_network(network) for network in config.local or ()]

    def expire(self, queue: Queue, *, answer: bool = True) -> None:
        """End a queue whose time is up (``ip_expire``, ``ip6frag_expire_frag_queue``).

        Only one that holds the first fragment is answered with "time exceeded"; none is if the
        clock jumped back.
        """
        if queue.poisoned:
            return
        self._ledger.count(queue.key.version, "ReasmFails", "ReasmTimeout")
        head = queue.first_fragment()
        error = None
        if answer and head is not None and self._answers(queue.key):
            error = icmp.time_exceeded(head.fragment)
        self._ledger.give_up(queue, Reason.timeout, icmp=error)

    def evict(self, queue: Queue) -> None:
        """End a queue that was pushed out (``inet_frag_evictor`` before Linux 4.17)."""
        if queue.poisoned:
            return
        self.count_failure(queue.key.version)
        self._ledger.give_up(queue, Reason.evicted)

    def count_failure(self, version: int) -> None:
        """Count ReasmFails, except on the IPv6 netfilter path, which counts only timeouts."""
        if version == 4 or not self._netfilter:
            self._ledger.count(version, "ReasmFails")

    def _answers(self, key: Key) -> bool:
        """Tell whether a timeout is answered: IPv4 netfilter does only for the host itself."""
        if key.version == 6 or self._answer_all:
            return True
        address = ipaddress.ip_address(key.dst)
        return any(address in network for network in self._local)
