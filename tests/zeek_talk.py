"""Packets for the Zeek view: two hosts that talk, and captures read by the reference."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

from fragtrack.reference.link import NotIpError, decode
from fragtrack.reference.track.packet import Packet
from fragtrack.reference.track.packet import decode as decode_packet
from fragtrack.reference.zeek import Segment, ZeekFlows
from fragtrack.reference.zeek.segment import read
from fragtrack.testing.segments import tcp_flags
from fragtrack.zeek import ZeekConfig
from tests.reading import packets

if TYPE_CHECKING:
    from pathlib import Path

    from fragtrack.zeek import ZeekRow

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
CLIENT, SERVER = 0xC0000201, 0xC6336402
WORD = 0xFFFF_FFFF
TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58


class Zeek:
    """A table with a clock, and a TCP connection between a client and a server.

    Numbers follow from what was sent: `seq` is the sender's next one, `ack` what the other side
    sent so far. A step in time of a millisecond lies in front of each packet.
    """

    def __init__(self, *, sport: int = 40000, dport: int = 80, **config: Any) -> None:
        self.flows = ZeekFlows(ZeekConfig(**config))
        self.now = START - SECOND // 1000
        self.ports = (sport, dport)
        self.next = [1000, 5000]

    def client(self, flags: str, payload: int = 0, **fields: Any) -> None:
        """Send from client to server."""
        self._send(0, flags, payload, fields)

    def server(self, flags: str, payload: int = 0, **fields: Any) -> None:
        """Send from server to client."""
        self._send(1, flags, payload, fields)

    def _send(self, side: int, flags: str, payload: int, fields: dict[str, Any]) -> None:
        src, dst = (CLIENT, SERVER) if side == 0 else (SERVER, CLIENT)
        sport, dport = self.ports if side == 0 else self.ports[::-1]
        values: dict[str, Any] = {
            "sport": sport,
            "dport": dport,
            "payload": payload,
            "flags": tcp_flags(flags),
            "seq": self.next[side],
            "ack": self.next[1 - side] if "A" in flags else 0,
            "window": 1000,
            "length": 40 + payload,
        }
        if "seq" not in fields:
            taken = payload + ("S" in flags) + ("F" in flags)
            self.next[side] = (self.next[side] + taken) & WORD
        self.see(Segment(4, src, dst, TCP, **{**values, **fields}))

    def wait(self, seconds: float) -> None:
        """Let time pass, without the table noticing."""
        self.now += round(seconds * SECOND)

    def see(self, segment: Segment) -> None:
        """Hand a packet over."""
        self.now += SECOND // 1000
        self.flows.see(segment, self.now)
        self.flows.check()

    def rows(self) -> list[ZeekRow]:
        """End, and give all rows."""
        self.flows.finish()
        return self.flows.take()

    def row(self) -> ZeekRow:
        """End, and give the only row."""
        (row,) = self.rows()
        return row

    def told(self) -> list[tuple[str | None, str]]:
        """End, and give history and state of all rows."""
        return [(row.history, row.conn_state) for row in self.rows()]


def counts(row: ZeekRow) -> tuple[int, int, int, int]:
    return row.orig_pkts, row.orig_ip_bytes, row.resp_pkts, row.resp_ip_bytes


def udp(sport: int, dport: int, payload: int = 10, *, reply: bool = False, **more: Any) -> Segment:
    src, dst = (SERVER, CLIENT) if reply else (CLIENT, SERVER)
    ports = (dport, sport) if reply else (sport, dport)
    return Segment(4, src, dst, UDP, 28 + payload, *ports, payload, **more)


def icmp(kind: int, code: int = 0, *, reply: bool = False, version: int = 4) -> Segment:
    src, dst = (SERVER, CLIENT) if reply else (CLIENT, SERVER)
    protocol = ICMP if version == 4 else ICMPV6
    return Segment(version, src, dst, protocol, 84, kind, code, 56)


def play(letters: str, **options: Any) -> Zeek:
    """Play packets named by history letters, upper case from the client.

    s SYN, h SYN/ACK, a ACK, d 100 bytes, f FIN/ACK, r RST.
    """
    zeek = Zeek(**options)
    flags = {"s": "S", "h": "SA", "a": "A", "d": "PA", "f": "FA", "r": "R"}
    for letter in letters:
        send = zeek.client if letter.isupper() else zeek.server
        send(flags[letter.lower()], 100 if letter in "dD" else 0)
    return zeek


def watch(capture: Path, **config: Any) -> list[ZeekRow]:
    """Give the rows of a capture without fragments."""
    data = capture.read_bytes()
    flows = ZeekFlows(ZeekConfig(**config))
    for record in packets(gzip.decompress(data) if capture.suffix == ".gz" else data):
        try:
            place = decode(record.link, record.frame)
        except NotIpError:
            continue
        packet = decode_packet(record.frame[place.offset :], verify=False)
        if not isinstance(packet, Packet):
            continue
        segment = read(
            packet.family,
            packet.src,
            packet.dst,
            packet.protocol,
            length=packet.length,
            size=packet.size,
            transport=packet.transport,
        )
        if segment is not None:
            flows.see(segment, record.time)
            flows.check()
    flows.finish()
    return flows.take()
