"""Two TCP endpoints that keep their own numbers, so that a scenario reads like a story."""

from __future__ import annotations

from typing import Any

from fragtrack.testing.builders import ipv4, ipv6
from fragtrack.testing.segments import TCP, tcp, tcp_flags
from fragtrack.testing.transport import DESTINATION4, DESTINATION6, SOURCE4, SOURCE6

__all__ = ["Endpoint", "Talk"]

_SYN_FIN = 0b11
_SYN = 0b10
_ACK = 0b1_0000
_WORD = 0xFFFF_FFFF


class Endpoint:
    """One side of a `Talk`; calling it builds its next packet.

    All numbers are relative: `seq` to this side's initial sequence number, `ack` to that of the
    other side. So the SYN has number 0 and the first byte of data has number 1.

    Attributes
    ----------
    address : str
        IP address.
    port : int
        TCP port.
    isn : int
        Initial sequence number.
    next : int
        Relative number of what it sends next.
    window : int
        Window that it advertises, where a packet does not say otherwise.
    """

    __slots__ = ("address", "isn", "next", "peer", "port", "window")

    peer: Endpoint

    def __init__(self, address: str, port: int, isn: int, window: int) -> None:
        self.address = address
        self.port = port
        self.isn = isn
        self.next = 0
        self.window = window

    def __call__(
        self,
        flags: str | int,
        payload: bytes = b"",
        *,
        seq: int | None = None,
        ack: int | None = None,
        window: int | None = None,
        ip: dict[str, Any] | None = None,
        **fields: Any,
    ) -> bytes:
        """Build a packet, from the IP header on.

        Parameters
        ----------
        flags
            Letters out of ``FSRPAUEC``, or the flag byte.
        payload
            The data.
        seq
            Relative sequence number. If not given it is what comes next (0 for a SYN), and the
            endpoint moves on by what the packet takes up; if given, nothing moves.
        ack
            Relative acknowledgment number. If not given it is everything that the other side
            sent, or a zero field in a packet without the ACK flag.
        window
            Window field.
        ip
            More arguments for `ipv4` or `ipv6`.
        **fields
            More arguments for `tcp`: `options`, `urgent`, `checksum_value`, `data_offset`.

        Returns
        -------
        bytes
            The packet.
        """
        bits = tcp_flags(flags)
        if seq is None:
            seq = 0 if bits & _SYN else self.next
            taken = len(payload) + (bits & _SYN_FIN).bit_count()
            self.next = max(self.next, seq + taken)
        if ack is None:
            field = self.peer.isn + self.peer.next if bits & _ACK else 0
        else:
            field = self.peer.isn + ack
        segment = tcp(
            payload,
            src=self.address,
            dst=self.peer.address,
            sport=self.port,
            dport=self.peer.port,
            seq=self.isn + seq,
            ack=field,
            flags=bits,
            window=self.window if window is None else window,
            **fields,
        )
        return self._packet(segment, ip or {})

    def at(self, number: int) -> int:
        """Give the absolute number, as in packets and verdicts, of a relative one."""
        return self.isn + number & _WORD

    def restart(self, isn: int) -> None:
        """Begin a new incarnation of this side: a new initial number, nothing sent yet."""
        self.isn = isn
        self.next = 0

    def _packet(self, segment: bytes, ip: dict[str, Any]) -> bytes:
        ends = {"src": self.address, "dst": self.peer.address}
        if ":" in self.address:
            return ipv6(segment, **{"next_header": TCP, **ends, **ip})
        return ipv4(segment, **{"protocol": TCP, **ends, **ip})


class Talk:
    """A TCP connection to be: `client` and `server` build its packets.

    Parameters
    ----------
    client, server
        Addresses; documentation addresses of `version` if not given.
    version
        4 or 6; only decides about addresses that are not given.
    sport, dport
        Ports of the client and of the server.
    client_isn, server_isn
        Initial sequence numbers.
    window
        What both sides advertise, where a packet does not say otherwise.

    Examples
    --------
    >>> talk = Talk()
    >>> story = [talk.client("S"), talk.server("SA"), talk.client("A"), talk.client("PA", b"GET")]
    >>> [len(packet) for packet in story]
    [40, 40, 40, 43]
    >>> talk.client.next, talk.client.at(4)
    (4, 1004)

    The first data once more, and an acknowledgment of half of it:

    >>> again = talk.client("PA", b"GET", seq=1)
    >>> half = talk.server("A", ack=2)
    """

    __slots__ = ("client", "server")

    def __init__(
        self,
        client: str | None = None,
        server: str | None = None,
        *,
        version: int = 4,
        sport: int = 40000,
        dport: int = 80,
        client_isn: int = 1000,
        server_isn: int = 5000,
        window: int = 65535,
    ) -> None:
        source, destination = (SOURCE4, DESTINATION4) if version == 4 else (SOURCE6, DESTINATION6)
        self.client = Endpoint(client or source, sport, client_isn, window)
        self.server = Endpoint(server or destination, dport, server_isn, window)
        self.client.peer, self.server.peer = self.server, self.client

    def handshake(self, *, client: bytes = b"", server: bytes = b"") -> list[bytes]:
        """Build SYN, SYN/ACK and ACK, with the TCP options of either side.

        >>> from fragtrack.testing import tcp_options
        >>> scaled = tcp_options(wscale=7)
        >>> [len(packet) for packet in Talk().handshake(client=scaled, server=scaled)]
        [44, 44, 40]
        """
        return [
            self.client("S", options=client),
            self.server("SA", options=server),
            self.client("A"),
        ]

    def goodbye(self) -> list[bytes]:
        """Build an orderly close: FIN of the client, FIN of the server, the last ACK."""
        return [self.client("FA"), self.server("FA"), self.client("A")]
