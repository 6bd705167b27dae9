"""Looks for a flow that a tracker and the kernel see differently, and makes it small."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from tests.live.judge import Difference, compare
from tests.live.kernel import Kernel
from tests.live.kinds import draw

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.live.flow import Flow
    from tests.live.kernel import Answer

REUSE = 6000  # flows: before their addresses come round again, the namespace is another one


class Kernels:
    """Namespaces by their settings, opened when they are needed."""

    def __init__(self) -> None:
        self._open: dict[tuple[tuple[str, int], ...], tuple[int, Kernel]] = {}

    def of(self, flow: Flow) -> Kernel:
        """Give the namespace that a flow runs in; numbers of flows must not decrease."""
        key = tuple(sorted(flow.settings.items()))
        first, kernel = self._open.get(key, (0, None))
        if kernel is not None and flow.number - first >= REUSE:
            kernel.close()
            kernel = None
        if kernel is None:
            kernel = Kernel(flow.settings)
            self._open[key] = (flow.number, kernel)
        return kernel

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _first, kernel in self._open.values():
            kernel.close()
        self._open.clear()


@dataclass(slots=True)
class Hunt:
    """What was compared so far.

    Attributes
    ----------
    kind, seed
        Flow number `n` of a kind is made from these and `n`, and from nothing else.
    """

    kind: str
    seed: int
    flows: int = 0
    packets: int = 0
    classes: dict[str, int] = field(default_factory=dict)

    def flow(self, number: int) -> Flow:
        """Make flow `number`."""
        rng = random.Random(f"{self.seed} {self.kind} {number}")
        return draw(self.kind, rng, number)

    def run(self, make: Callable[..., Any], seconds: float) -> str | None:
        """Compare flows for so long; give the story of the first difference."""
        end = time.monotonic() + seconds
        with Kernels() as kernels:
            while time.monotonic() < end:
                flow = self.flow(self.flows)
                answers = kernels.of(flow).run(flow.steps)
                self._count(answers)
                found = compare(make, flow.settings, flow.steps, answers)
                if found is not None:
                    small = shrink(make, flow)
                    return self.story(make, flow if small is None else small, found)
        return None

    def _count(self, answers: list[Answer]) -> None:
        self.flows += 1
        self.packets += len(answers)
        for answer in answers:
            name = answer.get("v", "look")
            self.classes[name] = self.classes.get(name, 0) + 1

    def story(self, make: Callable[..., Any], flow: Flow, found: Difference) -> str:
        """Tell a difference: how to find it again, and the flow as Python can read it."""
        answers = isolated(flow)
        again = compare(make, flow.settings, flow.steps, answers)
        lines = [
            f"{self.kind}, flow {self.flows - 1} with FRAGTRACK_LIVE_SEED={self.seed}:",
            f"  first seen: {found}",
            f"  shrunk:     {again or 'the kernel answers otherwise in a namespace of its own'}",
            f"settings = {flow.settings}",
            "steps = [  # side, packet; and what the kernel said",
        ]
        for step, answer in zip(flow.steps, answers, strict=True):
            packet = "None" if step.packet is None else f'"{step.packet.hex()}"'
            at = f", {step.at}" if step.at else ""
            lines.append(f"    ({step.side}, {packet}{at}),  # {step.note}: {brief(answer)}")
        return "\n".join([*lines, "]"])


def isolated(flow: Flow) -> list[Answer]:
    """Ask the kernel about a flow in a namespace of its own."""
    with Kernel(flow.settings) as kernel:
        return kernel.run(flow.steps)


def shrink(make: Callable[..., Any], flow: Flow, tries: int = 300) -> Flow | None:
    """Leave packets out as long as there is a difference; None if it does not come again."""
    found = compare(make, flow.settings, flow.steps, isolated(flow))
    if found is None:
        return None
    small = replace(flow, steps=flow.steps[: found.step + 1])
    size = max(1, len(small.steps) // 2)
    while tries > 0:
        for at in range(0, len(small.steps) - 1, size):
            fewer = replace(small, steps=small.steps[:at] + small.steps[at + size :])
            tries -= 1
            found = compare(make, fewer.settings, fewer.steps, isolated(fewer))
            if found is not None:
                small = replace(fewer, steps=fewer.steps[: found.step + 1])
                break
        else:
            if size == 1:
                break
            size //= 2
    return small


def brief(answer: Answer) -> str:
    """Give an answer in one line."""
    words = [str(answer.get("v", "look")), "or"[answer["dir"]] if "dir" in answer else ""]
    words += answer.get("ev", [])
    entry = answer.get("ct")
    if entry:
        words += [str(entry.get("state", "")), f"{entry['timeout']} s"]
        words += ["assured"] * entry["assured"] + ["replied"] * entry["reply"]
    words += answer.get("why", [])
    return " ".join(word for word in words if word)
