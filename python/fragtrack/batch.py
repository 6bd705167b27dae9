"""Many packets with one call, where the backend has no call of its own for that.

The native `Batch` leaves payloads where they are and says where; this one, made packet by packet,
has copied them already, so that all its slices lie in `side`.
"""

from __future__ import annotations

from array import array
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from fragtrack.events import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fragtrack.events import GivenUp, Outcome

KINDS = ("whole", "held", "complete", "dropped")
"""By their number in `Batch.kinds`."""


class Batch:
    """What became of a batch of packets.

    Attributes
    ----------
    kinds
        A number per packet: 0 whole, 1 held, 2 complete, 3 dropped.
    reasons
        The code of the `Reason` per packet; 0 if it was not dropped.
    completed
        Which packets (from 0, within the batch) completed a datagram.
    headers, header_ends
        Headers of the whole datagrams one after the other, and where each ends.
    slice_places, slice_lengths, slice_sources, slice_ends
        Payload slices: where each starts, its bytes, whether it lies in the buffer (0) or in `side`
        (1); and where the slices of each datagram end.
    side
        Payloads that lie in no buffer of the caller: of fragments from earlier batches, at least.
    packets, packet_ends
        Whole datagrams from the IP header on one after the other, and where each ends. They are put
        together when `packets` is first asked for; until then the buffer must stay as it is.
    given_up
        Datagrams that ended incomplete, in the order of their ending.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self.kinds = memoryview(bytes(KINDS.index(outcome.kind) for outcome in outcomes))
        self.reasons = memoryview(
            bytes(Reason[outcome.reason] if outcome.reason else 0 for outcome in outcomes)
        )
        self.given_up: list[GivenUp] = [gone for outcome in outcomes for gone in outcome.given_up]
        completed, self._packets = array("I"), list[bytes]()
        headers, payloads = list[bytes](), list[bytes]()
        for at, outcome in enumerate(outcomes):
            whole = outcome.datagram
            if whole is not None and outcome.packet is not None:
                completed.append(at)
                self._packets.append(outcome.packet)
                headers.append(outcome.packet[: len(outcome.packet) - whole.length])
                payloads.append(whole.payload)
        self.completed = memoryview(completed).toreadonly()
        self.packet_ends = _ends(self._packets)
        self.headers, self.header_ends = b"".join(headers), _ends(headers)
        self.side, ends = b"".join(payloads), _ends(payloads)
        lengths = [len(payload) for payload in payloads]
        starts = [end - length for end, length in zip(ends, lengths, strict=True)]
        self.slice_places = _wide(starts)
        self.slice_lengths = memoryview(array("I", lengths)).toreadonly()
        self.slice_sources = memoryview(bytes([1] * len(lengths)))
        self.slice_ends = _wide(range(1, len(lengths) + 1))

    @cached_property
    def packets(self) -> bytes:
        """Whole datagrams, one after the other."""
        return b"".join(self._packets)

    def __len__(self) -> int:
        """Give the number of whole datagrams."""
        return len(self._packets)

    def packet(self, i: int) -> bytes:
        """Give the `i`-th whole datagram, from its IP header on.

        Raises
        ------
        IndexError
            If there are not as many.
        """
        if not 0 <= i < len(self._packets):
            raise IndexError(f"there are {len(self._packets)} datagrams")
        return self._packets[i]

    def __repr__(self) -> str:
        """Show how much it is."""
        return f"Batch({len(self.kinds)} packets, {len(self)} whole datagrams)"


def push_each(
    push: Callable[[bytes, int, int], Outcome],
    buffer: bytes,
    offsets: Sequence[int],
    lengths: Sequence[int],
    times_ns: Sequence[int],
    *,
    domain: int = 0,
) -> Batch:
    """Push packet by packet; parameters as `fragtrack.Reassembler.push_batch`.

    Raises
    ------
    ValueError
        If the columns differ in length, or a packet lies outside the buffer; nothing is pushed.
    """
    counts = len(offsets), len(lengths), len(times_ns)
    if len(set(counts)) > 1:
        first, second, third = counts
        raise ValueError(
            f"offsets, lengths and times must be equally long, not {first}, {second} and {third}"
        )
    view = memoryview(buffer).cast("B")
    for at, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
        if offset < 0 or length < 0 or offset + length > len(view):
            raise ValueError(f"packet {at} lies outside the buffer of {len(view)} bytes")
    rows = zip(offsets, lengths, times_ns, strict=True)
    outcomes = [push(bytes(view[at : at + size]), time, domain) for at, size, time in rows]
    return Batch(outcomes)


def _ends(parts: Sequence[bytes]) -> memoryview:
    """Tell where each part ends when they are joined."""
    return _wide(accumulate(map(len, parts)))


def _wide(numbers: Iterable[int]) -> memoryview:
    return memoryview(array("Q", numbers)).toreadonly()
