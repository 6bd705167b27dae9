"""Settings of a reassembler, checked once, when they are made."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

from fragtrack.checks import check_number, check_one_of, check_seconds
from fragtrack.errors import ConfigError

POLICIES: Final = (
    "linux",
    "rfc5722",
    "first",
    "last",
    "bsd",
    "bsd-right",
    "linux-old",
    "windows",
    "solaris",
)
PATHS: Final = ("local", "netfilter")
LIMITS: Final = ("capture", "kernel")
RECLAIMS: Final = ("refuse", "lru", "bucket-oldest", "fair")
CHECKSUMS: Final = ("verify", "ignore")
DUPLICATES: Final = ("ignore", "discard")
EXTENTS: Final = ("piece", "original")

CAPTURE_MEMORY: Final = 512 << 20
KERNEL_MEMORY: Final = 4 << 20
KERNEL_MAX_DIST: Final = 64
_NANOSECONDS: Final = 1_000_000_000
_LONGEST: Final = 1_000_000_000  # seconds: about 30 years, so that a deadline fits 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassemblyConfig:
    """How fragments are put together.

    Parameters
    ----------
    policy : str
        Who wins where fragments overlap; one of :data:`POLICIES`.
    path : str
        ``local``: the reassembly of local delivery; ``netfilter``: the one in
        front of connection tracking, which differs for IPv6.
    limits : str
        ``capture``: everything that can be put together; ``kernel``: what the
        host would have done.
    timeout4, timeout6 : float
        Seconds a datagram may stay incomplete (``ipfrag_time``,
        ``ip6frag_time``).
    memory : int or None
        Bytes per family (``ipfrag_high_thresh``); None is 512 MiB for
        ``capture`` and 4 MiB for ``kernel``.
    max_dist : int or None
        IPv4: how many fragments of the same source may come in between
        (``ipfrag_max_dist``); 0 is off; None is 0 or 64.
    reclaim : str or None
        What happens at the memory limit; one of :data:`RECLAIMS`; None is
        ``fair`` or ``refuse``.
    checksum : str or None
        Whether a wrong IPv4 header checksum drops the packet; None is
        ``ignore`` or ``verify``.
    duplicates : str
        Only for policy ``rfc5722``: whether an exact duplicate is ignored, or
        discards the datagram.
    extent : str
        Only for policies ``windows`` and ``bsd-right``: what the new fragment
        is compared with, the piece still held or the fragment it came from.
    local : tuple of str or None
        The host's own networks; None: every destination.  Only decides about
        the ICMP error of path ``netfilter``, IPv4.
    hash_key : int or None
        128-bit key of the hash that spreads datagrams over buckets.

    Raises
    ------
    ConfigError
        A value that cannot work; the message names it.
    """

    policy: str = "linux"
    path: str = "local"
    limits: str = "capture"
    timeout4: float = 30.0
    timeout6: float = 60.0
    memory: int | None = None
    max_dist: int | None = None
    reclaim: str | None = None
    checksum: str | None = None
    duplicates: str = "ignore"
    extent: str = "piece"
    local: tuple[str, ...] | None = None
    hash_key: int | None = None

    def __post_init__(self) -> None:
        """Check every value."""
        check_one_of("policy", self.policy, POLICIES)
        check_one_of("path", self.path, PATHS)
        check_one_of("limits", self.limits, LIMITS)
        check_one_of("duplicates", self.duplicates, DUPLICATES)
        check_one_of("extent", self.extent, EXTENTS)
        if self.reclaim is not None:
            check_one_of("reclaim", self.reclaim, RECLAIMS)
        if self.checksum is not None:
            check_one_of("checksum", self.checksum, CHECKSUMS)
        check_seconds("timeout4", self.timeout4, _LONGEST)
        check_seconds("timeout6", self.timeout6, _LONGEST)
        if self.memory is not None:
            check_number("memory", self.memory, 0, 1 << 62)
        if self.max_dist is not None:
            check_number("max_dist", self.max_dist, 0, (1 << 32) - 1)
        if self.hash_key is not None:
            check_number("hash_key", self.hash_key, 0, (1 << 128) - 1)
        if self.local is not None:
            object.__setattr__(self, "local", _networks(self.local))

    @property
    def timeout4_ns(self) -> int:
        """The IPv4 timeout in nanoseconds."""
        return max(1, round(self.timeout4 * _NANOSECONDS))

    @property
    def timeout6_ns(self) -> int:
        """The IPv6 timeout in nanoseconds."""
        return max(1, round(self.timeout6 * _NANOSECONDS))

    @property
    def memory_limit(self) -> int:
        """The memory limit in bytes per family."""
        if self.memory is not None:
            return self.memory
        return KERNEL_MEMORY if self.limits == "kernel" else CAPTURE_MEMORY

    @property
    def max_distance(self) -> int:
        """The fragment distance allowed; 0 is off."""
        if self.max_dist is not None:
            return self.max_dist
        return KERNEL_MAX_DIST if self.limits == "kernel" else 0

    @property
    def reclaim_name(self) -> str:
        """What happens at the memory limit."""
        if self.reclaim is not None:
            return self.reclaim
        return "refuse" if self.limits == "kernel" else "fair"

    @property
    def verify_checksum(self) -> bool:
        """Whether a wrong IPv4 header checksum drops the packet."""
        if self.checksum is not None:
            return self.checksum == "verify"
        return self.limits == "kernel"


def _networks(networks: object) -> tuple[str, ...]:
    if isinstance(networks, str) or not isinstance(networks, tuple | list):
        raise ConfigError(f"local is {networks!r}; it must be a tuple of networks")
    result = []
    for network in networks:
        try:
            result.append(str(ipaddress.ip_network(network)))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"local contains {network!r}: {error}") from error
    return tuple(result)
