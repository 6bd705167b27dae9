"""Laws of the text: what was printed reads back and prints the same; nothing else ever raises."""

from __future__ import annotations

import socket
import string
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from hypothesis import example, given
from hypothesis import strategies as st

from fragtrack.conntrack import (
    FORMS,
    DumpError,
    Entry,
    Form,
    Side,
    compare,
    format_entry,
    from_connection,
    parse,
    parse_line,
)
from fragtrack.verdicts import Connection

U8 = st.integers(0, 0xFF)
U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFF_FFFF)
U64 = st.integers(0, 0xFFFF_FFFF_FFFF_FFFF)
PORTED: Final = (6, 17, 33, 132, 136)
STATES: Final = st.sampled_from(["NONE", "SYN_SENT", "ESTABLISHED", "CLOSED", "SYN_SENT2"])
NAMES: Final = st.text(string.ascii_letters + string.digits + "-_:.", min_size=1, max_size=9)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def addresses(draw: st.DrawFn, version: int) -> str:
    few = draw(st.booleans())  # runs of zeros are what IPv6 spelling is about
    size = 16 if version == 6 else 4
    octets = st.sampled_from([0, 0, 0, 1]) if few else U8
    raw = bytes(draw(st.lists(octets, min_size=size, max_size=size)))
    return socket.inet_ntop(socket.AF_INET6 if version == 6 else socket.AF_INET, raw)


@st.composite
def sides(draw: st.DrawFn, version: int, protocol: int) -> Side:
    fields: dict[str, Any] = {}
    if protocol in PORTED:
        fields |= {"sport": draw(U16), "dport": draw(U16)}
    elif protocol == 47:
        fields |= {"srckey": draw(U16), "dstkey": draw(U16)}
    elif protocol in {1, 58}:
        fields |= {"icmp_type": draw(U8), "icmp_code": draw(U8), "icmp_id": draw(U16)}
    if draw(st.booleans()):
        fields |= {"packets": draw(U64), "bytes": draw(U64)}
    src, dst = draw(addresses(version)), draw(addresses(version))
    return Side(src=src, dst=dst, zone=draw(maybe(U16)), **fields)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    version = draw(st.sampled_from([4, 6]))
    protocol = draw(st.sampled_from([*PORTED, 1, 47, 58]) | U8)
    event = draw(st.sampled_from([None, "new", "update", "destroy"]))
    return Entry(
        form="list",
        protocol=protocol,
        original=draw(sides(version, protocol)),
        reply=draw(sides(version, protocol)),
        timeout=draw(maybe(U32)),
        state=draw(maybe(STATES)),
        assured=draw(st.booleans()),
        unreplied=draw(st.booleans()),
        offload=draw(st.sampled_from([None, "OFFLOAD", "HW_OFFLOAD"])),
        status=draw(st.sampled_from([(), ("FIXED_TIMEOUT",)])),
        mark=draw(maybe(U32)),
        secctx=draw(maybe(NAMES)),
        zone=draw(maybe(U16)),
        delta_time=draw(maybe(U64)),
        start=draw(maybe(U64)),
        stop=draw(maybe(U64)),
        helper=draw(maybe(NAMES)),
        use=draw(maybe(U32)),
        id=draw(maybe(U32)),
        labels=draw(maybe(st.lists(NAMES, max_size=3).map(tuple))),
        gre_timeouts=draw(maybe(st.tuples(U32, U32))) if protocol == 47 else None,
        vtags=draw(maybe(st.tuples(U32, U32))),
        event=event,
        time=draw(maybe(st.integers(0, 250_000_000_000_000_000_000))) if event else None,
        columns=draw(st.booleans()),
        portid=draw(maybe(U32)) if event else None,
        progname=draw(maybe(NAMES)),
    )


@given(entries(), st.sampled_from(FORMS))
def test_what_was_printed_prints_again(entry: Entry, form: Form) -> None:
    if form == "event" and entry.event is None:
        entry = replace(entry, event="new")
    text = format_entry(entry, form)
    again = parse_line(text, form=form if form in {"procfs", "extended"} else None)
    assert again.form == form
    assert format_entry(again) == text
    assert again.written is None
    assert again.extras == ()
    assert (again.original.src, again.protocol) == (entry.original.src, entry.protocol)


@given(entries(), st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_forms_print_what_was_read_from_others(entry: Entry, one: Form, other: Form) -> None:
    entry = replace(entry, event=entry.event or "update")
    read = parse_line(format_entry(entry, one))
    text = format_entry(replace(read, event="update"), other)
    assert format_entry(parse_line(text)) == text


WORDS: Final = st.sampled_from(
    [
        *("udp", "tcp", "17", "6", "ipv4", "ipv6", "10", "2", "[NEW]", "[UNREPLIED]", "labels"),
        *("src=192.0.2.1", "dst=192.0.2.2", "src=2001:db8::1", "dst=::", "sport=1", "dport=2"),
        *("id=7", "type=8", "code=0", "mark=1", "[start=", "[stop=x]", "timeout=3,", "use=1"),
        *("stream_timeout=4", "-A", "-D", "-u", "-s", "-d", "-r", "-q", "-p", "192.0.2.1", "="),
        *("<flow>", "</flow>", '<meta direction="reply">', "</meta>", "<id>", "</id>", "<a/>"),
        *("[1700000000.000000]", "[999999999999.999999]", "[USERSPACE]", "portid=1", "zone-orig=2"),
        *("<when>", "<year>2023</year>", '<layer4 protonum="6">', "</layer4>", "<", "&amp;"),
    ]
)


@given(st.text() | st.lists(WORDS | st.text(max_size=3)).map(" ".join))
@example("udp 17 src=192.0.2.1 dst=192.0.2.2 src=192.0.2.1 dst=192.0.2.2 id=1 id=2 type=1 id=3")
@example("udp 17 src=192.0.2.1\x00 dst=192.0.2.2")
@example("udp 17 src=\ud800 dst=192.0.2.2")
@example("[999999999999.999999]\t[NEW] udp 17 src=::1 dst=::2 src=::3 dst=::4")
def test_any_text_comes_back_or_is_refused(text: str) -> None:
    with suppress(DumpError):
        list(parse(text))
    try:
        entry = parse_line(text)
    except DumpError:
        return
    assert format_entry(entry) == text.removesuffix("\n")
    for form in FORMS:
        format_entry(replace(entry, event=entry.event or "new"), form)


@st.composite
def connections(draw: st.DrawFn) -> Connection:
    protocol = draw(st.sampled_from([6, 17, 1, 253]))
    ported, icmp = protocol in {6, 17}, protocol == 1
    return Connection(
        id=draw(st.integers(1, 99)),
        time_first=0,
        time_last=0,
        ip_version=4,
        protocol=protocol,
        src=f"192.0.2.{draw(st.integers(1, 2))}",
        sport=draw(st.integers(1, 2)) if ported else None,
        dst=f"192.0.2.{draw(st.integers(1, 2))}",
        dport=draw(st.integers(1, 2)) if ported else None,
        vlan=draw(st.sampled_from([None, "7", "7.8"])),
        state=draw(STATES) if protocol == 6 else None,
        assured=draw(st.booleans()),
        reply_seen=draw(st.booleans()),
        packets_orig=draw(U16),
        bytes_orig=draw(U16),
        packets_reply=draw(U16),
        bytes_reply=draw(U16),
        fragments=0,
        invalid=0,
        end=draw(st.sampled_from(["open", "timeout"])),
        timeout=draw(st.none() | U16),
        icmp_type=8 if icmp else None,
        icmp_code=0 if icmp else None,
        icmp_id=draw(st.integers(1, 2)) if icmp else None,
    )


@given(st.lists(connections()), st.sampled_from(["list", "procfs", "xml"]), st.booleans())
def test_a_table_agrees_with_its_own_dump(rows: list[Connection], form: Form, zones: bool) -> None:
    unique = {(r.protocol, r.src, r.dst, r.sport, r.dport, r.icmp_id, r.vlan): r for r in rows}
    table = [row for row in unique.values() if row.timeout is not None]
    dump = [parse_line(format_entry(from_connection(row), form)) for row in table]
    result = compare(dump, unique.values(), zones=zones, timeout_slack=0)
    if form != "xml":  # where ICMP is matched by addresses alone
        assert result.agrees, result.lines()
    assert len(result.same) + len(result.different) == len(table)
    assert result.ended_total == len(unique) - len(table)


@given(st.lists(connections()), st.lists(connections()), st.booleans())
def test_nothing_is_lost_or_counted_twice(
    dumped: list[Connection], seen: list[Connection], zones: bool
) -> None:
    dump = [from_connection(row) for row in dumped]
    result = compare(dump, seen, zones=zones)
    pairs = [*result.same, *result.different, *result.reversed]
    assert len(pairs) + len(result.ended) + len(result.only_dump) == len(dump)
    open_rows = [row for row in seen if row.timeout is not None]
    assert len(pairs) + len(result.only_capture) == len(open_rows)
    assert result.agrees == (len(result.same) == len(dump) == len(open_rows))
    assert result.lines()
    assert set(result.as_dict()) >= {"agrees", "same", "only_dump"}
