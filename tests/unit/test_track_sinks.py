"""Tables of connections, verdicts and events: the same rows in every format."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from fragtrack.config import ReassemblyConfig
from fragtrack.errors import ConfigError, OutputError
from fragtrack.reference.track.table import Connections, VerdictRow, Verdicts
from fragtrack.sinks import TRACK_TABLES
from fragtrack.sinks.track import (
    EVENT_SUFFIXES,
    FORMATS,
    connection_suffix,
    open_connections,
    open_events,
    open_verdicts,
)
from fragtrack.sinks.track_rows import CONNECTIONS, EVENTS, VERDICTS
from fragtrack.track_config import TrackConfig
from fragtrack.verdicts import VERDICT_COLUMNS, Connection, Event, explain
from tests.backends import follower_class

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fragtrack.outputs import Sink

START = 1_700_000_000_000_000_001

TCP = Connection(
    id=1,
    time_first=START,
    time_last=START + 9,
    ip_version=4,
    protocol=6,
    src="192.0.2.1",
    sport=40000,
    dst="198.51.100.2",
    dport=80,
    vlan="10.20",
    state="ESTABLISHED",
    assured=True,
    reply_seen=True,
    packets_orig=3,
    bytes_orig=1 << 40,
    packets_reply=2,
    bytes_reply=120,
    fragments=1,
    invalid=4,
    end="open",
    timeout=431_999,
)
GRE = replace(
    TCP,
    id=2,
    ip_version=6,
    protocol=47,
    src="2001:db8::1",
    dst="2001:db8::2",
    sport=None,
    dport=None,
    vlan=None,
    state=None,
    assured=False,
    end="timeout",
    timeout=None,
    zone=1 << 55,
    gre_key=(0, 7),
)
PING = replace(GRE, id=3, protocol=58, gre_key=None, icmp_type=128, icmp_code=0, icmp_id=65535)
ROWS = [TCP, GRE, PING]

TOLD = [
    VerdictRow(1, 1, "new", "original", "SYN_SENT", None, None, None),
    VerdictRow(2, 1, "invalid", None, "SYN_SENT", "ack_above", 5000, 4_000_000_000),
    VerdictRow(3, None, "dropped", None, None, "overlap", None, None),
    VerdictRow(4, None, "held", None, None, None, None, None),
]
HAPPENED = [Event("new", START, 1, TCP), Event("destroy", START + 5, None, GRE)]


def plain(row: Connection) -> dict[str, Any]:
    """Lay a row out in columns, by hand."""
    srckey, dstkey = row.gre_key or (None, None)
    return {
        name: {"gre_srckey": srckey, "gre_dstkey": dstkey}[name]
        if name.startswith("gre")
        else getattr(row, name)
        for name in CONNECTIONS.columns
    }


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Read values as the readers of CSV guess them."""

    def guess(text: str) -> object:
        known = {"": None, "true": True, "false": False}
        return known[text] if text in known else int(text) if text.isdecimal() else text

    with path.open(newline="") as file:
        return [{name: guess(text) for name, text in row.items()} for row in csv.DictReader(file)]


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            assert str(field.type) == "timestamp[ns, tz=UTC]"
            table = table.set_column(place, field.name, table[field.name].cast(pa.int64()))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def read_parquet(path: Path) -> list[dict[str, Any]]:
    return as_rows(pq.read_table(path))


def read_arrow(path: Path) -> list[dict[str, Any]]:
    with pa.memory_map(str(path)) as file:
        return as_rows(pyarrow.ipc.open_file(file).read_all())


READ: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    ".jsonl": read_jsonl,
    ".csv": read_csv,
    ".parquet": read_parquet,
    ".arrow": read_arrow,
}
TYPED = (".parquet", ".arrow")


def test_every_table_format_has_a_reader() -> None:
    assert set(READ) == set(TRACK_TABLES)
    assert [FORMATS[name] for name in ("conntrack", "zeek")] == [".txt", ".log"]


def publish(sink: Sink) -> None:
    sink.finish()
    sink.publish()


# --------------------------------------------------------------------------------- the same rows


@pytest.mark.parametrize("suffix", list(TRACK_TABLES))
def test_connections_in_every_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    sink: Any = open_connections(path, suffix)
    sink.add(Connections(ROWS[:1]))
    sink.add(Connections([]))
    sink.add(Connections(ROWS[1:]))
    assert not path.exists()
    publish(sink)
    assert READ[suffix](path) == [plain(row) for row in ROWS]


@pytest.mark.parametrize("suffix", list(TRACK_TABLES))
def test_verdicts_in_every_format_and_words_in_text(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    sink = open_verdicts(path)
    sink.add(Verdicts(TOLD))
    publish(sink)
    details = [None, explain("ack_above", 5000, 4_000_000_000), None, None]
    expected = [
        dict(zip(VERDICT_COLUMNS, row, strict=True))
        | ({} if suffix in TYPED else {"detail": detail})
        for row, detail in zip(TOLD, details, strict=True)
    ]
    assert READ[suffix](path) == expected


@pytest.mark.parametrize("suffix", list(TRACK_TABLES))
def test_events_in_every_format(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    sink: Any = open_events(path)
    sink.write(HAPPENED[:1])
    sink.write(HAPPENED[1:])
    publish(sink)
    assert READ[suffix](path) == [
        {"kind": row.kind, "time": row.time, "frame": row.frame, **plain(row.connection)}
        for row in HAPPENED
    ]


@pytest.mark.parametrize("suffix", list(TRACK_TABLES))
def test_tables_without_rows_are_valid(tmp_path: Path, suffix: str) -> None:
    for name, sink in (
        ("c", open_connections(tmp_path / f"c{suffix}", suffix)),
        ("v", open_verdicts(tmp_path / f"v{suffix}")),
        ("e", open_events(tmp_path / f"e{suffix}")),
    ):
        publish(sink)
        assert READ[suffix](tmp_path / f"{name}{suffix}") == []


@pytest.mark.parametrize("suffix", list(TRACK_TABLES))
def test_a_discarded_table_leaves_nothing(
    tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    sink: Any = open_connections(tmp_path / f"rows{suffix}", suffix)
    sink.add(Connections(ROWS))
    sink.discard()
    del sink
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


# --------------------------------------------------------------------------------------- types


def test_the_types_of_events_are_those_of_both_backends(backend: str, tmp_path: Path) -> None:
    settings = ReassemblyConfig(path="netfilter")
    follower = follower_class(backend)(TrackConfig(), settings, verdicts=True, events=False)
    given = pa.table(follower.take_connections()).schema
    sink: Any = open_events(tmp_path / "e.arrow")
    publish(sink)
    with pa.memory_map(str(tmp_path / "e.arrow")) as file:
        ours = pyarrow.ipc.open_file(file).schema
    assert ours.names == list(EVENTS.columns)
    assert [ours.field(name) for name in given.names] == list(given)
    told = pa.table(follower.take_verdicts()).schema
    assert told.names == [name for name in VERDICTS.columns if name != "detail"]


def test_parquet_stores_what_repeats_once_and_groups_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fragtrack.sinks.parquet.GROUP_ROWS", 100)
    sink: Any = open_connections(tmp_path / "c.parquet", ".parquet")
    for number in range(6):
        sink.add(Connections([replace(TCP, id=number * 40 + at) for at in range(40)]))
    publish(sink)
    file = pq.ParquetFile(tmp_path / "c.parquet")
    assert file.metadata.num_row_groups == 2
    assert [row["id"] for row in read_parquet(tmp_path / "c.parquet")] == list(range(240))
    columns = {
        file.metadata.schema.column(at).name: file.metadata.row_group(0).column(at)
        for at in range(file.metadata.num_columns)
    }
    assert columns["state"].has_dictionary_page
    assert not columns["id"].has_dictionary_page


# --------------------------------------------------------------------------------------- text


def test_a_list_has_only_what_is_still_in_the_table(tmp_path: Path) -> None:
    sink: Any = open_connections(tmp_path / "c.txt.gz", ".txt")
    sink.add(Connections([GRE]))
    sink.add(Connections([replace(TCP, vlan=None)]))
    publish(sink)
    assert gzip.decompress((tmp_path / "c.txt.gz").read_bytes()) == (
        b"tcp      6 431999 ESTABLISHED src=192.0.2.1 dst=198.51.100.2 sport=40000 dport=80 "
        b"packets=3 bytes=1099511627776 src=198.51.100.2 dst=192.0.2.1 sport=80 dport=40000 "
        b"packets=2 bytes=120 [ASSURED] mark=0 use=1\n"
    )


def test_events_as_the_kernel_announces_them(tmp_path: Path) -> None:
    sink: Any = open_events(tmp_path / "e.txt")
    sink.write([replace(HAPPENED[0], connection=replace(TCP, vlan=None))])
    publish(sink)
    assert (tmp_path / "e.txt").read_text() == (
        "[1700000000.000000]\t    [NEW] tcp      6 431999 ESTABLISHED src=192.0.2.1 "
        "dst=198.51.100.2 sport=40000 dport=80 src=198.51.100.2 dst=192.0.2.1 sport=80 "
        "dport=40000 [ASSURED]\n"
    )


def test_a_log_without_rows_has_its_header(tmp_path: Path) -> None:
    publish(open_connections(tmp_path / "conn.log", ".log"))
    lines = (tmp_path / "conn.log").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines][-3:] == ["#path", "#fields", "#types"]


# --------------------------------------------------------------------------------------- names


def test_names_tell_formats() -> None:
    for suffix in FORMATS.values():
        assert connection_suffix(f"a{suffix}", None) == suffix
    assert connection_suffix("a.csv.zst", None) == ".csv"
    assert connection_suffix("-", None) == ".jsonl"
    assert connection_suffix("-", "conntrack") == ".txt"
    assert connection_suffix("a.csv", "zeek") == ".log"
    assert set(EVENT_SUFFIXES) == {*TRACK_TABLES, ".txt"}


@pytest.mark.parametrize(
    ("name", "requested", "complaint"),
    [
        ("a", None, "a: the name does not tell the format; use .jsonl, .csv, .parquet, .arrow, "),
        ("a.parquet.gz", None, "a.parquet.gz: .parquet compresses by itself; leave out .gz"),
        ("a.arrow.xz", None, "a.arrow.xz: .arrow is there to be mapped into memory; leave out .xz"),
        ("a", "xml", "format='xml': choose jsonl, csv, parquet, arrow, conntrack or zeek"),
    ],
)
def test_names_that_tell_none_are_refused(name: str, requested: str | None, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connection_suffix(name, requested)
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize("suffix", TYPED)
def test_without_pyarrow_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / f"rows{suffix}"
    with pytest.raises(OutputError) as caught:
        open_verdicts(path)
    what = suffix.removeprefix(".").capitalize()
    assert str(caught.value) == f"{path}: {what} needs pyarrow: pip install 'fragtrack[parquet]'"
    assert list(tmp_path.iterdir()) == []
