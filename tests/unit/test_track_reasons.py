"""Reasons for verdicts: what cannot be read, and TCP."""

from __future__ import annotations

import pytest

from fragtrack.testing import (
    destination_options,
    icmp_query,
    ipv6,
    ipv6_fragment,
    routing,
    sctp,
    sctp_init,
    tcp,
    udp,
    udplite,
)
from tests.reasons import ANY, Case, Cases, whole
from tests.tracking import (
    ICMP,
    SCTP,
    TCP,
    UDP,
    UDPLITE,
    ends,
    ip,
    talk_of,
)

cases = Cases()


# ------------------------------------------------------------------------- what cannot be read


@cases
def header_cut() -> Case:
    return Case([whole()[:12]], "invalid - - header", 12, 20, "12 bytes captured, 20 needed")


@cases
def header_cut_ipv6() -> Case:
    packet = ip(udp(b"", **ends(6)), UDP, 6)[:39]
    return Case([packet], "invalid - - header", 39, 40, "39 bytes captured, 40 needed")


@cases
def header_of_four_words() -> Case:
    packet = ip(udp(b"", **ends(4)), UDP, header_words=4)
    return Case([packet], "invalid - - header", 28, 20)


@cases
def header_total_length() -> Case:
    packet = ip(udp(b"", **ends(4)), UDP, total_length=19)
    return Case([packet], "invalid - - header", 28, 20)


@cases
def header_version() -> Case:
    packet = ip(udp(b"", **ends(4)), UDP, version=4)
    return Case([b"\x75" + packet[1:]], "invalid - - header", 28, ANY)


@cases
def fragment_passed_on() -> Case:
    # 13 bytes that others should follow: the IPv6 reassembly of netfilter lets it pass.
    packet = ipv6_fragment(bytes(13), **ends(6), offset=16, more=True)
    return Case([packet], "invalid - - fragment", 16, None, "offset 16")


@cases
def extension_cut() -> Case:
    packet = ipv6(b"\x3c", **ends(6), next_header=60)  # the first byte of destination options
    return Case([packet], "invalid - - extension", 40, ANY, "break off at byte 40")


@cases
def extension_longer_than_the_packet() -> Case:
    # As in the kernel nobody looks where it ends; only the transport header is missing behind it.
    packet = ipv6(b"", **ends(6), extensions=[destination_options(bytes(30))])[:50]
    packet = packet[:4] + bytes([0, 10]) + packet[6:]
    return Case([packet], "invalid - - short", 0, 8, "0 bytes where 8")


@cases
def extension_says_that_nothing_follows() -> Case:
    packet = ipv6(b"1234", **ends(6), next_header=59, extensions=[routing()])
    return Case([packet], "invalid - - extension", ANY, ANY, "nothing follows")


@cases
def short_tcp() -> Case:
    packet = ip(tcp(**ends(4))[:13], TCP)
    return Case([packet], "invalid - - short", 13, 20, "13 bytes where 20")


@cases
def short_udp() -> Case:
    return Case([ip(udp(b"", **ends(4))[:7], UDP)], "invalid - - short", 7, 8)


@cases
def short_udplite() -> Case:
    return Case([ip(udplite(b"", **ends(4))[:4], UDPLITE)], "invalid - - short", 4, 8)


@cases
def short_icmp() -> Case:
    return Case([ip(icmp_query(8)[:5], ICMP)], "invalid - - short", 5, 8)


@cases
def short_sctp() -> Case:
    return Case([ip(sctp()[:11], SCTP)], "invalid - - short", 11, 12)


@cases
def short_for_the_snap_length() -> Case:
    # The packet was whole, its capture is not: 2 bytes of TCP.
    packet = talk_of().client("S")[:22]
    return Case([packet], "invalid - - short", 2, 20)


# ----------------------------------------------------------------------------------------- TCP


@cases
def offset_below_five_words() -> Case:
    packet = talk_of().client("S", data_offset=4)
    return Case([packet], "invalid - - offset", 16, 20, "offset of 16 bytes")


@cases
def offset_behind_the_end() -> Case:
    packet = talk_of().client("S", b"data", data_offset=7)
    return Case([packet], "invalid - - offset", 28, 24)


@cases
def checksum_of_tcp() -> Case:
    talk = talk_of()
    packets = [*talk.handshake(), talk.client("A", checksum_value="bad")]
    right = int.from_bytes(talk.client("A")[36:38])
    return Case(
        packets, "invalid - ESTABLISHED checksum", right ^ 1, right, f"0x{right:04x} is right"
    )


@cases
def checksum_of_udp() -> Case:
    right = int.from_bytes(udp(b"data", **ends(4))[6:8])
    packet = ip(udp(b"data", **ends(4), checksum_value=0x1234), UDP)
    return Case([packet], "invalid - - checksum", 0x1234, right, "0x1234")


@cases
def checksum_of_icmp() -> Case:
    right = int.from_bytes(icmp_query(8)[2:4])
    return Case([ip(icmp_query(8, bad=True), ICMP)], "invalid - - checksum", right ^ 1, right)


@cases
def checksum_of_sctp() -> Case:
    packet = ip(sctp(sctp_init(7), crc="bad"), SCTP)
    return Case([packet], "invalid - - checksum", ANY, ANY)


@cases
def checksum_of_udplite_as_in_its_rfc() -> Case:
    # The kernel sums the pseudo header with the number of UDP, so what is right is wrong there.
    packet = ip(udplite(b"data", **ends(4)), UDPLITE)
    found = int.from_bytes(packet[26:28])
    return Case([packet], "invalid - - checksum", found, found + UDPLITE - UDP)


@cases
def flags() -> Case:
    packet = talk_of().client("SFPEC")
    return Case([packet], "invalid - - flags", 0x03, None, "flags FIN SYN")


@cases
def flags_none() -> Case:
    return Case([talk_of().client("")], "invalid - - flags", 0, None, "flags none")


@cases
def no_entry() -> Case:
    return Case([talk_of().server("SA")], "invalid - - no_entry", 1, None, "a SYN/ACK")


@cases
def not_loose() -> Case:
    packet = talk_of().client("A")
    config = {"tcp_loose": False}
    return Case([packet], "invalid - - not_loose", None, None, "tcp_loose", config)


@cases
def transition() -> Case:
    talk = talk_of()
    packets = [talk.client("S"), talk.client("FA")]
    return Case(packets, "invalid - SYN_SENT transition", 2, 1, "a FIN is not allowed in state SYN")


@cases
def state() -> Case:
    talk = talk_of()
    packets = [talk.client("S"), talk.server("A", ack=99)]
    return Case(packets, "established reply SYN_SENT state", 3, 1, "an ACK in state SYN_SENT")


@cases
def seq_above() -> Case:
    talk = talk_of(window=1000)
    packet = talk.client("PA", b"x", seq=5000)
    detail = f"SEQ {talk.client.at(5000)} is over the upper bound {talk.client.at(1001)}"
    return Case(
        [*talk.handshake(), packet],
        "invalid - ESTABLISHED seq_above",
        talk.client.at(5000),
        talk.client.at(1001),
        detail,
    )


@cases
def seq_below() -> Case:
    talk = talk_of(window=1000)
    packets = talk.handshake()
    for _ in range(3):
        packets += [talk.client("PA", bytes(800)), talk.server("A")]
    packets.append(talk.client("PA", bytes(800), seq=1))
    return Case(
        packets,
        "established original ESTABLISHED seq_below",
        talk.client.at(801),
        talk.client.at(2401 - 1000),
        "under the lower bound",
    )


@cases
def ack_above() -> Case:
    talk = talk_of()
    packets = [*talk.handshake(), talk.client("A", ack=2)]
    return Case(
        packets,
        "invalid - ESTABLISHED ack_above",
        talk.server.at(2),
        talk.server.at(1),
        "not seen yet",
    )


@cases
def ack_below() -> Case:
    talk = talk_of(client_isn=0xFFFF_FFF0)
    packets = [*talk.handshake(), talk.server("A", ack=1 - 66_001)]
    return Case(
        packets,
        "established reply ESTABLISHED ack_below",
        talk.client.at(1 - 66_001),
        talk.client.at(1 - 66_000),
        "possibly overly delayed",
    )


@cases
def overshoot() -> Case:
    talk = talk_of(window=1000)
    packets = [*talk.handshake(), talk.client("PA", bytes(100), seq=1002)]
    return Case(
        packets,
        "established original ESTABLISHED overshoot",
        1102 - 1001 + 1,
        1000,
        "102 bytes more than expected",
    )


@cases
def rst_below() -> Case:
    talk = talk_of()
    packets = [*talk.handshake(), talk.client("PA", b"data"), talk.server("A")]
    return Case(
        [*packets, talk.client("R", seq=4)],
        "invalid - ESTABLISHED rst_below",
        talk.client.at(4),
        talk.client.at(5),
        "below the acknowledged",
    )


@cases
def rst_inexact() -> Case:
    talk = talk_of()
    return Case(
        [*talk.handshake(), talk.client("R", seq=9)],
        "established original ESTABLISHED rst_inexact",
        talk.client.at(9),
        talk.client.at(1),
        "stays ESTABLISHED for now",
    )


@cases
def challenge_ack() -> Case:
    talk = talk_of()
    packets = [*talk.handshake(), talk.client("FA"), talk.server("FA"), talk.client("S", seq=77)]
    return Case(
        [*packets, talk.server("A", ack=2)],
        "established reply LAST_ACK challenge_ack",
        talk.client.at(2),
        None,
        "challenge ACK",
    )


@cases
def reopened() -> Case:
    talk = talk_of()
    packets = [*talk.handshake(), *talk.goodbye(), talk.client("S", seq=70_000)]
    return Case(packets, "new original SYN_SENT reopened", None, 7, "in state TIME_WAIT was over")


@cases
def reset() -> Case:
    talk = talk_of()
    packets = [talk.client("S"), talk.client("R")]
    return Case(packets, "new original - reset", None, 1, "reset in state SYN_SENT")


@cases
def resynchronized() -> Case:
    talk = talk_of()
    packets = [*talk.handshake(), talk.client("A", ack=5000)]
    return Case(
        packets,
        "established original ESTABLISHED resynchronized",
        talk.server.at(5000),
        talk.server.at(1),
        "after a gap",
        {"gap_tolerant": True},
    )


@cases
def resynchronized_without_synack() -> Case:
    talk = talk_of()
    syn, _, ack = talk.handshake()
    return Case(
        [syn, ack],
        "new original ESTABLISHED resynchronized",
        3,
        1,
        "after a gap",
        {"gap_tolerant": True},
    )


@cases
def invalid_noted() -> Case:
    talk = talk_of()
    packets = [*talk.handshake(), talk.client("FA", seq=900_000), talk.server("FA", seq=800_000)]
    return Case(
        packets,
        "invalid - ESTABLISHED invalid_noted",
        talk.server.at(800_000),
        talk.server.at(1 + 65_535),
        "second of both sides",
    )


@pytest.mark.parametrize("name", cases)
def test_reason(backend: str, name: str) -> None:
    cases.run(backend, name)
