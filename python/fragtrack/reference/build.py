"""From a complete queue to the datagram (``ip_frag_reasm``, ``ip6_frag_reasm``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fragtrack.events import Datagram, Reason
from fragtrack.reference import ipv6
from fragtrack.reference.fragment import address_text
from fragtrack.reference.ipv4 import DONT_FRAGMENT, checksum

if TYPE_CHECKING:
    from fragtrack.reference.queue import Held, Queue

MAX_LENGTH: Final = 65_535

NOT_ECT, ECT_1, ECT_0, CE = 1 << 0, 1 << 1, 1 << 2, 1 << 3
# ip_frag_ecn_table (RFC 3168, 5.3): the set of codepoints met -> bits to add to the first
# fragment's.  A set that is not listed mixes not-ECT with others and drops the datagram.
ECN_TABLE: Final = {
    NOT_ECT: 0,
    ECT_0: 0,
    ECT_1: 0,
    CE: 0,
    ECT_0 | ECT_1: 0,
    CE | ECT_0: 3,
    CE | ECT_1: 3,
    CE | ECT_0 | ECT_1: 3,
}


def build(queue: Queue, *, runs: bool) -> Datagram | Reason:
    """Put a complete datagram together, or return why it must be dropped."""
    head = queue.first_fragment()
    assert head is not None
    if queue.ecn not in ECN_TABLE:
        return Reason.ecn
    header = head.fragment.header
    # IPv4 counts the first fragment's header; IPv6 only what follows the fixed header.
    counted = header if queue.key.version == 4 else header - ipv6.FIXED_HEADER
    if counted + queue.length > MAX_LENGTH:
        return Reason.oversize
    spans = queue.spans(runs=runs)
    payload = b"".join(held.bytes_of(start, end) for start, end, held in spans)
    make = _header4 if queue.key.version == 4 else _header6
    frames = tuple(dict.fromkeys(held.number for _, _, held in spans))
    return Datagram(
        version=queue.key.version,
        src=address_text(queue.key.src),
        dst=address_text(queue.key.dst),
        protocol=head.fragment.protocol,
        id=queue.key.ident,
        domain=queue.key.domain,
        frames=frames,
        fragments=len(frames),
        time_first=queue.held[0].time,
        time_last=queue.held[-1].time,
        length=len(payload),
        payload=payload,
        packet=make(queue, head, len(payload)) + payload,
    )


def atomic(held: Held, domain: int) -> Datagram:
    """Return an atomic fragment as the datagram it is; the packet keeps its fragment header."""
    fragment = held.fragment
    packet = bytes(fragment.packet)
    payload = packet[fragment.data :]
    return Datagram(
        version=fragment.version,
        src=address_text(fragment.src),
        dst=address_text(fragment.dst),
        protocol=fragment.protocol,
        id=fragment.ident,
        domain=domain,
        frames=(held.number,),
        fragments=1,
        time_first=held.time,
        time_last=held.time,
        length=len(payload),
        payload=payload,
        packet=packet,
    )


def _header4(queue: Queue, head: Held, length: int) -> bytes:
    """Return the first fragment's header with length, ECN, flags and checksum renewed.

    DF is set exactly if a fragment with DF was as large as the largest of all; the reserved bit is
    cleared.
    """
    header = bytearray(head.fragment.packet[: head.fragment.header])
    header[1] |= ECN_TABLE[queue.ecn]
    header[2:4] = (len(header) + length).to_bytes(2, "big")
    flags = DONT_FRAGMENT if queue.largest_df == queue.largest else 0
    header[6:8] = flags.to_bytes(2, "big")
    header[10:12] = b"\0\0"
    header[10:12] = checksum(bytes(header)).to_bytes(2, "big")
    return bytes(header)


def _header6(queue: Queue, head: Held, length: int) -> bytes:
    """Return the first fragment's unfragmentable part with length, ECN and next header renewed."""
    fragment = head.fragment
    header = bytearray(fragment.packet[: fragment.header])
    header[1] |= ECN_TABLE[queue.ecn] << 4
    header[4:6] = (len(header) - ipv6.FIXED_HEADER + length).to_bytes(2, "big")
    header[fragment.next_header] = fragment.protocol
    return bytes(header)
