"""Options and settings: how values are written, what reaches the engine, what a summary says."""

from __future__ import annotations

import io
import subprocess
import sys
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

import pytest

import fragtrack
from fragtrack.cli import COMMANDS, build_parser, main, reassemble
from fragtrack.cli.interrupt import SIGNALS, Interrupt
from fragtrack.cli.report import (
    COSTS,
    MEANING,
    Places,
    print_summary,
    summary_lines,
)
from fragtrack.cli.status import error_line
from fragtrack.cli.values import bytes_text, plural, size, threads
from fragtrack.config import LIMITS, POLICIES, RECLAIMS, ReassemblyConfig
from fragtrack.errors import CaptureError, ConfigError, OutputError
from fragtrack.events import Reason
from fragtrack.sources import Damage
from fragtrack.summary import Summary

# ------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("4194304", 4 << 20),
        ("512M", 512 << 20),
        ("512m", 512 << 20),
        ("1G", 1 << 30),
        ("64k", 64 << 10),
        ("64KiB", 64 << 10),
        ("64 kB", 64 << 10),
        ("1.5G", 3 << 29),
        ("2T", 2 << 40),
        ("100b", 100),
    ],
)
def test_sizes_as_people_write_them(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize("text", ["", "M", "-1", "1e6", "12Q", "1.5.2M", "0x10", "1M2"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is no size"):
        size(text)


def test_numbers_of_threads() -> None:
    assert [threads(text) for text in ("1", "02", "64")] == [1, 2, 64]
    for text in ("", "0", "-1", "1.5", "all", "10000000"):
        with pytest.raises(ArgumentTypeError, match="is no number of threads"):
            threads(text)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (450 << 20, "450.0 MiB"),
        (3 << 30, "3.0 GiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_sizes_as_people_read_them(count: int, expected: str) -> None:
    assert bytes_text(count) == expected


def test_plurals() -> None:
    assert [plural(count, "packet") for count in (0, 1, 2000)] == [
        "0 packets",
        "1 packet",
        "2,000 packets",
    ]


# ------------------------------------------------------------------------------------ options


def parsed(*args: str) -> dict[str, object]:
    return vars(build_parser().parse_args(["reassemble", "in.pcap", *args]))


def test_defaults_are_those_of_the_settings() -> None:
    args, settings = parsed(), ReassemblyConfig()
    for name in ("policy", "limits", "timeout4", "timeout6", "memory", "reclaim"):
        assert args[name] == getattr(settings, name)


@pytest.mark.parametrize(
    ("option", "names"), [("policy", POLICIES), ("limits", LIMITS), ("reclaim", RECLAIMS)]
)
def test_every_name_of_the_settings_is_a_choice(option: str, names: tuple[str, ...]) -> None:
    for name in names:
        assert parsed(f"--{option}", name)[option] == name


def test_every_command_tells_what_it_is() -> None:
    for name in COMMANDS:
        module = sys.modules[f"fragtrack.cli.{name}"]
        assert module.SUMMARY
        assert module.EXAMPLES.startswith("examples:\n  fragtrack ")
        assert max(map(len, (module.DESCRIPTION + module.EXAMPLES).splitlines())) <= 80


def test_every_option_has_help() -> None:
    parser = ArgumentParser()
    reassemble.add_arguments(parser)
    assert [action.dest for action in parser._actions if not action.help] == []


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ConfigError("memory=-1: too small"), "memory=-1: too small"),
        (CaptureError("a.pcap", 17, "not a capture"), "a.pcap: offset 17: not a capture"),
        (OutputError("out.pcap: two\nlines"), "out.pcap: two lines"),
        (FileNotFoundError(2, "No such file", "a.pcap"), "a.pcap: No such file"),
        (OSError(28, "No space left"), "No space left"),
    ],
)
def test_errors_are_one_line(error: ConfigError | OSError, line: str) -> None:
    assert error_line(error) == line


# ---------------------------------------------------------------------------------- start-up


def test_asking_for_help_imports_no_more_than_needed() -> None:
    code = (
        "import sys, fragtrack.cli\n"
        "try: fragtrack.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(fragtrack.__file__).parents[1])},
    )
    loaded = set(done.stderr.split())
    for heavy in ("rich", "pyarrow", "zstandard", "pathlib", "fragtrack._core", "fragtrack.files"):
        assert heavy not in loaded
    assert "fragtrack.reference" not in loaded


def test_a_missing_native_module_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(
        bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")
    )
    code = (
        "import sys\n"
        "sys.modules['fragtrack._core'] = None\n"
        "import fragtrack.cli\n"
        "sys.exit(fragtrack.cli.main(sys.argv[1:]))"
    )
    for options, lines in (([], 1), (["-q"], 0)):
        done = subprocess.run(
            [sys.executable, "-c", code, "reassemble", "empty.pcap", "--json", *options],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(fragtrack.__file__).parents[1])},
        )
        assert done.stderr.count("\n") == lines
        if lines:
            assert done.stderr.startswith("fragtrack: no native module (")
            assert done.stderr.endswith("; the reference does the same, slower\n")


# ------------------------------------------------------------------------------------ signals


def test_the_first_signal_is_noted_and_handlers_are_put_back() -> None:
    import signal

    before = [signal.getsignal(number) for number in SIGNALS]
    with Interrupt() as interrupt:
        assert not interrupt()
        signal.raise_signal(signal.SIGTERM)
        assert interrupt()
        assert interrupt.signal == signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert [signal.getsignal(number) for number in SIGNALS] == before


# ------------------------------------------------------------------------------------ summary

PLACES = Places(("in.pcap",), "out.pcap", None, keep=True)


def lines(summary: Summary, places: Places = PLACES) -> list[str]:
    return list(summary_lines(summary, places))


def test_every_reason_has_a_meaning_that_fits_a_line() -> None:
    assert set(MEANING) == set(Reason)
    assert max(map(len, MEANING.values())) <= 72


def test_a_capture_without_fragments() -> None:
    assert lines(Summary(packets=1, bytes=100, written=1, seconds=0.5)) == [
        "in.pcap  1 packet, 100 bytes in 0.50 s",
        "  fragments  none",
        "  output     1 packet in out.pcap",
    ]


def test_oddities_are_told() -> None:
    summary = Summary(fragments={"ipv4": 3, "ipv6": 0}, anomalies={"bad_checksum": 3, "else": 0})
    assert lines(summary)[3] == (
        "  odd        3 fragments used in spite of a wrong IPv4 header checksum; "
        "--limits kernel drops such"
    )


@pytest.mark.parametrize(
    ("who", "reason"), [(who, reason) for who, reasons in COSTS.items() for reason in reasons]
)
def test_what_was_given_up_on_purpose_is_counted_in_datagrams(who: str, reason: Reason) -> None:
    lost = Summary(reasons={reason.name: 9, "end": 1}, given_up={reason.name: 4, "end": 1})
    assert f"  note       {who} cost 4 datagrams ({reason.name} 4)." in lines(lost)
    alone = Summary(reasons={reason.name: 1, "end": 1}, given_up={"end": 1})
    assert f"  note       {who} kept out 1 fragment ({reason.name} 1)." in lines(alone)


def test_every_choice_has_its_line_and_a_command_shows_which() -> None:
    summary = Summary(
        reasons={"overlap": 5, "abandoned": 2, "too_far": 3, "memory": 7, "ecn": 2, "end": 1},
        given_up={"overlap": 1, "too_far": 1, "evicted": 2, "ecn": 1, "end": 1},
    )
    command = "             To see which: "
    policy = "cost 1 datagram (overlap 1) and kept out 2 fragments (abandoned 2)."
    limits = "cost 3 datagrams (too_far 1, evicted 2) and kept out 7 fragments (memory 7)."
    assert lines(summary)[-4:] == [
        f"  note       The policy {policy}",
        f"             The limits {limits}",
        "             What a host refuses cost 1 datagram (ecn 1).",
        f"{command}fragtrack reassemble in.pcap --datagrams lost.jsonl",
    ]
    again = PLACES._replace(options=("--policy bsd", "--memory 0"))
    assert lines(summary, again)[-1] == (
        f"{command}fragtrack reassemble in.pcap --policy bsd --memory 0 --datagrams lost.jsonl"
    )
    many = Places(("a b.pcap", "b", "c", "d"), None, None, keep=True)
    assert lines(summary, many)[-1] == (
        f"{command}fragtrack reassemble 'a b.pcap' b c ... --datagrams lost.jsonl"
    )
    stream = Places(("standard input",), None, None, keep=True)
    assert lines(summary, stream)[-1] == f"{command}add --datagrams lost.jsonl"
    table = Places(("in.pcap",), None, "t.csv", keep=True)
    assert lines(summary, table)[-1] == f"{command}'outcome' in t.csv"


def test_other_reasons_are_nobodys_choice() -> None:
    summary = Summary(fragments={"ipv4": 9, "ipv6": 0}, given_up={"end": 1, "timeout": 2})
    assert not any("note" in line for line in lines(summary))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_color_only_where_it_is_welcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(stream: io.StringIO) -> str:
        print_summary(Summary(reasons={"end": 1}), PLACES, stream)
        return stream.getvalue()

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\033[" not in shown(io.StringIO())
    assert "  \033[1mfragments\033[0m  none\n" in shown(Terminal())
    assert "    \033[33mend\033[0m  " in shown(Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033[" not in shown(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\033[" not in shown(Terminal())


def test_the_json_object_is_plain() -> None:
    damages = (Damage("a.pcap", 5, "cut off"), Damage("b.pcap", 7, "cut off"))
    summary = Summary(packets=3, given_up={"end": 1}, damages=damages, interrupted=True)
    assert summary.as_dict() == {
        "packets": 3,
        "bytes": 0,
        "fragments": {},
        "datagrams": {},
        "written": 0,
        "reasons": {},
        "anomalies": {},
        "seconds": 0.0,
        "damaged": {"file": "a.pcap", "offset": 5, "why": "cut off"},
    }


def test_main_gives_the_status_instead_of_ending(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAGTRACK_PURE", "1")
    assert main(["reassemble", "missing.pcap", "--json", "-q"]) == 3
    assert capsys.readouterr().err == "fragtrack: missing.pcap: No such file or directory\n"
