"""Flows in which time passes, and what runs out while it does."""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING, Final

from tests.live import icmp, sctp, simple, tcp
from tests.live.flow import CLIENT, Flow, Step
from tests.live.kernel import Answer, Kernel

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence

RESIDUES: Final = (250, 500, 750)
"""Pauses end at times that differ by these, modulo a second: then no step is near to a deadline,
since every timeout is a number of whole seconds behind a step."""
LATE: Final = 120  # milliseconds: a flow with a later step is asked again
TOGETHER: Final = 40  # namespaces at a time

TCP_SHORT: Final = {
    "tcp_timeout_syn_sent": 1,
    "tcp_timeout_syn_recv": 1,
    "tcp_timeout_established": 2,
    "tcp_timeout_fin_wait": 1,
    "tcp_timeout_close_wait": 2,
    "tcp_timeout_last_ack": 1,
    "tcp_timeout_time_wait": 2,
    "tcp_timeout_close": 1,
    "tcp_timeout_max_retrans": 1,
    "tcp_timeout_unacknowledged": 1,
}
SCTP_SHORT: Final = {
    "sctp_timeout_closed": 1,
    "sctp_timeout_cookie_wait": 1,
    "sctp_timeout_cookie_echoed": 2,
    "sctp_timeout_established": 2,
    "sctp_timeout_shutdown_sent": 1,
    "sctp_timeout_shutdown_recd": 1,
    "sctp_timeout_shutdown_ack_sent": 2,
    "sctp_timeout_heartbeat_sent": 1,
}
SIMPLE_SHORT: Final = {
    "udp_timeout": 1,
    "udp_timeout_stream": 2,
    "icmp_timeout": 1,
    "icmpv6_timeout": 1,
    "gre_timeout": 1,
    "gre_timeout_stream": 2,
    "generic_timeout": 1,
}
DRAWS: Final[dict[str, tuple[Callable[[random.Random, Flow], None], dict[str, int]]]] = {
    "tcp": (tcp.draw, TCP_SHORT),
    "sctp": (sctp.draw, SCTP_SHORT),
    "udp": (simple.draw_udp, SIMPLE_SHORT),
    "udp stream": (simple.draw_udp, {"udp_timeout_stream": 60}),
    "udplite": (simple.draw_udplite, SIMPLE_SHORT),
    "gre": (simple.draw_gre, SIMPLE_SHORT),
    "icmp": (icmp.draw, SIMPLE_SHORT),
    "other": (simple.draw_other, SIMPLE_SHORT),
}


def draw(rng: random.Random, number: int) -> Flow:
    """Make a flow of any kind with up to three pauses."""
    kind = rng.choice(["tcp", "tcp", "tcp", "sctp", "sctp", *DRAWS])
    drawn, settings = DRAWS[kind]
    flow = Flow(f"timed {kind}", rng.choice((4, 4, 6)), number, settings=dict(settings))
    if rng.random() < 0.3:
        flow.settings |= rng.choice(({"tcp_loose": 0}, {"tcp_max_retrans": 1}))
    while not flow.steps:
        drawn(rng, flow)
    del flow.steps[16:]
    pause(rng, flow)
    return flow


def pause(rng: random.Random, flow: Flow) -> None:
    """Put pauses between the steps, and behind the last; each ends with a look."""
    count = rng.randint(1, 3)
    places = sorted(rng.sample(range(1, len(flow.steps) + 1), min(count, len(flow.steps))))
    now, steps = 0, list(flow.steps)
    flow.steps = []
    for residue, (start, stop) in zip(
        (0, *rng.sample(RESIDUES, len(places))),
        zip((0, *places), (*places, len(steps)), strict=True),
        strict=True,
    ):
        if start:
            now += (residue - now) % 1000 + rng.choice((0, 0, 1000))
            flow.steps.append(Step(CLIENT, None, "look", now))
        for step in steps[start:stop]:
            step.at = now
            flow.steps.append(step)


def run(flows: Sequence[Flow], *, tries: int = 5) -> Iterator[tuple[Flow, list[Answer]]]:
    """Ask the kernel about many flows at once, each in a namespace of its own."""
    for _ in range(tries):
        left = []
        for start in range(0, len(flows), TOGETHER):
            for flow, answers in _batch(flows[start : start + TOGETHER]):
                if answers is None:
                    left.append(flow)
                else:
                    yield flow, answers
        flows = left
        if not flows:
            return
    raise RuntimeError("the machine is too busy: steps were late every time")


def _batch(flows: Sequence[Flow]) -> list[tuple[Flow, list[Answer] | None]]:
    kernels = [Kernel(flow.settings) for flow in flows]
    try:
        start = time.monotonic_ns() + 10_000_000
        results: list[list[Answer]] = [[] for _ in flows]
        origins = [start + 4_000_000 * number for number in range(len(flows))]
        late = [False] * len(flows)
        heap = [(origins[n] + flow.steps[0].at * 1_000_000, n, 0) for n, flow in enumerate(flows)]
        heapq.heapify(heap)
        while heap:
            due, number, at = heapq.heappop(heap)
            wait = due - time.monotonic_ns()
            if wait > 0:
                time.sleep(wait / 1e9)
            if at == 0:  # the clock of a flow starts at its first packet
                origins[number] = time.monotonic_ns()
            steps = flows[number].steps
            until = next((i for i in range(at, len(steps)) if steps[i].at != steps[at].at), None)
            for step in steps[at:until]:
                now = time.monotonic_ns() - origins[number]
                late[number] |= now > (step.at + LATE) * 1_000_000
                results[number].append({**kernels[number].step(step), "ns": now})
            if until is not None:
                heapq.heappush(heap, (origins[number] + steps[until].at * 1_000_000, number, until))
    finally:
        for kernel in kernels:  # slow, so not while clocks are running
            kernel.close()
    return [(f, None if bad else r) for f, r, bad in zip(flows, results, late, strict=True)]
