"""The drawing of the TCP states has an arrow for each cell that leads on, and no other."""

from __future__ import annotations

import runpy
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest

from fragtrack.reference.track.tcp_table import TABLES, State

SCRIPT = Path(__file__).parents[2] / "docs" / "_ext" / "states.py"
SVG = "{http://www.w3.org/2000/svg}"
KINDS = ("SYN", "SYN/ACK", "FIN", "ACK", "RST", "other")
LETTER, LINE = 8.5, 13  # about as wide and high as a letter of 13 pixels can be

Cell = tuple[str, str, str, str]
"""Direction, class of the segment, state before and after."""


class Area(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Area) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@pytest.fixture(name="module")
def _module() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(name="drawing")
def _drawing(module: dict[str, Any]) -> ET.Element:
    return ET.fromstring(module["svg"]())  # noqa: S314 - made a moment ago


def groups(drawing: ET.Element, kind: str) -> list[ET.Element]:
    return drawing.findall(f"{SVG}g[@class='{kind}']")


def text_of(group: ET.Element) -> ET.Element:
    text = group.find(f"{SVG}text")
    assert text is not None
    return text


def cells_of_the_tables() -> set[Cell]:
    return {
        (way, KINDS[kind], old.name, new.name)
        for way, table in zip(("original", "reply"), TABLES, strict=True)
        for kind, row in enumerate(table)
        for old, new in zip(State, row, strict=True)
        if isinstance(new, State) and new is not old
    }


def cells_of_an_arrow(group: ET.Element) -> list[Cell]:
    pair = (group.attrib["data-from"], group.attrib["data-to"])
    cells: list[Cell] = []
    for label in (text_of(group).text or "").split(", "):
        words = label.split()
        kind = next(word for word in words if word[0].isalpha())
        if "→" in words or "↔" in words:
            cells.append(("original", kind, *pair))
        if "←" in words or "↔" in words:
            cells.append(("reply", kind, *pair))
    return cells


def test_every_cell_that_leads_on_has_its_arrow_and_no_other_is_there(drawing: ET.Element) -> None:
    drawn = [cell for group in groups(drawing, "arrow") for cell in cells_of_an_arrow(group)]
    assert sorted(drawn) == sorted(cells_of_the_tables())


def test_two_states_have_one_arrow_in_a_direction(drawing: ET.Element) -> None:
    pairs = [
        (group.attrib["data-from"], group.attrib["data-to"]) for group in groups(drawing, "arrow")
    ]
    assert len(pairs) == len(set(pairs))


def test_every_state_is_drawn(drawing: ET.Element) -> None:
    names = [text_of(group).text for group in groups(drawing, "state")]
    assert sorted(filter(None, names)) == sorted(state.name for state in State)


def test_arrows_begin_and_end_at_the_boxes_of_their_states(module: dict[str, Any]) -> None:
    for (old, new), route in module["ROUTES"].items():
        for name, (x, y) in ((old, route.corners[0]), (new, route.corners[-1])):
            left, top, width, height = module["BOXES"][name]
            on_a_side = x in {left, left + width} and top <= y <= top + height
            on_top_or_bottom = y in {top, top + height} and left <= x <= left + width
            assert on_a_side or on_top_or_bottom, (old, new, name)


def test_no_label_covers_another_or_a_state(drawing: ET.Element, module: dict[str, Any]) -> None:
    areas = [
        Area(box.x, box.y, box.x + box.width, box.y + box.height)
        for box in module["BOXES"].values()
    ]
    for group in groups(drawing, "arrow"):
        label = text_of(group)
        x, y = float(label.attrib["x"]), float(label.attrib["y"])
        width = LETTER * len(label.text or "")
        left = x - width if label.attrib["text-anchor"] == "end" else x
        areas.append(Area(left, y - LINE, left + width, y))
    assert not [pair for pair in combinations(areas, 2) if pair[0].meets(pair[1])]


def test_it_takes_the_color_of_the_text_around_it(drawing: ET.Element) -> None:
    colors = {
        element.attrib[name]
        for element in drawing.iter()
        for name in ("fill", "stroke")
        if name in element.attrib
    }
    assert colors == {"currentColor", "none"}
