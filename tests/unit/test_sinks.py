"""Sinks: files appear whole or not at all, names tell formats, tables agree in every format."""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from fragtrack.errors import ConfigError, OutputError
from fragtrack.events import DatagramRow
from fragtrack.sinks import (
    CAPTURES,
    COMPRESSORS,
    TABLES,
    capture_suffix,
    open_capture,
    open_table,
    table_suffix,
)
from fragtrack.sinks.output import open_output
from fragtrack.sinks.rows import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable

UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def row(number: int, **changes: Any) -> DatagramRow:
    fields: dict[str, Any] = {
        "time_first": 1_700_000_000_123_456_789 + number,
        "time_last": 1_700_000_001_000_000_000 + number,
        "ip_version": 4,
        "src": "192.0.2.1",
        "dst": "198.51.100.2",
        "protocol": 17,
        "id": number & 0xFFFF,
        "vlan": None,
        "tunnel": None,
        "fragments": 2,
        "frames": (number + 1, number + 2),
        "length": 1600,
        "outcome": "complete",
        "policy": "linux",
        "payload": b"payload %d" % number,
    }
    return DatagramRow(**{**fields, **changes})


ROWS = [
    row(0),
    row(1, vlan="10.20", frames=(7, 3, 5), fragments=3),
    row(2, ip_version=6, src="2001:db8::1", dst="2001:db8::2", id=0xFFFFFFFF),
    row(3, outcome="timeout", payload=None, frames=(9,), fragments=1, time_first=0, length=65535),
]


# ------------------------------------------------------------------------------------- files


def test_a_file_appears_only_when_it_is_published(tmp_path: Path) -> None:
    path = tmp_path / "out.pcap"
    output = open_output(path)
    output.write(b"abc")
    assert not path.exists()
    output.write(b"def")
    output.finish()
    assert not path.exists()
    output.publish()
    assert path.read_bytes() == b"abcdef"
    assert names(tmp_path) == ["out.pcap"]


@pytest.mark.parametrize("finished", [False, True])
def test_a_discarded_file_leaves_nothing_and_keeps_what_was_there(
    tmp_path: Path, finished: bool
) -> None:
    path = tmp_path / "out.pcap"
    path.write_bytes(b"before")
    output = open_output(path)
    output.write(b"abc")
    if finished:
        output.finish()
    output.discard()
    output.discard()
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == ["out.pcap"]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    for mask in (0o022, 0o077, 0o002):
        before = os.umask(mask)
        try:
            output = open_output(tmp_path / f"{mask}.pcap")
            output.finish()
            output.publish()
        finally:
            os.umask(before)
        mode = stat.S_IMODE((tmp_path / f"{mask}.pcap").stat().st_mode)
        assert mode == 0o666 & ~mask


def test_a_replaced_file_keeps_its_permissions_and_its_links(tmp_path: Path) -> None:
    path, link = tmp_path / "out.pcap", tmp_path / "link.pcap"
    path.write_bytes(b"before")
    path.chmod(0o640)
    link.symlink_to("out.pcap")
    output = open_output(link)
    output.write(b"after")
    output.finish()
    output.publish()
    assert link.is_symlink()
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_that_may_not_be_written_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.pcap"
    path.write_bytes(b"before")
    monkeypatch.setattr("os.access", lambda *_: False)  # permissions do not hold root back
    with pytest.raises(PermissionError, match="cannot write"):
        open_output(path)
    assert path.read_bytes() == b"before"


def test_names_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    name = "ü" * 125 + ".pcap"
    output = open_output(tmp_path / name)
    output.finish()
    output.publish()
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", ["missing/out.pcap", "file/out.pcap", "folder"])
def test_what_cannot_be_opened_is_an_error_with_the_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    path = str(tmp_path / name)
    with pytest.raises(OSError, match="cannot write") as caught:
        open_output(path)
    assert caught.value.filename == path
    assert names(tmp_path) == ["file", "folder"]


def test_special_files_are_written_directly(tmp_path: Path) -> None:
    output = open_output("/dev/null")
    output.write(b"abc")
    output.finish()
    output.publish()
    assert not stat.S_ISREG(Path("/dev/null").stat().st_mode)

    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    output = open_output(fifo)
    output.write(b"abc")
    assert os.read(reader, 10) == b"abc"
    output.discard()
    os.close(reader)
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_full_device_is_an_error_with_the_name() -> None:
    output = open_output("/dev/full")
    with pytest.raises(OSError, match="cannot write: No space left on device") as caught:
        output.write(b"abc")
    assert caught.value.filename == "/dev/full"
    output.discard()


def test_file_objects_are_written_and_left_open() -> None:
    target = io.BytesIO()
    output = open_output(target)
    output.write(b"abc")
    output.finish()
    output.publish()
    assert target.getvalue() == b"abc"


# ------------------------------------------------------------------------------- compression


def test_every_compression_has_an_unpacker() -> None:
    assert set(UNPACK) == set(COMPRESSORS)


@pytest.mark.parametrize("suffix", list(COMPRESSORS))
def test_compressed_outputs_unpack_and_repeat(tmp_path: Path, suffix: str) -> None:
    stored = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.pcap{suffix}"
        output = open_capture(path)
        for _ in range(50):
            output.write(b"packet " * 1000)
        output.finish()
        output.publish()
        stored.append(path.read_bytes())
    assert stored[0] == stored[1]
    assert UNPACK[suffix](stored[0]) == b"packet " * 50_000


# ------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("suffix", list(CAPTURES))
@pytest.mark.parametrize("packed", ["", *COMPRESSORS])
def test_suffixes_tell_capture_formats(suffix: str, packed: str) -> None:
    assert capture_suffix(f"a.b{suffix}{packed}", None) == CAPTURES[suffix]
    assert capture_suffix(f"a.b{suffix}{packed}".upper(), None) == CAPTURES[suffix]
    assert capture_suffix(f"a.b{suffix}{packed}", "pcapng") == "pcapng"


@pytest.mark.parametrize("target", ["-", "/dev/null", io.BytesIO()])
def test_without_a_suffix_to_go_by_no_format_is_told(target: str | io.BytesIO) -> None:
    assert capture_suffix(target, None) is None
    assert capture_suffix(target, "pcap") == "pcap"


@pytest.mark.parametrize("name", ["out", "out.txt", "out.gz", "pcap", "out.pcap.lz4"])
def test_names_that_tell_no_capture_format_are_refused(name: str) -> None:
    expected = (
        f"{name}: the name does not tell the format; use .pcap, .cap, .pcapng; "
        "to compress add .gz, .zst, .bz2, .xz"
    )
    with pytest.raises(ConfigError) as caught:
        capture_suffix(name, None)
    assert str(caught.value) == expected
    assert capture_suffix(name, "pcapng") == "pcapng"


def test_suffixes_tell_table_formats() -> None:
    assert [table_suffix(f"rows{suffix}") for suffix in TABLES] == list(TABLES)
    assert table_suffix("rows.csv.zst") == ".csv"
    assert table_suffix("-") == ".jsonl"
    assert table_suffix("/dev/null") == ".jsonl"
    with pytest.raises(ConfigError, match=r"rows\.parquet\.gz: \.parquet compresses by itself"):
        table_suffix("rows.parquet.gz")
    with pytest.raises(ConfigError, match=r"rows\.txt: the name does not tell the format"):
        table_suffix("rows.txt")


# ------------------------------------------------------------------------------------- tables


def write_table(path: Path, rows: list[DatagramRow], *, sha256: bool = False) -> Path:
    table = open_table(path, sha256=sha256)
    table.write(rows[:1])
    table.write(rows[1:])
    table.finish()
    table.output.publish()
    return path


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    numbers = ("time_first", "time_last", "ip_version", "protocol", "id", "fragments", "length")
    for cells in rows:
        cells.update({name: value or None for name, value in cells.items()})
        cells.update({name: int(cells[name]) for name in numbers})
        cells["frames"] = [int(frame) for frame in cells["frames"].split()]
    return rows


def read_parquet(path: Path) -> list[dict[str, Any]]:
    table = pq.read_table(path)
    for name in ("time_first", "time_last"):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, table[name].cast(pa.int64()))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


READ = {".jsonl": read_jsonl, ".csv": read_csv, ".parquet": read_parquet}


def test_every_table_format_has_a_reader() -> None:
    assert set(READ) == set(TABLES)


@pytest.mark.parametrize("sha256", [False, True])
@pytest.mark.parametrize("suffix", list(TABLES))
def test_tables_hold_the_rows_in_every_format(tmp_path: Path, suffix: str, sha256: bool) -> None:
    rows = READ[suffix](write_table(tmp_path / f"rows{suffix}", ROWS, sha256=sha256))
    assert list(rows[0]) == [*COLUMNS, *(["sha256"] if sha256 else [])]
    for cells, expected in zip(rows, ROWS, strict=True):
        for name in COLUMNS:
            value = getattr(expected, name)
            assert cells[name] == (list(value) if name == "frames" else value)
    if sha256:
        assert rows[0]["sha256"] == hashlib.sha256(b"payload 0").hexdigest()
        assert rows[3]["sha256"] is None


@pytest.mark.parametrize("suffix", list(TABLES))
def test_tables_without_rows_are_valid(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    table = open_table(path, sha256=False)
    table.finish()
    table.output.publish()
    assert READ[suffix](path) == []
    if suffix == ".csv":
        assert path.read_text() == ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize("suffix", list(TABLES))
def test_a_discarded_table_leaves_nothing(
    tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    table = open_table(tmp_path / f"rows{suffix}", sha256=False)
    table.write(ROWS)
    table.discard()
    del table
    assert names(tmp_path) == []
    assert capfd.readouterr() == ("", "")


def test_jsonl_is_one_compact_object_a_line(tmp_path: Path) -> None:
    path = write_table(tmp_path / "rows.jsonl", ROWS[1:2])
    assert path.read_text() == (
        '{"time_first":1700000000123456790,"time_last":1700000001000000001,"ip_version":4,'
        '"src":"192.0.2.1","dst":"198.51.100.2","protocol":17,"id":1,"vlan":"10.20",'
        '"tunnel":null,"fragments":3,"frames":[7,3,5],"length":1600,"outcome":"complete",'
        '"policy":"linux"}\n'
    )


def test_csv_joins_frames_by_spaces(tmp_path: Path) -> None:
    path = write_table(tmp_path / "rows.csv.gz", ROWS[1:2])
    assert gzip.decompress(path.read_bytes()).splitlines()[1] == (
        b"1700000000123456790,1700000001000000001,4,192.0.2.1,198.51.100.2,17,1,10.20,,3,"
        b"7 3 5,1600,complete,linux"
    )


def test_parquet_has_types_and_several_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fragtrack.sinks.parquet.GROUP_ROWS", 100)
    path = write_table(tmp_path / "rows.parquet", [row(number) for number in range(250)])
    file = pq.ParquetFile(path)
    assert file.metadata.num_row_groups == 3
    types = {field.name: str(field.type) for field in file.schema_arrow}
    assert types["time_first"] == "timestamp[ns, tz=UTC]"
    assert types["ip_version"] == "uint8"
    assert types["id"] == "uint32"
    assert types["frames"] == "list<element: uint64>"
    assert types["vlan"] == types["outcome"] == "string"
    assert [cells["id"] for cells in read_parquet(path)] == list(range(250))


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "rows.parquet"
    with pytest.raises(OutputError) as caught:
        open_table(path, sha256=False)
    assert str(caught.value) == (f"{path}: Parquet needs pyarrow: pip install 'fragtrack[parquet]'")
    assert names(tmp_path) == []


def test_an_output_that_fails_is_left_behind_by_no_table(tmp_path: Path) -> None:
    for suffix in TABLES:
        with pytest.raises(OSError, match="cannot write"):
            open_table(tmp_path / "missing" / f"rows{suffix}", sha256=False)
    assert names(tmp_path) == []
