"""Random flows through the running kernel: both backends must see them as it does.

Not part of ``make test``: ``make test-live`` runs it, as root, beside a checkout of the kernel
oracle. Everything stays inside network namespaces without a name. Two variables of the environment
matter: ``FRAGTRACK_LIVE_SECONDS``, how long it may take (60), and ``FRAGTRACK_LIVE_SEED``, which
repeats the flows of a run. A flow that is seen differently is made as small as it can be, and
printed.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.backends import BACKENDS, tracker_class
from tests.live import timed
from tests.live.hunt import Hunt, brief
from tests.live.judge import compare
from tests.live.kernel import Kernel, UnavailableError
from tests.live.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = float(os.environ.get("FRAGTRACK_LIVE_SECONDS", "60"))
SEED = int(os.environ.get("FRAGTRACK_LIVE_SEED") or random.SystemRandom().randrange(1 << 32))
TIMED = 0.2  # share of the time for flows that wait
WAITING = 8  # seconds that a batch of those takes

pytestmark = pytest.mark.timeout(SECONDS + 300)


@pytest.fixture(scope="module", autouse=True)
def _kernel() -> None:
    """Skip where the kernel cannot be asked."""
    try:
        Kernel().close()
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_kernel(backend: str, kind: str, record_property: Callable[..., None]) -> None:
    make = tracker_class(backend)
    weights = sum(it.weight for it in KINDS.values())
    share = KINDS[kind].weight / weights * (1 - TIMED) / len(BACKENDS)
    hunt = Hunt(kind, SEED)
    story = hunt.run(make, SECONDS * share)
    record_property("packets", hunt.packets)
    assert story is None, f"{backend} and the kernel differ: {story}"
    assert hunt.packets > 0


def test_time_as_the_kernel(backend: str) -> None:
    make: Any = tracker_class(backend)
    batches = max(1, round(SECONDS * TIMED / len(BACKENDS) / WAITING))
    count = batches * timed.TOGETHER
    flows = [timed.draw(random.Random(f"{SEED} timed {n}"), n) for n in range(count)]
    for flow, answers in timed.run(flows):
        found = compare(make, flow.settings, flow.steps, answers)
        told = [
            f"{step.at} ms {step.side} {step.packet.hex() if step.packet else 'look'}: {brief(it)}"
            for step, it in zip(flow.steps, answers, strict=True)
        ]
        assert found is None, "\n".join(
            [f"{flow.kind}, FRAGTRACK_LIVE_SEED={SEED}: {found} {flow.settings}", *told]
        )
