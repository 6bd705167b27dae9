"""The six TCP scenarios of the Linux selftests (net/netfilter/packetdrill), restated.

Each is a story for IPv4 and IPv6: after every packet its class, direction, state and reason; at the
end how many packets of each side were invalid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tracking import VERSIONS, WORD, Bench, talk_of

if TYPE_CHECKING:
    from fragtrack.testing import Talk

pytestmark = pytest.mark.parametrize("version", VERSIONS)

SEGMENT = 1460


class Scenario:
    """A bench that counts what is invalid by the side that sent it."""

    def __init__(self, backend: str) -> None:
        self.bench = Bench(backend)
        self.invalid = {"client": 0, "server": 0}

    def client(self, packet: bytes, expected: str) -> None:
        self._step("client", packet, expected)

    def server(self, packet: bytes, expected: str) -> None:
        self._step("server", packet, expected)

    def _step(self, side: str, packet: bytes, expected: str) -> None:
        (verdict,) = self.bench.tell((packet, expected))
        self.invalid[side] += verdict.ct_class == "invalid"


def test_lost_acks_do_not_stall_a_connection(backend: str, version: int) -> None:
    # 46 full segments were acknowledged, and the acknowledgments were lost on the way: the first
    # segment comes once more, further below than the largest window, and must not be invalid.
    story, talk = Scenario(backend), talk_of(version)
    story.bench.open(talk)
    for _ in range(46):
        story.server(talk.server("PA", bytes(SEGMENT)), "established reply ESTABLISHED")
        story.client(talk.client("A"), "established original ESTABLISHED")
    again = talk.server("PA", bytes(SEGMENT), seq=1)
    story.server(again, "established reply ESTABLISHED seq_below")
    story.client(talk.client("A"), "established original ESTABLISHED")
    assert story.invalid == {"client": 0, "server": 0}
    # What was compared: the end of the segment, and the end of all data less the window.
    verdict = story.bench.push(again)
    ends = 1 + SEGMENT, 1 + 46 * SEGMENT
    assert verdict.got == talk.server.at(ends[0])
    assert verdict.bound == talk.server.at(ends[1] - 65535)
    assert story.bench.only.invalid == 0


def test_an_inexact_reset_is_fine_once_a_side_closes(backend: str, version: int) -> None:
    story, talk = Scenario(backend), talk_of(version)
    story.bench.open(talk)
    story.client(talk.client("PA", b"request"), "established original ESTABLISHED")
    story.server(talk.server("PA", b"answer"), "established reply ESTABLISHED")
    story.server(talk.server("FA"), "established reply FIN_WAIT")
    story.client(talk.client("A"), "established original CLOSE_WAIT")
    story.client(talk.client("R"), "established original CLOSE")
    story.server(talk.server("R", seq=777_777), "established reply CLOSE")
    story.client(talk.client("R", seq=123_456_789), "established original CLOSE")
    assert story.invalid == {"client": 0, "server": 0}


def test_resets_with_bad_numbers_leave_the_connection(backend: str, version: int) -> None:
    # The client's numbers begin at 0, so that the relative ones are those in the packets.
    story, talk = Scenario(backend), talk_of(version, client_isn=0)
    story.bench.open(talk)
    story.client(talk.client("PA", bytes(1000)), "established original ESTABLISHED")
    story.server(talk.server("A"), "established reply ESTABLISHED")
    forged = "invalid - ESTABLISHED"
    story.client(talk.client("R", seq=0), f"{forged} rst_below")
    story.client(talk.client("R", seq=1_000_000), f"{forged} seq_above")
    story.client(talk.client("R", seq=42), f"{forged} rst_below")
    story.client(talk.client("R", seq=1000), f"{forged} rst_below")
    assert story.invalid == {"client": 4, "server": 0}
    assert story.bench.only.invalid == 4
    story.client(talk.client("R", seq=1001), "established original CLOSE")
    assert story.invalid == {"client": 4, "server": 0}


def test_a_challenge_ack_to_a_syn_leads_to_a_fresh_connection(backend: str, version: int) -> None:
    # The server still has the connection that the client forgot: it answers the SYN with the ACK
    # of the old one, the client resets that, and its next SYN must find everything fresh.
    story, talk = Scenario(backend), talk_of(version)
    story.client(talk.client("S"), "new original SYN_SENT")
    old = 145_824_453
    challenge = talk.server("A", seq=999_000, ack=old)
    story.server(challenge, "established reply SYN_SENT state")
    story.client(talk.client("R", seq=old), "established original CLOSE")
    (repeated,) = story.bench.tell((talk.client("S"), "new original SYN_SENT reopened"))
    assert not repeated.seen_reply
    assert repeated.events == ("destroy", "new")
    story.server(talk.server("SA"), "established reply SYN_RECV")
    story.client(talk.client("A"), "established original ESTABLISHED")
    assert story.invalid == {"client": 0, "server": 0}
    row = story.bench.only
    assert (row.state, row.assured, row.reply_seen) == ("ESTABLISHED", True, True)


def test_an_old_synack_does_not_stand_in_the_way(backend: str, version: int) -> None:
    # The answer to a connection long ago comes first; its acknowledgment belongs to no SYN here.
    story, talk = Scenario(backend), talk_of(version, server_isn=145_824_453)
    _begin_with_an_old_synack(story, talk)
    talk.server.restart(900_000_000)
    story.server(talk.server("SA"), "established reply SYN_RECV")
    story.client(talk.client("A"), "established original ESTABLISHED")
    assert story.invalid == {"client": 0, "server": 1}
    assert story.bench.only.assured


def test_an_old_synack_with_a_higher_number_hides_the_right_one(backend: str, version: int) -> None:
    # The kernel remembers the number of the old one even though it is invalid: a right one with a
    # lower number is taken for old data, so the connection has to wait until the entry is gone.
    story, talk = Scenario(backend), talk_of(version, server_isn=145_824_453)
    _begin_with_an_old_synack(story, talk)
    talk.server.restart(77)
    story.server(talk.server("SA"), "established reply SYN_SENT seq_below")
    story.client(talk.client("A"), "invalid - SYN_SENT transition")
    assert story.invalid == {"client": 1, "server": 1}


def _begin_with_an_old_synack(story: Scenario, talk: Talk) -> None:
    story.client(talk.client("S"), "new original SYN_SENT")
    foreign = talk.server("SA", ack=643_160_523 - talk.client.isn)
    story.server(foreign, "invalid - SYN_SENT ack_above")
    story.client(talk.client("S"), "new original SYN_SENT")


def test_a_syn_on_a_live_connection_clears_it_by_way_of_a_reset(backend: str, version: int) -> None:
    # The client was switched off and on; it uses the same port again.
    story, talk = Scenario(backend), talk_of(version)
    story.bench.open(talk)
    story.client(talk.client("PA", b"data"), "established original ESTABLISHED")
    challenge = talk.server("A")
    story.server(challenge, "established reply ESTABLISHED")
    old = talk.client.at(talk.client.next)
    talk.client.restart(2_500_000_000)
    story.client(talk.client("S"), "established original ESTABLISHED state")
    story.server(challenge, "established reply ESTABLISHED")
    story.client(talk.client("R", seq=old - talk.client.isn & WORD), "established original CLOSE")
    story.client(talk.client("S"), "new original SYN_SENT reopened")
    talk.server.restart(3_000_000_000)
    story.server(talk.server("SA"), "established reply SYN_RECV")
    assert story.invalid == {"client": 0, "server": 0}
