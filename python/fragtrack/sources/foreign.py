"""Formats people do have captures in that cannot be read here: each row says what to do instead."""

from __future__ import annotations

UNPACK = "unpack it first, for example: {} FILE | fragtrack reassemble - -o OUTPUT"
CONVERT = "convert it first, for example: editcap -F pcapng FILE OUTPUT.pcapng"

FORMATS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x04\x22\x4d\x18", "lz4 data", UNPACK.format("lz4 -dc")),
    (b"\x02\x21\x4c\x18", "lz4 data", UNPACK.format("lz4 -dc")),
    (b"LZIP", "lzip data", UNPACK.format("lzip -dc")),
    (b"\x89LZO\0", "lzop data", UNPACK.format("lzop -dc")),
    (b"\x1f\x9d", "compress data", UNPACK.format("uncompress -c")),
    (b"\xff\x06\0\0sNaPpY", "snappy data", UNPACK.format("snzip -dc")),
    (b"PK\x03\x04", "a zip archive", UNPACK.format("unzip -p")),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK.format("7z x -so")),
    (b"Rar!\x1a\x07", "a rar archive", UNPACK.format("unrar p -inul")),
    (b"snoop\0\0\0", "a snoop capture", CONVERT),
    (b"GMBU", "a Network Monitor capture", CONVERT),
    (b"RTSS", "a Network Monitor capture", CONVERT),
    (b"TRSNIFF data", "a Sniffer capture", CONVERT),
    (b"XCP\0", "a NetXRay capture", CONVERT),
    (b"iptrace ", "an iptrace capture", CONVERT),
    (b"btsnoop\0", "a Bluetooth capture", "it holds no IP"),
)
"""First bytes, what it is, what to do."""

_TEXT = frozenset(b"\t\n\r\f\v\x1b") | frozenset(range(32, 256)) - {127}


def describe(head: bytes) -> str:
    """Say why content with these first bytes is no capture, in one clause, and what to do."""
    if not head:
        return "not a capture: it is empty"
    for magic, what, advice in FORMATS:
        if head.startswith(magic):
            return f"not a capture but {what}; {advice}"
    if all(byte in _TEXT for byte in head):
        return "not a capture: it looks like text"
    return f"not a capture: it starts with the bytes {head[:4].hex(' ')}"
