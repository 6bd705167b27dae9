"""The conn.log: the bytes that Zeek would write."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from fragtrack.sinks.output import open_output
from fragtrack.sinks.zeek import ConnLog
from tests.zeek_talk import SECOND, START, Zeek, play, udp

if TYPE_CHECKING:
    from pathlib import Path

    from fragtrack.zeek import ZeekRow


def conn_log(rows: list[ZeekRow], opened: int | None, closed: int | None) -> str:
    target = io.BytesIO()
    log = ConnLog(open_output(target), opened=opened)
    log.write(rows)
    log.finish(closed=closed)
    return target.getvalue().decode()


def test_a_log_as_zeek_writes_it() -> None:
    zeek = play("ShADdFf")
    zeek.see(udp(40000, 53))
    rows = zeek.rows()
    lines = conn_log(rows, START, START + 65 * SECOND).split("\n")
    assert lines[:6] == [
        r"#separator \x09",
        "#set_separator\t,",
        "#empty_field\t(empty)",
        "#unset_field\t-",
        "#path\tconn",
        "#open\t2023-11-14-22-13-20",
    ]
    assert lines[6] == (
        "#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tservice\tduration"
        "\torig_bytes\tresp_bytes\tconn_state\tlocal_orig\tlocal_resp\tmissed_bytes\thistory"
        "\torig_pkts\torig_ip_bytes\tresp_pkts\tresp_ip_bytes\ttunnel_parents\tip_proto"
    )
    assert lines[7] == (
        "#types\ttime\tstring\taddr\tport\taddr\tport\tenum\tstring\tinterval\tcount\tcount"
        "\tstring\tbool\tbool\tcount\tstring\tcount\tcount\tcount\tcount\tset[string]\tcount"
    )
    assert lines[8] == (
        f"1700000000.000000\t{rows[0].uid}\t192.0.2.1\t40000\t198.51.100.2\t80\ttcp\t-\t0.006000"
        "\t100\t100\tSF\t-\t-\t0\tShADdFf\t4\t260\t3\t220\t-\t6"
    )
    assert lines[9] == (
        f"1700000000.007000\t{rows[1].uid}\t192.0.2.1\t40000\t198.51.100.2\t53\tudp\t-\t-\t-\t-"
        "\tS0\t-\t-\t0\tD\t1\t38\t0\t0\t-\t17"
    )
    assert lines[10:] == ["#close\t2023-11-14-22-14-25", ""]


def test_a_log_without_rows_or_times() -> None:
    text = conn_log([], None, None)
    assert text.startswith("#separator \\x09\n")
    assert text.endswith("\tcount\n")
    assert "#open" not in text
    assert "#close" not in text


def test_times_are_rounded_as_zeek_does() -> None:
    zeek = Zeek()
    zeek.see(udp(1, 2))
    (row,) = zeek.rows()
    for time, text in ((1_499, "0.000001"), (1_500, "0.000002"), (-1_000_000_000, "-1.000000")):
        changed = type(row)(**{name: getattr(row, name) for name in row.__slots__} | {"ts": time})
        assert conn_log([changed], None, None).split("\n")[7].startswith(text + "\t")


def test_a_log_that_is_dropped(tmp_path: Path) -> None:
    log = ConnLog(open_output(tmp_path / "conn.log"), opened=None)
    log.write(play("S").rows())
    log.discard()
    assert list(tmp_path.iterdir()) == []
