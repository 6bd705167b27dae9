"""A tracker of either backend with a clock beside it, and packets between two fixed hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragtrack.config import ReassemblyConfig
from fragtrack.testing import Talk, ipv4, ipv6
from fragtrack.track_config import TrackConfig
from tests.backends import tracker_class

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fragtrack.verdicts import Connection, Verdict

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND + 1_000
VERSIONS = (4, 6)
ICMP, TCP, UDP, GRE, ICMPV6, SCTP, UDPLITE = 1, 6, 17, 47, 58, 132, 136
CLIENT = {4: "192.0.2.1", 6: "2001:db8:a::1"}
SERVER = {4: "198.51.100.2", 6: "2001:db8:b::2"}
ROUTER = {4: "203.0.113.9", 6: "2001:db8:c::9"}
WORD = 0xFFFF_FFFF


def talk_of(version: int = 4, **options: Any) -> Talk:
    """Make a talk between the two hosts."""
    return Talk(CLIENT[version], SERVER[version], **options)


def ends(version: int, *, reply: bool = False) -> dict[str, str]:
    """Give the two addresses as arguments of a builder."""
    client, server = CLIENT[version], SERVER[version]
    return {"src": server, "dst": client} if reply else {"src": client, "dst": server}


def ip(
    payload: bytes, protocol: int, version: int = 4, *, reply: bool = False, **fields: Any
) -> bytes:
    """Build a packet from the client to the server, or back."""
    fields = {**ends(version, reply=reply), **fields}
    if version == 4:
        return ipv4(payload, **{"protocol": protocol, **fields})
    return ipv6(payload, **{"next_header": protocol, **fields})


def told(verdict: Verdict) -> str:
    """Give a verdict as "class direction state", with the reason if there is one."""
    words = [verdict.ct_class, verdict.direction or "-", verdict.state or "-"]
    return " ".join(words if verdict.reason is None else [*words, verdict.reason])


class Bench:
    """A tracker, and the time; every packet is followed by a check of the tracker's invariants.

    Parameters
    ----------
    backend
        Whose tracker.
    check
        Whether to check after every packet.
    reassembly
        Settings of reassembly that differ from those of the command.
    **config
        Settings of tracking.
    """

    def __init__(
        self,
        backend: str,
        *,
        check: bool = True,
        reassembly: dict[str, Any] | None = None,
        **config: Any,
    ) -> None:
        settings = ReassemblyConfig(**{"path": "netfilter", **(reassembly or {})})
        self.tracker = tracker_class(backend)(TrackConfig(**config), settings)
        self.now = START
        self.check = check

    def push(self, packet: bytes, *, zone: int = 0) -> Verdict:
        """Give a packet to the tracker, now."""
        verdict: Verdict = self.tracker.push(packet, self.now, zone)
        if self.check:
            self.tracker.check()
        return verdict

    def push_all(self, packets: Iterable[bytes]) -> list[Verdict]:
        """Give packets to the tracker, all now."""
        return [self.push(packet) for packet in packets]

    def tell(self, *story: tuple[bytes, str]) -> list[Verdict]:
        """Give packets to the tracker, each beside what it must be `told` of it."""
        verdicts = []
        for number, (packet, expected) in enumerate(story):
            verdicts.append(self.push(packet))
            assert told(verdicts[-1]) == expected, f"packet {number}: {verdicts[-1]}"
        return verdicts

    def open(self, talk: Talk, *, client: bytes = b"", server: bytes = b"") -> Verdict:
        """Let the handshake of a talk pass; gives the verdict of its last packet."""
        last = self.push_all(talk.handshake(client=client, server=server))[-1]
        assert told(last) == "established original ESTABLISHED"
        return last

    def wait(self, seconds: float) -> None:
        """Let time pass that the tracker learns of with the next packet."""
        self.now += round(seconds * SECOND)

    def advance(self, seconds: float = 0) -> None:
        """Let time pass and tell the tracker."""
        self.wait(seconds)
        self.tracker.advance(self.now)
        self.tracker.check()

    @property
    def open_rows(self) -> list[Connection]:
        """The connections in the table."""
        rows: list[Connection] = self.tracker.connections().rows()
        return rows

    @property
    def only(self) -> Connection:
        """The one connection in the table."""
        (row,) = self.open_rows
        return row

    def ended(self) -> list[Connection]:
        """The connections that ended since the last call."""
        rows: list[Connection] = self.tracker.take_ended().rows()
        return rows
