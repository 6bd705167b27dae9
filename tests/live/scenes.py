"""Short flows that each show one rule; random ones hit the rarer of them too seldom."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any, Final

from fragtrack.testing import (
    fragment,
    fragment_header,
    gre,
    hop_by_hop,
    icmp_error,
    icmp_query,
    icmpv6_error,
    icmpv6_query,
    icmpv6_redirect,
    ipv6,
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
    udp,
)
from tests.live.flow import CLIENT, SERVER, Flow
from tests.live.icmp import DISCOVERY
from tests.live.simple import summed
from tests.live.tcp import Conversation
from tests.live.tuples import GRE, ICMP, ICMPV6, SCTP, UDP, UDPLITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TO_STATE: Final = {  # what brings a TCP connection there, and the timeout that it has then
    "SYN_SENT": ("syn_sent", "0 syn"),
    "SYN_SENT2": (None, "0 syn 1 syn"),
    "SYN_RECV": ("syn_recv", "0 syn 1 synack"),
    "ESTABLISHED": ("established", "0 syn 1 synack 0 ack"),
    "picked up": ("unacknowledged", "0 ack"),
    "FIN_WAIT": ("fin_wait", "0 syn 1 synack 0 ack 0 fin"),
    "CLOSE_WAIT": ("close_wait", "0 syn 1 synack 0 ack 0 fin 1 ack"),
    "LAST_ACK": ("last_ack", "0 syn 1 synack 0 ack 0 fin 1 ack 1 fin"),
    "TIME_WAIT": ("time_wait", "0 syn 1 synack 0 ack 0 fin 1 ack 1 fin 0 ack"),
    "CLOSE": ("close", "0 syn 1 synack 0 ack 1 ack 0 rst"),
}
ASSOCIATION: Final = (  # side, chunk, and the state afterwards
    (CLIENT, sctp_init(7), "closed"),
    (SERVER, sctp_init_ack(9), "cookie_wait"),
    (CLIENT, sctp_cookie_echo(), "cookie_echoed"),
    (SERVER, sctp_cookie_ack(), "established"),
    (CLIENT, sctp_shutdown(), "shutdown_sent"),
    (SERVER, sctp_shutdown_ack(), "shutdown_ack_sent"),
    (CLIENT, sctp_shutdown_complete(), "closed"),
)
CHUNKS: Final = {
    "DATA": sctp_data(b"x"),
    "INIT": sctp_init(7),
    "INIT_ACK": sctp_init_ack(7),
    "SACK": sctp_sack(),
    "HEARTBEAT": sctp_heartbeat(),
    "HEARTBEAT_ACK": sctp_heartbeat(ack=True),
    "ABORT": sctp_abort(),
    "SHUTDOWN": sctp_shutdown(),
    "SHUTDOWN_ACK": sctp_shutdown_ack(),
    "ERROR": sctp_chunk(9),
    "COOKIE_ECHO": sctp_cookie_echo(),
    "COOKIE_ACK": sctp_cookie_ack(),
    "SHUTDOWN_COMPLETE": sctp_shutdown_complete(),
    "type 15": sctp_chunk(15),
    "length 0": sctp_chunk(4, length=0),
    "length 3": sctp_chunk(4, length=3),
    "long": sctp_chunk(4, length=100),
}
PORTS: Final = (1000, 2000)


class Stage:
    """Makes empty flows of one IP version, each with addresses of its own."""

    def __init__(self, version: int, first: int) -> None:
        self.version = version
        self.number = first

    def flow(self, kind: str, settings: dict[str, int] | None = None) -> Flow:
        """Make the next one."""
        self.number += 1
        return Flow(f"scene {kind}", self.version, self.number, settings=settings or {})


def scenes() -> list[Flow]:
    """Make them all, for both IP versions where it matters."""
    made: list[Flow] = []
    for scene in SCENES:
        for version in (4, 6):
            made += scene(Stage(version, len(made)))
    return made


# ------------------------------------------------------------------------------------ time passes


def tcp_expires(stage: Stage) -> Iterator[Flow]:
    """Every state runs out after its timeout, which only accepted packets begin anew."""
    for place, (state, (timeout, story)) in enumerate(TO_STATE.items()):
        settings = {} if timeout is None else {f"tcp_timeout_{timeout}": 1}
        for then in ("look", "again", "out of window"):
            flow = stage.flow(f"tcp expires, {then}", settings)
            talk = Conversation(random.Random(f"{place} {stage.version}"), flow)
            words = story.split()
            for side, what in zip(words[::2], words[1::2], strict=True):
                talk.say(int(side), what)
            flow.wait(750)
            if then == "again":
                last = flow.steps[-2]
                flow.add(last.side, last.packet, f"{state} again")
            elif then == "out of window":
                talk.segment(CLIENT, 16, seq=talk.ends[0].next + (1 << 30), keep=False)
            flow.wait(500)
            flow.wait(750)
            talk.say(CLIENT, "data")
            yield flow


def sctp_expires(stage: Stage) -> Iterator[Flow]:
    """Every state of an association runs out after its timeout."""
    for count, (_, _, state) in enumerate(ASSOCIATION, 1):
        flow = stage.flow("sctp expires", {f"sctp_timeout_{state}": 1})
        _associate(flow, count)
        flow.wait(750)
        if count in {1, 7}:  # an INIT does not begin the time of CLOSED anew
            flow.send(CLIENT, SCTP, sctp(sctp_init(7), sport=1000, dport=2000), "INIT again")
        flow.wait(500)
        _chunks(flow, CLIENT, sctp_data(b"late"), 9)
        yield flow
    flow = stage.flow("sctp expires", {"sctp_timeout_heartbeat_sent": 1})
    _chunks(flow, CLIENT, sctp_heartbeat(), 9)
    flow.wait(1250)
    _chunks(flow, SERVER, sctp_heartbeat(ack=True), 7)
    yield flow


def udp_streams(stage: Stage) -> Iterator[Flow]:
    """A stream is one that still talks 2 seconds after its first packet."""
    for settings in ({}, {"udp_timeout": 1, "udp_timeout_stream": 2}, {"udp_timeout": 3}):
        flow = stage.flow("udp stream", settings)
        for wait, sides in ((0, "011"), (750, "10"), (1500, "0"), (1250, "1"), (2000, "0")):
            if wait:
                flow.wait(wait)
            for side in map(int, sides):
                ports: dict[str, Any] = {"sport": PORTS[side], "dport": PORTS[1 - side]}
                flow.send(side, UDP, udp(b"x", **ports, **flow.between(side)), "udp")
        yield flow


def others_expire(stage: Stage) -> Iterator[Flow]:
    """Errors about a connection do not keep it; packets of it do."""
    for timeout in ("icmp_timeout", "icmpv6_timeout", "gre_timeout", "generic_timeout"):
        flow = stage.flow("expires", {timeout: 1})
        protocol, payload = _payload(flow, timeout)
        flow.send(CLIENT, protocol, payload, "first")
        flow.wait(750)
        _error(flow, SERVER, flow.steps[0].packet or b"", "error")
        flow.wait(750)
        flow.send(CLIENT, protocol, payload, "anew")
        flow.wait(750)
        flow.send(CLIENT, protocol, payload, "again")
        flow.wait(500)
        yield flow
    for timeout in ("gre_timeout", "generic_timeout"):
        flow = stage.flow("expires", {timeout: 1})
        protocol, payload = _payload(flow, timeout)
        flow.send(CLIENT, protocol, payload, "first")
        flow.wait(750)
        flow.send(SERVER, protocol, payload, "answer")
        flow.wait(500)
        flow.send(CLIENT, protocol, payload, "more")
        flow.wait(1500)
        yield flow


def _payload(flow: Flow, timeout: str) -> tuple[int, bytes]:
    if timeout == "gre_timeout":
        return GRE, gre(b"x")
    if timeout == "generic_timeout":
        return 99, b"x"
    if flow.version == 4:
        return ICMP, icmp_query(8)
    return ICMPV6, icmpv6_query(128, **flow.between(CLIENT))


# ------------------------------------------------------------------------------------------ SCTP


def _chunks(flow: Flow, side: int, chunks: bytes, vtag: int, note: str = "sctp") -> None:
    built = sctp(chunks, vtag=vtag, sport=PORTS[side], dport=PORTS[1 - side])
    flow.send(side, SCTP, built, note)


def _associate(flow: Flow, count: int) -> None:
    """Write the first chunks of an association; the client's tag is 7, the server's 9."""
    for number, (side, chunk, _) in enumerate(ASSOCIATION[:count]):
        tag = 0 if number == 0 else (9, 7)[side]
        _chunks(flow, side, chunk, tag, f"association {number}")


def sctp_first(stage: Stage) -> Iterator[Flow]:
    """Which chunks begin an association, with which tag."""
    if stage.version == 6:
        return
    for tag in (0, 5):
        for name, chunk in CHUNKS.items():
            flow = stage.flow("sctp first")
            _chunks(flow, CLIENT, chunk, tag, f"{name}, tag {tag}")
            _chunks(flow, SERVER, sctp_heartbeat(), 6, "heartbeat")
            _chunks(flow, CLIENT, sctp_data(b"x"), 5, "data")
            yield flow


def sctp_bundles(stage: Stage) -> Iterator[Flow]:
    """Which chunks may stand behind which."""
    if stage.version == 6:
        return
    for first, one in CHUNKS.items():
        flow = stage.flow("sctp bundles")
        _associate(flow, 4)
        for second in ("DATA", "INIT", "COOKIE_ECHO", "COOKIE_ACK", "HEARTBEAT_ACK", "ABORT"):
            note = f"{first} + {second}"
            _chunks(flow, CLIENT, one + CHUNKS[second], 0 if first == "INIT" else 9, note)
        yield flow


def sctp_tags(stage: Stage) -> Iterator[Flow]:
    """Whose tag a packet has to carry, in every state."""
    if stage.version == 6:
        return
    for count in range(1, len(ASSOCIATION) + 1):
        for reflected in (False, True):
            flow = stage.flow("sctp tags")
            _associate(flow, count)
            for tag in (0, 5, 7, 9):
                for chunk in (
                    sctp_abort(reflected=reflected),
                    sctp_shutdown_complete(reflected=reflected),
                    sctp_heartbeat(ack=reflected),
                    CHUNKS["COOKIE_ECHO" if reflected else "DATA"],
                )[:: -1 if reflected else 1]:
                    _chunks(flow, stage.number % 2, chunk, tag, f"type {chunk[0]}, tag {tag}")
            yield flow


# -------------------------------------------------------------------------- tables without states


def udplite_coverage(stage: Stage) -> Iterator[Flow]:
    """The kernel sums UDP-Lite with the protocol number of UDP, and demands a sum."""
    flow = stage.flow("udplite")
    data = b"12345678"
    for coverage in (0, 1, 7, 8, 9, 15, 16, 17, 65535):
        for protocol in (UDP, UDPLITE):
            head = struct.pack(">HHHH", *PORTS, coverage, 0)
            covered = coverage or 16
            numbers = {"covered": covered, "length": 16, "number": protocol}
            built = summed(head + data, flow.between(CLIENT), **numbers)
            flow.send(CLIENT, UDPLITE, built, f"coverage {coverage}, summed as {protocol}")
    flow.send(CLIENT, UDPLITE, struct.pack(">HHHH", *PORTS, 0, 0), "no sum")
    yield flow


def gre_keys(stage: Stage) -> Iterator[Flow]:
    """Version 1 has keys, and so never an answer."""
    flow = stage.flow("gre")
    for side in (CLIENT, CLIENT, SERVER, SERVER, CLIENT):
        flow.send(side, GRE, gre(b"x"), "version 0")
        flow.send(side, GRE, gre(b"x", version=1, call_id=5 + side, sequence=1), "version 1")
    flow.send(SERVER, GRE, gre(b"x", version=1, call_id=0), "call 0")
    flow.send(SERVER, GRE, gre(b"x", version=1, call_id=5, protocol=0x0800), "no PPP")
    flow.send(CLIENT, GRE, gre(b"x", version=1, call_id=5, protocol=0x0800)[:7], "no PPP, cut")
    flow.send(CLIENT, GRE, b"", "empty")
    flow.send(SERVER, GRE, gre(b"x", version=5, key=3), "version 5")
    yield flow


def discovery(stage: Stage) -> Iterator[Flow]:
    """Neighbor and listener discovery is not tracked, if it is sound."""
    if stage.version == 4:
        return
    flow = stage.flow("discovery")
    ends = flow.between(CLIENT)
    for kind in DISCOVERY:
        flow.send(CLIENT, ICMPV6, icmpv6_query(kind, bytes(16), **ends), f"type {kind}")
        flow.send(CLIENT, ICMPV6, icmpv6_query(kind, bad=True, **ends), f"type {kind}, bad sum")
        flow.send(CLIENT, ICMPV6, icmpv6_query(kind, **ends)[:7], f"type {kind}, cut")
    yield flow


def _error(flow: Flow, side: int, quote: bytes, note: str, **ends: str) -> None:
    both = {**flow.between(side), **ends}
    if flow.version == 4:
        flow.send(side, ICMP, icmp_error(3, 1, quote), note, **both)
    else:
        flow.send(side, ICMPV6, icmpv6_error(1, 0, quote, **both), note, **both)


def icmp_errors(stage: Stage) -> Iterator[Flow]:
    """What of a quoted packet must be there, and whom an error may come from and go to."""
    flow = stage.flow("icmp errors")
    ends, head = flow.between(CLIENT), 20 if stage.version == 4 else 40
    flow.send(CLIENT, UDP, udp(b"hello", **ends), "udp")
    said = flow.steps[0].packet or b""
    for length in (0, 1, head - 1, head, head + 3, head + 4, head + 8, 100):
        _error(flow, SERVER, said[:length], f"quotes {min(length, len(said))} bytes")
    _error(flow, SERVER, said, "of a router", src=flow.address(SERVER, 1))
    _error(flow, SERVER, said, "to a stranger", dst=flow.address(CLIENT, 1))
    _error(flow, CLIENT, said, "of the one that said it")
    _error(flow, SERVER, flow.wrap(CLIENT, UDP, udp(b"?", sport=1, **ends)), "unknown")
    _error(flow, SERVER, flow.steps[1].packet or b"", "about an error")
    for protocol, payload in ((GRE, gre(b"x")), (99, b"x"), (SCTP, sctp(sctp_init(7)))):
        flow.send(CLIENT, protocol, payload, f"protocol {protocol}")
        said = flow.steps[-1].packet or b""
        for length in (head, head + 4, head + 8):
            _error(flow, SERVER, said[:length], f"about protocol {protocol}, {length} bytes")
    yield flow
    yield _quoted_pieces(stage)
    if stage.version == 6:
        yield _redirects(stage)


def _quoted_pieces(stage: Stage) -> Flow:
    flow = stage.flow("icmp errors")
    ends = flow.between(CLIENT)
    flow.send(CLIENT, UDP, udp(b"hello, hello", **ends), "udp")
    said = flow.steps[0].packet or b""
    for piece in fragment(said, [8, 8]):
        _error(flow, SERVER, piece, "about a fragment")
    if stage.version == 6:
        for header in (hop_by_hop(), fragment_header(id=1)):
            inner = ipv6(said[40:], extensions=[header], **ends)
            for length in (43, 44, 47, 48, 52, 100):
                _error(flow, SERVER, inner[:length], f"extension header, {length} bytes")
        flow.send(CLIENT, GRE, gre(b"x"), "gre")
        inner = ipv6(gre(b"x"), next_header=GRE, extensions=[fragment_header(id=1)], **ends)
        for length in (41, 43, 44, 48):
            _error(flow, SERVER, inner[:length], f"fragment header of gre, {length} bytes")
    kinds = (8, 0, 3, 10, 13, 42) if stage.version == 4 else (128, 129, 1, 133, 139, 200)
    for kind in kinds:
        message = icmp_query(kind) if stage.version == 4 else icmpv6_query(kind, **ends)
        icmp = ICMP if stage.version == 4 else ICMPV6
        flow.send(CLIENT, icmp, message, f"type {kind}")
        for length in (7, 8):
            quote = flow.wrap(CLIENT, icmp, message[:length])
            _error(flow, SERVER, quote, f"about type {kind}, {length} bytes")
    return flow


def _redirects(stage: Stage) -> Flow:
    flow = stage.flow("icmp errors")
    ends = flow.between(CLIENT)
    flow.send(CLIENT, UDP, udp(b"hello", **ends), "udp")
    said = flow.steps[0].packet or b""
    router = {"src": "fe80::1", "dst": ends["src"]}
    message = icmpv6_redirect(said, **router)
    for hops in (255, 64):
        flow.send(SERVER, ICMPV6, message, f"redirect, hop limit {hops}", hop_limit=hops, **router)
    for length in (8, 40, 41, 48, 87, 92):
        cut = icmpv6_redirect(said, **router)[:length]
        flow.send(SERVER, ICMPV6, cut, f"redirect, {length} bytes", hop_limit=255, **router)
    bare = icmpv6_redirect(said, header_option=False, **router)
    flow.send(SERVER, ICMPV6, bare, "redirect without quote", hop_limit=255, **router)
    return flow


SCENES: tuple[Callable[[Stage], Iterator[Flow]], ...] = (
    tcp_expires,
    sctp_expires,
    udp_streams,
    others_expire,
    sctp_first,
    sctp_bundles,
    sctp_tags,
    udplite_coverage,
    gre_keys,
    discovery,
    icmp_errors,
)
