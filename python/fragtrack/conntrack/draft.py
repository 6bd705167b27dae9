"""An entry in the making: takes what the words say, in any order, and checks every value."""

from __future__ import annotations

import re
import socket
from typing import Any, Final

from fragtrack.conntrack.clock import undate
from fragtrack.conntrack.entry import DumpError, Entry, EventKind, Form, Side, reply_type

_DIGITS: Final = re.compile("[0-9]{1,20}")
_KEY: Final = re.compile("0x[0-9a-f]{1,8}")
_MOMENT: Final = re.compile(r"\[(start|stop)=([^\]]*)\]")
_GRE: Final = re.compile("([0-9]{1,10}),")
_STATE: Final = re.compile("[A-Z][A-Z0-9_]*")

_U8, _U16, _U32, _U64 = 0xFF, 0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
_BOUNDS: Final = {
    "protocol": _U8,
    "icmp_type": _U8,
    "icmp_code": _U8,
    "sport": _U16,
    "dport": _U16,
    "icmp_id": _U16,
    "zone": _U16,
    "timeout": _U32,
    "mark": _U32,
    "use": _U32,
    "id": _U32,
    "delta_time": _U64,
    "portid": _U32,
    "packets": _U64,
    "bytes": _U64,
    "start": _U64,
    "stop": _U64,
}
_OF_SIDE: Final = {
    "dst": "dst",
    "sport": "sport",
    "dport": "dport",
    "type": "icmp_type",
    "code": "icmp_code",
    "srckey": "srckey",
    "dstkey": "dstkey",
    "packets": "packets",
    "bytes": "bytes",
}
_OF_ENTRY: Final = {
    "mark": "mark",
    "zone": "zone",
    "delta-time": "delta_time",
    "use": "use",
    "portid": "portid",
    "secctx": "secctx",
    "helper": "helper",
    "progname": "progname",
}
_OF_XML: Final = {
    name: field
    for name, field in (*_OF_ENTRY.items(), ("deltatime", "delta_time"))
    if name in {"mark", "zone", "use", "secctx", "deltatime"}
} | {"timeout": "timeout", "id": "id", "start": "start", "stop": "stop", "state": "state"}
_OPTIONS: Final = {
    "-t": (None, "timeout"),
    "-w": (None, "zone"),
    "-m": (None, "mark"),
    "--orig-zone": (0, "zone"),
    "--reply-zone": (1, "zone"),
    "-s": (0, "src"),
    "-d": (0, "dst"),
    "-r": (1, "src"),
    "-q": (1, "dst"),
    "-g": (1, "src"),  # in place of -r, where the destination is translated
    "-n": (1, "dst"),  # in place of -q, where the source is translated
    "--sport": (0, "sport"),
    "--dport": (0, "dport"),
    "--reply-port-src": (1, "sport"),
    "--reply-port-dst": (1, "dport"),
    "--srckey": (0, "srckey"),
    "--dstkey": (0, "dstkey"),
    "--reply-key-src": (1, "srckey"),
    "--reply-key-dst": (1, "dstkey"),
    "--icmp-type": (0, "icmp_type"),
    "--icmp-code": (0, "icmp_code"),
    "--icmp-id": (0, "icmp_id"),
    "--icmpv6-type": (0, "icmp_type"),
    "--icmpv6-code": (0, "icmp_code"),
    "--icmpv6-id": (0, "icmp_id"),
    "--state": (None, "state"),
}


class Draft:
    """What is known of an entry so far.

    Attributes
    ----------
    event : str or None
        What happened to it.
    values : dict
        Fields of the entry.
    sides : list of dict
        Fields of the two directions; a direction has begun when its source address is there.
    extras : list of str
        Words that were not understood.
    """

    def __init__(self) -> None:
        self.event: EventKind | None = None
        self.values: dict[str, Any] = {}
        self.sides: list[dict[str, Any]] = []
        self.extras: list[str] = []
        self.before = ""  # name of the pair before, for the two meanings of `id`
        self.vtags: dict[int, int] = {}

    # ------------------------------------------------------------------------------- values

    def put(self, name: str, value: object) -> None:
        """Note a field of the entry."""
        self.values[name] = value

    def number(self, name: str, text: str) -> None:
        """Note a number of the entry."""
        self.values[name] = number(name, text)

    def _set(self, side: int | None, name: str, text: str) -> bool:
        """Note a field of the entry or of a direction; False if it is known already."""
        where = self.values if side is None else self._side(side)
        if name in where:
            return False
        where[name] = value(name, text)
        return True

    def _side(self, side: int) -> dict[str, Any]:
        while len(self.sides) <= side:
            self.sides.append({})
        return self.sides[side]

    # -------------------------------------------------------------------------------- lines

    def line(self, words: list[str]) -> None:
        """Take the words behind the protocol number of a line."""
        at = 0
        if words and _DIGITS.fullmatch(words[0]):
            self.number("timeout", words[0])
            at = 1
        if len(words) > at + 1 and words[at].startswith("timeout="):
            at += self._gre_timeouts(words[at], words[at + 1])
        if at < len(words) and _STATE.fullmatch(words[at]):
            self.put("state", words[at])
            at += 1
        for word in words[at:]:
            self.word(word)

    def _gre_timeouts(self, first: str, second: str) -> int:
        name, _, stream = second.partition("=")
        plain = _GRE.fullmatch(first.removeprefix("timeout="))
        if plain is None or name != "stream_timeout" or not _DIGITS.fullmatch(stream):
            return 0
        self.put("gre_timeouts", (number("timeout", plain[1]), number("timeout", stream)))
        return 2

    def word(self, word: str) -> None:
        """Take one word; keep it as it is if it says nothing that is known."""
        name, equals, text = word.partition("=")
        taken = self._pair(name, text) if equals and word[0] != "[" else self._flag(word)
        if not taken:
            self.extras.append(word)
        self.before = name

    def _flag(self, word: str) -> bool:
        if word == "[UNREPLIED]":
            self.put("unreplied", value=True)
        elif word == "[ASSURED]":
            self.put("assured", value=True)
        elif word in {"[OFFLOAD]", "[HW_OFFLOAD]"}:
            self.put("offload", word[1:-1])
        elif word == "labels":
            self.put("labels", ())
        elif (match := _MOMENT.fullmatch(word)) is not None:
            self.put(match[1], undate(match[2]))
        else:
            return word == "[USERSPACE]"
        return True

    def _pair(self, name: str, text: str) -> bool:
        if name == "src" and len(self.sides) < 2:
            return self._set(len(self.sides), "src", text)
        last = len(self.sides) - 1
        if last >= 0:
            if name in _OF_SIDE:
                return self._set(last, _OF_SIDE[name], text)
            if name == "id" and self.before == "code":
                return self._set(last, "icmp_id", text)
            if name == ("zone-orig", "zone-reply")[last]:
                return self._set(last, "zone", text)
        if name == "labels" and text:
            self.put("labels", tuple(text.split(",")))
            return True
        if name == "id":
            return self._set(None, "id", text)
        return name in _OF_ENTRY and self._set(None, _OF_ENTRY[name], text)

    # ------------------------------------------------------------------------- save and XML

    def option(self, name: str, text: str) -> bool:
        """Take an option of `conntrack` and its value; False if it is not known."""
        if name == "-u":
            words = [word for word in text.split(",") if word != "UNSET"]
            self.put("unreplied", "SEEN_REPLY" not in words)
            self.put("assured", "ASSURED" in words)
            known = {"SEEN_REPLY", "ASSURED"}
            self.put("status", tuple(word for word in words if word not in known))
            return True
        if name in {"--orig-vtag", "--reply-vtag"}:
            self.vtags[name == "--reply-vtag"] = number("mark", text)
            if len(self.vtags) == 2:
                self.put("vtags", (self.vtags[0], self.vtags[1]))
            return True
        if name not in _OPTIONS:
            return False
        side, field = _OPTIONS[name]
        if field in {"srckey", "dstkey"}:
            text = f"0x{number('mark', text):x}"
        return self._set(side, field, text)

    def answer_icmp(self) -> None:
        """Add the ICMP fields of the reply, which ``-o save`` leaves out."""
        original, reply = self._side(0), self._side(1)
        answer = reply_type(original.get("icmp_type"))
        if answer is not None:
            reply["icmp_type"] = answer
            reply["icmp_code"] = original.get("icmp_code")
            reply["icmp_id"] = original.get("icmp_id")

    def element(self, direction: str, name: str, text: str) -> None:
        """Take an XML element; what is not known is passed over."""
        if name == "protocol":
            self.number("protocol", text)
        elif direction in {"original", "reply"}:
            field = {"src": "src", "zone": "zone"}.get(name) or _OF_SIDE.get(name)
            if field is not None:
                self._set(int(direction == "reply"), field, text)
        elif name in {"assured", "unreplied"}:
            self.put(name, value=True)
        elif name == "helper":
            self.put("helper", text)
        elif name in {"label", "labels"}:
            known = self.values.get("labels", ())
            self.put("labels", known if name == "labels" else (*known, text))
        elif name in _OF_XML and direction:
            self._set(None, _OF_XML[name], text)

    # ----------------------------------------------------------------------------- the end

    def entry(self, form: Form, *, columns: bool = False) -> Entry:
        """Make the entry.

        Raises
        ------
        DumpError
            A direction or the protocol is missing, or the directions differ in their family.
        """
        if "protocol" not in self.values:
            raise DumpError("a protocol", "none")
        for side, name in enumerate(("original", "reply")):
            have = self._side(side)
            if "src" not in have or "dst" not in have:
                raise DumpError(f"the addresses of the {name} direction (src=, dst=)", "none")
        original, reply = (Side(**side) for side in self.sides)
        if len({":" in text for text in (original.src, original.dst, reply.src, reply.dst)}) > 1:
            raise DumpError("addresses of one family", f"{original.src} and {reply.src}")
        return Entry(
            form=form,
            original=original,
            reply=reply,
            event=self.event,
            columns=columns,
            extras=tuple(self.extras),
            **self.values,
        )


def value(name: str, text: str) -> int | str:
    """Read the value of a field."""
    if name in {"src", "dst"}:
        return address(text)
    if name in {"srckey", "dstkey"}:
        if not _KEY.fullmatch(text):
            raise DumpError(f"a hexadecimal number for {name}", text)
        return int(text, 16)
    if name in _BOUNDS:
        return number(name, text)
    return text


def number(name: str, text: str) -> int:
    """Read a number of a field that has an upper bound."""
    bound = _BOUNDS[name]
    if not _DIGITS.fullmatch(text) or int(text) > bound:
        raise DumpError(f"a number up to {bound} for {name}", text)
    return int(text)


def address(text: str) -> str:
    """Read an address, in whatever spelling, and spell it as the tool does."""
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return socket.inet_ntop(family, socket.inet_pton(family, text))
    except (OSError, ValueError):
        raise DumpError("an address", text) from None
