"""The XML of ``conntrack -o xml``: one ``flow`` element a line.

Three ``meta`` elements hold the two directions and what belongs to neither. ICMP types and
identifiers are not told. The tool writes no entities, so none are read: `<` ends a text.

For the states of SCTP the tool (seen with libnetfilter_conntrack 1.0.9) writes the names of the TCP
states with the same numbers: ``FIN_WAIT`` is an established association. That is written here, too,
and is read back as what it means.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fragtrack.conntrack.clock import moment, when
from fragtrack.conntrack.entry import DumpError, Entry, Side
from fragtrack.verdicts import SCTP_STATES, TCP_STATES

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE: Final = re.compile(r'<(/?)([a-z0-9]+)((?: [a-z0-9]+="[^"<>]*")*) ?(/?)>|([^<>]+)')
_ATTRIBUTE: Final = re.compile(r'([a-z0-9]+)="([^"<>]*)"')
_DEEPEST: Final = 16
_SCTP: Final = 132
_KINDS: Final = ("new", "update", "destroy")

Element = tuple[str, str, str]
"""Direction of the `meta` that it stands in ("" outside), name, text."""


def render_xml(entry: Entry) -> str:
    """Print the ``flow`` element of an entry."""
    kind = "" if entry.event is None else f' type="{entry.event}"'
    independent = "".join(_independent(entry))
    helper = "" if entry.helper is None else _leaf("helper", entry.helper)
    time = ""
    if entry.event is not None and entry.time is not None:
        time = f"<when>{''.join(_leaf(*part) for part in when(entry.time))}</when>"
    return (
        f"<flow{kind}>{_meta('original', entry, entry.original)}"
        f"{_meta('reply', entry, entry.reply)}"
        f'<meta direction="independent">{independent}</meta>{time}{helper}</flow>'
    )


def _state(entry: Entry) -> str | None:
    if entry.protocol != _SCTP or entry.state not in SCTP_STATES:
        return entry.state
    return TCP_STATES[SCTP_STATES.index(entry.state)]


def sctp_state(text: str) -> str:
    """Tell the state of SCTP that is meant by the name of a TCP state."""
    number = TCP_STATES.index(text) if text in TCP_STATES else len(SCTP_STATES)
    return SCTP_STATES[number] if number < len(SCTP_STATES) else text


def _leaf(name: str, value: object) -> str:
    return f"<{name}>{value}</{name}>"


def _leaves(*pairs: tuple[str, object]) -> str:
    return "".join(_leaf(name, value) for name, value in pairs if value is not None)


def _meta(direction: str, entry: Entry, side: Side) -> str:
    number, name = ("10", "ipv6") if entry.ip_version == 6 else ("2", "ipv4")
    keys = [
        (name, None if key is None else f"0x{key:x}")
        for name, key in (("srckey", side.srckey), ("dstkey", side.dstkey))
    ]
    counters = _leaves(("packets", side.packets), ("bytes", side.bytes))
    return (
        f'<meta direction="{direction}">'
        f'<layer3 protonum="{number}" protoname="{name}">'
        f"{_leaves(('src', side.src), ('dst', side.dst))}</layer3>"
        f'<layer4 protonum="{entry.protocol}" protoname="{entry.protocol_name}">'
        f"{_leaves(('sport', side.sport), ('dport', side.dport), *keys)}</layer4>"
        f"{_leaves(('zone', side.zone))}"
        f"{counters and _leaf('counters', counters)}</meta>"
    )


def _independent(entry: Entry) -> Iterator[str]:
    """Give what belongs to neither direction, in the order of the tool."""
    yield _leaves(
        ("state", _state(entry)),
        ("timeout", entry.timeout),
        ("mark", entry.mark),
        ("secctx", entry.secctx),
    )
    if entry.labels is not None:
        yield _leaf("labels", "".join(_leaf("label", label) for label in entry.labels))
    yield _leaves(("zone", entry.zone), ("use", entry.use), ("id", entry.id))
    if entry.assured:
        yield "<assured/>"
    if entry.unreplied:
        yield "<unreplied/>"
    times = _leaves(("start", entry.start), ("stop", entry.stop))
    if times:
        yield _leaf("timestamp", times)
    yield _leaves(("deltatime", entry.delta_time))


# ------------------------------------------------------------------------------------ reading


def read_xml(text: str) -> tuple[str | None, list[Element], str]:
    """Take a ``flow`` element apart.

    Returns
    -------
    tuple
        Type of the event (None without), the elements with their texts in order (``protocol`` is
        the number in ``layer4``), and what follows the element.
    """
    reader = _Reader()
    at = 0
    while not reader.done:
        match = _PIECE.match(text, at)
        if match is None:
            raise DumpError("an XML element", text[at:])
        at = match.end()
        closing, name, attributes, empty, characters = match.groups()
        if characters is not None:
            reader.content = characters
        elif closing:
            reader.close(name)
        else:
            reader.open(name, dict(_ATTRIBUTE.findall(attributes)))
            if empty:
                reader.close(name)
    return reader.kind, reader.elements, text[at:]


class _Reader:
    """Elements that are open, and what was in those that are closed."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self.elements: list[Element] = []
        self.names: list[str] = []
        self.direction = ""
        self.content = ""
        self.done = False

    def open(self, name: str, attributes: dict[str, str]) -> None:
        self.content = ""
        if not self.names:
            if name != "flow":
                raise DumpError("a flow element", f"<{name}>")
            self.kind = attributes.get("type")
        elif len(self.names) == 1:
            self.direction = attributes.get("direction", "") if name == "meta" else ""
        elif name == "layer4":
            self.elements.append((self.direction, "protocol", attributes.get("protonum", "")))
        if len(self.names) >= _DEEPEST:
            raise DumpError("elements that nest a few levels deep", f"<{name}>")
        self.names.append(name)

    def close(self, name: str) -> None:
        if not self.names or self.names.pop() != name:
            raise DumpError("the element opened last to be closed", f"</{name}>")
        self.elements.append((self.direction, name, self.content))
        self.content = ""
        self.done = not self.names


def known_kind(kind: str | None) -> bool:
    """Tell whether a type of event exists."""
    return kind is None or kind in _KINDS


def time_of(elements: list[Element]) -> int | None:
    """Read the ``when`` element, to ns since 1970; None if it is not there, or cannot be."""
    parts = {name: value for direction, name, value in elements if not direction}
    names = ("year", "month", "day", "hour", "min", "sec")
    numbers = [parts.get(name, "") for name in names]
    if not all(re.fullmatch("[0-9]{1,4}", number) for number in numbers):
        return None
    year, month, day, hour, minute, second = (int(number) for number in numbers)
    return moment((year, month, day), (hour, minute, second))
