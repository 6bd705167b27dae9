"""Checksums of transport headers, as connection tracking verifies them (``nf_checksum``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fragtrack.reference.track.finding import Finding, TrackReason

if TYPE_CHECKING:
    from fragtrack.reference.track.packet import Packet
    from fragtrack.track_config import TrackConfig

UDP: Final = 17
CASTAGNOLI: Final = 0x82F63B78
SCTP_FIELD: Final = slice(8, 12)


def folded(data: bytes) -> int:
    """Return the one's complement sum of the 16-bit words (RFC 1071), not complemented.

    A number and the sum of its digits to base 65536 leave the same remainder by 65535.
    """
    number = int.from_bytes(data + bytes(len(data) % 2), "big")
    return number % 0xFFFF or (0xFFFF if number else 0)


def pseudo_header(packet: Packet, protocol: int, length: int) -> bytes:
    """Return what is summed in front of a transport header (RFC 9293 3.1, RFC 8200 8.1)."""
    size = 4 if packet.family == 4 else 16
    addresses = packet.src.to_bytes(size, "big") + packet.dst.to_bytes(size, "big")
    return addresses + length.to_bytes(4, "big") + protocol.to_bytes(4, "big")


def internet(
    packet: Packet,
    config: TrackConfig,
    *,
    field: int,
    protocol: int | None,
    covered: int | None = None,
    offload: bool = False,
) -> Finding | None:
    """Verify an Internet checksum (``nf_ip_checksum``, ``nf_ip6_checksum`` and ``_partial``).

    As in the kernel it covers all bytes behind the IP header, whatever a UDP length says.

    Parameters
    ----------
    packet, config
        None is verified in a packet that was not captured whole, or if checksums are ignored.
    field : int
        Where the checksum stands in the transport header.
    protocol : int or None
        Protocol in the pseudo header; None if there is none (ICMP).
    covered : int or None
        Bytes covered (UDP-Lite); None is all.
    offload : bool
        Whether a sender's network card may have been meant to fill it in.

    Returns
    -------
    Finding or None
        Right value and the one found, if it is wrong.
    """
    if config.checksum == "ignore" or not packet.complete:
        return None
    data = packet.transport[:covered]
    pseudo = b"" if protocol is None else pseudo_header(packet, protocol, packet.size)
    if folded(pseudo + data) == 0xFFFF:
        return None
    found = int.from_bytes(data[field : field + 2], "big")
    if offload and config.checksum == "offload" and protocol is not None:
        # What a sender leaves to its card: the sum of the pseudo header, before segmentation
        # without a length; or nothing.
        unsegmented = pseudo_header(packet, protocol, 0)
        if found in (0, folded(pseudo), folded(unsegmented)):
            return None
    right = ~folded(pseudo + data[:field] + bytes(2) + data[field + 2 :]) & 0xFFFF
    return Finding(TrackReason.checksum, found, right or (0xFFFF if protocol == UDP else 0))


def crc32c(data: bytes) -> int:
    """Return the CRC32c (RFC 9260 appendix A) of an SCTP packet, its field taken as zero."""
    crc = 0xFFFFFFFF
    for byte in data[: SCTP_FIELD.start] + bytes(4) + data[SCTP_FIELD.stop :]:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def sctp(packet: Packet, config: TrackConfig) -> Finding | None:
    """Verify the CRC of an SCTP packet (``sctp_error``); offload leaves 0 in the field."""
    if config.checksum == "ignore" or not packet.complete:
        return None
    data = packet.transport
    found = data[SCTP_FIELD]
    if config.checksum == "offload" and found == bytes(4):
        return None
    right = crc32c(data).to_bytes(4, "little")
    if found == right:
        return None
    return Finding(TrackReason.checksum, int.from_bytes(found, "big"), int.from_bytes(right, "big"))


def _crc_of(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (CASTAGNOLI if byte & 1 else 0)
    return byte


CRC_TABLE: Final = tuple(map(_crc_of, range(256)))
