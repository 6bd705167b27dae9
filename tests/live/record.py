"""Records what the running kernel answers to the flows of this folder.

    python -m tests.live.record [--seed 618] [--output FILE]

It takes root, the kernel oracle beside the checkout, and half a minute. Everything is asked twice,
in another order the second time; a file is written only if all answers came out the same, but for a
second more or less in a timeout. `tests/conformance/test_conntrack_recordings.py` replays the file,
and needs none of that.

Lines of JSON: a header (`format`, `kernel`, `seed`, `flows`, `steps`), then one flow a line:
`kind`, `settings` (sysctls without ``net.netfilter.nf_conntrack_``; ``acct`` was 1 for all), and
`steps`. A step is `s` (0: from the client's network, 1: from the server's), `p` (the packet in hex;
absent: a look at what has run out), `t` (milliseconds; absent: as the step before), `n` (what it
is) and `a` (the answer, as `tests/live/kernel.py` describes it; `vtag` and errors that came back
are left out).
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import random
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.live import timed
from tests.live.hunt import Kernels
from tests.live.kinds import KINDS, draw
from tests.live.scenes import scenes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.live.flow import Flow
    from tests.live.kernel import Answer

FORMAT = 1
OUTPUT = Path(__file__).parent.parent / "data" / "conntrack_618.jsonl.gz"
SHARES = {
    "tcp": 90,
    "udp": 20,
    "udplite": 20,
    "icmp": 45,
    "sctp": 60,
    "gre": 20,
    "other": 15,
    "pieces": 30,
}
TIMED = 80
LONGEST = 14  # steps of a random flow
ASIDE = frozenset({"ns", "out", "back"})


def flows_of(seed: int) -> list[Flow]:
    """Make all the flows, with addresses that no two share."""
    made = scenes()
    for kind in KINDS:
        for _ in range(SHARES[kind]):
            number = len(made) + 1
            flow = draw(kind, random.Random(f"{seed} {number}"), number)
            del flow.steps[LONGEST:]
            made.append(flow)
    for _ in range(TIMED):
        number = len(made) + 1
        made.append(timed.draw(random.Random(f"{seed} {number}"), number))
    return [flow for flow in made if flow.steps]


def ask(flows: Iterable[Flow]) -> dict[int, list[Answer]]:
    """Ask the kernel; give its answers by number of flow."""
    waiting = [flow for flow in flows if flow.steps[-1].at]
    answers = {flow.number: its for flow, its in timed.run(waiting)}
    with Kernels() as kernels:
        for flow in flows:
            if flow.number not in answers:
                answers[flow.number] = kernels.of(flow).run(flow.steps)
    return {number: [_plain(it) for it in its] for number, its in answers.items()}


def _plain(answer: Answer) -> Answer:
    """Leave out what no tracker can know."""
    plain = {name: value for name, value in answer.items() if name not in ASIDE}
    entries = [*plain.get("all", []), *([plain["ct"]] if plain.get("ct") else [])]
    for entry in entries:
        entry.pop("vtag", None)
    return plain


def alike(one: Any, two: Any) -> bool:  # noqa: ANN401
    """Tell whether two answers are the same, but for a second in a timeout."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(
            abs(one[name] - two[name]) <= 1 if name == "timeout" else alike(one[name], two[name])
            for name in one
        )
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(alike, one, two))
    return bool(one == two)


def line_of(flow: Flow, answers: list[Answer]) -> dict[str, Any]:
    """Write a flow as the file holds it."""
    steps, now = [], 0
    for step, answer in zip(flow.steps, answers, strict=True):
        line: dict[str, Any] = {"s": step.side}
        if step.at != now:
            line["t"] = now = step.at
        if step.packet is not None:
            line["p"] = step.packet.hex()
        steps.append({**line, "n": step.note, "a": answer})
    settings = {"settings": flow.settings} if flow.settings else {}
    return {"kind": flow.kind, **settings, "steps": steps}


def main() -> int:
    """Record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=618)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    flows = flows_of(options.seed)
    first = ask(flows)
    again = ask(flows[::-1])
    unsteady = [flow for flow in flows if not alike(first[flow.number], again[flow.number])]
    for flow in unsteady:
        sys.stderr.write(f"flow {flow.number} ({flow.kind}) was answered in two ways\n")
    if unsteady:
        return 1
    release = re.match(r"[\d.]+", platform.release())
    header = {
        "format": FORMAT,
        "kernel": release[0] if release else platform.release(),
        "seed": options.seed,
        "flows": len(flows),
        "steps": sum(len(flow.steps) for flow in flows),
    }
    lines = [header, *(line_of(flow, first[flow.number]) for flow in flows)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    options.output.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
