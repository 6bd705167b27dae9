"""Random SCTP: associations that mostly go as they should, and what is wrong with them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

from fragtrack.testing import (
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

if TYPE_CHECKING:
    import random

    from tests.live.flow import Flow

SCTP = 132
STATES = ("closed", "cookie_wait", "cookie_echoed", "established", "shutdown_sent")
SETTINGS = (
    {f"sctp_timeout_{state}": 50 + 10 * i for i, state in enumerate(STATES)},
    {"sctp_timeout_shutdown_ack_sent": 33, "sctp_timeout_heartbeat_sent": 44},
    {"checksum": 0},
)
NAMES = (  # by their number; 12 and 13 are not in use
    "data",
    "init",
    "init_ack",
    "sack",
    "heartbeat",
    "heartbeat_ack",
    "abort",
    "shutdown",
    "shutdown_ack",
    "error",
    "cookie_echo",
    "cookie_ack",
    "12",
    "13",
    "shutdown_complete",
)

LIFE = (  # who sends what in an association that is set up, used and shut down
    (0, "init"),
    (1, "init_ack"),
    (0, "cookie_echo"),
    (1, "cookie_ack"),
    (0, "data"),
    (1, "sack"),
    (1, "heartbeat"),
    (0, "heartbeat_ack"),
    (0, "shutdown"),
    (1, "shutdown_ack"),
    (0, "shutdown_complete"),
)
PATH = ((0, "heartbeat"), (1, "heartbeat_ack"), (0, "data"), (1, "sack"), (0, "heartbeat"))
COLLISION = (
    (0, "init"),
    (1, "init"),
    (0, "init_ack"),
    (1, "init_ack"),
    (0, "cookie_echo"),
    (1, "cookie_echo"),
    (0, "cookie_ack"),
    (1, "cookie_ack"),
    (1, "data"),
)


class Association:
    """Two ends of an association to be, and the tags that they chose."""

    def __init__(self, rng: random.Random, flow: Flow) -> None:
        self.rng = rng
        self.flow = flow
        self.ports = (rng.randrange(1, 65536), rng.choice((2905, 9899, 36412)))
        self.tags = [rng.getrandbits(32) or 1 for _ in (0, 1)]

    def chunk(self, side: int, kind: str) -> bytes:
        """Build a chunk of a side."""
        rng, tag = self.rng, self.tags[side]
        if kind in {"init", "init_ack"}:
            if rng.random() < 0.1:
                tag = rng.choice((0, rng.getrandbits(32), self.tags[1 - side]))
            elif rng.random() < 0.1:
                tag = self.tags[side] = rng.getrandbits(32)
            return sctp_init(tag) if kind == "init" else sctp_init_ack(tag)
        reflected = rng.random() < 0.25
        chunks = {
            "data": sctp_data(rng.randbytes(rng.randrange(1, 40))),
            "sack": sctp_sack(),
            "heartbeat": sctp_heartbeat(),
            "heartbeat_ack": sctp_heartbeat(ack=True),
            "abort": sctp_abort(reflected=reflected),
            "shutdown": sctp_shutdown(),
            "shutdown_ack": sctp_shutdown_ack(),
            "cookie_echo": sctp_cookie_echo(),
            "cookie_ack": sctp_cookie_ack(),
            "shutdown_complete": sctp_shutdown_complete(reflected=reflected),
        }
        if kind in chunks:
            return chunks[kind]
        number = NAMES.index(kind) if kind in NAMES else int(kind)
        return sctp_chunk(number, rng.choice((0, 1, 255)), rng.randbytes(rng.randrange(9)))

    def tag(self, side: int, kinds: list[str]) -> int:
        """Choose the verification tag of a packet: mostly what is right."""
        rng = self.rng
        right = 0 if "init" in kinds else self.tags[1 - side]
        if rng.random() < 0.84:
            return right
        return rng.choice((0, self.tags[side], self.tags[1 - side], right ^ 1, 1 << 31))

    def send(self, side: int, *kinds: str) -> None:
        """Write a packet of these chunks."""
        vtag = self.tag(side, list(kinds))
        body = b"".join(self.chunk(side, kind) for kind in kinds)
        label = "+".join(kinds) + (f" tag {vtag:#x}" if vtag else "")
        if self.rng.random() < 0.06:
            body, damage = self.damaged(body)
            label = f"{label} {damage}"
        crc: Literal["bad"] | int | None = None
        if self.rng.random() < 0.02:
            crc = self.rng.choice(("bad", 0, 1))
        packet = sctp(body, vtag=vtag, sport=self.ports[side], dport=self.ports[1 - side], crc=crc)
        if self.rng.random() < 0.01:
            packet = packet[: self.rng.randrange(len(packet))]
        label = label if crc is None else f"{label} bad CRC"
        self.flow.send(side, SCTP, packet, label, **self.flow.extras(self.rng))

    def damaged(self, body: bytes) -> tuple[bytes, str]:
        """Spoil the chunks: a wrong length, a cut, bytes behind."""
        rng = self.rng
        how = rng.choice(("length", "cut", "tail", "none"))
        if how == "length" and len(body) >= 4:
            length = rng.choice((0, 0, 1, 3, 4, 5, 8, len(body) + 4, 0xFFFF))
            return body[:2] + struct.pack(">H", length) + body[4:], f"length {length}"
        if how == "cut":
            return body[: rng.randrange(len(body) + 1)], "cut"
        if how == "tail":
            return body + rng.choice(
                (b"\0", bytes(3), b"\0\0\0\4", b"\1\0\0\x14", bytes(8))
            ), "tail"
        return b"", "no chunk"


def draw(rng: random.Random, flow: Flow) -> None:
    """Fill a flow with packets of an association."""
    talk = Association(rng, flow)
    story = list(rng.choice((LIFE, LIFE, LIFE, PATH, COLLISION)))
    if rng.random() < 0.3:  # the middle of a life, or only chance
        story = story[rng.randrange(len(story)) :]
    if rng.random() < 0.2:
        story = [(1 - side, kind) for side, kind in story]
    while story or rng.random() < 0.85:
        chance = rng.random()
        if story and chance < 0.7:
            side, kind = story.pop(0)
            beside = ["data"] if kind in {"cookie_echo", "cookie_ack"} and chance < 0.2 else []
            talk.send(side, kind, *beside)
        elif chance < 0.76 and flow.steps:
            flow.again(rng)
        elif chance < 0.8 and story:
            story.pop(0)
        else:
            talk.send(rng.randrange(2), *_chance(rng))


def _chance(rng: random.Random) -> list[str]:
    """Choose chunks without any plan."""
    kinds = [kind for kind in NAMES if not kind.isdigit()]
    count = rng.choice((1, 1, 1, 1, 2, 2, 3))
    chosen = [rng.choice(kinds) for _ in range(count)]
    if rng.random() < 0.3:
        chosen[-1] = rng.choice(("data", "heartbeat", "heartbeat_ack"))
    if rng.random() < 0.05:
        chosen.append(rng.choice(("12", "13", "15", "64", "130", "192", "255")))
    return chosen
