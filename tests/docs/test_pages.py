"""Pages lead somewhere, tables can be made, and shipped examples are what their scripts make."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import fragtrack

ROOT = Path(__file__).parents[2]
EXTENSIONS = ROOT / "docs" / "_ext"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\]\((?!https?:|#)(?P<target>[^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    targets = [match["target"] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("name", fragtrack.__all__)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert f"fragtrack.{name}" in (ROOT / "docs/reference/python.md").read_text("utf-8")


def tables() -> list[str]:
    used = re.compile(r"\{fragtrack-table\} ([a-z-]+)")
    return sorted({name for page in PAGES for name in used.findall(page.read_text("utf-8"))})


@pytest.mark.parametrize("name", tables())
def test_every_table_has_rows_and_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXTENSIONS))
    made: dict[str, Any] = {}
    for module in ("tables.py", "track_tables.py"):
        made |= runpy.run_path(str(EXTENSIONS / module))["TABLES"]
    table = made[name]()
    assert table.rows
    assert all(len(row) == len(table.titles) for row in table.rows)
    assert all(text for row in table.rows for text in row)


@pytest.mark.parametrize(
    ("script", "example"),
    [
        ("make_example.py", "fragments.pcapng"),
        ("make_connections.py", "connections.pcapng"),
    ],
)
def test_the_example_is_what_its_script_makes(
    script: str, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made.pcapng"
    monkeypatch.setattr(sys, "argv", [script, str(made)])
    runpy.run_path(str(ROOT / "examples" / script), run_name="__main__")
    assert made.read_bytes() == (ROOT / "examples" / example).read_bytes()
    assert made.stat().st_size < 100_000
