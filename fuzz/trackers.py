"""Conversations through the trackers of both backends, which must answer alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import harness
import talks
from harness import differ

from fragtrack import _core
from fragtrack.config import ReassemblyConfig
from fragtrack.reference.track import Tracker
from fragtrack.track_config import TrackConfig
from fragtrack.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

VERDICT = [field.name for field in fields(Verdict)]
START = 1_700_000_000_000_000_000
WAITS = (0, 0, 0, 0, 1_000_000, 700_000_000, 3_000_000_000, 11_000_000_000, 200_000_000_000, -7)


class Step(NamedTuple):
    """A packet arrives; or, if it is empty, time passes."""

    packet: bytes
    time: int
    zone: int


@dataclass(frozen=True)
class Trackers:
    """Settings and a schedule."""

    config: dict[str, Any]
    steps: tuple[Step, ...]

    @classmethod
    def draw(cls, random: Random) -> Self:
        """Draw a schedule."""
        choose = random.choice
        config = {
            "profile": choose(["linux-6.18", "linux-6.18", "pre-6.1"]),
            "checksum": choose(["offload", "verify", "ignore"]),
            "tcp_loose": random.random() < 0.7,
            "tcp_be_liberal": random.random() < 0.2,
            "tcp_ignore_invalid_rst": random.random() < 0.2,
            "tcp_max_retrans": choose([3, 3, 0, 1]),
            "gap_tolerant": random.random() < 0.4,
            "rst_inexact_timeout": choose(["close", "unacknowledged"]),
            "max": choose([1, 2, 5, 262_144]),
            "tcp_timeout_established": choose([432_000, 5, 0.5]),
            "udp_timeout": choose([30, 1.5]),
            "hash_key": random.getrandbits(128),
        }
        count = choose([5, 20, 60, 60, 200])
        now, steps = START + random.randrange(1_000_000_000), []
        for packet in talks.packets(random, count):
            now += choose(WAITS)
            if random.random() < 0.02:
                steps.append(Step(b"", now, 0))
            steps.append(Step(packet, now, choose([0, 0, 0, 7])))
        return cls(config=config, steps=tuple(steps))

    @classmethod
    def load(cls, fields: dict[str, Any]) -> Self:
        """Make one of what `fields` gave."""
        steps = [Step(bytes.fromhex(text), time, zone) for text, time, zone in fields["steps"]]
        return cls(config=fields["config"], steps=tuple(steps))

    def fields(self) -> dict[str, object]:
        """Give what to save."""
        steps = [(step.packet.hex(), step.time, step.zone) for step in self.steps]
        return asdict(self) | {"steps": steps}

    def smaller(self) -> Iterator[Self]:
        """Leave out runs of steps, then single ones; then settings."""
        width = len(self.steps) // 2
        while width:
            for first in range(0, len(self.steps), width):
                yield replace(self, steps=self.steps[:first] + self.steps[first + width :])
            width //= 2
        for name in self.config:
            yield replace(self, config={k: v for k, v in self.config.items() if k != name})

    def run(self) -> None:
        """Push with both, and compare."""
        config = TrackConfig(**{"hash_key": 1} | self.config)
        reassembly = ReassemblyConfig(path="netfilter", hash_key=1)
        one = _core.Tracker(config, reassembly)
        answers: list[dict[str, Any]] = []

        def work() -> None:
            answers.extend(_answer(one, step) for step in self.steps)
            one.check()

        harness.native(work)
        other = Tracker(config, reassembly)
        for number, (step, answer) in enumerate(zip(self.steps, answers, strict=True)):
            differ(f"step {number}", answer, _answer(other, step))
        other.check()


def _answer(tracker: Any, step: Step) -> dict[str, Any]:  # noqa: ANN401
    """Take a step; tell everything that shows behind it."""
    told: dict[str, Any] = {}
    if step.packet:
        verdict = tracker.push(step.packet, step.time, step.zone)
        told = {name: getattr(verdict, name) for name in VERDICT}
        told["window"] = verdict.connection and tracker.inspect(verdict.connection)
    else:
        tracker.advance(step.time)
    told["events"] = tracker.take_events()
    told["ended"] = tracker.take_ended().rows()
    told["rows"] = tracker.connections().rows()
    return told | {"counters": tracker.counters, "reasons": tracker.reasons}


if __name__ == "__main__":
    harness.main(Trackers)
