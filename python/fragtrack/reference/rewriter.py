"""A capture in, the same capture with whole datagrams out.

Frames that are not fragments, not IP, or cannot be understood, pass as they are and in order. Of
the fragments of a datagram that becomes complete only the completing one leaves a packet: its
record header (time, interface, comments), its link header with the length fields made right, and
the whole datagram behind it; what stood behind the IP packet in the frame (Ethernet padding) does
not come along. An IPv6 atomic fragment that local delivery takes alone passes as it is.

Of what does not become complete nothing is written, or, with `keep_incomplete`, everything but
duplicates, unchanged: a fragment refused alone in its place; fragments held for a datagram when it
is given up, in the order of their arrival, and behind them the one that killed it.

Every packet moves the clock to its time first, whatever it holds. Frame numbers count the packets
of an input from 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragtrack.events import DatagramRow, Reason
from fragtrack.reference.capture import Format, open_output
from fragtrack.reference.intake import Intake, held_cost
from fragtrack.reference.ipv4 import checksum
from fragtrack.reference.link import Decoded, NotIpError, decode, patch_lengths, vlan_ids
from fragtrack.reference.reassembler import Reassembler, is_fragment
from fragtrack.reference.record import NO_PACKET, Record

if TYPE_CHECKING:
    from fragtrack.config import ReassemblyConfig
    from fragtrack.events import Datagram, GivenUp, Outcome

__all__ = ["Rewriter"]


class Rewriter(Intake):
    """Reassembles the fragments of captures, and writes them again.

    Parameters
    ----------
    config
        How to reassemble.
    output
        Format to write, or None to write nothing.
    keep_incomplete
        Whether fragments without a complete datagram are written.
    rows
        Whether datagrams are told of, see `take_rows`.
    payloads
        Whether rows of complete datagrams carry their bytes.

    Notes
    -----
    For each input: `begin`, `feed` until all is consumed, `end`. Then `finish`. Fragments may wait
    from one input to the next.
    """

    def __init__(
        self,
        config: ReassemblyConfig,
        *,
        output: Format | None,
        keep_incomplete: bool,
        rows: bool,
        payloads: bool,
    ) -> None:
        super().__init__()
        self._config = config
        self._reassembler = Reassembler(config)
        self._output = open_output(output)
        self._keep = keep_incomplete
        self._rows: list[DatagramRow] | None = [] if rows else None
        self._payloads = payloads
        self._fragments = {4: 0, 6: 0}
        self._complete = 0
        self._given_up = dict.fromkeys((reason.name for reason in Reason), 0)
        self._bad_checksums = 0

    # -------------------------------------------------------------------------------- end

    def finish(self) -> None:
        """End everything: what is open is given up, the output is completed."""
        for given_up in self._reassembler.flush():
            self._give_up(given_up)
        self._output.finish()

    # ----------------------------------------------------------------------------- results

    def take(self) -> bytes:
        """Give the output since the last call."""
        data = b"".join(self._output.chunks)
        self._output.chunks.clear()
        return data

    def take_rows(self) -> list[DatagramRow]:
        """Give the datagrams that ended since the last call, in the order of their ending."""
        rows = self._rows or []
        if self._rows is not None:
            self._rows = []
        return rows

    def summary(self) -> dict[str, object]:
        """Give counts: of packets, bytes, fragments, datagrams, both by reason, anomalies."""
        anomalies = {"bad_checksum": self._bad_checksums}
        return {
            "packets": self._packets,
            "bytes": self._bytes,
            "fragments": {"ipv4": self._fragments[4], "ipv6": self._fragments[6]},
            "datagrams": {"complete": self._complete, "incomplete": sum(self._given_up.values())},
            "written": self._output.written,
            "reasons": dict(self._reassembler.reasons),
            "given_up": {name: count for name, count in self._given_up.items() if count},
            "anomalies": {name: count for name, count in anomalies.items() if count},
        }

    # ---------------------------------------------------------------------------- one record

    def _take(self, record: Record) -> None:
        if record.link == NO_PACKET:
            self._output.other(record)
            return
        self._output.admit(record, f"{self._input.name}: frame {self._number}")
        frame = record.frame
        try:
            place = decode(record.link, frame)
        except NotIpError:
            place = None
        if place is None or not is_fragment(frame[place.offset :]):
            for given_up in self._reassembler.advance(record.time):
                self._give_up(given_up)
            self._output.packet(record)
        else:
            self._fragment(record, place, frame)

    def _fragment(self, record: Record, place: Decoded, frame: bytes) -> None:
        packet = frame[place.offset :]
        outcome = self._reassembler.handle(
            packet,
            record.time,
            place.domain,
            number=self._number,
            cost=held_cost(record),
            frame=record,
        )
        if outcome.kind != "whole":
            self._fragments[place.version] += 1
            sound = outcome.reason not in ("header", "truncated", "checksum")
            if place.version == 4 and sound and checksum(packet[: (packet[0] & 15) * 4]) != 0:
                self._bad_checksums += 1
        for given_up in outcome.given_up:
            self._give_up(given_up)
        if outcome.kind == "whole":
            self._output.packet(record)
        elif outcome.kind == "complete" and outcome.datagram is not None:
            self._completed(record, place, outcome, outcome.datagram)
        elif outcome.kind == "dropped" and self._keep and outcome.reason != "duplicate":
            self._output.packet(record)

    # ------------------------------------------------------------------------ one datagram

    def _completed(
        self, record: Record, place: Decoded, outcome: Outcome, datagram: Datagram
    ) -> None:
        self._complete += 1
        whole = outcome.packet or b""
        if record.frame.startswith(whole, place.offset):
            self._output.packet(record)  # an atomic fragment: nothing was put together
        else:
            header = patch_lengths(record.frame[: place.offset], place.lengths, len(whole))
            self._output.datagram(record, header + whole)
        if self._rows is not None:
            row = self._row(datagram, "complete", datagram.frames)
            if self._payloads:
                row.payload, row.packet = datagram.payload, whole
            self._rows.append(row)

    def _give_up(self, given_up: GivenUp) -> None:
        self._given_up[given_up.reason] += 1
        if self._rows is not None:
            by_offset = sorted(range(len(given_up.frames)), key=given_up.offsets.__getitem__)
            frames = tuple(given_up.frames[at] for at in by_offset)
            self._rows.append(self._row(given_up, given_up.reason, frames))
        if self._keep:
            for record in given_up.held:
                if isinstance(record, Record):
                    self._output.packet(record)

    def _row(self, about: Datagram | GivenUp, outcome: str, frames: tuple[int, ...]) -> DatagramRow:
        vlans = vlan_ids(about.domain)
        return DatagramRow(
            time_first=about.time_first,
            time_last=about.time_last,
            ip_version=about.version,
            src=about.src,
            dst=about.dst,
            protocol=about.protocol,
            id=about.id,
            vlan=".".join(map(str, vlans)) if vlans else None,
            tunnel=None,
            fragments=about.fragments,
            frames=frames,
            length=about.length,
            outcome=outcome,
            policy=self._config.policy,
        )
