"""A dump against a capture: what is found, what differs, and how it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from fragtrack.conntrack import Comparison, Difference, Entry, compare, from_connection, parse_line
from fragtrack.conntrack.compare import Comparer
from fragtrack.verdicts import Connection

KINDS: Final = ("differs", "dump only", "capture only")
CLIENT, SERVER = "tcp 192.0.2.1", "198.51.100.2"
PING: Final = "icmp 192.0.2.1 > 198.51.100.2"
TOLD: Final = "state ESTABLISHED in the dump, FIN_WAIT in the capture"


def row(number: int, **values: Any) -> Connection:
    defaults: dict[str, Any] = {
        "id": number,
        "time_first": 0,
        "time_last": 0,
        "ip_version": 4,
        "protocol": 6,
        "src": "192.0.2.1",
        "sport": 40000 + number,
        "dst": "198.51.100.2",
        "dport": 80,
        "vlan": None,
        "state": "ESTABLISHED",
        "assured": True,
        "reply_seen": True,
        "packets_orig": 4,
        "bytes_orig": 216,
        "packets_reply": 3,
        "bytes_reply": 169,
        "fragments": 0,
        "invalid": 0,
        "end": "open",
        "timeout": 431999,
    }
    return Connection(**{**defaults, **values})


def ping(number: int, **values: Any) -> Connection:
    icmp = {"sport": None, "dport": None, "icmp_type": 8, "icmp_code": 0, "icmp_id": number}
    return row(number, **{"protocol": 1, "state": None, **icmp, **values})


def dumped(*rows: Connection, accounting: bool = True) -> list[Entry]:
    return [from_connection(each, accounting=accounting) for each in rows]


def counts(result: Comparison) -> tuple[int, ...]:
    return (
        len(result.same),
        len(result.different),
        len(result.reversed),
        len(result.ended),
        len(result.only_dump),
        len(result.only_capture),
    )


def test_the_same_table_agrees() -> None:
    rows = [row(1), row(2), ping(3), row(4, protocol=47, sport=None, dport=None, state=None)]
    result = compare(dumped(*rows), rows)
    assert result.agrees
    assert counts(result) == (4, 0, 0, 0, 0, 0)
    assert result.lines() == ["4 the same"]


def test_what_only_one_of_them_has() -> None:
    result = compare(dumped(row(1), row(2)), [row(2), row(3)])
    assert counts(result) == (1, 0, 0, 0, 1, 1)
    assert result.only_dump[0].original.sport == 40001
    assert result.only_capture[0].id == 3
    assert not result.agrees


def test_fields_that_differ() -> None:
    seen = row(1, state="FIN_WAIT", assured=False, reply_seen=False, packets_orig=5, bytes_reply=9)
    result = compare(dumped(row(1)), [seen])
    [pair] = result.different
    assert pair.differences == (
        Difference("state", "ESTABLISHED", "FIN_WAIT"),
        Difference("assured", dump=True, capture=False),
        Difference("unreplied", dump=False, capture=True),
        Difference("packets_orig", 4, 5),
        Difference("bytes_reply", 169, 9),
    )


def test_counters_count_only_where_both_have_them() -> None:
    result = compare(dumped(row(1), accounting=False), [row(1, packets_orig=5)])
    assert result.agrees


def test_timeouts_are_told_and_count_only_if_asked_for() -> None:
    dump, seen = dumped(row(1, timeout=100)), [row(1, timeout=97)]
    [pair] = compare(dump, seen).same
    assert pair.timeouts == (100, 97)
    assert compare(dump, seen, timeout_slack=3).agrees
    [pair] = compare(dump, seen, timeout_slack=2).different
    assert pair.differences == (Difference("timeout", 100, 97),)


def test_an_entry_the_other_way_round() -> None:
    seen = row(
        1,
        src="198.51.100.2",
        sport=80,
        dst="192.0.2.1",
        dport=40001,
        packets_orig=3,
        bytes_orig=169,
        packets_reply=4,
        bytes_reply=216,
    )
    result = compare(dumped(row(1)), [seen])
    assert counts(result) == (0, 0, 1, 0, 0, 0)
    assert result.reversed[0].differences == ()
    assert "the other way round" in result.lines()[1]
    result = compare(dumped(row(1)), [replace(seen, packets_reply=5)])
    assert result.reversed[0].differences == (Difference("packets_reply", 4, 5),)


def test_an_entry_that_fits_as_it_is_goes_first() -> None:
    forth = row(1)
    back = row(2, src="198.51.100.2", sport=80, dst="192.0.2.1", dport=40001)
    result = compare(dumped(back, forth), [forth])
    assert counts(result) == (1, 0, 0, 0, 1, 0)


def test_translated_entries_are_found_by_their_original_tuple() -> None:
    [entry] = dumped(row(1))
    entry = replace(entry, reply=replace(entry.reply, dst="203.0.113.9", dport=60000))
    assert entry.translated
    assert counts(compare([entry], [row(1)])) == (1, 0, 0, 0, 0, 0)
    turned = row(1, src="198.51.100.2", sport=80, dst="192.0.2.1", dport=40001)
    assert counts(compare([entry], [turned])) == (0, 0, 0, 0, 1, 1)


def test_connections_that_ended_in_the_capture() -> None:
    rows = [row(1, timeout=None, end="reset"), row(2, timeout=None, end="closed"), row(3)]
    result = compare(dumped(row(1), row(3)), rows)
    assert counts(result) == (1, 0, 0, 1, 0, 0)
    assert result.ended_total == 2
    assert result.ended[0].connection.end == "reset"
    assert "capture: reset (connection 1)" in result.lines()[1]


def test_only_the_latest_ended_one_of_each_entry_is_held() -> None:
    gre = {"protocol": 47, "sport": None, "dport": None, "state": None, "gre_key": (0, 7)}
    six = {"ip_version": 6, "src": "2001:db8::1", "dst": "2001:db8:0:0::2"}
    asked = [row(1), ping(2), row(3, **gre), row(4, **six)]
    comparer = Comparer(dumped(*asked))
    over: dict[str, Any] = {"timeout": None, "end": "closed"}
    back = row(900, src="198.51.100.2", sport=80, dst="192.0.2.1", dport=40001, **over)
    for turn in range(1, 50):
        again = [replace(each, id=turn * 10 + each.id, **over) for each in asked]
        comparer.add([*again, *(row(turn * 100 + n, **over) for n in range(5, 9)), back])
    table = comparer._table
    assert len(table.over) == len(asked)
    assert not table.open
    assert not table.loose
    result = comparer.finish()
    assert counts(result) == (0, 0, 0, 4, 0, 0)
    assert [pair.connection.id for pair in result.ended] == [491, 492, 493, 494]
    assert result.ended_total == 49 * 9


def test_a_tuple_that_was_used_again_is_the_open_one() -> None:
    rows = [row(1, timeout=None, end="closed"), row(2, sport=40001, state="SYN_SENT")]
    result = compare(dumped(row(1)), rows)
    assert [pair.connection.id for pair in result.different] == [2]


def test_zones() -> None:
    rows = [row(1, vlan="7"), row(2, sport=40001, vlan="9.8")]
    dump = dumped(rows[1], rows[0])
    assert compare(dump, rows).agrees
    assert compare(dump, rows, zones=True).agrees
    [entry] = dumped(row(1, zone=3))
    assert compare([entry], rows[:1]).agrees
    assert counts(compare([entry], rows[:1], zones=True)) == (0, 0, 0, 0, 1, 1)


def test_xml_has_no_icmp_identifiers_and_finds_them_nevertheless() -> None:
    rows = [ping(1), ping(2), ping(3, timeout=None, end="timeout")]
    element = replace(
        dumped(ping(1))[0],
        form="xml",
    )
    bare = {"icmp_type": None, "icmp_code": None, "icmp_id": None}
    element = replace(
        element,
        original=replace(element.original, **bare),
        reply=replace(element.reply, **bare),
    )
    assert counts(compare([element, element], rows)) == (2, 0, 0, 0, 0, 0)
    assert counts(compare([element] * 4, rows)) == (2, 0, 0, 2, 0, 0)


def test_an_offloaded_entry_does_not_tell_whether_it_is_assured() -> None:
    entry = parse_line(
        "tcp      6 src=192.0.2.1 dst=198.51.100.2 sport=40001 dport=80 src=198.51.100.2 "
        "dst=192.0.2.1 sport=80 dport=40001 [OFFLOAD] mark=0 use=2"
    )
    assert compare([entry], [row(1)], timeout_slack=0).agrees


def test_the_lines_are_aligned_and_can_be_limited() -> None:
    dump = dumped(
        row(1), row(2), row(3), row(9, ip_version=6, src="2001:db8::1", dst="2001:db8::2")
    )
    rows = [row(1, state="FIN_WAIT"), row(2, assured=False), ping(5, vlan="7", timeout=9)]
    first, *rest = compare(dump, rows).lines()
    assert first == "0 the same, 2 different, 2 only in the dump, 1 only in the capture"
    differs, dump_only, capture_only = (f"{kind:<14}" for kind in KINDS)
    held = "ESTABLISHED ASSURED 431999 s left"
    assert [(line[:14], line[14:64].rstrip(), line[64:]) for line in rest] == [
        (differs, f"{CLIENT}:40001 > {SERVER}:80", TOLD),
        (differs, f"{CLIENT}:40002 > {SERVER}:80", "ASSURED in the dump, not in the capture"),
        (dump_only, f"{CLIENT}:40003 > {SERVER}:80", held),
        (dump_only, "tcp [2001:db8::1]:40009 > [2001:db8::2]:80", held),
        (capture_only, f"{PING} type 8 id 5 zone 7", "ASSURED 9 s left (connection 5)"),
    ]
    assert compare(dump, rows).lines(1)[-2:] == [
        "... and 1 more different",
        "... and 1 more only in the dump",
    ]


def test_it_can_be_told_to_a_program() -> None:
    result = compare(dumped(row(1), row(2)), [row(1, state="FIN_WAIT"), row(3)])
    told = json.loads(json.dumps(result.as_dict()))
    assert told["agrees"] is False
    assert told["different"][0]["differences"] == {
        "state": {"dump": "ESTABLISHED", "capture": "FIN_WAIT"}
    }
    assert told["different"][0]["sport"] == 40001
    assert told["only_dump"][0]["sport"] == 40002
    assert told["only_capture"][0]["connection"] == 3
