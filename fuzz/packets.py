"""Schedules of packets through the reassemblers of both backends, which must answer alike."""

from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import generate
import harness
from harness import differ

from fragtrack import _core
from fragtrack.config import ReassemblyConfig
from fragtrack.events import Reason
from fragtrack.reference.reassembler import Reassembler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

KINDS = ("whole", "held", "complete", "dropped")  # by their number in a batch


class Step(NamedTuple):
    """A packet arrives; or time passes (empty packet, domain -1); or the input ends (-2)."""

    packet: bytes
    time: int
    domain: int


ADVANCE, FLUSH = -1, -2


@dataclass(frozen=True)
class Packets:
    """Settings and a schedule, and how many packets go into one batch."""

    config: dict[str, Any]
    batch: int
    steps: tuple[Step, ...]

    @classmethod
    def draw(cls, random: Random) -> Self:
        """Draw a schedule."""
        count = random.choice([3, 8, 20, 20, 40, 40, 120, 400])
        domains = random.choice([[0], [0, 0, 0, 1 << 48 | 7], [0, 4 << 48 | (1 << 48) - 1]])
        steps = []
        wild = random.random() < 0.05
        moments = (generate.wild_times if wild else generate.times)(random, count)
        for packet, time in zip(generate.packets(random, count), moments, strict=True):
            other = random.random()
            if other < 0.02:
                steps.append(Step(b"", time, ADVANCE))
            elif other < 0.03:
                steps.append(Step(b"", time, FLUSH))
            else:
                steps.append(Step(packet, time, random.choice(domains)))
        batch = random.choice([1, 5, 16, 17, 40, 1000])
        return cls(config=generate.config(random), batch=batch, steps=tuple(steps))

    @classmethod
    def load(cls, fields: dict[str, Any]) -> Self:
        """Make one of what `fields` gave."""
        steps = [Step(bytes.fromhex(text), time, domain) for text, time, domain in fields["steps"]]
        config = generate.loaded(fields["config"])
        return cls(config=config, batch=fields["batch"], steps=tuple(steps))

    def fields(self) -> dict[str, object]:
        """Give what to save."""
        steps = [(step.packet.hex(), step.time, step.domain) for step in self.steps]
        return asdict(self) | {"steps": steps}

    def smaller(self) -> Iterator[Self]:
        """Leave out runs of steps, then single ones; then plainer settings."""
        width = len(self.steps) // 2
        while width:
            for first in range(0, len(self.steps), width):
                yield replace(self, steps=self.steps[:first] + self.steps[first + width :])
            width //= 2
        for config in generate.plainer(self.config):
            yield replace(self, config=config)

    def run(self) -> None:
        """Push with both, and compare; then in batches."""
        config = ReassemblyConfig(**self.config)
        answers: list[dict[str, Any]] = []
        one = _core.Reassembler(config)
        states: list[dict[str, Any]] = []

        def work() -> None:
            for step in self.steps:
                answers.append(_answer(one, step))
                states.append(_state(one))
            one.check()

        harness.native(work)
        other = Reassembler(config)
        for number, (step, answer, state) in enumerate(
            zip(self.steps, answers, states, strict=True)
        ):
            differ(f"step {number}", answer, _answer(other, step))
            differ(f"state after step {number}", state, _state(other))
        other.check()
        self._batches(config, answers, _state(one))
        for each in (one, other):
            each.flush()
            each.check()
            differ("queues, memory at the end", (each.queues, each.memory), (0, 0))

    def _batches(
        self, config: ReassemblyConfig, answers: list[dict[str, Any]], state: dict[str, Any]
    ) -> None:
        """Push the same in batches, and compare with what came of single packets."""
        batched = _core.Reassembler(config)
        at = 0
        while at < len(self.steps):
            domain, stop = self.steps[at].domain, at + 1
            if domain < 0:
                _answer(batched, self.steps[at])
                at = stop
                continue
            while (
                stop < len(self.steps)
                and stop - at < self.batch
                and self.steps[stop].domain == domain
            ):
                stop += 1
            self._batch(batched, self.steps[at:stop], answers[at:stop])
            batched.check()
            at = stop
        differ("state after batches", _state(batched), state)

    def _batch(
        self,
        batched: _core.Reassembler,
        steps: tuple[Step, ...],
        answers: list[dict[str, Any]],
    ) -> None:
        buffer, offsets = bytearray(b"\xff" * 3), []
        for step in steps:
            offsets.append(len(buffer))
            buffer += step.packet
        batch = batched.push_batch(
            bytes(buffer),
            array("Q", offsets),
            array("I", [len(step.packet) for step in steps]),
            array("q", [step.time for step in steps]),
            domain=steps[0].domain,
        )
        kinds = [KINDS.index(answer["kind"]) for answer in answers]
        reasons = [Reason[answer["reason"]] if answer["reason"] else 0 for answer in answers]
        whole = [answer["packet"] for answer in answers if answer["kind"] == "complete"]
        lost = [queue for answer in answers for queue in answer["given_up"]]
        differ("batch kinds", list(batch.kinds), kinds)
        differ("batch reasons", list(batch.reasons), reasons)
        differ("batch packets", [batch.packet(at) for at in range(len(batch))], whole)
        differ("batch given up", list(batch.given_up), lost)
        differ("batch completed", [kinds[at] for at in batch.completed], [2] * len(whole))


def _answer(reassembler: Any, step: Step) -> dict[str, Any]:  # noqa: ANN401
    if step.domain == ADVANCE:
        return {"given_up": list(reassembler.advance(step.time))}
    if step.domain == FLUSH:
        return {"given_up": list(reassembler.flush())}
    outcome = reassembler.push(step.packet, step.time, step.domain)
    names = ("kind", "reason", "packet", "icmp", "datagram")
    given_up = list(outcome.given_up)
    return {name: getattr(outcome, name) for name in names} | {"given_up": given_up}


def _state(reassembler: Any) -> dict[str, Any]:  # noqa: ANN401
    names = ("counters", "counters4", "counters6", "reasons", "queues", "memory")
    return {name: getattr(reassembler, name) for name in names}


if __name__ == "__main__":
    harness.main(Packets)
