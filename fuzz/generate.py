"""Random settings, packets and times: mostly sound, on few keys, in small ranges: they meet.

What comes out depends on the `random.Random` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragtrack.config import LIMITS, PATHS, POLICIES, RECLAIMS
from fragtrack.testing import builders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from fragtrack.testing.builders import Extension

SECOND = 1_000_000_000  # ns
EPOCH = 1_700_000_000 * SECOND

# Two sources of one /24 or /48, one elsewhere, and some that nobody answers.
SOURCES4 = ("192.0.2.1", "192.0.2.1", "192.0.2.9", "198.51.100.7", "224.0.0.1", "127.0.0.1")
SOURCES6 = ("2001:db8::1", "2001:db8::1", "2001:db8::9", "2001:db8:7::1", "ff02::1", "::")
TARGETS4 = ("203.0.113.1", "203.0.113.1", "203.0.113.2")
TARGETS6 = ("2001:db8:ff::1", "2001:db8:ff::1", "2001:db8:ff::2")
LOCAL = ("203.0.113.1/32", "2001:db8:ff::/48")
PROTOCOLS = (253, 253, 253, 1, 6, 17, 58)
HEADERS6 = (253, 253, 6, 17, 58, 59, 60, 44, 0, 43, 51, 50, 135, 4, 41)
LETTERS = (b"A", b"B", b"C", b"\0", b"\x06", b"\x08", b"\x2c", b"\x3c", b"\x80")
FAR = (8120, 8150, 8189, 8190, 8191)  # fragment offsets near the end of what a datagram may have


def config(random: Random) -> dict[str, Any]:
    """Draw settings; limits are small, so that they are met."""
    pick = random.choice
    return {
        "policy": pick(POLICIES) if random.random() < 0.7 else "linux",
        "path": pick(PATHS),
        "limits": pick(LIMITS),
        "timeout4": pick([2.0, 2.0, 30.0, 1e-9, 0.001, 1e9]),
        "timeout6": pick([3.0, 3.0, 60.0, 1e-9, 0.001, 1e9]),
        "memory": pick([None, None, None, 0, 1, 600, 1200, 2500, 5000, 20_000]),
        "max_dist": pick([None, None, 0, 1, 2, 3, (1 << 32) - 1]),
        "reclaim": pick([None, *RECLAIMS]),
        "checksum": pick([None, "verify", "ignore", "ignore"]),
        "duplicates": pick(["ignore", "discard"]),
        "extent": pick(["piece", "original"]),
        "local": pick([None, None, (), LOCAL]),
        "hash_key": random.getrandbits(128),
    }


PLAIN: dict[str, object] = {
    "policy": "linux",
    "path": "local",
    "limits": "capture",
    "timeout4": 30.0,
    "timeout6": 60.0,
    "memory": None,
    "max_dist": None,
    "reclaim": None,
    "checksum": None,
    "duplicates": "ignore",
    "extent": "piece",
    "local": None,
    "hash_key": 0,
}


def loaded(config: dict[str, Any]) -> dict[str, Any]:
    """Make settings of what JSON gave: it has no tuples."""
    local = config["local"]
    return config | {"local": None if local is None else tuple(local)}


def plainer(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the settings with one of them plain, each in turn."""
    for name, value in PLAIN.items():
        if config[name] != value:
            yield config | {name: value}


"""Settings a shrunk case returns to, where they do not matter."""


# ------------------------------------------------------------------------------------- packets


def packets(random: Random, count: int) -> list[bytes]:
    """Draw packets: single fragments, and whole datagrams cut, shuffled and mixed."""
    drawn: list[bytes] = []
    ids = random.choice([1, 2, 4, 300])
    while len(drawn) < count:
        if random.random() < 0.25:
            pieces = train(random, ids)
            if random.random() < 0.5:
                random.shuffle(pieces)
            drawn += pieces
        else:
            drawn.append(packet(random, ids))
        if drawn and random.random() < 0.1:
            drawn.append(random.choice(drawn[-20:]))
    if random.random() < 0.3:
        random.shuffle(drawn)
    return drawn[:count]


def packet(random: Random, ids: int) -> bytes:
    """Draw a fragment, perhaps damaged."""
    made = fragment4(random, ids) if random.random() < 0.55 else fragment6(random, ids)
    shape = random.random()
    if shape < 0.86:
        return made
    changed = bytearray(made)
    if shape < 0.90:
        del changed[random.randrange(len(changed) + 1) :]
    elif shape < 0.92:
        changed += bytes(random.randrange(60))
    elif shape < 0.98:
        for _ in range(random.choice([1, 1, 2, 8])):
            at = random.randrange(min(len(changed), 64))
            changed[at] = random.choice([0, 255, random.getrandbits(8), changed[at] ^ 1])
    elif shape < 0.99:
        changed[6:8] = b"\0\0"
    else:
        return random.randbytes(random.randrange(80))
    return bytes(changed)


def _place(random: Random) -> tuple[int, int, bool]:
    """Draw offset (bytes), length (bytes) and whether more follow."""
    offset = 8 * random.randrange(8)
    length = random.choice([8, 8, 16, 16, 24, 32, 64])
    shape = random.random()
    if shape < 0.04:
        offset = 8 * random.choice(FAR)
    elif shape < 0.07:
        offset = 8 * random.randrange(8192)
    if shape > 0.97:
        length = random.choice([0, 0, 1480, 9000, 65000])
    elif shape > 0.85:
        length = random.randrange(40)
    return offset, length, random.random() < 0.7


def fragment4(random: Random, ids: int) -> bytes:
    """Draw an IPv4 fragment."""
    offset, length, more = _place(random)
    odd = random.random()
    fields: dict[str, Any] = {}
    if odd < 0.02:
        fields["total_length"] = random.choice([0, 1, 19, 20, 21, 28, length + 12, 65535])
    elif odd < 0.04:
        fields["header_words"] = random.choice([0, 4, 5, 6, 15])
    elif odd < 0.12:
        fields["options"] = random.choice([b"\x01" * 4, b"\x01" * 40, b"\x83\x07\x04" + bytes(5)])
    elif odd < 0.16:
        fields["header_checksum"] = "bad"
    return builders.ipv4(
        random.choice(LETTERS) * length,
        src=random.choice(SOURCES4),
        dst=random.choice(TARGETS4),
        protocol=random.choice(PROTOCOLS),
        id=random.randrange(ids),
        ecn=random.choice([0, 0, 0, 0, 0, 1, 2, 3]),
        df=random.random() < 0.1,
        mf=more,
        reserved=random.random() < 0.02,
        offset=offset,
        **fields,
    )


def _chain(random: Random) -> list[Extension]:
    """Draw extension headers."""
    kinds: list[Callable[[], Extension]] = [
        builders.hop_by_hop,
        builders.destination_options,
        builders.routing,
        lambda: builders.hop_by_hop(b"\xc2\x04\x00\x01\x00\x00"),  # jumbo payload (RFC 2675)
        lambda: builders.destination_options(bytes(random.choice([6, 14, 300]))),
        lambda: builders.Extension(51, bytes(random.choice([6, 14, 22]))),
        lambda: builders.Extension(random.choice([135, 139, 140, 253]), bytes(6)),
        lambda: builders.fragment_header(id=random.randrange(3), more=random.random() < 0.5),
    ]
    return [random.choice(kinds)() for _ in range(random.choice([0, 0, 0, 0, 1, 1, 2, 3, 9]))]


def fragment6(random: Random, ids: int) -> bytes:
    """Draw an IPv6 fragment, or now and then any chain of headers."""
    offset, length, more = _place(random)
    if random.random() < 0.06:  # atomic
        offset, more = 0, False
    payload = random.choice(LETTERS) * length
    if random.random() < 0.04:  # begins with more of the header chain
        payload = random.choice([b"\x2c\0", b"\x3c\0", b"\x06\x01", b"\x11\x09"]) + payload[2:]
    extensions = _chain(random)
    if random.random() < 0.96:
        extensions.append(
            builders.fragment_header(
                id=random.randrange(ids),
                offset=offset,
                more=more,
                reserved=random.choice([0, 0, 0, 255]),
                reserved_bits=random.choice([0, 0, 0, 3]),
            )
        )
    if random.random() < 0.08:
        extensions += _chain(random)
    lengths: list[int | None] = [None]
    if random.random() < 0.04:
        lengths = [0, 1, 7, 8, 9, length + 4, 65535]
    elif length > 50_000:
        lengths = [65535]
    return builders.ipv6(
        payload,
        src=random.choice(SOURCES6),
        dst=random.choice(TARGETS6),
        next_header=random.choice(HEADERS6),
        ecn=random.choice([0, 0, 0, 0, 0, 1, 2, 3]),
        extensions=extensions,
        payload_length=random.choice(lengths),
    )


def train(random: Random, ids: int) -> list[bytes]:
    """Draw a whole datagram, cut."""
    payload = random.randbytes(random.choice([0, 9, 40, 100, 100, 300, 3000, 65000]))
    size = max(8, len(payload) // random.choice([2, 3, 3, 5, 9]) // 8 * 8)
    ident = random.randrange(ids)
    if random.random() < 0.5:
        whole = builders.ipv4(
            payload, src=random.choice(SOURCES4[:4]), dst=TARGETS4[0], protocol=253, id=ident
        )
        return builders.fragment(whole, sizes=[size] * 12)
    whole = builders.ipv6(
        payload,
        src=random.choice(SOURCES6[:4]),
        dst=TARGETS6[0],
        next_header=253,
        extensions=random.choice([[], [], [builders.hop_by_hop()], [builders.routing()]]),
    )
    return builders.fragment(whole, sizes=[size] * 12, id=ident)


# --------------------------------------------------------------------------------------- times


def times(random: Random, count: int) -> list[int]:
    """Draw times that creep, or sometimes leap and run backward; ns."""
    steps = [0, 0, 1, 1000, 1_000_000]
    if random.random() < 0.4:
        steps += [SECOND // 2, SECOND, 2 * SECOND, 3 * SECOND]
    back = [-1, -SECOND, -2 * SECOND, -3 * SECOND, -40 * SECOND]
    now = random.choice([0, EPOCH, EPOCH, EPOCH, (1 << 32) * SECOND - 5])
    drawn = []
    for _ in range(count):
        now += random.choice(back) if random.random() < 0.03 else random.choice(steps)
        now = max(now, 0)
        drawn.append(now)
    return drawn


def wild_times(random: Random, count: int) -> list[int]:
    """Draw times from all that 64 bits hold."""
    edges = [-(1 << 63), -SECOND, -1, 0, EPOCH, (1 << 63) - 1]
    drawn = [random.choice(edges) + random.randrange(-3, 3) * SECOND for _ in range(count)]
    return [min(max(time, -(1 << 63)), (1 << 63) - 1) for time in drawn]
