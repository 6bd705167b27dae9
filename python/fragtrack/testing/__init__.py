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
from fragtrack.testing.chunks import (
    crc32c,
    sctp,
    sctp_abort,
    sctp_chunk,
    sctp_cookie_ack,
    sctp_cookie_echo,
    sctp_data,
    sctp_heartbeat,
    sctp_init,
    sctp_init_ack,
    sctp_sack,
    sctp_shutdown,
    sctp_shutdown_ack,
    sctp_shutdown_complete,
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
from fragtrack.testing.segments import (
    gre,
    icmp_error,
    icmp_query,
    icmpv6_error,
    icmpv6_query,
    icmpv6_redirect,
    tcp,
    tcp_flags,
    tcp_options,
    udplite,
)
from fragtrack.testing.talk import Endpoint, Talk
from fragtrack.testing.transport import checksum, icmp_echo, icmpv6_echo, pattern, udp

__all__ = [
    "ATOMIC",
    "Endpoint",
    "Extension",
    "Option",
    "Pcapng",
    "Talk",
    "VirtualClock",
    "checksum",
    "cisco_hdlc",
    "comment",
    "crc32c",
    "destination_options",
    "ethernet",
    "fragment",
    "fragment_header",
    "gre",
    "hop_by_hop",
    "icmp_echo",
    "icmp_error",
    "icmp_query",
    "icmpv6_echo",
    "icmpv6_error",
    "icmpv6_query",
    "icmpv6_redirect",
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
    "sctp",
    "sctp_abort",
    "sctp_chunk",
    "sctp_cookie_ack",
    "sctp_cookie_echo",
    "sctp_data",
    "sctp_heartbeat",
    "sctp_init",
    "sctp_init_ack",
    "sctp_sack",
    "sctp_shutdown",
    "sctp_shutdown_ack",
    "sctp_shutdown_complete",
    "sll",
    "sll2",
    "tcp",
    "tcp_flags",
    "tcp_options",
    "udp",
    "udplite",
]
