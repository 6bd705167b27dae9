"""The loop: cases by number, each watched; findings shrunk, saved, and replayed.

A case is drawn from a seed and its number, so that one which ends the process (a crash, a hang) is
drawn again by the process above it and saved all the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import json
import mmap
import os
import resource
import struct
import sys
import time
import traceback
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).resolve().parent
HANG = 60  # seconds for all of a case, the reference included
SLOW = 5.0  # seconds of processor time for the native side
ENOUGH = 20  # different findings after which a run stops
SHRINK = 15.0  # seconds spent to make a finding small
PEAK = 64 << 20  # bytes that one case may add to the most memory ever used
GROWTH = 300 << 20  # bytes that the process may grow after its first cases
SETTLED = 400  # cases after which the process has its size
PAGE = resource.getpagesize()


class FindingError(Exception):
    """Something that must not be; the first line tells its kind."""


class Case(Protocol):
    """One input, with all that is needed to run it again."""

    @classmethod
    def draw(cls, random: Random) -> Self:
        """Make one."""

    @classmethod
    def load(cls, fields: dict[str, object]) -> Self:
        """Make one of what `fields` gave."""

    def fields(self) -> dict[str, object]:
        """Give what to save, in types that JSON has."""

    def run(self) -> None:
        """Raise `FindingError` if something is wrong."""

    def smaller(self) -> Iterator[Self]:
        """Give cases that have less."""


Drawn = TypeVar("Drawn", bound=Case)


def native(work: Callable[[], None]) -> None:
    """Do something native; time and memory are watched."""
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    work()
    spent = time.process_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - highest) << 10
    if spent > SLOW:
        raise FindingError(f"slow: {spent:.1f} s")
    if grown > PEAK:
        raise FindingError(f"memory: {grown >> 20} MiB more than ever before")


def main(kind: type[Drawn]) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="repeats a run")
    parser.add_argument("--artifacts", type=Path, default=HERE / "artifacts")
    parser.add_argument("file", type=Path, nargs="*", help="replay these instead")
    arguments = parser.parse_args()
    if arguments.file:
        sys.exit(max(_replay(kind, file) for file in arguments.file))
    seed = time.time_ns() % (1 << 32) if arguments.seed is None else arguments.seed
    sys.exit(_Run(kind, seed, arguments.artifacts).run(arguments.seconds))


def _replay(kind: type[Drawn], file: Path) -> int:
    try:
        kind.load(json.loads(file.read_text())).run()
    except BaseException:  # noqa: BLE001 - a panic of Rust is no Exception
        traceback.print_exc()
        return 1
    print(f"{file}: passes")
    return 0


def _attempt(case: Case) -> str | None:
    """Run a case; say what is wrong with it."""
    try:
        case.run()
    except KeyboardInterrupt:
        raise
    except FindingError as error:
        return str(error)
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"
    return None


def _kind_of(why: str) -> str:
    """Tell findings apart by their first line without numbers."""
    return "".join(letter for letter in why.split("\n", 1)[0][:70] if not letter.isdigit())


def shrink(case: Drawn, why: str) -> tuple[Drawn, str]:
    """Look for a smaller case with the same kind of finding."""
    end, kind = time.monotonic() + SHRINK, _kind_of(why)
    improved = True
    while improved:
        improved = False
        for candidate in case.smaller():
            if time.monotonic() > end:
                return case, why
            found = _attempt(candidate)
            if found is not None and _kind_of(found) == kind:
                case, why, improved = candidate, found, True
                break
    return case, why


class _Run:
    """A parent that watches, and a child that works."""

    def __init__(self, kind: type[Case], seed: int, artifacts: Path) -> None:
        self.kind, self.seed, self.artifacts = kind, seed, artifacts
        self.name = kind.__name__.lower()
        self.shared = mmap.mmap(-1, 16)  # the case that runs, and findings so far

    def run(self, seconds: float) -> int:
        end = time.monotonic() + seconds
        first = 0
        while True:
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                os._exit(self._work(first, end))
            _, status = os.waitpid(child, 0)
            number, findings = struct.unpack("<QQ", self.shared[:])
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) in (0, 3):
                break
            findings += 1
            self.shared[8:] = struct.pack("<Q", findings)
            self._save(self._draw(number), number, f"the process ended (status {status})")
            first = number + 1
            if findings >= ENOUGH or time.monotonic() > end:
                break
        print(f"{self.name}: {number + 1} cases, {findings} findings (seed {self.seed})")
        return int(findings > 0)

    def _draw(self, number: int) -> Case:
        return self.kind.draw(Random(f"{self.seed}:{number}"))

    def _work(self, first: int, end: float) -> int:
        """Run cases until time is up; 0 is the exit status then, 3 after a failure of its own."""
        kinds: set[str] = set()
        (before,) = struct.unpack("<Q", self.shared[8:])
        number, base = first, 0
        try:
            while time.monotonic() < end and len(kinds) < ENOUGH:
                self.shared[:8] = struct.pack("<Q", number)
                faulthandler.dump_traceback_later(HANG, exit=True)
                case = self._draw(number)
                why = _attempt(case)
                faulthandler.dump_traceback_later(HANG + SHRINK, exit=True)
                if number - first == SETTLED:
                    base = _resident()
                elif base and number % 200 == 0 and _resident() - base > GROWTH:
                    why, base = why or f"memory: grown to {_resident() >> 20} MiB", 0
                if why is not None and _kind_of(why) not in kinds:
                    kinds.add(_kind_of(why))
                    self.shared[8:] = struct.pack("<Q", before + len(kinds))
                    small, why = shrink(case, why)
                    self._save(small, number, why)
                faulthandler.cancel_dump_traceback_later()
                number += 1
        except KeyboardInterrupt:
            pass
        except BaseException:  # noqa: BLE001 - of the fuzzing itself
            traceback.print_exc()
            self.shared[8:] = struct.pack("<Q", before + len(kinds) + 1)
            return 3
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return 0

    def _save(self, case: Case, number: int, why: str) -> None:
        self.artifacts.mkdir(parents=True, exist_ok=True)
        file = self.artifacts / f"{self.name}-{self.seed}-{number}.json"
        file.write_text(json.dumps(case.fields(), indent=1) + "\n")
        print(f"{self.name}: FINDING in case {number}: {why[:3000]}")
        print(f"  replay: .venv/bin/python {sys.argv[0]} {file}")


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def differ(what: str, first: object, second: object) -> None:
    """Raise if two answers are not the same.

    Raises
    ------
    FindingError
        If they are not; shows both, native first.
    """
    if first == second:
        return
    if isinstance(first, dict) and isinstance(second, dict):
        for key in first.keys() | second.keys():
            differ(f"{what}[{key!r}]", first.get(key), second.get(key))
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        differ(f"length of {what}", len(first), len(second))
        for at, (one, two) in enumerate(zip(first, second, strict=True)):
            differ(f"{what}[{at}]", one, two)
    if dataclasses.is_dataclass(first) and type(first) is type(second):
        for each in dataclasses.fields(first):
            name = each.name
            differ(f"{what}.{name}", getattr(first, name), getattr(second, name))
    if isinstance(first, bytes) and isinstance(second, bytes):
        at = next(
            (at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]),
            min(len(first), len(second)),
        )
        here = slice(max(0, at - 32), at + 64)
        raise FindingError(
            f"{what}: differs from byte {at} on, of {len(first)} and {len(second)}\n"
            f"native    ..{first[here].hex(' ', 4)}\nreference ..{second[here].hex(' ', 4)}"
        )
    raise FindingError(f"{what}: differs\nnative    {first!r}\nreference {second!r}")
