"""IPv4 header: what ``ip_rcv_core`` checks before a fragment is looked at."""

from __future__ import annotations

from fragtrack.events import Reason
from fragtrack.reference.fragment import Fragment, Plain, Rejected, View

FIXED_HEADER = 20
MORE_FRAGMENTS = 0x2000
DONT_FRAGMENT = 0x4000
OFFSET = 0x1FFF


def is_fragment(packet: View) -> bool:
    """Tell whether MF or an offset is set; needs 8 of the 20 header bytes' meaning."""
    return len(packet) >= FIXED_HEADER and bool(_field(packet) & (MORE_FRAGMENTS | OFFSET))


def parse(packet: View, *, verify: bool) -> Fragment | Plain | Rejected:
    """Read a packet whose version nibble is 4.

    Parameters
    ----------
    packet : bytes or memoryview
        From the IP header on; may be followed by link padding.
    verify : bool
        Whether a wrong header checksum drops the packet.
    """
    rejected = _rejected(packet, verify=verify)
    if rejected is not None:
        return rejected
    header = (packet[0] & 15) * 4
    length = _total_length(packet)
    if not is_fragment(packet):
        return Plain(length)
    field = _field(packet)
    start = (field & OFFSET) * 8
    size = length - header
    if field & MORE_FRAGMENTS:
        size &= ~7  # ip_frag_queue: the end is rounded down, the tail discarded
    return Fragment(
        version=4,
        src=bytes(packet[12:16]),
        dst=bytes(packet[16:20]),
        protocol=packet[9],
        ident=int.from_bytes(packet[4:6], "big"),
        start=start,
        end=start + size,
        more=bool(field & MORE_FRAGMENTS),
        ecn=packet[1] & 3,
        dont_fragment=bool(field & DONT_FRAGMENT),
        packet=packet[:length],
        header=header,
        data=header,
        next_header=0,
    )


def _rejected(packet: View, *, verify: bool) -> Rejected | None:
    """Return why the packet is dropped, in the order of ``ip_rcv_core``."""
    if len(packet) < FIXED_HEADER:
        return Rejected(Reason.truncated, ("InHdrErrors",), fragment=False)
    fragment = is_fragment(packet)
    header = (packet[0] & 15) * 4
    length = _total_length(packet)
    if header < FIXED_HEADER:
        return Rejected(Reason.header, ("InHdrErrors",), fragment)
    if len(packet) < header:
        # Cut off inside the header: the kernel counts a header error, not a truncated packet.
        return Rejected(Reason.truncated, ("InHdrErrors",), fragment)
    if verify and checksum(packet[:header]) != 0:
        return Rejected(Reason.checksum, ("InHdrErrors", "InCsumErrors"), fragment)
    if len(packet) < length:
        return Rejected(Reason.truncated, ("InTruncatedPkts",), fragment)
    if length < header:
        return Rejected(Reason.header, ("InHdrErrors",), fragment)
    return None


def checksum(data: View) -> int:
    """Return the Internet checksum of an even number of bytes (RFC 1071)."""
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _total_length(packet: View) -> int:
    return int.from_bytes(packet[2:4], "big")


def _field(packet: View) -> int:
    return int.from_bytes(packet[6:8], "big")
