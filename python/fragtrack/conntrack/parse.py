"""Reads the text of connection tables: all forms, line by line.

What is not understood is kept: a line that the fields alone would not give back exactly carries
its own text along.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fragtrack.conntrack.draft import Draft
from fragtrack.conntrack.entry import PROTOCOLS, DumpError, Entry, EventKind, Form
from fragtrack.conntrack.markup import known_kind, read_xml, sctp_state, time_of
from fragtrack.conntrack.text import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WORD: Final = re.compile(r"\[(?:start|stop)=[^\]\n]*\]|\[[0-9]+\.[0-9]+ *\]|\S+")
# Older tools fill up with blanks behind the microseconds, not with zeros before them.
_SEEN: Final = re.compile(r"\[([0-9]{1,12})\.([0-9]{1,6}) *\]")
_TRAILER: Final = re.compile(r"conntrack v\S+ \(conntrack-tools\): ")
_FRAME: Final = re.compile(r"(?:<\?xml[^<>]*\?>|</?conntrack>|\s)*")
_FLOW: Final = re.compile(r"(?=<flow[ >])")
_KINDS: Final[dict[str, EventKind]] = {
    "[NEW]": "new",
    "[UPDATE]": "update",
    "[DESTROY]": "destroy",
}
_COMMANDS: Final[dict[str, EventKind | None]] = {"-A": None, "-U": "update", "-D": "destroy"}
_NUMBERS: Final = {name: number for number, name in PROTOCOLS.items()}
_LAYER3: Final = frozenset({"ipv4", "ipv6"})


def parse(text: str | Iterable[str], *, form: Form | None = None) -> Iterator[Entry]:
    """Read the entries of a dump, one by one.

    Parameters
    ----------
    text
        The whole text, or its lines (an open file, for instance). The forms may be mixed.
    form
        ``procfs`` or ``extended``, where it is known: an IPv4 line may look the same in both.

    Yields
    ------
    Entry
        Each entry. Empty lines, what frames the XML, and the line in which `conntrack` counts what
        it has shown are passed over.

    Raises
    ------
    DumpError
        A line is no entry; its number is told.

    Examples
    --------
    >>> from fragtrack.conntrack import parse
    >>> [entry] = parse("udp 17 29 src=192.0.2.1 dst=192.0.2.2 sport=5 dport=7 "
    ...     "[UNREPLIED] src=192.0.2.2 dst=192.0.2.1 sport=7 dport=5 mark=0 use=1")
    >>> entry.timeout, entry.unreplied, entry.original.dport
    (29, True, 7)
    """
    lines = text.split("\n") if isinstance(text, str) else text
    for number, line in enumerate(lines, 1):
        try:
            for piece in _pieces(line):
                yield parse_line(piece, form=form)
        except DumpError as error:
            raise DumpError(error.expected, error.found, number) from None


def _pieces(line: str) -> list[str]:
    """Give the entries of a line: one, none, or as many elements as there are in XML."""
    line = line.removesuffix("\n")
    if not line.strip() or _TRAILER.match(line):
        return []
    if line.lstrip().startswith("<"):
        pieces = _FLOW.split(line)
        return [
            piece.removesuffix("</conntrack>") for piece in pieces if not _FRAME.fullmatch(piece)
        ]
    return [line]


def parse_line(text: str, *, form: Form | None = None) -> Entry:
    """Read one entry.

    Parameters
    ----------
    text
        One line of any form, or one ``flow`` element.
    form
        As for `parse`.

    Raises
    ------
    DumpError
        The line is no entry of a connection table.
    """
    text = text.removesuffix("\n")
    if text.lstrip().startswith("<"):
        entry = _xml(text)
    else:
        words = _WORD.findall(text)
        saved = bool(words) and words[0] in _COMMANDS
        entry = _save(words) if saved else _line(words, text, form)
    plain = render(entry)
    return entry if plain == text else replace(entry, written=(plain, text))


# ------------------------------------------------------------------------------ lines of words


def _line(words: list[str], text: str, form: Form | None) -> Entry:
    """Read a line of `conntrack -L`, of `conntrack -E`, or of procfs."""
    draft = Draft()
    at = 0
    seen = _SEEN.fullmatch(words[0]) if words else None
    if seen is not None:
        draft.put("time", int(seen[1]) * 1_000_000_000 + int(seen[2]) * 1000)
        at = 1
    if at < len(words) and words[at] in _KINDS:
        draft.event = _KINDS[words[at]]
        at += 1
    elif seen is not None:
        raise DumpError("[NEW], [UPDATE] or [DESTROY]", " ".join(words[at:]))
    columns = len(words) > at + 1 and words[at] in _LAYER3
    if columns:
        at += 2
    rest = words[at:]
    if len(rest) < 2 or "=" in rest[0]:
        raise DumpError("the name and number of a protocol", " ".join(rest) or text)
    draft.number("protocol", rest[1])
    draft.line(rest[2:])
    if draft.event is not None:
        return draft.entry("event", columns=columns)
    if not columns:
        return draft.entry("list")
    return draft.entry(_form(draft, words) if form is None else form)


def _form(draft: Draft, words: list[str]) -> Form:
    """Tell procfs from `conntrack -o extended` by what only the kernel prints."""
    full = any(len(word) == 43 and word.startswith("src=") and ":" in word for word in words)
    if full or draft.values.get("zone") == 0 or "gre_timeouts" in draft.values:
        return "procfs"
    return "extended"


# ------------------------------------------------------------------------------------ -o save


def _save(words: list[str]) -> Entry:
    """Read a line of `conntrack -o save`."""
    draft = Draft()
    draft.event = _COMMANDS[words[0]]
    draft.values["unreplied"] = True
    at = 1
    while at < len(words):
        name = words[at]
        if name == "-p" and at + 1 < len(words):
            protocol = words[at + 1]
            draft.number("protocol", str(_NUMBERS.get(protocol, protocol)))
            at += 2
        elif name.startswith("-") and at + 1 < len(words) and draft.option(name, words[at + 1]):
            at += 2
        else:
            draft.word(name)
            at += 1
    draft.answer_icmp()
    return draft.entry("save")


# ------------------------------------------------------------------------------------ -o xml


def _xml(text: str) -> Entry:
    """Read a ``flow`` element, and what follows it on the line."""
    kind, elements, tail = read_xml(text)
    draft = Draft()
    if not known_kind(kind):
        raise DumpError("the type new, update or destroy", str(kind))
    draft.event = _KINDS[f"[{kind.upper()}]"] if kind is not None else None
    for direction, name, value in elements:
        draft.element(direction, name, value)
    if kind is not None:
        draft.put("time", time_of(elements))
    if draft.values.get("protocol") == 132 and "state" in draft.values:
        draft.put("state", sctp_state(draft.values["state"]))
    for word in tail.split():
        draft.word(word)
    return draft.entry("xml")
