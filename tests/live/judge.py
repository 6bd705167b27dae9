"""Compares what a tracker makes of a flow with what the kernel answered, packet by packet."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from fragtrack.config import ReassemblyConfig
from fragtrack.track_config import TrackConfig
from tests.live.tuples import Key, backwards, key_of, shown, unshown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fragtrack.verdicts import Connection, Verdict
    from tests.live.flow import Step

Answer = dict[str, Any]

START = 1_700_000_000_000_000_000  # any epoch will do
MILLISECOND = 1_000_000
DIRECTIONS = {"original": 0, "reply": 1, None: None}
CLASSES = {"held": "-", "dropped": "-"}
SLACK = 1  # seconds: the kernel rounds down, and its clock has gone on since the packet

TEXTS = {  # what the kernel logs, and the reasons that stand for it
    r"packet \(index \d\) in dir \d invalid, state": {"transition"},
    r"packet \(index \d\) in dir \d ignored, state": {"state"},
    r"lower timeout to": {"invalid_noted"},
    r"ACK is over upper bound": {"ack_above", "invalid_noted"},
    r"SEQ is over upper bound": {"seq_above", "invalid_noted"},
    r"SEQ is under lower bound": {"seq_below"},
    r"ignored ACK under lower bound": {"ack_below"},
    r"bytes more than expected": {"overshoot"},
    r"invalid rst": {"rst_below", "invalid_noted"},
    r"invalid new": {"no_entry"},
    r"challenge-ack ignored": {"challenge_ack"},
    r"invalid tcp flag combination": {"flags"},
    r"bad (hw icmp )?checksum|checksum failed|bad CRC": {"checksum"},
    r"truncated packet|short packet|short redirect": {"short", "offset"},
    r"truncated/malformed packet": {"length"},
    r"invalid checksum coverage": {"coverage"},
    r"checksum missing": {"no_checksum"},
    r"invalid icmp type": {"icmp_type"},
    r"outer daddr": {"outer_address"},
    r"redirect": {"inner", "inner_type", "icmp_type"},
    r"verification tag check failed": {"vtag"},
    r"do_basic_checks failed": {"chunk"},
    r"Invalid, old_state": {"chunk_state"},
}


class Difference(NamedTuple):
    """The first thing that a tracker sees otherwise.

    Attributes
    ----------
    step
        Number of the step in the flow.
    what
        Which part of the answer.
    kernel, tracker
        What either says.
    """

    step: int
    what: str
    kernel: object
    tracker: object


def config_of(settings: dict[str, int]) -> TrackConfig:
    """Translate sysctls; the kernel makes no exception for unfinished checksums."""
    named = {name: str(value) for name, value in settings.items()}
    return TrackConfig(checksum="verify").set(named)


def compare(
    make: Callable[..., Any],
    settings: dict[str, int],
    steps: Sequence[Step],
    answers: Sequence[Answer],
    *,
    strict: bool = False,
) -> Difference | None:
    """Give the steps to a new tracker; tell the first difference.

    Parameters
    ----------
    make
        The class of the tracker.
    strict
        Check the invariants behind every step, not only behind the last.
    """
    tracker = make(config_of(settings), ReassemblyConfig(path="netfilter", limits="kernel"))
    judge = Judge(tracker)
    for number, (step, answer) in enumerate(zip(steps, answers, strict=True)):
        time = START + answer.get("ns", step.at * MILLISECOND)
        for what, kernel, ours in judge.step(step.packet, time, answer):
            if kernel != ours:
                return Difference(number, what, kernel, ours)
        if strict:
            tracker.check()
    tracker.check()
    return None


class Judge:
    """A tracker, and the tuple that the last packet was about."""

    def __init__(self, tracker: Any) -> None:  # noqa: ANN401
        self.tracker = tracker
        self.key: Key | None = None

    def step(self, packet: bytes | None, time: int, answer: Answer) -> list[tuple[str, Any, Any]]:
        """Take a step; list what is to be equal: what, by the kernel, by the tracker."""
        if packet is None:
            return self._look(time, answer)
        there = unshown(answer["key"]) if "key" in answer else key_of(packet)
        self.key = there or self.key
        verdict = self.tracker.push(packet, time)
        self.tracker.take_events()
        rows = self.tracker.connections().rows()
        row = next((it for it in rows if self.key in (_key(it), backwards(_key(it)))), None)
        same = [
            ("class", answer["v"], CLASSES.get(verdict.ct_class, verdict.ct_class)),
            ("direction", answer.get("dir"), DIRECTIONS[verdict.direction]),
            ("events", answer.get("ev", []), list(verdict.events)),
            ("entry", *_entries(answer["ct"], row)),
            ("reason", "as logged", _reason(answer.get("why"), verdict)),
        ]
        if row is not None and verdict.connection == row.id:
            same.append(("verdict's flags", _flags(row), _flags_of(verdict)))
        if "tcp" in answer:
            same.append(("window", answer["tcp"], self.tracker.inspect(verdict.connection)))
        return same

    def _look(self, time: int, answer: Answer) -> list[tuple[str, Any, Any]]:
        self.tracker.advance(time)
        events = [event.kind for event in self.tracker.take_events()]
        rows = {str(_entry(row)["orig"]): row for row in self.tracker.connections().rows()}
        there = {str(entry["orig"]): entry for entry in answer["all"]}
        return [
            ("events", answer.get("ev", []), events),
            ("entries", sorted(there), sorted(rows)),
            *(("entry", *_entries(there[key], row)) for key, row in rows.items() if key in there),
        ]


def _key(row: Connection) -> Key:
    ends = (ipaddress.ip_address(row.src).packed, ipaddress.ip_address(row.dst).packed)
    if row.icmp_type is not None and row.icmp_id is not None and row.icmp_code is not None:
        return (*ends, row.protocol, row.icmp_id, row.icmp_type, row.icmp_code)
    if row.gre_key is not None:
        return (*ends, row.protocol, *row.gre_key)
    if row.sport is not None and row.dport is not None:
        return (*ends, row.protocol, row.sport, row.dport)
    return (*ends, row.protocol)


def _entry(row: Connection) -> Answer:
    """Show a row as the kernel's answers do."""
    entry: Answer = {
        "timeout": row.timeout,
        "assured": row.assured,
        "reply": row.reply_seen,
        "orig": shown(_key(row)),
        "count": [row.packets_orig, row.bytes_orig, row.packets_reply, row.bytes_reply],
    }
    if row.state is not None:
        entry["state"] = row.state
    return entry


def _entries(kernel: Answer | None, row: Connection | None) -> tuple[Answer | None, Answer | None]:
    """Make an entry and a row comparable: a second more or less does not matter."""
    if kernel is None or row is None:
        return kernel, None if row is None else _entry(row)
    ours = _entry(row)
    if "count" not in kernel:
        del ours["count"]
    kernel = {name: value for name, value in kernel.items() if name != "vtag"}
    if row.timeout is not None and abs(row.timeout - kernel["timeout"]) <= SLACK:
        kernel["timeout"] = row.timeout
    return kernel, ours


def _flags(row: Connection) -> tuple[Any, ...]:
    return row.state, row.timeout, row.assured, row.reply_seen


def _flags_of(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.state, verdict.timeout, verdict.assured, verdict.seen_reply


def _reason(logged: list[str] | None, verdict: Verdict) -> str:
    """Tell whether the reason of a verdict fits what was logged."""
    if not logged:
        return "as logged"
    for text, reasons in TEXTS.items():
        if re.search(text, logged[-1]):
            return "as logged" if verdict.reason in reasons else f"{verdict.reason}: {logged[-1]}"
    return f"no reason is known for {logged[-1]!r}"
