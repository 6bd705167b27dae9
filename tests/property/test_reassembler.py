"""Laws of the reassembler that hold for every schedule of packets and every setting."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragtrack.config import POLICIES, RECLAIMS, ReassemblyConfig
from fragtrack.reference.reassembler import Reassembler, is_fragment
from tests.backends import BACKENDS, reassembler_class
from tests.fragments import fragment, outcome_row, state_row
from tests.property.schedules import (
    EPOCH,
    Advance,
    Flush,
    Push,
    Step,
    configs,
    schedules,
)

EXAMPLES = settings(max_examples=100)


def answer(reassembler: Any, step: Step) -> Any:  # noqa: ANN401
    match step:
        case Push(packet, time, domain):
            return outcome_row(reassembler.push(packet, time, domain))
        case Advance(time):
            return list(reassembler.advance(time))
        case Flush():
            return list(reassembler.flush())


def replay(make: Any, config: ReassemblyConfig, steps: list[Step]) -> list[Any]:  # noqa: ANN401
    reassembler = make(config)
    return [(answer(reassembler, step), state_row(reassembler)) for step in steps]


@pytest.mark.parametrize("backend", BACKENDS)
@EXAMPLES
@given(configs(), schedules())
def test_invariants_hold_after_every_step(
    backend: str, config: ReassemblyConfig, steps: list[Step]
) -> None:
    reassembler = reassembler_class(backend)(config)
    for step in steps:
        answer(reassembler, step)
        reassembler.check()
    reassembler.flush()
    reassembler.check()
    assert (reassembler.memory, reassembler.queues) == (0, 0)


def assert_agree(config: ReassemblyConfig, steps: list[Step]) -> None:
    native, reference = reassembler_class("native")(config), reassembler_class("reference")(config)
    for number, step in enumerate(steps):
        assert answer(native, step) == answer(reference, step), (number, step)
        assert state_row(native) == state_row(reference), (number, step)


@settings(max_examples=600)
@given(configs(), schedules())
def test_backends_agree(config: ReassemblyConfig, steps: list[Step]) -> None:
    assert_agree(config, steps)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=60)
@given(st.data())
def test_backends_agree_on_sound_fragments(policy: str, data: st.DataObject) -> None:
    """With nothing to refuse for its headers or for memory, every policy gets far."""
    config = data.draw(configs(policy=policy, memory=None, checksum="ignore"))
    assert_agree(config, data.draw(schedules(sound=True)))


@pytest.mark.parametrize("reclaim", RECLAIMS)
@pytest.mark.parametrize("version", [4, 6])
def test_backends_agree_under_pressure(reclaim: str, version: int) -> None:
    """Thousands of queues against a limit that only some of them fit."""
    config = ReassemblyConfig(memory=40_000, reclaim=reclaim, hash_key=0x0123456789ABCDEF << 64 | 7)
    native, reference = reassembler_class("native")(config), reassembler_class("reference")(config)
    sources = [
        f"10.{n % 3}.{n % 5}.1" if version == 4 else f"2001:db8:{n % 5}::1" for n in range(9)
    ]
    for number in range(3000):
        ident, part = number * 7919 % 1200, number % 3
        packet = fragment(
            version,
            part * 16,
            bytes([part]) * (16 + number % 5 * 8 if part == 2 else 16),
            more=part != 2,
            ident=ident,
            src=sources[ident % 9],
        )
        step = Push(packet, EPOCH + number * 1_000_000, 0)
        assert answer(native, step) == answer(reference, step), number
        if number % 64 == 0:
            assert state_row(native) == state_row(reference)
    assert state_row(native) == state_row(reference)


@pytest.mark.parametrize("backend", BACKENDS)
@EXAMPLES
@given(configs(), schedules())
def test_replay_gives_the_same(backend: str, config: ReassemblyConfig, steps: list[Step]) -> None:
    make = reassembler_class(backend)
    assert replay(make, config, steps) == replay(make, config, steps)


def snapshot(reassembler: Reassembler) -> dict[Any, Any]:
    """Give what every open queue holds; not what steps 1 and 2 noted about its end."""
    tables = reassembler._tables.values()
    return {
        key: (
            [held.number for held in queue.held],
            list(queue.coverage.pieces),
            queue.first_seen,
            queue.ecn,
            queue.cost,
            queue.largest,
            queue.created,
            queue.deadline,
            queue.poisoned,
        )
        for table in tables
        for key, queue in table.queues.items()
    }


@EXAMPLES
@given(configs(), schedules())
def test_refused_leaves_no_trace(config: ReassemblyConfig, steps: list[Step]) -> None:
    """A refused packet changes no queue, or its queue is gone (or poisoned, or new and empty)."""
    reassembler = Reassembler(config)
    for step in steps:
        if not isinstance(step, Push):
            answer(reassembler, step)
            continue
        reassembler.advance(step.time)
        before = snapshot(reassembler)
        outcome = reassembler.push(step.packet, step.time, step.domain)
        after = snapshot(reassembler)
        if outcome.kind != "dropped" or outcome.given_up:
            continue
        assert before.items() <= after.items()
        assert all(not after[key][0] for key in after.keys() - before.keys())


@pytest.mark.parametrize("backend", BACKENDS)
@EXAMPLES
@given(configs(), schedules())
def test_every_fragment_has_one_fate(
    backend: str, config: ReassemblyConfig, steps: list[Step]
) -> None:
    """The reasons add up to what was given up and what was dropped alone."""
    reassembler = reassembler_class(backend)(config)
    lost = pushed = 0
    for step in [*steps, Flush()]:
        match step:
            case Push(packet, time, domain):
                pushed += 1
                outcome = reassembler.push(packet, time, domain)
                ended = outcome.given_up
                killed = any(pushed in queue.frames for queue in ended)
                lost += outcome.kind == "dropped" and is_fragment(packet) and not killed
            case Advance(time):
                ended = reassembler.advance(time)
            case Flush():
                ended = reassembler.flush()
        lost += sum(queue.fragments for queue in ended)
        assert sum(reassembler.reasons.values()) == lost


PARTS = [(0, b"A" * 8), (8, b"B" * 24), (32, b"C" * 8), (40, b"D" * 16), (56, b"E" * 3)]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("path", ["local", "netfilter"])
def test_every_order_completes(backend: str, policy: str, path: str, version: int) -> None:
    make = reassembler_class(backend)
    config = ReassemblyConfig(policy=policy, path=path)
    payload = b"".join(data for _, data in PARTS)
    for order in permutations(range(5)):
        reassembler = make(config)
        for number in order:
            start, data = PARTS[number]
            outcome = reassembler.push(fragment(version, start, data, more=start < 56), 0)
        assert outcome.kind == "complete"
        assert outcome.datagram.payload == payload
        assert tuple(outcome.datagram.frames) == tuple(order.index(n) + 1 for n in range(5))
        assert (reassembler.memory, reassembler.queues) == (0, 0)


@given(st.permutations(range(40)), st.sampled_from([4, 6]))
@settings(max_examples=30)
def test_long_trains_complete_in_any_order(order: list[int], version: int) -> None:
    reassembler = Reassembler(ReassemblyConfig())
    for position, number in enumerate(order):
        packet = fragment(version, number * 8, bytes([number]) * 8, more=number != 39)
        outcome = reassembler.push(packet, position)
        assert outcome.kind == ("held" if position < 39 else "complete")
    assert outcome.datagram is not None
    assert outcome.datagram.payload == b"".join(bytes([n]) * 8 for n in range(40))
