"""The tables of the documentation, made from the code, so that they cannot go stale.

Names, numbers and results come from the package. Where the package has a name and no words for
it, the words are here, and a `ValueError` tells if a name has none or if a word has no name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping


class Table(NamedTuple):
    """Column titles and rows, cells in Markdown."""

    titles: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [self.titles, ("---",) * len(self.titles), *self.rows]
        return "\n".join(f"| {' | '.join(cell(text) for text in line)} |" for line in lines)


def cell(text: str) -> str:
    """Return text that stays inside its cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def described(names: Iterable[str], words: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Pair each name with its words; neither may lack the other."""
    listed = list(names)
    if set(listed) != set(words):
        odd = sorted(set(listed) ^ set(words))
        raise ValueError(f"names and descriptions do not agree: {', '.join(odd)}")
    return [(f"`{name}`", words[name]) for name in listed]


# --- the tables -----------------------------------------------------------------------------


def reasons() -> Table:
    """Return every reason with its code."""
    from fragtrack.events import Reason

    rows = [(f"`{reason.name}`", str(int(reason)), reason.description) for reason in Reason]
    return Table(("reason", "code", "the fragment"), rows)


def policies() -> Table:
    """Return every policy in words."""
    from fragtrack.config import POLICIES

    return Table(("policy", "rule"), described(POLICIES, POLICY_WORDS))


POLICY_WORDS = {
    "linux": "Linux 5.0 and later: inside one run a duplicate, any other shared byte discards",
    "rfc5722": "any overlap discards the datagram, with what is still to come of it",
    "first": "bytes that came first stay",
    "last": "bytes that came last win",
    "bsd": "the piece that starts lower wins; on a tie the old one",
    "bsd-right": "the piece that starts higher wins; on a tie the new one",
    "linux-old": "Linux before 4.19: the piece that starts lower wins; on a tie the new one",
    "windows": "old bytes stay, but a piece strictly inside the new fragment is replaced",
    "solaris": "the new fragment wins if it starts lower and ends no lower; trimmed left to right",
}

# Old and new fragment in units of 8 bytes, and how the nine relations are usually called.
RELATIONS = {
    "O: old starts first, new ends last": ((1, 4), (2, 6)),
    "Oi: new starts first, old ends last": ((2, 6), (1, 4)),
    "Eq: the same range": ((1, 4), (1, 4)),
    "D: old strictly inside new": ((2, 4), (1, 6)),
    "Di: new strictly inside old": ((1, 6), (2, 4)),
    "F: new starts first, same end": ((2, 4), (1, 4)),
    "Fi: old starts first, same end": ((1, 4), (2, 4)),
    "S: same start, new ends last": ((1, 3), (1, 5)),
    "Si: same start, old ends last": ((1, 5), (1, 3)),
}


def relations() -> Table:
    """Return who wins the shared bytes, by trying it."""
    from fragtrack.config import POLICIES

    rows = [
        (name, *(winner(policy, old, new) for policy in POLICIES))
        for name, (old, new) in RELATIONS.items()
    ]
    return Table(("old and new", *POLICIES), rows)


def winner(policy: str, old: tuple[int, int], new: tuple[int, int]) -> str:
    """Push old, new and what is missing around them; tell whose the shared bytes are."""
    import fragtrack
    from fragtrack.testing import ipv4

    low, high = min(*old, *new), max(*old, *new)
    pieces = [(old, b"o"), (new, b"n"), ((0, low), b"."), ((high, high + 1), b".")]
    reassembler = fragtrack.Reassembler(policy=policy)
    outcome = None
    for step, ((start, stop), letter) in enumerate(pieces):
        data = letter * 8 * (stop - start)
        packet = ipv4(data, id=1, offset=8 * start, mf=letter != b"." or start == 0)
        outcome = reassembler.push(packet, step)
        if outcome.given_up:
            return "discarded"
    if outcome is None or outcome.datagram is None:
        raise ValueError(f"{policy}: {old} and {new} make no datagram")
    shared = slice(8 * max(old[0], new[0]), 8 * min(old[1], new[1]))
    owners = set(outcome.datagram.payload[shared].decode())
    return "/".join({"o": "old", "n": "**new**"}[owner] for owner in sorted(owners))


def counters() -> Table:
    """Return the kernel's counters."""
    import fragtrack

    return Table(("counter", "counts"), described(fragtrack.Reassembler().counters, COUNTER_WORDS))


COUNTER_WORDS = {
    "ReasmReqds": "fragments received for reassembly",
    "ReasmOKs": "datagrams put together",
    "ReasmFails": "failures: refused, discarded, timed out",
    "ReasmTimeout": "datagrams whose time was over",
    "ReasmOverlaps": "datagrams discarded for an overlap; Linux shows it for IPv4 only",
    "InHdrErrors": "packets with an impossible header, and IPv6 parameter problems",
    "InTruncatedPkts": "packets shorter than their length field says",
    "InCsumErrors": "packets with a wrong IPv4 header checksum",
}


def columns() -> Table:
    """Return the columns of a datagram table."""
    from fragtrack.sinks.rows import COLUMNS

    return Table(("column", "holds"), described((*COLUMNS, "sha256"), COLUMN_WORDS))


COLUMN_WORDS = {
    "time_first": "arrival of the first fragment, nanoseconds since the epoch",
    "time_last": "arrival of the last one, nanoseconds since the epoch",
    "ip_version": "4 or 6",
    "src": "source address",
    "dst": "destination address",
    "protocol": "IP protocol; for IPv6 the next header of the fragment with byte 0",
    "id": "identification",
    "vlan": "VLAN identifiers, outermost first, joined by dots; empty without tags",
    "tunnel": "tunnel path; empty outside tunnels",
    "fragments": "number of fragments",
    "frames": "their frame numbers, from 1 in each input, in the order of the bytes",
    "length": "bytes of IP payload; of an incomplete datagram the highest end known",
    "outcome": "`complete`, or the reason",
    "policy": "the overlap policy in force",
    "sha256": "hash of the IP payload, lower-case hexadecimal; only with `--hash`",
}


def batch() -> Table:
    """Return the columns of a batch."""
    from fragtrack.batch import Batch

    names = [name for name in dir(Batch([])) if not name.startswith("_") and name != "packet"]
    if set(names) != set(BATCH_WORDS):
        raise ValueError(f"batch columns without words: {sorted(set(names) ^ set(BATCH_WORDS))}")
    return Table(("column", "holds"), [(f"`{name}`", words) for name, words in BATCH_WORDS.items()])


BATCH_WORDS = {
    "kinds": "a number per packet: 0 whole, 1 held, 2 complete, 3 dropped (8 bits)",
    "reasons": "the code of the reason per packet; 0 if it was not dropped (8 bits)",
    "completed": "which packets completed a datagram, from 0 within the batch (32 bits)",
    "headers": "bytes: the headers of the whole datagrams, one after the other",
    "header_ends": "where each header ends in `headers` (64 bits)",
    "slice_places": "where each slice of payload starts, in its source (64 bits)",
    "slice_lengths": "bytes of each slice (32 bits)",
    "slice_sources": "the source of each slice: 0 the buffer that was pushed, 1 `side` (8 bits)",
    "slice_ends": "where the slices of each datagram end, as a number of slices (64 bits)",
    "side": "bytes: payloads that do not lie in the buffer, as of fragments from earlier batches",
    "packets": "bytes: whole datagrams from the IP header on, one after the other",
    "packet_ends": "where each datagram ends in `packets` (64 bits)",
    "given_up": "list of `GivenUp`: datagrams that ended incomplete, in the order of their ending",
}


def link_types() -> Table:
    """Return the link types that are decoded."""
    from fragtrack.reference.link import LINKS

    rows = [(str(number), words) for number, words in sorted(LINK_WORDS.items())]
    if set(LINKS) != set(LINK_WORDS):
        raise ValueError(f"link types without a name: {sorted(set(LINKS) ^ set(LINK_WORDS))}")
    return Table(("number", "link type"), rows)


LINK_WORDS = {
    0: "BSD loopback (NULL), address family in either byte order",
    1: "Ethernet, also IEEE 802.3 with SNAP",
    9: "PPP, with or without address and control bytes",
    12: "raw IP (number of some BSD systems)",
    14: "raw IP (number of other BSD systems)",
    50: "PPP in HDLC framing",
    51: "PPPoE session",
    101: "raw IP",
    104: "Cisco HDLC",
    108: "OpenBSD loopback (LOOP)",
    113: "Linux cooked, version 1 (SLL)",
    228: "raw IPv4",
    229: "raw IPv6",
    276: "Linux cooked, version 2 (SLL2)",
}


def options() -> Table:
    """Return the options of ``fragtrack reassemble``, as its parser has them."""
    return options_of("reassemble")


def options_of(command: str) -> Table:
    """Return the options of a command, as its parser has them."""
    from argparse import ArgumentParser
    from importlib import import_module

    parser = ArgumentParser()
    import_module(f"fragtrack.cli.{command}").add_arguments(parser)
    rows = [option(action) for action in parser._actions]  # noqa: SLF001 - there is no other list
    return Table(("option", "meaning"), rows)


def option(action: argparse.Action) -> tuple[str, str]:
    """Return how an option is written, and its help text."""
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
    if action.nargs == 0:
        value = ""
    names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{value or action.dest}`"
    words = (action.help or "") % {"default": action.default, "prog": "fragtrack"}
    return f"{names} `{value}`" if value and action.option_strings else names, words


TABLES: dict[str, Callable[[], Table]] = {
    "batch": batch,
    "columns": columns,
    "counters": counters,
    "link-types": link_types,
    "options": options,
    "policies": policies,
    "reasons": reasons,
    "relations": relations,
}
