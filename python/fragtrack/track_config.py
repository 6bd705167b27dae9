"""Settings of connection tracking, checked once, when they are made.

The fields are the kernel's sysctls without their prefix ``net.netfilter.nf_conntrack_``, plus what
only a program that reads captures needs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from fragtrack.checks import check_number, check_one_of, check_seconds
from fragtrack.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

PROFILES: Final = ("linux-6.18", "pre-6.1")
CHECKSUMS: Final = ("offload", "verify", "ignore")
ZONES: Final = ("vlan", "none")
RST_INEXACT: Final = ("close", "unacknowledged")

_NANOSECONDS: Final = 1_000_000_000
_LONGEST: Final = (1 << 31) - 1  # seconds: what a sysctl holds
_MOST: Final = 1 << 28  # connections
PREFIXES: Final = ("net.netfilter.", "net/netfilter/", "netfilter/", "nf_conntrack_")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackConfig:
    """How connections are followed.

    Parameters
    ----------
    profile : str
        Whose rules: ``linux-6.18``, or ``pre-6.1``, where segments and acknowledgments below the
        window are invalid instead of ignored.
    checksum : str
        ``offload``: a wrong checksum is invalid (``nf_conntrack_checksum`` = 1), but one that the
        sender left to its network card is not; ``verify``: no exception; ``ignore``: none is
        looked at.
    zones : str
        ``vlan``: connections of different VLANs never mix; ``none``: VLAN tags do not matter.
    max : int
        Connections in the table (``nf_conntrack_max``).
    gap_tolerant : bool
        Where the capture lacks packets, learn the windows anew instead of calling everything
        behind the gap invalid.
    tcp_loose, tcp_be_liberal, tcp_ignore_invalid_rst : bool
        As the sysctls.
    tcp_max_retrans : int
        Identical segments after which the timeout is cut.
    rst_inexact_timeout : str
        Which timeout a reset with an inexact number leaves: ``close`` (6.1 and 6.18), or
        ``unacknowledged`` (6.12).
    tcp_timeout_*, udp_timeout*, icmp_timeout, icmpv6_timeout, sctp_timeout_*, gre_timeout*, \
generic_timeout : float
        Seconds.
    hash_key : int or None
        128-bit key of the hash that spreads connections over buckets.

    Raises
    ------
    ConfigError
        A value that cannot work; the message names it and what is accepted.
    """

    profile: str = "linux-6.18"
    checksum: str = "offload"
    zones: str = "vlan"
    max: int = 262_144
    gap_tolerant: bool = False
    tcp_loose: bool = True
    tcp_be_liberal: bool = False
    tcp_ignore_invalid_rst: bool = False
    tcp_max_retrans: int = 3
    rst_inexact_timeout: str = "close"
    tcp_timeout_syn_sent: float = 120
    tcp_timeout_syn_recv: float = 60
    tcp_timeout_established: float = 432_000
    tcp_timeout_fin_wait: float = 120
    tcp_timeout_close_wait: float = 60
    tcp_timeout_last_ack: float = 30
    tcp_timeout_time_wait: float = 120
    tcp_timeout_close: float = 10
    tcp_timeout_max_retrans: float = 300
    tcp_timeout_unacknowledged: float = 300
    udp_timeout: float = 30
    udp_timeout_stream: float = 120
    icmp_timeout: float = 30
    icmpv6_timeout: float = 30
    sctp_timeout_closed: float = 10
    sctp_timeout_cookie_wait: float = 3
    sctp_timeout_cookie_echoed: float = 3
    sctp_timeout_established: float = 210
    sctp_timeout_shutdown_sent: float = 3
    sctp_timeout_shutdown_recd: float = 3
    sctp_timeout_shutdown_ack_sent: float = 3
    sctp_timeout_heartbeat_sent: float = 30
    gre_timeout: float = 30
    gre_timeout_stream: float = 180
    generic_timeout: float = 600
    hash_key: int | None = None

    def __post_init__(self) -> None:
        """Check every value."""
        check_one_of("profile", self.profile, PROFILES)
        check_one_of("checksum", self.checksum, CHECKSUMS)
        check_one_of("zones", self.zones, ZONES)
        check_one_of("rst_inexact_timeout", self.rst_inexact_timeout, RST_INEXACT)
        check_number("max", self.max, 1, _MOST)
        check_number("tcp_max_retrans", self.tcp_max_retrans, 0, 255)
        if self.hash_key is not None:
            check_number("hash_key", self.hash_key, 0, (1 << 128) - 1)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "bool" and not isinstance(value, bool):
                raise ConfigError(f"{field.name} is {value!r}; it must be True or False")
            if field.type == "float":
                check_seconds(field.name, value, _LONGEST)

    def nanoseconds(self, name: str) -> int:
        """Give a timeout, ``tcp_timeout_close`` for example, in nanoseconds."""
        return round(float(getattr(self, name)) * _NANOSECONDS)

    def set(self, assignments: Mapping[str, object]) -> TrackConfig:
        """Give a copy with values as text, as ``sysctl`` and ``--set NAME=VALUE`` write them.

        Names may have the kernel's prefix. ``nf_conntrack_checksum`` may be 0 or 1.

        Raises
        ------
        ConfigError
            If a name is unknown or a value cannot be.

        Examples
        --------
        >>> TrackConfig().set({"nf_conntrack_tcp_loose": "0"}).tcp_loose
        False
        """
        known = {field.name: field.type for field in fields(self)}
        changes: dict[str, Any] = {}
        for given, text in assignments.items():
            name = _bare(given)
            if name not in known:
                raise ConfigError(f"{given}: no such setting; there are {', '.join(known)}")
            changes[name] = _read(name, str(known[name]), text)
        return replace(self, **changes)


def _bare(name: str) -> str:
    """Take the kernel's prefixes off a name."""
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _read(name: str, kind: str, given: object) -> object:
    text = str(given)
    if name == "checksum" and text in {"0", "1"}:
        return "verify" if text == "1" else "ignore"
    if kind == "bool":
        if text.lower() not in {"0", "1", "false", "true", "no", "yes", "off", "on"}:
            raise ConfigError(f"{name} is {text!r}; it must be 0 or 1")
        return text.lower() in {"1", "true", "yes", "on"}
    if kind.startswith(("int", "float")):
        whole = kind.startswith("int")
        try:
            return int(text, 0) if whole else float(text)
        except ValueError:
            wanted = "a whole number" if whole else "a number"
            raise ConfigError(f"{name} is {text[:40]!r}; it must be {wanted}") from None
    return text
