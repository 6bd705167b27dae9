"""Random TCP: two ends that keep plausible numbers, and what perturbs them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fragtrack.testing import icmp_error, icmpv6_error, tcp, tcp_options

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.live.flow import Flow

TCP: Final = 6
WORD: Final = 0xFFFF_FFFF
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

SETTINGS: tuple[dict[str, int], ...] = (
    {"tcp_loose": 0},
    {"tcp_be_liberal": 1},
    {"tcp_ignore_invalid_rst": 1},
    {"tcp_be_liberal": 1, "tcp_ignore_invalid_rst": 1, "tcp_loose": 0},
    {"tcp_max_retrans": 1},
    {"tcp_max_retrans": 0, "tcp_timeout_max_retrans": 50, "tcp_timeout_unacknowledged": 80},
    {"checksum": 0},
    {
        "tcp_timeout_syn_sent": 101,
        "tcp_timeout_syn_recv": 112,
        "tcp_timeout_established": 123,
        "tcp_timeout_fin_wait": 134,
        "tcp_timeout_close_wait": 145,
        "tcp_timeout_last_ack": 156,
        "tcp_timeout_time_wait": 167,
        "tcp_timeout_close": 178,
        "tcp_timeout_max_retrans": 189,
        "tcp_timeout_unacknowledged": 195,
    },
)

Story = list[tuple[int, str]]
HANDSHAKES: tuple[Story, ...] = (
    [(0, "syn"), (1, "synack"), (0, "ack")],
    [(0, "syn"), (1, "synack"), (0, "ack")],
    [(0, "syn"), (1, "synack"), (0, "data"), (1, "ack")],
    [(0, "syn"), (1, "syn"), (0, "synack"), (1, "synack")],
    [(0, "syn"), (1, "syn"), (1, "synack"), (0, "ack"), (1, "ack")],
    [(0, "syn"), (1, "ack"), (0, "rst"), (0, "syn"), (1, "synack"), (0, "ack")],
    [(0, "ack"), (1, "ack")],
    [(0, "data"), (1, "ack"), (1, "data"), (0, "ack")],
)
PARTINGS: tuple[Story, ...] = (
    [(0, "fin"), (1, "ack"), (1, "fin"), (0, "ack")],
    [(1, "fin"), (0, "ack"), (1, "ack"), (0, "data"), (1, "ack"), (0, "fin"), (1, "ack")],
    [(0, "fin"), (1, "fin"), (0, "ack"), (1, "ack")],
    [(0, "fin"), (1, "ack"), (0, "syn"), (1, "ack"), (0, "rst")],
    [(0, "fin"), (1, "fin"), (0, "syn"), (1, "ack"), (0, "rst")],
    [(0, "rst")],
    [(1, "rst"), (1, "rst")],
    [(0, "rstack"), (0, "syn"), (1, "synack")],
    [],
)
BROKEN = (
    b"\3\2\1\1",
    b"\3\3\x0f\1",
    b"\3\3\xff\1",
    b"\2\0\0\0",
    b"\5\0\1\1",
    b"\x40\4\0\0",
    b"\0\0\0\0",
    b"\3\3\7\3\3\2\1\1",
    b"\4\3\0\1",
    b"\1\1\1\2",
    b"\xfe\x28\0\0",
    b"\2\4\5\xb4\3\0\0\0",
    b"\3\3\7\1\3\3\2\1",
    b"\3\4\7\1",
    b"\5\x0a" + bytes(8) + b"\1\1",
    b"\5\x0b" + b"\xff" * 9 + b"\1",
    b"\5\x12" + b"\x7f" * 16 + b"\1\1",
    b"\4\2\4\2",
)


@dataclass(slots=True)
class End:
    """One end, as it sees itself.

    Attributes
    ----------
    next
        Number of what it sends next.
    got
        What it acknowledges: the next number it expects.
    limit
        The highest number that the other end allowed.
    """

    next: int
    window: int
    scale: int | None
    sack: bool
    stamps: bool
    got: int = 0
    limit: int = 0


class Conversation:
    """The two ends, and the flow that their segments go into."""

    def __init__(self, rng: random.Random, flow: Flow) -> None:
        self.rng = rng
        self.flow = flow
        self.ports = (rng.randrange(65536), rng.choice((22, 80, 443, 8080)))
        self.begin()

    def begin(self) -> None:
        """Choose initial numbers, windows and options anew."""
        rng = self.rng
        self.ends = [
            End(
                next=rng.choice((rng.getrandbits(32), WORD - rng.randrange(2000), 0)),
                window=rng.choice((65535, 65535, 29200, 8192, 1000, 1)),
                scale=rng.choice((None, None, 0, 2, 7, 7, 14)),
                sack=rng.random() < 0.5,
                stamps=rng.random() < 0.3,
            )
            for _ in (0, 1)
        ]

    # ------------------------------------------------------------------------------- segments

    def segment(
        self,
        side: int,
        flags: int,
        data: int = 0,
        *,
        seq: int | None = None,
        ack: int | None = None,
        window: int | None = None,
        options: bytes | None = None,
        keep: bool = True,
        note: str = "",
        **fields: Any,
    ) -> None:
        """Write a segment; unless told otherwise it is what the end would send.

        With `keep` the ends take notice of it.
        """
        end, peer = self.ends[side], self.ends[1 - side]
        seq = end.next if seq is None else seq & WORD
        if ack is None:
            ack = end.got if flags & ACK else 0
        window = end.window if window is None else window
        options = self.options(side, flags) if options is None else options
        built = tcp(
            bytes(data),
            sport=self.ports[side],
            dport=self.ports[1 - side],
            seq=seq,
            ack=ack & WORD,
            flags=flags,
            window=window,
            options=options,
            **self.flow.between(side),
            **fields,
        )
        letters = "".join(letter for bit, letter in enumerate("FSRPAUEC") if flags >> bit & 1)
        shown = f"{letters or '-'} {seq}+{data} {ack} {window} {note}"
        self.flow.send(side, TCP, built, shown, **self.flow.extras(self.rng))
        if not keep:
            return
        end.next = (seq + data + bool(flags & SYN) + bool(flags & FIN)) & WORD
        peer.got = end.next
        if flags & ACK:
            scaled = end.scale is not None and peer.scale is not None and not flags & SYN
            peer.limit = (ack + (window << (end.scale or 0) * scaled)) & WORD

    def options(self, side: int, flags: int) -> bytes:
        """Build the options that an end would send."""
        end = self.ends[side]
        stamps = (len(self.flow.steps), 7) if end.stamps and not flags & RST else None
        if not flags & SYN:
            return tcp_options(timestamps=stamps)
        return tcp_options(
            mss=1460 if self.rng.random() < 0.9 else None,
            wscale=end.scale,
            sack_permitted=end.sack,
            timestamps=stamps,
        )

    def say(self, side: int, what: str) -> None:
        """Write what an end would send now."""
        rng, end = self.rng, self.ends[side]
        if what == "syn":
            self.segment(side, SYN, 10 if rng.random() < 0.05 else 0)
        elif what == "synack":
            first = (end.next - 1) & WORD
            known = any(step.side == side for step in self.flow.steps) and rng.random() < 0.5
            self.segment(side, SYN | ACK, seq=first if known else None)
        elif what == "ack":
            self.segment(side, ACK)
        elif what == "data":
            self.segment(side, ACK | PSH, rng.choice((1, 7, 100, 536, 1000)))
        elif what == "fin":
            self.segment(side, FIN | ACK, rng.choice((0, 0, 0, 20)))
        elif what == "rst":
            self.segment(side, RST, keep=False)
        else:
            self.segment(side, RST | ACK, keep=False)

    # --------------------------------------------------------------------------- perturbations

    def number(self, side: int) -> int:
        """Choose a sequence number where the tests of the window have their edges."""
        rng, end, peer = self.rng, self.ends[side], self.ends[1 - side]
        window = (peer.limit - end.got if rng.random() < 0.3 else peer.window) & 0xFFFFF
        base = rng.choice(
            (end.next, end.next, end.limit, end.next - window, peer.got, end.next + (1 << 31))
        )
        step = rng.choice((0, 0, 1, -1, 2, -2, 10, -10, 100, -100, 1000, -1000, 66000, -66000))
        return rng.getrandbits(32) if rng.random() < 0.08 else (base + step) & WORD

    def answer(self, side: int) -> int:
        """Choose an acknowledgment number, near an edge."""
        rng, end, peer = self.rng, self.ends[side], self.ends[1 - side]
        base = rng.choice((end.got, end.got, peer.next, peer.next - 66000, end.got - 65535))
        step = rng.choice((0, 0, 1, -1, 2, -2, 100, -100, 5000, 66000, -66000))
        return rng.getrandbits(32) if rng.random() < 0.08 else (base + step) & WORD

    def disturb(self, side: int) -> None:
        """Do one thing that is not in the story."""
        chosen = self.rng.choices(list(WAYS), weights=list(WAYS.values()))[0]
        chosen(self, side)

    def stray(self, side: int) -> None:
        """Send a segment with strange numbers."""
        rng = self.rng
        flags = rng.choice((ACK, ACK | PSH, ACK | PSH, FIN | ACK, SYN, SYN | ACK, RST, RST | ACK))
        data = rng.choice((0, 1, 100, 1000)) if flags & (PSH | FIN) else 0
        self.segment(
            side,
            flags,
            data,
            seq=self.number(side) if rng.random() < 0.7 else None,
            ack=self.answer(side) if flags & ACK and rng.random() < 0.5 else None,
            window=rng.choice((None, None, None, 0, 1, 100, 65535)),
            keep=rng.random() < 0.25,
            note="stray",
        )

    def reset(self, side: int) -> None:
        """Send a reset: exact, inexact, or an answer to something."""
        rng, end, peer = self.rng, self.ends[side], self.ends[1 - side]
        seq = rng.choice((end.next, peer.got, end.next + 1, end.next - 1, 0, self.number(side)))
        flags = rng.choice((RST, RST, RST | ACK))
        ack = rng.choice((0, peer.next, end.got, self.answer(side)))
        self.segment(side, flags, seq=seq, ack=ack, keep=False, note="reset")

    def again(self, _: int) -> None:
        """Send a segment once more."""
        if self.flow.steps:
            self.flow.again(self.rng, reach=6)

    def pause(self, side: int) -> None:
        """Close or open the window, keep alive, probe."""
        rng, end = self.rng, self.ends[side]
        kind = rng.randrange(3)
        if kind == 0:
            self.segment(side, ACK, window=rng.choice((0, 0, 1, end.window)), note="window")
        else:
            self.segment(side, ACK, kind - 1, seq=end.next - 1, keep=False, note="keep-alive")

    def selective(self, side: int) -> None:
        """Acknowledge selectively, within or beyond what was sent."""
        rng, end, peer = self.rng, self.ends[side], self.ends[1 - side]
        blocks = []
        for _ in range(rng.randint(1, 4)):
            left = rng.choice((end.got, peer.next, peer.next - 500)) + rng.randrange(-100, 400)
            blocks.append((left, left + rng.choice((1, 100, 70000))))
        ack = end.got - rng.choice((0, 0, 100, 1000))
        self.segment(side, ACK, ack=ack, options=tcp_options(sack=blocks), keep=False, note="sack")

    def flags(self, side: int) -> None:
        """Send any combination of flags."""
        bits = self.rng.randrange(256)
        self.segment(side, bits, self.rng.choice((0, 0, 9)), keep=False, note="flags")

    def options_broken(self, side: int) -> None:
        """Send options that cannot be read, or are unusual."""
        rng = self.rng
        flags = rng.choice((SYN, SYN, SYN | ACK, ACK, ACK | PSH))
        options = b"".join(rng.sample(BROKEN, rng.randint(1, 2)))
        self.segment(side, flags, options=options, keep=bool(flags & SYN), note=options.hex())

    def damage(self, side: int) -> None:
        """Send a segment whose header cannot be."""
        rng = self.rng
        kind = rng.randrange(4)
        if kind == 0:
            self.segment(side, ACK, 5, checksum_value="bad", keep=False, note="bad checksum")
        elif kind == 1:
            self.segment(side, ACK, 9, data_offset=rng.choice((0, 4, 7, 15)), keep=False)
        elif kind == 2:
            self.segment(side, ACK | 32, 9, urgent=rng.getrandbits(16), note="urgent")
        else:
            ports = struct.pack(">HH", self.ports[side], self.ports[1 - side])
            self.flow.send(side, TCP, (ports + bytes(16))[: rng.randrange(20)], "cut")

    def complain(self, side: int) -> None:
        """Send an ICMP error about something that the other end said."""
        said = [it.packet for it in self.flow.steps if it.side != side and it.packet]
        if not said:
            return
        quote = self.rng.choice(said[-3:])[: self.rng.choice((28, 48, 1000))]
        if self.flow.version == 4:
            self.flow.send(side, 1, icmp_error(3, 1, quote), "unreachable")
        else:
            ends = self.flow.between(side)
            self.flow.send(side, 58, icmpv6_error(1, 0, quote, **ends), "unreachable")

    def reopen(self, side: int) -> None:
        """Begin anew with the same ports."""
        old = [end.next for end in self.ends]
        self.begin()
        step = self.rng.choice((None, 1, 64000, -64000))
        if step is not None:
            self.ends[side].next = (old[side] + step) & WORD
        self.say(side, "syn")
        if self.rng.random() < 0.7:
            self.say(1 - side, "synack")
            self.say(side, "ack")

    def simultaneous(self, side: int) -> None:
        """Send a SYN where none is expected."""
        first = self.rng.random() < 0.5
        seq = (self.ends[side].next - 1) & WORD if first else self.number(side)
        self.segment(side, SYN, seq=seq, keep=first, note="syn")

    def handshake_again(self, side: int) -> None:
        """Send a SYN/ACK that answers something, or nothing."""
        ack = self.answer(side) if self.rng.random() < 0.5 else None
        seq = self.number(side) if self.rng.random() < 0.5 else None
        self.segment(
            side, SYN | ACK, seq=seq, ack=ack, keep=self.rng.random() < 0.3, note="syn/ack"
        )


WAYS: dict[Callable[[Conversation, int], None], int] = {
    Conversation.stray: 30,
    Conversation.reset: 8,
    Conversation.again: 22,
    Conversation.pause: 8,
    Conversation.selective: 8,
    Conversation.flags: 5,
    Conversation.options_broken: 5,
    Conversation.damage: 3,
    Conversation.complain: 3,
    Conversation.reopen: 4,
    Conversation.simultaneous: 6,
    Conversation.handshake_again: 5,
}


def draw(rng: random.Random, flow: Flow) -> None:
    """Fill a flow with segments of one pair of ports."""
    talk = Conversation(rng, flow)
    calm = rng.choice((0.5, 0.75, 0.9))
    for _ in range(1 if rng.random() < 0.75 else 2):
        _life(talk, calm)


def _life(talk: Conversation, calm: float) -> None:
    """Write a life from the first segment to the last, and what comes between."""
    rng = talk.rng
    middle: Story = [
        (rng.randrange(2), rng.choice(("data", "data", "ack"))) for _ in range(rng.randrange(8))
    ]
    story = [*rng.choice(HANDSHAKES), *middle, *rng.choice(PARTINGS)]
    flip = rng.random() < 0.3
    if rng.random() < 0.1:
        story = story[rng.randrange(len(story)) :]
    for side, what in story:
        while rng.random() > calm:
            talk.disturb(rng.randrange(2))
        if rng.random() < 0.95:
            talk.say(side ^ flip, what)
    for _ in range(rng.randrange(4)):
        talk.disturb(rng.randrange(2))
    talk.begin()
