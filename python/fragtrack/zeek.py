"""The Zeek view of connections: settings, and the rows of a conn.log.

Plain data, shared by both backends. Times are nanoseconds, lengths bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from fragtrack.checks import check_number, check_seconds
from fragtrack.errors import ConfigError

_NANOSECONDS: Final = 1_000_000_000
_LONGEST: Final = (1 << 31) - 1  # seconds
_MOST: Final = 1 << 28  # flows

HISTORY_LIMIT: Final = 62
"""Letters a history holds; the next one becomes an ``x`` (``X``), the last."""
PIECES_LIMIT: Final = 64
"""Pieces of a TCP stream that may stand beyond holes, one side of a connection. With more the
search for gaps in that side is given up, with an ``x`` (``X``) in the history."""

TCP_SERVER_PORTS: Final = frozenset(
    {
        *(21, 22, 25, 26, 53, 79, 80, 81, 88, 110, 135, 139, 143, 389, 443, 445, 502, 563, 585),
        *(587, 614, 631, 636, 853, 989, 990, 992, 993, 995, 1080, 1434, 1883, 2811, 3128, 3268),
        *(3306, 3389, 5222, 5223, 5269, 5432, 5900, 6379, 6666, 6667, 6668, 6669, 8000, 8080),
        *(8888, 20000),
    }
)
"""TCP ports that the scripts Zeek loads by default add to ``likely_server_ports``."""
UDP_SERVER_PORTS: Final = frozenset(
    {
        *(53, 67, 88, 123, 137, 161, 162, 389, 443, 514, 547, 1194, 1812, 2123, 2152, 3544),
        *(4789, 5060, 5072, 5353, 5355, 6081, 20000),
    }
)
"""UDP ports of the same list."""
INTERACTIVE_PORTS: Final = frozenset({21, 22, 23, 513})
"""TCP ports whose established connections may rest for longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeekConfig:
    """How the Zeek view follows connections; the defaults are Zeek's.

    Parameters
    ----------
    max : int
        Flows open at once. One more ends the flow that has rested for longest.
    tcp_inactivity_timeout, udp_inactivity_timeout, icmp_inactivity_timeout, \
unknown_ip_inactivity_timeout : float
        Seconds without a packet after which a flow ends. A TCP flow starts with that of UDP, until
        its handshake is over.
    interactive_inactivity_timeout : float
        The same for an established connection to one of the `interactive_ports`.
    tcp_syn_timeout : float
        Seconds after which a TCP flow is looked at for the first time.
    tcp_attempt_delay : float
        Seconds an unanswered SYN is waited for.
    tcp_close_delay, tcp_reset_delay : float
        Seconds a flow stays once both sides closed; once one side sent a RST after its FIN.
    tcp_session_timer, tcp_connection_linger : float
        A flow with one closed side is looked at every so many seconds, and ends if it rested for so
        many.
    tcp_partial_close_delay : float
        Seconds a flow stays of which one side is known by nothing but its FIN.
    partial_close : bool
        Whether that delay applies: in Zeek it does only if a script handles the event
        ``connection_partial_close``, which none of its own scripts does.
    tcp_server_ports, udp_server_ports : frozenset of int
        Ports of likely servers: a flow that seems to start at one is flipped.
    interactive_ports : frozenset of int
        See above.
    icmp_by_type : bool
        Whether an ICMP reply without its request makes its sender the responder. Zeek takes the
        sender of the first packet for the originator, whatever its type.
    uid_key : int
        128-bit key of the hash that gives connections their ``uid``.

    Raises
    ------
    ConfigError
        A value that cannot work.
    """

    max: int = 262_144
    tcp_inactivity_timeout: float = 300
    udp_inactivity_timeout: float = 60
    icmp_inactivity_timeout: float = 60
    unknown_ip_inactivity_timeout: float = 60
    interactive_inactivity_timeout: float = 3600
    tcp_syn_timeout: float = 5
    tcp_attempt_delay: float = 5
    tcp_close_delay: float = 5
    tcp_reset_delay: float = 5
    tcp_session_timer: float = 6
    tcp_connection_linger: float = 5
    tcp_partial_close_delay: float = 3
    partial_close: bool = False
    tcp_server_ports: frozenset[int] = TCP_SERVER_PORTS
    udp_server_ports: frozenset[int] = UDP_SERVER_PORTS
    interactive_ports: frozenset[int] = INTERACTIVE_PORTS
    icmp_by_type: bool = True
    uid_key: int = 0

    def __post_init__(self) -> None:
        """Check every value."""
        check_number("max", self.max, 1, _MOST)
        check_number("uid_key", self.uid_key, 0, (1 << 128) - 1)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "float":
                check_seconds(field.name, value, _LONGEST)
            elif field.type == "bool" and not isinstance(value, bool):
                raise ConfigError(f"{field.name} is {value!r}; it must be True or False")
            elif field.type == "frozenset[int]":
                for port in value:
                    check_number(field.name, port, 0, 0xFFFF)

    def nanoseconds(self, name: str) -> int:
        """Give a time, ``tcp_close_delay`` for example, in nanoseconds."""
        return round(float(getattr(self, name)) * _NANOSECONDS)


@dataclass(frozen=True, slots=True)
class ZeekRow:
    """One connection, as a line of Zeek's conn.log.

    What only a protocol analyzer could tell (``service``), or a list of local networks
    (``local_orig``, ``local_resp``), or the inside of tunnels (``tunnel_parents``), is not here.

    Attributes
    ----------
    ts : int
        Time stamp of the first packet, ns.
    uid : str
        Identifier, ``C`` and 17 digits of base 62. The same input and key give the same.
    orig_h, orig_p, resp_h, resp_p : str, int
        Originator and responder. For ICMP the ports are the type of what the originator sends, and
        the type of the answer, or the code where there is no answer. For protocols without ports
        both are the protocol number.
    proto : str
        ``tcp``, ``udp``, ``icmp`` (ICMPv6 as well), ``unknown_transport``.
    duration : int or None
        From the first to the last packet, ns; None if that is no time. Packets behind the close of
        both sides do not prolong it.
    orig_bytes, resp_bytes : int or None
        Payload, for TCP by sequence numbers; None without a duration.
    conn_state : str
        One of S0 S1 SF REJ S2 S3 RSTO RSTR RSTOS0 RSTRH SH SHR OTH.
    missed_bytes : int
        Bytes of TCP payload that were acknowledged and not seen.
    history : str or None
        What happened, in order; None for nothing.
    orig_pkts, orig_ip_bytes, resp_pkts, resp_ip_bytes : int
        Packets, and their lengths by the IP header.
    ip_proto : int
        Number of the IP protocol.
    """

    ts: int
    uid: str
    orig_h: str
    orig_p: int
    resp_h: str
    resp_p: int
    proto: str
    duration: int | None
    orig_bytes: int | None
    resp_bytes: int | None
    conn_state: str
    missed_bytes: int
    history: str | None
    orig_pkts: int
    orig_ip_bytes: int
    resp_pkts: int
    resp_ip_bytes: int
    ip_proto: int
