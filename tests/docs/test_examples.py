"""Run every example of the documentation, and compare what it shows.

On each page, in order and in one folder with a copy of ``examples/``:

- a ``python`` block is executed; the blocks of a page share their names;
- an ``output`` block is what the Python block before it printed;
- a ``console`` block with a ``$ fragtrack`` command is run in a shell, command by command; lines
  below a command are its output. A command must succeed, unless ``$ echo $?`` follows it.

``...`` in an expected output stands for anything; durations and amounts of white space do not
matter.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts),
]
FENCE = re.compile(r"^```(?P<kind>[a-z]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

DURATION = re.compile(r"\b\d+(\.\d+)? s\b")


class Block(NamedTuple):
    """A fenced block: what it is, its text, and the line where the text starts."""

    kind: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    content = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(content):
        line = content.count("\n", 0, match.start("text")) + 1
        yield Block(match["kind"], match["text"], line)


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output shown below it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def assert_shown(shown: str, got: str, where: str) -> None:
    shown, got = (DURATION.sub("0 s", text) for text in (shown, got))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    same = doctest.OutputChecker().check_output(shown, got, flags)
    assert same, f"{where} shows\n{shown}\nbut the output is\n{got}"


class Shell:
    """Run commands where the installed command is found first."""

    def __init__(self) -> None:
        scripts = str(Path(sys.executable).parent)
        path = os.pathsep.join([scripts, os.environ["PATH"]])
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "100"}

    def run(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["sh", "-c", command],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.environment,
            timeout=120,
        )
        return done.returncode, done.stdout.decode()


def run_console(block: Block, where: str) -> None:
    shell = Shell()
    steps = list(commands(block))
    status = 0
    for step, (command, shown) in enumerate(steps):
        if command == "echo $?":
            assert shown.strip() == str(status), f"{where}: the exit status is {status}"
            continue
        status, got = shell.run(command)
        asked = steps[step + 1][0] == "echo $?" if step + 1 < len(steps) else False
        assert status == 0 or asked, f"{where}: {command}: exit status {status}\n{got}"
        if shown:
            assert_shown(shown, got, f"{where}: {command}")


def run_python(block: Block, names: dict[str, object], where: str) -> str:
    printed = StringIO()
    code = compile("\n" * (block.line - 1) + block.text, where, "exec")
    with redirect_stdout(printed):
        exec(code, names)  # noqa: S102 - running the documentation is the test
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copy(ROOT / "LICENSE", tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(page):
        where = f"{page}:{block.line}"
        if block.kind == "python":
            printed = run_python(block, names, where)
        elif block.kind == "output":
            assert_shown(block.text, printed, where)
        elif block.kind == "console" and "$ fragtrack" in block.text:
            run_console(block, where)


def test_there_are_examples() -> None:
    kinds = [block.kind for page in PAGES for block in blocks(page)]
    assert kinds.count("python") > 5
    assert kinds.count("console") > 5
