"""The reassembler: one packet in, one outcome out.

Three of the kernel's reassemblies: IPv4 (``ip_defrag``, shared by local delivery and netfilter),
IPv6 local delivery (``ipv6_frag_rcv``) and IPv6 netfilter (``nf_ct_frag6_gather``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragtrack.events import Datagram, GivenUp, IcmpError, Outcome, Reason
from fragtrack.reference import icmp, ipv4, ipv6
from fragtrack.reference.build import atomic, build
from fragtrack.reference.cost import fragment_cost
from fragtrack.reference.ends import Ends
from fragtrack.reference.fragment import Fragment, Plain, Rejected, View
from fragtrack.reference.ledger import COUNTERS, Ledger
from fragtrack.reference.policy import POLICIES, Options
from fragtrack.reference.queue import Arrival, Held, Key, Queue
from fragtrack.reference.table import Limits, Table

if TYPE_CHECKING:
    from fragtrack.config import ReassemblyConfig

DOMAIN_BITS = 56


def is_fragment(packet: View) -> bool:
    """Tell whether a packet is a fragment, as far as its bytes show.

    IPv4: 20 bytes of header are there and MF or the offset is set.  IPv6: the chain of extension
    headers leads to a fragment header, atomic fragments included.
    """
    version = packet[0] >> 4 if len(packet) else 0
    if version == 4:
        return ipv4.is_fragment(packet)
    return version == 6 and ipv6.is_fragment(packet)


class Reassembler:
    """Puts fragments back together as Linux does, or under another overlap policy.

    Parameters
    ----------
    config : ReassemblyConfig
        A missing `hash_key` counts as 0: there is no randomness in here.

    Notes
    -----
    Invariant: that of both tables and of the ledger.
    """

    def __init__(self, config: ReassemblyConfig) -> None:
        self._config = config
        self._netfilter = config.path == "netfilter"
        self._policy = POLICIES[config.policy]
        self._options = Options(
            original=config.extent == "original",
            discard_duplicates=config.duplicates == "discard",
        )
        self._tables = {version: Table(Limits.of(config, version)) for version in (4, 6)}
        self._ledger = Ledger()
        self._ends = Ends(config, self._ledger)
        self._pushed = 0

    # -- what users call -----------------------------------------------------

    def push(self, packet: View | bytearray, time_ns: int, domain: int = 0) -> Outcome:
        """Take one packet, from its IP header on.

        Parameters
        ----------
        packet : bytes-like
            May be followed by link padding.
        time_ns : int
            When it was captured, nanoseconds.
        domain : int
            Key beyond IP, below 2**56; fragments of different domains never mix.

        Raises
        ------
        ValueError
            If the domain is out of range.
        """
        if not 0 <= domain < 1 << DOMAIN_BITS:
            raise ValueError(f"domain: {domain} is not below 2**{DOMAIN_BITS}")
        self._pushed += 1
        data = bytes(packet)
        return self.handle(data, time_ns, domain, number=self._pushed, cost=len(data))

    def handle(
        self,
        packet: View,
        time_ns: int,
        domain: int = 0,
        *,
        number: int,
        cost: int,
        frame: object = None,
    ) -> Outcome:
        """Take one packet of a capture.

        Parameters
        ----------
        packet : bytes or memoryview
            From the IP header to the end of the captured bytes, padding included.  It is kept by
            reference while the fragment is held, so its bytes must stay as they are.
        time_ns, domain
            As in :meth:`push`.
        number : int
            Frame number.
        cost : int
            Captured bytes of the whole frame, for the memory model of ``limits="capture"``.
        frame : object
            Kept with the fragment and handed back in :attr:`GivenUp.held`.

        Returns
        -------
        Outcome
            ``whole`` means: not a fragment, or let through by the netfilter path; write it
            unchanged, it does not count as a fragment.  `given_up` tells what ended before the
            outcome itself; its `held` never contains the current `frame`, its `frames` and
            `offsets` do if this fragment killed the datagram.
        """
        self._advance(time_ns)
        outcome = self._receive(Arrival(packet, time_ns, domain, number, cost, frame))
        outcome.given_up = tuple(self._ledger.ended())
        return outcome

    def advance(self, time_ns: int) -> list[GivenUp]:
        """Let time pass; return the datagrams given up by it."""
        self._advance(time_ns)
        return self._ledger.ended()

    def flush(self) -> list[GivenUp]:
        """Give up everything open (reason ``end``): no ICMP, no counters; time starts anew."""
        for table in self._tables.values():
            for queue in table.finish():
                self._ledger.give_up(queue, Reason.end)
        return self._ledger.ended()

    @property
    def counters(self) -> dict[str, int]:
        """The kernel's counters, summed over both families."""
        both = self._ledger.counters
        return {name: both[4][name] + both[6][name] for name in COUNTERS}

    @property
    def counters4(self) -> dict[str, int]:
        """The kernel's counters, IPv4 (``/proc/net/snmp``, ``netstat``)."""
        return dict(self._ledger.counters[4])

    @property
    def counters6(self) -> dict[str, int]:
        """The kernel's counters, IPv6 (``/proc/net/snmp6``)."""
        return dict(self._ledger.counters[6])

    @property
    def reasons(self) -> dict[str, int]:
        """Fragments by reason; reasons that did not occur are left out."""
        return {reason.name: count for reason, count in self._ledger.reasons.items() if count}

    @property
    def queues(self) -> int:
        """Open queues of both families, empty and poisoned ones included."""
        return sum(len(table.queues) for table in self._tables.values())

    @property
    def memory(self) -> int:
        """Bytes held by the cost model, both families."""
        return sum(table.memory for table in self._tables.values())

    def check(self) -> None:
        """Assert the invariant of everything, from scratch."""
        for table in self._tables.values():
            table.check()
        queues = [queue for table in self._tables.values() for queue in table.queues.values()]
        self._ledger.check(held=sum(len(queue.held) for queue in queues))

    # -- the paths of a packet -----------------------------------------------

    def _receive(self, arrival: Arrival) -> Outcome:
        packet = arrival.packet
        version = packet[0] >> 4 if len(packet) else 0
        if version == 4:
            return self._receive4(arrival)
        if version == 6:
            return self._receive6(arrival)
        return Outcome("dropped", reason=Reason.header.name)

    def _receive4(self, arrival: Arrival) -> Outcome:
        """Take an IPv4 packet (``ip_rcv_core``, ``ip_defrag``)."""
        parsed = ipv4.parse(arrival.packet, verify=self._config.verify_checksum)
        if isinstance(parsed, Rejected):
            return self._reject(4, parsed)
        if isinstance(parsed, Plain):
            return _whole(arrival.packet[: parsed.length])
        self._ledger.seen += 1
        self._ledger.count(4, "ReasmReqds")
        queue = self._lookup(arrival, parsed)
        if isinstance(queue, Outcome):
            return queue
        table = self._tables[4]
        if table.too_far(queue):  # draws a number also for what is dropped below
            self._ledger.count(4, "ReasmFails")
            self._ledger.give_up(queue, Reason.too_far)
            table.restart(queue, arrival.time)
        return self._queue(queue, arrival, parsed)

    def _receive6(self, arrival: Arrival) -> Outcome:
        """Take an IPv6 packet (``ip6_rcv_core``)."""
        located = ipv6.locate(arrival.packet)
        if isinstance(located, Rejected):
            return self._reject(6, located)
        if isinstance(located, Plain):
            return _whole(arrival.packet[: located.length])
        if self._netfilter:
            return self._receive6_netfilter(arrival, located)
        return self._receive6_local(arrival, located)

    def _receive6_local(self, arrival: Arrival, located: ipv6.Located) -> Outcome:
        """Take a packet with a fragment header (``ipv6_frag_rcv``, ``ip6_frag_queue``)."""
        self._ledger.seen += 1
        self._ledger.count(6, "ReasmReqds")
        packet, at = located.packet, located.at
        if located.payload == 0 or located.cut:
            return self._problem(Reason.fragment_header, packet, icmp.ERRONEOUS_FIELD, at)
        fragment = ipv6.read(located)
        if fragment.atomic:
            return self._deliver_atomic(arrival, fragment)
        if ipv6.chain_incomplete(packet, at):
            return self._problem(Reason.chain, packet, icmp.INCOMPLETE_CHAIN, 0)
        queue = self._lookup(arrival, fragment)
        if isinstance(queue, Outcome):
            return queue
        if queue.poisoned:
            return self._ledger.drop(Reason.abandoned)
        # Both leave the queue open, even if it was created for this fragment and is empty.
        if fragment.end > ipv6.MAX_PAYLOAD:
            return self._problem(Reason.oversize, packet, icmp.ERRONEOUS_FIELD, at + 2)
        if fragment.unaligned:
            return self._problem(Reason.unaligned, packet, icmp.ERRONEOUS_FIELD, 4)
        return self._queue(queue, arrival, fragment)

    def _receive6_netfilter(self, arrival: Arrival, located: ipv6.Located) -> Outcome:
        """Take a packet with a fragment header (``nf_ct_frag6_gather``, ``nf_ct_frag6_queue``).

        What it cannot judge passes on as if it were no fragment.  A fragment header cut short
        passes on too if its offset field is there and 0: then its header chain is incomplete.
        """
        if located.payload == 0 or ipv6.chain_incomplete(located.packet, located.at):
            return _whole(located.packet)
        self._ledger.seen += 1
        if located.cut:
            return self._ledger.drop(Reason.fragment_header)
        fragment = ipv6.read(located)
        queue = self._lookup(arrival, fragment)
        if isinstance(queue, Outcome):
            return queue
        if queue.poisoned:
            return self._ledger.drop(Reason.abandoned)
        if fragment.end > ipv6.MAX_PAYLOAD:
            return self._ledger.drop(Reason.oversize)
        if fragment.unaligned:
            return self._destroy_and_pass(queue, fragment)
        return self._queue(queue, arrival, fragment)

    def _destroy_and_pass(self, queue: Queue, fragment: Fragment) -> Outcome:
        """Destroy the queue and pass the fragment on unchanged (``-EPROTO``), uncounted.

        A queue that held nothing, as one just created for this fragment, leaves no trace.
        """
        self._tables[6].remove(queue)
        if queue.held:
            self._ledger.give_up(queue, Reason.unaligned)
        self._ledger.seen -= 1
        return _whole(fragment.packet)

    # -- one fragment and its queue ------------------------------------------

    def _lookup(self, arrival: Arrival, fragment: Fragment) -> Queue | Outcome:
        """Find or create the queue (``inet_frag_find``), or refuse the fragment."""
        version = fragment.version
        table = self._tables[version]
        protocol = fragment.protocol if version == 4 else 0
        key = Key(version, fragment.src, fragment.dst, protocol, fragment.ident, arrival.domain)
        admitted, evicted = table.admit(key)
        for queue in evicted:
            self._ends.evict(queue)
        if not admitted:
            self._ends.count_failure(version)
            return self._ledger.drop(Reason.memory)
        found = table.find(key)
        if found is not None and table.outlived(found, arrival.time):
            table.remove(found)
            self._ends.expire(found)
            found = None
        return found or table.open(key, fragment.protocol, arrival.time)

    def _queue(self, queue: Queue, arrival: Arrival, fragment: Fragment) -> Outcome:
        """Put a fragment into its queue, or refuse it (``ip_frag_queue`` and its IPv6 twins)."""
        if queue.poisoned:
            return self._ledger.drop(Reason.abandoned)
        decision = queue.decide(fragment, self._policy, self._options)
        if decision.reason is None:
            size = fragment_cost(self._config.limits, len(arrival.packet), arrival.cost)
            held = arrival.held(fragment, size)
            self._tables[fragment.version].accept(queue, held, decision)
            return self._complete(queue) if queue.complete else Outcome("held")
        if decision.reason is Reason.duplicate or self._stays(fragment, decision.reason):
            queue.note(decision)
            return self._ledger.drop(decision.reason)
        return self._kill(queue, decision.reason, arrival.held(fragment, 0))

    def _stays(self, fragment: Fragment, reason: Reason) -> bool:
        """Tell whether a refusal costs only the fragment: IPv6 netfilter, unless it overlaps."""
        return fragment.version == 6 and self._netfilter and reason is not Reason.overlap

    def _kill(self, queue: Queue, reason: Reason, killer: Held) -> Outcome:
        """Throw a queue away because of a fragment, and the fragment with it.

        Policy ``rfc5722`` remembers an overlap, since later fragments shall be discarded too.
        """
        version = queue.key.version
        overlap = reason is Reason.overlap
        self._ends.count_failure(version)
        if overlap and version == 4:
            self._ledger.count(4, "ReasmOverlaps")
        self._ledger.give_up(queue, reason, killer=killer)
        if overlap and self._config.policy == "rfc5722":
            self._tables[version].poison(queue)
        else:
            self._tables[version].remove(queue)
        return self._ledger.drop(reason)

    def _complete(self, queue: Queue) -> Outcome:
        """Deliver a complete queue, or find that it must not be (``ip_frag_reasm``)."""
        version = queue.key.version
        self._tables[version].remove(queue)
        datagram = build(queue, runs=self._config.policy == "linux")
        if isinstance(datagram, Reason):
            self._ends.count_failure(version)
            return self._fail(queue, datagram)
        if version == 4 or not self._netfilter:
            self._ledger.count(version, "ReasmOKs")
        error, nested = self._nested(datagram)
        if nested:
            return self._fail(queue, Reason.nested, error)
        self._ledger.used += len(queue.held)
        return Outcome("complete", packet=datagram.packet, datagram=datagram)

    def _fail(self, queue: Queue, reason: Reason, error: IcmpError | None = None) -> Outcome:
        """Give up a queue that the current fragment has just completed."""
        self._ledger.give_up(queue, reason, killer=queue.held[-1])
        return self._ledger.drop(reason, error)

    def _deliver_atomic(self, arrival: Arrival, fragment: Fragment) -> Outcome:
        """Deliver an atomic fragment alone, its header still in place (RFC 6946)."""
        self._ledger.count(6, "ReasmOKs")
        datagram = atomic(arrival.held(fragment, 0), arrival.domain)
        error, nested = self._nested(datagram)
        if nested:
            return self._ledger.drop(Reason.nested, error)
        self._ledger.used += 1
        return Outcome("complete", packet=datagram.packet, datagram=datagram)

    def _nested(self, datagram: Datagram) -> tuple[IcmpError | None, bool]:
        """Look for a second fragment header (``ipv6_frag_rcv``, IP6SKB_FRAGMENTED).

        The local path delivers first (ReasmOKs) and meets it when it goes on in the headers;
        netfilter hands the datagram over without looking inside.
        """
        if datagram.version == 4 or self._netfilter:
            return None, False
        packet = datagram.packet
        start = len(packet) - datagram.length
        at = ipv6.nested_header(packet, start, datagram.protocol)
        if at is None:
            return None, False
        self._ledger.count(6, "InHdrErrors")
        return icmp.parameter_problem(packet, icmp.ERRONEOUS_FIELD, at), True

    # -- time and refusals ---------------------------------------------------

    def _advance(self, time: int) -> None:
        for table in self._tables.values():
            abandoned, expired = table.advance(time)
            for queue in abandoned:
                self._ends.expire(queue, answer=False)
            for queue in expired:
                self._ends.expire(queue)

    def _reject(self, version: int, rejected: Rejected) -> Outcome:
        """Drop a packet before reassembly; only a fragment's reason is counted."""
        self._ledger.count(version, *rejected.counters)
        if not rejected.fragment:
            return Outcome("dropped", reason=rejected.reason.name)
        self._ledger.seen += 1
        return self._ledger.drop(rejected.reason)

    def _problem(self, reason: Reason, packet: View, code: int, pointer: int) -> Outcome:
        """Drop an IPv6 fragment and answer with a parameter problem."""
        self._ledger.count(6, "InHdrErrors")
        return self._ledger.drop(reason, icmp.parameter_problem(packet, code, pointer))


def _whole(packet: View) -> Outcome:
    return Outcome("whole", packet=bytes(packet))
