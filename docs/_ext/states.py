"""The TCP states as a drawing, made from the transition tables of the reference.

Places are set by hand; which arrows there are, and what stands beside them, comes from the tables.
A `ValueError` tells if an arrow has no place, or a place no arrow.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple
from xml.sax.saxutils import escape

Point = tuple[int, int]


class Box(NamedTuple):
    """Where a state is drawn: left, top, width, height."""

    x: int
    y: int
    width: int = 120
    height: int = 44


class Route(NamedTuple):
    """The corners of an arrow, and where its label starts, or ends."""

    corners: tuple[Point, ...]
    label: Point
    anchor: str = "start"


WIDTH, HEIGHT = 750, 775

BOXES = {
    "NONE": Box(240, 18),
    "SYN_SENT": Box(240, 108),
    "SYN_SENT2": Box(440, 168),
    "SYN_RECV": Box(240, 228),
    "ESTABLISHED": Box(240, 318),
    "FIN_WAIT": Box(240, 408),
    "CLOSE_WAIT": Box(240, 498),
    "LAST_ACK": Box(240, 588),
    "TIME_WAIT": Box(240, 678),
    "CLOSE": Box(650, 100, 80, 630),
}

ROUTES = {
    ("NONE", "SYN_SENT"): Route(((300, 62), (300, 108)), (308, 89)),
    ("SYN_SENT", "SYN_RECV"): Route(((300, 152), (300, 228)), (308, 213)),
    ("SYN_RECV", "ESTABLISHED"): Route(((300, 272), (300, 318)), (308, 299)),
    ("ESTABLISHED", "FIN_WAIT"): Route(((300, 362), (300, 408)), (308, 389)),
    ("FIN_WAIT", "CLOSE_WAIT"): Route(((300, 452), (300, 498)), (308, 479)),
    ("CLOSE_WAIT", "LAST_ACK"): Route(((300, 542), (300, 588)), (308, 569)),
    ("LAST_ACK", "TIME_WAIT"): Route(((300, 632), (300, 678)), (308, 659)),
    # Around the column, on the left.
    ("NONE", "ESTABLISHED"): Route(
        ((240, 40), (215, 40), (215, 340), (240, 340)), (208, 89), "end"
    ),
    ("SYN_RECV", "FIN_WAIT"): Route(
        ((240, 250), (150, 250), (150, 422), (240, 422)), (143, 299), "end"
    ),
    ("FIN_WAIT", "LAST_ACK"): Route(
        ((240, 438), (150, 438), (150, 610), (240, 610)), (143, 524), "end"
    ),
    ("TIME_WAIT", "SYN_SENT"): Route(
        ((240, 700), (60, 700), (60, 130), (240, 130)), (68, 389), "start"
    ),
    # Both sides open, on the right.
    ("SYN_SENT", "SYN_SENT2"): Route(((342, 152), (342, 184), (440, 184)), (376, 178)),
    ("SYN_SENT2", "SYN_RECV"): Route(((500, 212), (500, 240), (360, 240)), (385, 234)),
    # To the bar, and back.
    ("CLOSE", "SYN_SENT"): Route(((650, 116), (360, 116)), (580, 110)),
    ("SYN_SENT", "CLOSE"): Route(((360, 144), (650, 144)), (580, 138)),
    ("SYN_SENT2", "CLOSE"): Route(((560, 190), (650, 190)), (580, 184)),
    ("SYN_RECV", "CLOSE"): Route(((360, 260), (650, 260)), (580, 254)),
    ("ESTABLISHED", "CLOSE"): Route(((360, 340), (650, 340)), (580, 334)),
    ("FIN_WAIT", "CLOSE"): Route(((360, 430), (650, 430)), (580, 424)),
    ("CLOSE_WAIT", "CLOSE"): Route(((360, 520), (650, 520)), (580, 514)),
    ("LAST_ACK", "CLOSE"): Route(((360, 610), (650, 610)), (580, 604)),
    ("TIME_WAIT", "CLOSE"): Route(((360, 700), (650, 700)), (580, 694)),
}

LEGEND = "→ original direction, ← reply, ↔ either; a packet that keeps the state has no arrow"
CLASSES = ("SYN", "SYN/ACK", "FIN", "ACK", "RST", "other")
"""Classes of segments, by the rows of the tables."""


def arrows() -> dict[tuple[str, str], list[str]]:
    """Return the labels of the arrow between two states, for each pair that has one."""
    from fragtrack.reference.track.tcp_table import TABLES, State

    ways: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for way, table in zip("→←", TABLES, strict=True):
        for kind, row in zip(CLASSES, table, strict=True):
            for old, new in zip(State, row, strict=True):
                if isinstance(new, State) and new is not old:
                    ways[old.name, new.name].setdefault(kind, "")
                    ways[old.name, new.name][kind] += way
    return {pair: [label(kind, way) for kind, way in kinds.items()] for pair, kinds in ways.items()}


def label(kind: str, way: str) -> str:
    """Return what stands beside an arrow for a class of segments and its directions."""
    return {"→": f"{kind} →", "←": f"← {kind}", "→←": f"{kind} ↔"}[way]


def svg() -> str:
    """Return the drawing, in the color of the text around it."""
    labels = arrows()
    if labels.keys() != ROUTES.keys():
        odd = sorted(labels.keys() ^ ROUTES.keys())
        raise ValueError(f"arrows and places do not agree: {odd}")
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'style="max-width: {WIDTH}px; width: 100%; height: auto" fill="currentColor" '
            'font-family="sans-serif" font-size="13">'
        ),
        "<title>States of a TCP connection, and the segments that lead to another one</title>",
        (
            '<defs><marker id="fragtrack-head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
        ),
        *(state(name, box) for name, box in BOXES.items()),
        *(arrow(*pair, route, labels[pair]) for pair, route in ROUTES.items()),
        (
            f'<text class="legend" x="{WIDTH // 2}" y="{HEIGHT - 12}" text-anchor="middle">'
            f"{LEGEND}</text>"
        ),
        "</svg>",
    ]
    return "\n".join(parts)


def state(name: str, box: Box) -> str:
    """Return a state: a box with its name."""
    x, y = box.x + box.width // 2, box.y + box.height // 2 + 5
    return (
        f'<g class="state"><rect x="{box.x}" y="{box.y}" width="{box.width}" '
        f'height="{box.height}" rx="6" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        f'<text x="{x}" y="{y}" text-anchor="middle" font-weight="bold">{name}</text></g>'
    )


def arrow(old: str, new: str, route: Route, labels: list[str]) -> str:
    """Return an arrow with what leads along it."""
    line = " ".join(f"{x},{y}" for x, y in route.corners)
    x, y = route.label
    return (
        f'<g class="arrow" data-from="{old}" data-to="{new}"><polyline points="{line}" '
        'fill="none" stroke="currentColor" marker-end="url(#fragtrack-head)"/>'
        f'<text x="{x}" y="{y}" text-anchor="{route.anchor}">{escape(", ".join(labels))}</text></g>'
    )
