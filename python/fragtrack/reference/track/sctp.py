"""SCTP (``nf_conntrack_proto_sctp.c``): what chunks do, and which verification tag is right.

A packet holds several chunks, and each goes through the table. As in the kernel, what earlier
chunks of a packet changed stays if a later one is invalid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from fragtrack.reference.track import checksums
from fragtrack.reference.track.finding import Finding, Handled, TrackReason, Way
from fragtrack.reference.track.sctp_table import (
    ABORT,
    COOKIE_ACK,
    COOKIE_ECHO,
    DATA,
    HEARTBEAT,
    HEARTBEAT_ACK,
    INIT,
    INIT_ACK,
    SHUTDOWN_ACK,
    SHUTDOWN_COMPLETE,
    State,
    next_state,
    state_timeout,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fragtrack.reference.track.flow import Flow
    from fragtrack.reference.track.packet import Packet
    from fragtrack.track_config import TrackConfig

HEADER: Final = 12
CHUNK_HEADER: Final = 4
INIT_HEADER: Final = 16
"""Bytes of an INIT or INIT ACK behind its chunk header, without parameters."""
T_BIT: Final = 1

ALONE: Final = frozenset((INIT, INIT_ACK, SHUTDOWN_COMPLETE))
FIRST: Final = frozenset((COOKIE_ACK, COOKIE_ECHO))
NEVER_NEW: Final = frozenset((ABORT, SHUTDOWN_COMPLETE, COOKIE_ACK))
OWN_RULES: Final = frozenset(
    (INIT, SHUTDOWN_COMPLETE, COOKIE_ECHO, ABORT, SHUTDOWN_ACK, HEARTBEAT, HEARTBEAT_ACK)
)
"""Chunks whose packets' tags are not compared, or compared otherwise."""


class Chunk(NamedTuple):
    """A chunk: type, flags, where it stands in the SCTP packet, and what is behind its header."""

    type: int
    flags: int
    at: int
    length: int
    body: bytes

    @property
    def init_tag(self) -> int | None:
        """The tag an INIT or INIT ACK tells, if it is long enough."""
        return int.from_bytes(self.body[:4], "big") if len(self.body) >= INIT_HEADER else None

    def misplaced(self) -> Finding:
        """Say that it cannot stand there."""
        return Finding(TrackReason.chunk, self.type, self.at)


@dataclass(slots=True)
class Sctp:
    """SCTP state of a connection (``struct ip_ct_sctp``).

    Attributes
    ----------
    tags : list of int
        Verification tag expected per direction; 0 is none yet.
    init : list of bool
        An INIT of that direction is not answered by a COOKIE ACK yet.
    last_way : Way
        Direction of the last heartbeat with a wrong tag.
    heartbeat_failed : bool
        Such a heartbeat waits for its answer.
    """

    state: State = State.NONE
    tags: list[int] = field(default_factory=lambda: [0, 0])
    init: list[bool] = field(default_factory=lambda: [False, False])
    last_way: Way = Way.ORIGINAL
    heartbeat_failed: bool = False


def chunks(transport: bytes) -> Iterator[Chunk]:
    """Yield the chunks as far as they were captured (``for_each_sctp_chunk``)."""
    at = HEADER
    while at + CHUNK_HEADER <= len(transport):
        length = int.from_bytes(transport[at + 2 : at + 4], "big")
        body = transport[at + CHUNK_HEADER :]
        yield Chunk(transport[at], transport[at + 1], at, length, body)
        at += length + 3 & ~3


def error(packet: Packet, config: TrackConfig) -> Finding | None:
    """Say what is wrong with an SCTP header (``sctp_error``)."""
    return packet.short(HEADER) or checksums.sctp(packet, config)


def order(packet: Packet) -> Finding | None:
    """Say which chunk cannot stand where it does (``do_basic_checks``)."""
    found = count = 0
    for chunk in chunks(packet.transport):
        found = found or chunk.type in ALONE
        not_first = found or chunk.type in FIRST
        if (not_first and count) or chunk.length == 0:
            return chunk.misplaced()
        count += 1
    if count:
        return None
    if not packet.complete and packet.size >= HEADER + CHUNK_HEADER:
        return packet.short(HEADER + CHUNK_HEADER)
    return Finding(TrackReason.chunk, 0, HEADER)


def open_association(packet: Packet) -> Sctp | Finding:
    """Set up the entry of a packet without one (``sctp_new``), or say why there is none."""
    sctp, tag = Sctp(), tag_of(packet)
    found = list(chunks(packet.transport))
    for chunk in found:
        if chunk.type in NEVER_NEW:  # RFC 9260 section 8.4
            return _not_allowed(chunk, State.NONE)
    for chunk in found:
        if next_state(Way.ORIGINAL, State.NONE, chunk.type) in (None, State.NONE):
            return _not_allowed(chunk, State.NONE)
        if chunk.type == INIT:
            if tag != 0:
                return Finding(TrackReason.vtag, tag, 0)
            if chunk.init_tag is None:
                return chunk.misplaced()
            sctp.tags[Way.REPLY] = chunk.init_tag
        elif chunk.type == HEARTBEAT:
            sctp.tags[Way.ORIGINAL] = tag
        elif chunk.type == SHUTDOWN_ACK:  # its answer carries its tag (RFC 9260 section 8.4)
            sctp.tags[Way.REPLY] = tag
    return sctp


def tag_of(packet: Packet) -> int:
    """Return the verification tag."""
    return int.from_bytes(packet.transport[4:8], "big")


def handle(flow: Flow, way: Way, packet: Packet, config: TrackConfig) -> Handled:
    """Take an SCTP packet (``nf_conntrack_sctp_packet``)."""
    wrong = error(packet, config) or order(packet)
    if wrong:
        return Handled("invalid", wrong)
    fresh = flow.sctp is None
    if fresh:
        opened = open_association(packet)
        if isinstance(opened, Finding):
            return Handled("invalid", opened)
        flow.sctp = opened
    sctp = flow.sctp
    assert sctp is not None
    types = {chunk.type for chunk in chunks(packet.transport)}
    walk = Walk(flow, sctp, way, tag_of(packet), types, fresh=fresh)
    refused = walk.foreign() or walk.all(packet)
    if refused:
        return Handled("invalid", refused, changed=walk.changed)
    if walk.keep_timeout:
        return Handled("pass", changed=walk.changed)
    return Handled("accept", None, state_timeout(walk.new, config), walk.changed)


@dataclass(slots=True)
class Walk:
    """The chunks of one packet, one after the other.

    Attributes
    ----------
    tag : int
        Verification tag of the packet.
    types : set of int
        All its chunk types.
    new : State
        State behind the latest chunk that went through the table.
    keep_timeout : bool
        The packet is accepted, but does not move the deadline.
    changed : bool
        State or ASSURED changed.
    """

    flow: Flow
    sctp: Sctp
    way: Way
    tag: int
    types: set[int]
    fresh: bool = False
    new: State = State.NONE
    keep_timeout: bool = False
    changed: bool = False

    def foreign(self) -> Finding | None:
        """Say that the tag is not that of the association (RFC 9260 section 8.5)."""
        return None if self.types & OWN_RULES else self._expect(self.way)

    def all(self, packet: Packet) -> Finding | None:
        """Take every chunk, up to one that is invalid."""
        for chunk in chunks(packet.transport):
            rule = TAG_RULES.get(chunk.type)
            verdict = rule(self, chunk) if rule else None
            if isinstance(verdict, Finding):
                return verdict
            if verdict == SKIP:
                continue
            refused = self._step(chunk)
            if refused:
                return refused
        return None

    def _expect(self, way: Way) -> Finding | None:
        right = self.sctp.tags[way]
        return None if self.tag == right else Finding(TrackReason.vtag, self.tag, right)

    def _step(self, chunk: Chunk) -> Finding | None:
        """Go through the table."""
        old = self.sctp.state
        new = next_state(self.way, old, chunk.type)
        if new is None:
            return _not_allowed(chunk, old)
        self.new = new
        refused = None
        if chunk.type == INIT:
            refused = self._note_init(chunk, old, new)
        elif chunk.type == INIT_ACK:
            refused = self._note_init_ack(chunk)
        if refused:
            return refused
        self.sctp.state = new
        if old is not new:
            self.changed = True
            if new is State.ESTABLISHED:
                self.flow.assured = True
        return None

    def _note_init(self, chunk: Chunk, old: State, new: State) -> Finding | None:
        tag = chunk.init_tag
        if tag is None:
            return chunk.misplaced()
        sctp, way = self.sctp, self.way
        if self.fresh or tag != sctp.tags[way.other]:  # else it is stale, or not true
            if sctp.init[way] and sctp.init[way.other]:
                sctp.init[way.other] = False
            sctp.init[way] = True
        sctp.tags[way.other] = tag
        if old is State.CLOSED and new is State.CLOSED and not self.fresh:
            self.keep_timeout = True  # a repeated INIT does not keep the entry
        return None

    def _note_init_ack(self, chunk: Chunk) -> Finding | None:
        tag = chunk.init_tag
        if tag is None:
            return chunk.misplaced()
        sctp, way = self.sctp, self.way
        known = sctp.tags[way.other]
        if not sctp.init[way.other] and known not in (0, tag):
            return Finding(TrackReason.vtag, tag, known)
        collision = sctp.init[way] and sctp.init[way.other]
        if collision and known != tag:
            return Finding(TrackReason.vtag, tag, known)
        sctp.tags[way.other] = tag
        return None

    # -- rules of single chunks for the tag of their packet (RFC 9260 section 8.5.1)

    def tag_init(self, _: Chunk) -> Finding | None:
        """Expect tag 0 of an INIT (A)."""
        return Finding(TrackReason.vtag, self.tag, 0) if self.tag else None

    def tag_reflected(self, chunk: Chunk) -> Finding | None:
        """Expect the tag of the other side, if the T bit is set (B, C)."""
        return self._expect(self.way.other if chunk.flags & T_BIT else self.way)

    def tag_cookie_echo(self, _: Chunk) -> Finding | None:
        """Expect the tag that the INIT ACK told (D)."""
        return self._expect(self.way)

    def tag_cookie_ack(self, _: Chunk) -> Finding | None:
        """End the exchange of INITs."""
        self.sctp.init = [False, False]
        return None

    def tag_heartbeat(self, _: Chunk) -> Finding | str | None:
        """Learn the tag of a path; a heartbeat with another tag waits for its answer."""
        sctp = self.sctp
        if sctp.tags[self.way] == 0:
            sctp.tags[self.way] = self.tag
            return None
        wrong = self._expect(self.way)
        if wrong is None:
            sctp.heartbeat_failed = False
            return None
        if DATA in self.types or self.keep_timeout:
            return wrong
        sctp.heartbeat_failed = self.keep_timeout = True
        sctp.last_way = self.way
        return SKIP

    def tag_heartbeat_ack(self, _: Chunk) -> Finding | None:
        """Learn it from an answer; one to a heartbeat with another tag makes that the right one."""
        sctp, way = self.sctp, self.way
        if sctp.tags[way] == 0:
            sctp.tags[way] = self.tag
            return None
        wrong = self._expect(way)
        if wrong:
            unexpected = not sctp.heartbeat_failed or sctp.last_way is way
            if DATA in self.types or self.keep_timeout or unexpected:
                return wrong
            sctp.tags[way], sctp.tags[way.other] = self.tag, 0
        sctp.heartbeat_failed = False
        return None


SKIP: Final = "skip"
"""The chunk does not go through the table."""

TAG_RULES: Final = {
    INIT: Walk.tag_init,
    ABORT: Walk.tag_reflected,
    SHUTDOWN_COMPLETE: Walk.tag_reflected,
    COOKIE_ECHO: Walk.tag_cookie_echo,
    COOKIE_ACK: Walk.tag_cookie_ack,
    HEARTBEAT: Walk.tag_heartbeat,
    HEARTBEAT_ACK: Walk.tag_heartbeat_ack,
}


def _not_allowed(chunk: Chunk, state: State) -> Finding:
    return Finding(TrackReason.chunk_state, chunk.type, int(state))
