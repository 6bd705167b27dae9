"""From samples to figures, and from figures to verdicts on the targets."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

import tracking
from shapes import CLASSIC, FRAGMENTS, QUEUES

Sample = dict[str, Any]

WALK, GATHERED = "floor-walk", "floor-gather"
CHAIN, GATHER = "engine-chain", "engine-gather"
DPDK = "DPDK, chain"
FLAT = 3.0  # the most that a shape may cost, as a multiple of the plainest one in order


@dataclass(frozen=True, slots=True)
class Figure:
    """What the samples of one thing on one workload come to.

    Attributes
    ----------
    ns
        Median of CPU nanoseconds a record (or a run, where a record is a run); `low` and `high`
        are the extremes.
    wall
        Median of wall nanoseconds a record.
    walk, gather
        Median over the rounds of the ratio to the floors measured in the same round.
    drain
        Median of CPU nanoseconds a record to give up what was left open at the end.
    lost
        Datagrams that it did not complete though it should, connections that it did not find (below
        0: that it found too many); None if unknown.
    """

    workload: str
    what: str
    ns: float
    low: float
    high: float
    wall: float
    rounds: int
    walk: float | None = None
    gather: float | None = None
    drain: float | None = None
    lost: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target, what was measured, and whether it was met."""

    target: str
    workload: str
    limit: str
    value: float
    met: bool


def each_ns(sample: Sample, clock: str = "cpu_ns") -> float:
    """Nanoseconds a record."""
    return float(sample[clock]) / float(sample["records"])


class Figures:
    """All figures of a run, by workload and thing."""

    def __init__(self, samples: list[Sample]) -> None:
        self._by: dict[tuple[str, str], list[Sample]] = defaultdict(list)
        for sample in samples:
            if "cpu_ns" in sample:
                self._by[sample["workload"], sample["what"]].append(sample)
        self.all = {key: self._figure(*key) for key in self._by}

    def find(self, workload: str, what: str) -> Figure | None:
        """Give a figure, or None if that was not measured."""
        return self.all.get((workload, what))

    def of(self, workload: str) -> list[Figure]:
        """Give the figures of a workload in the order of measuring."""
        return [figure for (name, _), figure in self.all.items() if name == workload]

    def ratio(self, workload: str, what: str, base: str) -> float | None:
        """Give the median over the rounds of `what` to `base` in the same round."""
        tops, bases = self._rounds(workload, what), self._rounds(workload, base)
        both = [
            statistics.median(tops[r]) / statistics.median(bases[r]) for r in tops if r in bases
        ]
        return statistics.median(both) if both else None

    def _rounds(self, workload: str, what: str) -> dict[int, list[float]]:
        rounds: dict[int, list[float]] = defaultdict(list)
        for sample in self._by.get((workload, what), []):
            rounds[sample["round"]].append(each_ns(sample))
        return rounds

    def _figure(self, workload: str, what: str) -> Figure:
        samples = self._by[workload, what]
        ns = [each_ns(sample) for sample in samples]
        drains = [each_ns(s, "drain_ns") for s in samples if s.get("drain_ns") is not None]
        return Figure(
            workload=workload,
            what=what,
            ns=statistics.median(ns),
            low=min(ns),
            high=max(ns),
            wall=statistics.median(each_ns(sample, "wall_ns") for sample in samples),
            rounds=len(samples),
            walk=self.ratio(workload, what, WALK),
            gather=self.ratio(workload, what, GATHERED),
            drain=statistics.median(drains) if drains else None,
            lost=max((s["lost"] for s in samples if s.get("lost") is not None), default=None),
        )


class Judge:
    """Collects verdicts."""

    def __init__(self) -> None:
        self.found: list[Verdict] = []

    def most(self, target: str, workload: str, limit: float, value: float | None) -> None:
        """Judge what must not be above `limit`, if it was measured."""
        if value is not None:
            self.found.append(Verdict(target, workload, f"≤ {limit:g}", value, met=value <= limit))

    def least(self, target: str, workload: str, limit: float, value: float | None) -> None:
        """Judge what must not be below `limit`, if it was measured."""
        if value is not None:
            self.found.append(Verdict(target, workload, f"≥ {limit:g}", value, met=value >= limit))


def verdicts(figures: Figures, samples: list[Sample]) -> list[Verdict]:
    """Hold the figures against the targets; those that were not measured are left out."""
    judge = Judge()
    for name in [*CLASSIC, "flood", "tiny-8191", "tiny-8191-shuffled"]:
        judge.most("engine / serial walk", name, 0.75, figures.ratio(name, CHAIN, WALK))
        judge.most("gathered / gather floor", name, 1.3, figures.ratio(name, GATHER, GATHERED))
        judge.least("DPDK / engine", name, 2.0, figures.ratio(name, DPDK, CHAIN))
    _flat(figures, judge)
    for sample in samples:
        if sample["workload"] == "flood" and sample["what"] == CHAIN and sample["round"] == 0:
            part = 100 * sample["datagrams"] / sample["expected"]
            judge.least("% of honest datagrams completed with 4 MiB", "flood", 90, part)
            break
    for what, limit in (("push", 500), ("push_batch", 100)):
        figure = figures.find("python", what)
        judge.most(f"Python: {what}, ns a packet", "3f", limit, figure.ns if figure else None)
    judge.most("command / cp, wall", "3f", 2.0, _wall_ratio(figures, "fragtrack reassemble", "cp"))
    start = figures.find("start-up", "fragtrack reassemble, 192 packets")
    judge.most("start-up, seconds", "192 packets", 0.15, start.wall / 1e9 if start else None)
    peaks = [sample["peak_kb"] for sample in samples if "peak_kb" in sample]
    if len(peaks) > 1:
        growth = max(peaks) / peaks[0]
        judge.most("peak anonymous memory / that of the smallest file", "3f", 1.1, growth)
    tracking.judge(figures, samples, judge)
    return judge.found


def _flat(figures: Figures, judge: Judge) -> None:
    """Judge the cost of each shape as a multiple of the plainest of its kind in order."""
    series = {
        "fragments a datagram": ("frags", FRAGMENTS),
        "open queues": ("queues", QUEUES),
    }
    for kind, (stem, sizes) in series.items():
        names = [f"{stem}-{size}" for size in sizes]
        names += [f"{name}-shuffled" for name in names]
        base = figures.find(names[0], CHAIN)
        measured = [figure for name in names if (figure := figures.find(name, CHAIN))]
        others = [(f.ns / base.ns, f.workload) for f in measured if base and f is not base]
        if others:
            value, name = max(others)
            judge.most(f"cost / that of {names[0]}, worst over {kind}", name, FLAT, value)
        for target, limit, what, floor in (
            ("engine / serial walk, worst", 0.75, CHAIN, WALK),
            ("gathered / gather floor, worst", 1.3, GATHER, GATHERED),
        ):
            ratios = [(figures.ratio(f.workload, what, floor) or 0, f.workload) for f in measured]
            if ratios:
                value, name = max(ratios)
                judge.most(f"{target} of {stem}", name, limit, value)


def _wall_ratio(figures: Figures, what: str, base: str) -> float | None:
    top, bottom = figures.find("command", what), figures.find("command", base)
    return top.wall / bottom.wall if top and bottom else None


def plain(figure: Figure) -> dict[str, Any]:
    """Give a figure for the record: rounded, without what is unknown."""
    fields = {k: v for k, v in asdict(figure).items() if v is not None}
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in fields.items()}
