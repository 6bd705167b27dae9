"""Compares a dump of the kernel's table with the connections of a capture.

Connections are matched by their original tuple: protocol, addresses, ports (or ICMP type, code and
identifier, or GRE keys), and the zone if that is asked for. The kernel has one entry a tuple and
zone; only connections that are still in the table of the capture are compared.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fragtrack.conntrack.convert import from_connection, turned, zone_of
from fragtrack.conntrack.draft import address
from fragtrack.conntrack.report import report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fragtrack.conntrack.entry import Entry, Side
    from fragtrack.verdicts import Connection

Value = str | int | bool | None
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs: its name, what the dump says, what the capture says."""

    field: str
    dump: Value
    capture: Value


@dataclass(frozen=True, slots=True)
class Pair:
    """An entry of the dump and the connection of the capture that it is.

    Attributes
    ----------
    entry : Entry
        From the dump.
    connection : Connection
        From the capture.
    differences : tuple of Difference
        What differs: ``state``, ``assured``, ``unreplied``, ``packets_orig``, ``bytes_orig``,
        ``packets_reply``, ``bytes_reply``, ``timeout`` (if that counts). Counters are in the
        direction of the connection.
    """

    entry: Entry
    connection: Connection
    differences: tuple[Difference, ...] = ()

    @property
    def timeouts(self) -> tuple[int | None, int | None]:
        """Seconds left: in the dump, in the capture."""
        return self.entry.timeout, self.connection.timeout


@dataclass(slots=True)
class Comparison:
    """What a dump and a capture have in common, and what not.

    Attributes
    ----------
    same : list of Pair
        In both, and nothing differs.
    different : list of Pair
        In both, with differences.
    reversed : list of Pair
        In both, but what is the original direction in the one is the reply in the other; whoever
        saw the first packet late took the answer for it. Differences are in the pair.
    ended : list of Pair
        In the dump; in the capture, too, but there the connection has ended. The latest one.
    only_dump : list of Entry
        In the dump only.
    only_capture : list of Connection
        Still in the table of the capture, and not in the dump.
    ended_total : int
        Connections that ended in the capture, in the dump or not.
    """

    same: list[Pair] = field(default_factory=list)
    different: list[Pair] = field(default_factory=list)
    reversed: list[Pair] = field(default_factory=list)
    ended: list[Pair] = field(default_factory=list)
    only_dump: list[Entry] = field(default_factory=list)
    only_capture: list[Connection] = field(default_factory=list)
    ended_total: int = 0

    @property
    def agrees(self) -> bool:
        """Whether dump and capture hold the same connections, and nothing differs."""
        return not (
            self.different or self.reversed or self.ended or self.only_dump or self.only_capture
        )

    def lines(self, limit: int | None = None) -> list[str]:
        """Tell it to a person, a line a connection.

        Parameters
        ----------
        limit
            At most so many lines of each kind; the rest is counted. None: all.
        """
        return report(self, limit)

    def as_dict(self) -> dict[str, Any]:
        """Tell it to a program: plain values, fit for JSON."""
        return {
            "agrees": self.agrees,
            "same": len(self.same),
            "ended_total": self.ended_total,
            "different": [_pair(pair) for pair in self.different],
            "reversed": [_pair(pair) for pair in self.reversed],
            "ended": [_pair(pair) for pair in self.ended],
            "only_dump": [_entry(entry) for entry in self.only_dump],
            "only_capture": [
                {"connection": c.id, **_entry(from_connection(c))} for c in self.only_capture
            ],
        }


def compare(
    entries: Iterable[Entry],
    connections: Iterable[Connection],
    *,
    zones: bool = False,
    timeout_slack: int | None = None,
) -> Comparison:
    """Compare a dump with the connections of a capture.

    Parameters
    ----------
    entries
        The entries of the dump. Translated ones are found by their original tuple.
    connections
        The connections of the capture; those without a timeout have ended.
    zones
        Whether the zones must be equal, too.
    timeout_slack
        Seconds by which timeouts may differ; None if they do not count at all.

    Notes
    -----
    XML does not tell the types and identifiers of ICMP: such an entry is matched by its addresses
    alone, with one connection after the other.
    """
    comparer = Comparer(entries, zones=zones, timeout_slack=timeout_slack)
    comparer.add(connections)
    return comparer.finish()


class Comparer:
    """Compares as `compare` does, and takes the connections piece by piece.

    Of those that have ended it holds the latest for each entry of the dump, and counts the rest.

    Parameters
    ----------
    entries, zones, timeout_slack
        As for `compare`.
    """

    def __init__(
        self, entries: Iterable[Entry], *, zones: bool = False, timeout_slack: int | None = None
    ) -> None:
        self._entries = list(entries)
        self._slack = timeout_slack
        self._table = _Table(self._entries, zones=zones)

    def add(self, connections: Iterable[Connection]) -> None:
        """Take further connections of the capture, in the order of their ending."""
        for connection in connections:
            self._table.add(connection)

    def finish(self) -> Comparison:
        """Compare. Nothing can be added any more."""
        table, slack = self._table, self._slack
        result = Comparison(ended_total=table.ended_total)
        left: list[Entry] = []
        for entry in self._entries:  # first those that fit as they are: none may take their place
            found = table.take(entry, entry.original)
            if found is None:
                left.append(entry)
                continue
            pair = _judge(entry, found, slack, swap=False)
            (result.different if pair.differences else result.same).append(pair)
        for entry in left:
            found = None if entry.translated else table.take(entry, turned(entry.original))
            if found is not None:
                result.reversed.append(_judge(entry, found, slack, swap=True))
                continue
            found = table.ended(entry)
            if found is not None:
                result.ended.append(Pair(entry, found))
            else:
                result.only_dump.append(entry)
        result.only_capture.extend(table.rest())
        return result


class _Table:
    """The connections of a capture, by tuple. Each open one is given away once.

    Invariant: `over` holds nothing but tuples of the dump, so it is no larger than the dump.
    """

    def __init__(self, entries: Iterable[Entry], *, zones: bool) -> None:
        self.zones = zones
        self.open: defaultdict[Key, list[Connection]] = defaultdict(list)
        # Only by the original tuple: an entry is not looked for the other way round among these.
        self.wanted = {self._key(entry, entry.original) for entry in entries}
        self.over: dict[Key, Connection] = {}
        self.loose: defaultdict[Key, deque[Key]] = defaultdict(deque)  # ICMP, by addresses alone
        self.ended_total = 0

    def add(self, connection: Connection) -> None:
        keys = self._keys(connection)
        if connection.timeout is None:
            self.ended_total += 1
            for key in keys:
                if key in self.wanted:
                    self.over[key] = connection
            return
        self.open[keys[0]].append(connection)
        for key in keys[1:]:
            self.loose[key].append(keys[0])

    def take(self, entry: Entry, side: Side) -> Connection | None:
        """Give away an open connection with this tuple, best one of the same zone."""
        key = self._key(entry, side)
        found = self.open.get(key)
        loose = self.loose.get(key)
        while not found and loose:
            found = self.open.get(loose[0])
            if not found:
                loose.popleft()  # the last one with this tuple has been given away
        if not found:
            return None
        zone = entry.zone or entry.original.zone or 0
        return found.pop(next((n for n, c in enumerate(found) if zone_of(c) == zone), 0))

    def ended(self, entry: Entry) -> Connection | None:
        """Tell the latest connection with this tuple that has ended."""
        return self.over.get(self._key(entry, entry.original))

    def rest(self) -> list[Connection]:
        """Tell the open connections that nobody took."""
        rest = [connection for found in self.open.values() for connection in found]
        return sorted(rest, key=lambda connection: connection.id)

    def _key(self, entry: Entry, side: Side) -> Key:
        """Tell what a connection is found by. Some forms show a missing port or key as 0."""
        return (
            entry.protocol,
            side.src,
            side.dst,
            side.sport or None,
            side.dport or None,
            side.srckey or None,
            side.dstkey or None,
            (side.icmp_type, side.icmp_code, side.icmp_id),
            (entry.zone or entry.original.zone or 0) if self.zones else None,
        )

    def _keys(self, c: Connection) -> list[Key]:
        """Tell what finds a connection: its `_key`, and for ICMP that of its addresses alone.

        An entry made of the connection would have the same key, but takes many times longer.
        """
        srckey, dstkey = c.gre_key or (None, None)
        ends: Key = (
            c.protocol,
            address(c.src),
            address(c.dst),
            c.sport or None,
            c.dport or None,
            srckey or None,
            dstkey or None,
        )
        zone = zone_of(c) if self.zones else None
        keys: list[Key] = [(*ends, (c.icmp_type, c.icmp_code, c.icmp_id), zone)]
        if c.icmp_type is not None:
            keys.append((*ends, (None, None, None), zone))
        return keys


# --------------------------------------------------------------------------------- differences


def _judge(entry: Entry, connection: Connection, slack: int | None, *, swap: bool) -> Pair:
    """Make the pair, with its differences."""
    return Pair(entry, connection, tuple(_differences(entry, connection, slack, swap=swap)))


def _differences(
    entry: Entry, connection: Connection, slack: int | None, *, swap: bool
) -> Iterator[Difference]:
    c = connection
    first, second = (entry.reply, entry.original) if swap else (entry.original, entry.reply)
    if entry.state is not None and c.state is not None and entry.state != c.state:
        yield Difference("state", entry.state, c.state)
    if entry.offload is None and entry.assured != c.assured:
        yield Difference("assured", entry.assured, c.assured)
    if entry.unreplied == c.reply_seen:
        yield Difference("unreplied", entry.unreplied, not c.reply_seen)
    for name, counted, seen in (
        ("packets_orig", first.packets, c.packets_orig),
        ("bytes_orig", first.bytes, c.bytes_orig),
        ("packets_reply", second.packets, c.packets_reply),
        ("bytes_reply", second.bytes, c.bytes_reply),
    ):
        if counted is not None and counted != seen:
            yield Difference(name, counted, seen)
    if slack is not None and _apart(entry.timeout, c.timeout) > slack:
        yield Difference("timeout", entry.timeout, c.timeout)


def _apart(a: int | None, b: int | None) -> int:
    return 0 if a is None or b is None else abs(a - b)


# ----------------------------------------------------------------------------------- programs


def _pair(pair: Pair) -> dict[str, Any]:
    dump, capture = pair.timeouts
    differences = {d.field: {"dump": d.dump, "capture": d.capture} for d in pair.differences}
    return {
        "connection": pair.connection.id,
        **_entry(pair.entry),
        "end": pair.connection.end,
        "timeout": {"dump": dump, "capture": capture},
        "differences": differences,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    """Tell what identifies an entry, without what is empty; and its state."""
    side = entry.original
    values = {
        "protocol": entry.protocol,
        "src": side.src,
        "sport": side.sport,
        "dst": side.dst,
        "dport": side.dport,
        "icmp_type": side.icmp_type,
        "icmp_code": side.icmp_code,
        "icmp_id": side.icmp_id,
        "srckey": side.srckey,
        "dstkey": side.dstkey,
        "zone": entry.zone or entry.original.zone,
        "state": entry.state,
        "timeout": entry.timeout,
    }
    return {name: value for name, value in values.items() if value is not None}
