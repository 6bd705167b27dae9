"""Builders for tests: packets, fragments, frames, capture files, and a clock.

Nothing here is needed to use the package; it is here for whoever tests a program that does.

Examples
--------
A capture of one datagram in three fragments:

>>> from fragtrack.testing import ethernet, fragment, ipv4, pcap, udp
>>> whole = ipv4(udp(b"A" * 100))
>>> frames = [ethernet(piece) for piece in fragment(whole, sizes=[48, 48])]
>>> data = pcap([(at * 1_000_000, frame) for at, frame in enumerate(frames)])
>>> len(data)
282
"""

from __future__ import annotations

from fragtrack.testing.builders import (
    ATOMIC,
    Extension,
    destination_options,
    fragment,
    fragment_header,
    hop_by_hop,
    ipv4,
    ipv6,
    ipv6_fragment,
    options_header,
    routing,
)
from fragtrack.testing.captures import (
    Option,
    Pcapng,
    comment,
    pcap,
    pcap_header,
    pcap_record,
)
from fragtrack.testing.clock import VirtualClock
from fragtrack.testing.links import (
    cisco_hdlc,
    ethernet,
    mpls,
    null,
    ppp,
    pppoe,
    sll,
    sll2,
)
from fragtrack.testing.transport import checksum, icmp_echo, icmpv6_echo, pattern, udp

__all__ = [
    "ATOMIC",
    "Extension",
    "Option",
    "Pcapng",
    "VirtualClock",
    "checksum",
    "cisco_hdlc",
    "comment",
    "destination_options",
    "ethernet",
    "fragment",
    "fragment_header",
    "hop_by_hop",
    "icmp_echo",
    "icmpv6_echo",
    "ipv4",
    "ipv6",
    "ipv6_fragment",
    "mpls",
    "null",
    "options_header",
    "pattern",
    "pcap",
    "pcap_header",
    "pcap_record",
    "ppp",
    "pppoe",
    "routing",
    "sll",
    "sll2",
    "udp",
]
