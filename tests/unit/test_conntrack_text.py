"""The text of connection tables: recorded text comes back, and every field is understood."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from fragtrack.conntrack import (
    DumpError,
    Entry,
    Form,
    Side,
    format_entry,
    from_connection,
    from_event,
    parse,
    parse_line,
)
from fragtrack.errors import FragtrackError
from fragtrack.verdicts import Connection, Event

RECORDED: Final = Path(__file__).resolve().parent.parent / "data" / "conntrack_text"
FILES: Final = sorted(path.name for path in RECORDED.glob("*.*") if path.suffix != ".md")
FRAME: Final = ("<?xml", "<conntrack>", "</conntrack>", "conntrack v")

UDP: Final = (
    "udp      17 29 src=192.0.2.1 dst=192.0.2.2 sport=5 dport=7 [UNREPLIED] "
    "src=192.0.2.2 dst=192.0.2.1 sport=7 dport=5 mark=0 use=1"
)


def recorded(name: str) -> list[str]:
    text = (RECORDED / name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith(FRAME)]


def form_of(name: str) -> Form | None:
    return "procfs" if name.startswith("procfs") else None


def connection(**values: Any) -> Connection:
    defaults: dict[str, Any] = {
        "id": 1,
        "time_first": 0,
        "time_last": 0,
        "ip_version": 4,
        "protocol": 6,
        "src": "192.0.2.9",
        "sport": 1000,
        "dst": "198.51.100.10",
        "dport": 80,
        "vlan": None,
        "state": None,
        "assured": False,
        "reply_seen": False,
        "packets_orig": 1,
        "bytes_orig": 36,
        "packets_reply": 0,
        "bytes_reply": 0,
        "fragments": 0,
        "invalid": 0,
        "end": "open",
        "timeout": 29,
    }
    return Connection(**{**defaults, **values})


# ---------------------------------------------------------------------------- recorded text


@pytest.mark.parametrize("name", FILES)
def test_recorded_text_comes_back_byte_for_byte(name: str) -> None:
    lines = recorded(name)
    entries = list(parse((RECORDED / name).read_text(encoding="utf-8"), form=form_of(name)))
    assert lines
    assert [format_entry(entry) for entry in entries] == lines


@pytest.mark.parametrize("name", FILES)
def test_recorded_text_is_understood_to_the_last_word(name: str) -> None:
    for line in recorded(name):
        entry = parse_line(line, form=form_of(name))
        assert entry.written is None
        assert entry.extras == ()


def steady(text: str) -> str:
    """Put a fixed number where time passes between two recordings."""
    text = re.sub(r"(delta-time=|<deltatime>|<timeout>|-t )[0-9]+", r"\g<1>N", text)
    return re.sub(r"^((?:ipv. +[0-9]+ )?[a-z0-9]+ +[0-9]+) [0-9]+", r"\g<1> N", text)


def key(entry: Entry) -> tuple[object, ...]:
    a = entry.original
    return (entry.protocol, a.src, a.dst, a.sport, a.dport, a.icmp_id, a.srckey)


def test_xml_says_the_same_as_the_extended_list() -> None:
    by_id = {entry.id: entry for entry in map(parse_line, recorded("extended_all.txt"))}
    for line in recorded("list_all.xml"):
        element = parse_line(line)
        entry = replace(by_id[element.id], start=element.start)  # the list has whole seconds
        assert steady(format_entry(entry, "xml")) == steady(line)


@pytest.mark.parametrize(
    ("listed", "saved_as"), [("list", "save"), ("translated", "translated_save")]
)
def test_save_says_the_same_as_the_list(listed: str, saved_as: str) -> None:
    entries = {key(entry): entry for entry in map(parse_line, recorded(f"{listed}.txt"))}
    for line in recorded(f"{saved_as}.txt"):
        saved = parse_line(line)
        entry = entries.get(key(saved))
        if entry is None:
            assert saved.protocol == 33  # whose ports the option leaves out
            continue
        entry = replace(entry, status=saved.status, vtags=saved.vtags)
        assert steady(format_entry(entry, "save")) == steady(line)


@pytest.mark.parametrize("form", ["list", "extended"])
def test_procfs_says_the_same_as_the_list(form: Form) -> None:
    name = {"list": "list.txt", "extended": "extended_all.txt"}[form]
    entries = {key(entry): entry for entry in map(parse_line, recorded(name))}
    for line in recorded("procfs.txt"):
        entry = parse_line(line, form="procfs")
        if entry.protocol == 33:
            continue  # the kernel has forgotten that DCCP has ports, the tool has not
        listed = entries[key(entry)]
        shown = replace(entry, start=listed.start, helper=listed.helper, id=listed.id, use=1)
        shown = replace(shown, labels=listed.labels)
        assert steady(format_entry(shown, form)) == steady(format_entry(listed))
        back = replace(listed, gre_timeouts=entry.gre_timeouts, use=entry.use)
        assert steady(format_entry(back, "procfs")) == steady(line)


def test_an_event_says_the_same_in_every_form() -> None:
    rows = [parse_line(line) for line in recorded("event_all.txt")]
    times = {(row.id, row.event, row.state): row for row in rows}
    compared = 0
    for line in recorded("event_all.xml"):
        element = parse_line(line)
        row = times.get((element.id, element.event, element.state))
        if row is not None and row.helper == element.helper and row.progname == element.progname:
            assert steady(format_entry(row, "xml")) == steady(line)
            compared += 1
    assert compared > 20


# --------------------------------------------------------------------------- what is in a line


def test_a_line_of_the_list() -> None:
    entry = parse_line(
        "tcp      6 53 CLOSE_WAIT src=192.0.2.1 dst=192.0.2.2 sport=48478 dport=8081 packets=4 "
        "bytes=216 src=192.0.2.2 dst=192.0.2.1 sport=8080 dport=48478 packets=3 bytes=169 "
        "[ASSURED] mark=7 zone=5 delta-time=7 helper=ftp use=1"
    )
    assert entry == Entry(
        form="list",
        protocol=6,
        timeout=53,
        state="CLOSE_WAIT",
        original=Side(
            src="192.0.2.1", dst="192.0.2.2", sport=48478, dport=8081, packets=4, bytes=216
        ),
        reply=Side(src="192.0.2.2", dst="192.0.2.1", sport=8080, dport=48478, packets=3, bytes=169),
        assured=True,
        mark=7,
        zone=5,
        delta_time=7,
        helper="ftp",
        use=1,
    )
    assert entry.translated
    assert (entry.ip_version, entry.protocol_name) == (4, "tcp")


def test_an_event_line() -> None:
    entry = parse_line(
        "[1700000000.123456]\t[DESTROY] ipv4     2 icmp     1 src=192.0.2.1 dst=192.0.2.2 type=8 "
        "code=0 id=77 packets=1 bytes=84 src=192.0.2.2 dst=192.0.2.1 type=0 code=0 id=77 packets=1 "
        "bytes=84 delta-time=7 [start=Tue Nov 14 22:13:13 2023] [stop=Tue Nov 14 22:13:20 2023] "
        "id=4138815879 [USERSPACE] portid=7412 progname=conntrack"
    )
    assert (entry.form, entry.event, entry.columns) == ("event", "destroy", True)
    assert entry.time == 1_700_000_000_123_456_000
    assert entry.timeout is None
    assert (entry.original.icmp_id, entry.id) == (77, 4138815879)
    assert (entry.start, entry.stop) == (1_699_999_993_000_000_000, 1_700_000_000_000_000_000)
    assert (entry.portid, entry.progname) == (7412, "conntrack")
    assert not entry.translated


def test_an_offloaded_connection_has_neither_timeout_nor_assured() -> None:
    text = (
        "tcp      6 src=192.0.2.1 dst=192.0.2.2 sport=1 dport=2 src=192.0.2.2 dst=192.0.2.1 "
        "sport=2 dport=1 [OFFLOAD] mark=0 use=2"
    )
    entry = parse_line(text)
    assert (entry.timeout, entry.state, entry.offload) == (None, None, "OFFLOAD")
    assert entry.written is None
    assert format_entry(entry, "procfs") == (
        f"ipv4     2 {text.removesuffix('mark=0 use=2')}mark=0 zone=0 use=2"
    )


def test_addresses_of_procfs_are_read_compressed() -> None:
    entry = parse_line(recorded("procfs_plain.txt")[-1])
    assert entry.form == "procfs"
    assert entry.original.src.startswith("2001:db8::")
    assert ":0000:" not in format_entry(entry, "list")


def test_xml_calls_states_of_sctp_by_names_of_tcp() -> None:
    elements = [parse_line(line) for line in recorded("list_all.xml")]
    states = [(entry.timeout, entry.state) for entry in elements if entry.protocol == 132]
    assert [state for _, state in sorted(states)] == ["CLOSED", "CLOSED", "ESTABLISHED"]
    sent = parse_line(
        "sctp 132 9 SHUTDOWN_SENT src=192.0.2.1 dst=192.0.2.2 src=192.0.2.2 dst=192.0.2.1"
    )
    assert "<state>CLOSE_WAIT</state>" in format_entry(sent, "xml")
    assert parse_line(format_entry(sent, "xml")).state == "SHUTDOWN_SENT"


def test_a_saved_line_has_its_icmp_answer() -> None:
    entry = parse_line(
        "-A -t 19 -u UNSET -s 192.0.2.9 -d 192.0.2.10 -r 192.0.2.10 -q 192.0.2.9 -p icmp "
        "--icmp-type 13 --icmp-code 0 --icmp-id 77"
    )
    assert entry.unreplied
    assert (entry.reply.icmp_type, entry.reply.icmp_id) == (14, 77)


def test_a_saved_line_names_translated_addresses_by_other_options() -> None:
    entry = parse_line("-A -t 9 -u UNSET -s 192.0.2.1 -d 192.0.2.2 -g 192.0.2.3 -n 192.0.2.4 -p 50")
    assert entry.written is None
    assert (entry.reply.src, entry.reply.dst) == ("192.0.2.3", "192.0.2.4")
    assert entry.translated


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("1298653450.000123", 1_298_653_450_000_123_000),
        ("1298653450.123   ", 1_298_653_450_000_123_000),  # as older tools write it
    ],
)
def test_microseconds_of_an_event(stamp: str, time: int) -> None:
    line = f"[{stamp}]\t    [NEW] {UDP}"
    entry = parse_line(line)
    assert entry.time == time
    assert format_entry(entry) == line


# -------------------------------------------------------------------------- what is kept as is


@pytest.mark.parametrize(
    "text",
    [
        f"{UDP} flavor=sweet [NOVELTY] more",
        UDP.replace(" mark=0", " novelty=1 mark=0"),
        UDP.replace(" mark=0 use=1", " use=1 mark=0"),
        UDP.replace("udp      17 29", "udp 17 29"),
        UDP.replace("udp  ", "quic "),
        UDP.replace("sport=5 ", "sport=05 "),
        f"{UDP} ",
        f"{UDP}\r",
        f"{UDP} [start=yesterday]",
        f"{UDP} mark=1 src=192.0.2.9",
        f" {UDP}",
    ],
)
def test_unusual_lines_come_back(text: str) -> None:
    entry = parse_line(text)
    assert format_entry(entry) == text
    assert entry.original.sport == 5
    changed = format_entry(replace(entry, mark=9))
    assert "mark=9" in changed
    assert parse_line(changed).mark == 9


def test_unknown_words_can_be_looked_at() -> None:
    entry = parse_line(f"{UDP} flavor=sweet [NOVELTY] more")
    assert entry.extras == ("flavor=sweet", "[NOVELTY]", "more")
    assert format_entry(replace(entry, use=2)).endswith("use=2 flavor=sweet [NOVELTY] more")


def test_unknown_xml_comes_back() -> None:
    line = recorded("list_all.xml")[0].replace("<use>", "<novelty><deep/></novelty><use>")
    assert format_entry(parse_line(line)) == line


def test_forms_may_be_mixed_and_frames_are_passed_over() -> None:
    [element, *_] = recorded("list_all.xml")
    text = "\n".join(
        [
            UDP,
            "",
            "conntrack v1.4.8 (conntrack-tools): 1 flow entries have been shown.",
            '<?xml version="1.0" encoding="utf-8"?>',
            f"<conntrack>{element}{element}</conntrack>",
            recorded("save.txt")[0],
            "",
        ]
    )
    assert [entry.form for entry in parse(text)] == ["list", "xml", "xml", "save"]
    assert [entry.form for entry in parse(text.splitlines(keepends=True))] == [
        *("list", "xml", "xml", "save")
    ]


# --------------------------------------------------------------------------------- complaints


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "name and number of a protocol"),
        ("hello", "name and number of a protocol"),
        ("udp x", "a number up to 255 for protocol"),
        ("udp 17 29 src=192.0.2.1", "original direction"),
        ("udp 17 29 src=192.0.2.1 dst=192.0.2.2", "reply direction"),
        (UDP.replace("src=192.0.2.1", "src=192.0.2.300"), "an address"),
        (UDP.replace("src=192.0.2.1", "src=2001:db8::1"), "one family"),
        (UDP.replace("sport=5", "sport=65536"), "a number up to 65535 for sport"),
        (UDP.replace("sport=5", "sport=\u0665"), "a number up to 65535 for sport"),
        (UDP.replace("mark=0", "mark=" + "9" * 5000), "a number up to 4294967295 for mark"),
        (f"[1700000000.123456]\t{UDP}", "[NEW], [UPDATE] or [DESTROY]"),
        ("-A -t 5", "a protocol"),
        ("<flow><meta></flow>", "opened last"),
        ("<flow>", "an XML element"),
        ('<flow type="odd"></flow>', "new, update or destroy"),
        ("<a>" * 40, "a flow element"),
        ("<flow>" + "<a>" * 40, "nest"),
        (
            "300 proto=6 src=192.0.2.1 dst=192.0.2.2 sport=0 dport=5 mask-src=255.255.255.255",
            "a number up to 255 for protocol",
        ),
    ],
)
def test_what_is_no_entry_is_refused(text: str, expected: str) -> None:
    with pytest.raises(DumpError, match=re.escape(expected)) as caught:
        parse_line(text)
    assert isinstance(caught.value, FragtrackError)
    assert len(str(caught.value)) < 200


def test_the_number_of_the_line_is_told() -> None:
    with pytest.raises(DumpError, match=r"^line 3: expected .*, found 'rubbish'$") as caught:
        list(parse(f"{UDP}\n\nrubbish\n"))
    assert caught.value.line == 3


def test_an_entry_to_which_nothing_happened_is_no_event() -> None:
    with pytest.raises(ValueError, match="no event to print"):
        format_entry(parse_line(UDP), "event")
    with pytest.raises(ValueError, match="form"):
        format_entry(parse_line(UDP), "csv")  # type: ignore[arg-type]


# -------------------------------------------------------------------------------- from our rows


def test_a_connection_prints_as_the_kernel_prints_it() -> None:
    tcp = from_connection(
        connection(state="ESTABLISHED", assured=True, reply_seen=True, timeout=431999),
        accounting=False,
    )
    assert format_entry(tcp) in recorded("list_plain.txt")
    assert format_entry(replace(tcp, use=2), "procfs") in recorded("procfs_plain.txt")
    icmp = from_connection(
        connection(
            protocol=1,
            src="192.0.2.1",
            dst="192.0.2.77",
            sport=None,
            dport=None,
            icmp_type=8,
            icmp_code=0,
            icmp_id=4660,
        ),
        accounting=False,
    )
    listed = [line.replace("use=2", "use=1") for line in recorded("list_plain.txt")]
    assert format_entry(icmp) in listed


def test_accounting_zone_and_keys_print() -> None:
    row = connection(protocol=47, sport=None, dport=None, gre_key=(16, 32), vlan="7.12")
    entry = from_connection(row)
    assert format_entry(entry) == (
        "gre      47 29 src=192.0.2.9 dst=198.51.100.10 srckey=0x10 dstkey=0x20 packets=1 bytes=36 "
        "[UNREPLIED] src=198.51.100.10 dst=192.0.2.9 srckey=0x20 dstkey=0x10 packets=0 bytes=0 "
        "mark=0 zone=12 use=1"
    )
    assert "47 29 timeout=30, stream_timeout=180 src=" in format_entry(entry, "procfs")
    assert "zone=3 " in format_entry(from_connection(replace(row, zone=3)))


def test_an_unknown_protocol_prints() -> None:
    row = connection(
        protocol=253, ip_version=6, src="2001:db8::1", dst="2001:db8::2", sport=None, dport=None
    )
    assert format_entry(from_connection(row, accounting=False), "extended") == (
        "ipv6     10 unknown  253 29 src=2001:db8::1 dst=2001:db8::2 [UNREPLIED] "
        "src=2001:db8::2 dst=2001:db8::1 mark=0 use=1"
    )


def test_events_print() -> None:
    row = connection(protocol=17, timeout=30)
    new = from_event(Event("new", 1_700_000_000_123_456_789, 1, row))
    assert format_entry(new) == (
        "[1700000000.123456]\t    [NEW] udp      17 30 src=192.0.2.9 dst=198.51.100.10 sport=1000 "
        "dport=80 [UNREPLIED] src=198.51.100.10 dst=192.0.2.9 sport=80 dport=1000"
    )
    assert format_entry(replace(new, time=None)).startswith("    [NEW] udp")
    end = from_event(Event("destroy", 0, None, replace(row, timeout=None)))
    assert format_entry(end).startswith("[00000000.000000]\t[DESTROY] udp      17 src=192.0.2.9 ")
    assert "packets=1 bytes=36 [UNREPLIED]" in format_entry(end)
    assert format_entry(end, "save").startswith("-D -u UNSET -s 192.0.2.9")
    assert format_entry(end, "xml").startswith('<flow type="destroy">')
