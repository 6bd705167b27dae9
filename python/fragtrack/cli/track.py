"""``fragtrack track``: captures in, their connections and a verdict on each packet out."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, TextIO

from fragtrack.cli.standard import (
    check_read_once,
    check_streams,
    ignore,
    print_json,
    shown,
    summary_stream,
    to_terminal,
)
from fragtrack.cli.status import complain, end_status
from fragtrack.cli.values import threads, usual_threads
from fragtrack.config import LIMITS
from fragtrack.errors import ConfigError
from fragtrack.track_config import PROFILES

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from fragtrack.tracking import Tracked

SUMMARY = "follow the connections of a capture, and say what is wrong with which packet"

DESCRIPTION = """\
Read captures, follow their connections as a Linux host would (nf_conntrack),
and tell which packets it would call INVALID, or ignore, and why: TCP with
windows, UDP, ICMP, SCTP, GRE and all else. Fragments are put together first.

INPUT may be pcap or pcapng, plain or compressed (gzip, zstd, bzip2, xz): the
content decides, not the name. Several inputs are read as one capture. Without
any output a summary is printed."""

EXAMPLES = """\
examples:
  fragtrack track in.pcapng
  fragtrack track in.pcap -o connections.parquet --verdicts verdicts.csv
  fragtrack track in.pcap --verdicts - | jq 'select(.class == "invalid")'
  fragtrack track in.pcap --format conntrack
  fragtrack track in.pcap --format zeek | zeek-cut id.orig_h conn_state
  fragtrack track in.pcap --set tcp_loose=0 --set gap_tolerant=1 --json
  conntrack -L > table.txt; fragtrack track in.pcap --compare table.txt

exit status:
  0    done
  1    done, but an input was damaged; a line says where
  2    wrong usage
  3    nothing could be done; no output is left behind
  130  ended by Ctrl-C; the output is valid, and shorter"""

FORMATS = ("jsonl", "csv", "parquet", "arrow", "conntrack", "zeek")
BINARY = ("parquet", "arrow")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="capture to read; - is standard input")

    group = parser.add_argument_group("output")
    add = group.add_argument
    add(
        "-o",
        "--output",
        metavar="FILE",
        help="connections: a table as .jsonl, .csv, .parquet or .arrow; .txt as 'conntrack -L' "
        "shows those still in the table at the end; .log as Zeek's conn.log; - is standard output",
    )
    add(
        "--format",
        choices=FORMATS,
        metavar="NAME",
        help=f"format of FILE whatever its name says: {', '.join(FORMATS)}; without -o to standard "
        "output",
    )
    add(
        "--verdicts",
        metavar="FILE",
        help="table with a row for each packet: its connection, class, direction, state, and the "
        "reason if it is invalid, ignored, or odd; .jsonl, .csv, .parquet or .arrow; - is standard "
        "output, as JSON lines",
    )
    add(
        "--events",
        metavar="FILE",
        help="table of what happened to connections (new, update, destroy); also .txt, as "
        "'conntrack -E' shows it",
    )
    add(
        "--compare",
        metavar="DUMP",
        help="say where the table at the end differs from a dump of the kernel's "
        "('conntrack -L > DUMP'); - is standard input",
    )
    add("--json", action="store_true", help="print the counts as one JSON object")
    add("-q", "--quiet", action="store_true", help="no summary, no progress bar; only problems")

    add = parser.add_argument
    add(
        "--threads",
        type=threads,
        default=usual_threads(),
        metavar="N",
        help="2: making tables, compressing and writing get a thread of their own; 3: reading and "
        "inflating, too; more: the rest compresses .zst; the results are the same (default: 2, "
        "or 1 where there is one processor)",
    )

    group = parser.add_argument_group("how to follow")
    add = group.add_argument
    add(
        "--profile",
        choices=PROFILES,
        default=PROFILES[0],
        metavar="NAME",
        help=f"whose rules: {', '.join(PROFILES)} (default: {PROFILES[0]})",
    )
    add(
        "--set",
        dest="settings",
        type=assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting, as sysctl writes it, with or without nf_conntrack_: tcp_loose=0, "
        "udp_timeout=10, max=65536; and checksum (offload, verify, ignore), gap_tolerant, zones "
        "(vlan, none); an unknown name lists all",
    )
    add(
        "--limits",
        choices=LIMITS,
        default="capture",
        help="of putting fragments together: capture: all that can be (default); kernel: what the "
        "host would have done",
    )


def assignment(text: str) -> tuple[str, str]:
    """Read ``NAME=VALUE``."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise ArgumentTypeError(f"{text!r} is no setting; write NAME=VALUE")
    return name.strip(), value.strip()


def run(args: Namespace) -> int:
    """Run the command."""
    from fragtrack import engine
    from fragtrack.cli.interrupt import Interrupt
    from fragtrack.cli.progress import Bar
    from fragtrack.tracking import track

    if args.format is not None and args.output is None:
        args.output = "-"
    _check(args)
    engine.load(tell=ignore if args.quiet else complain)
    with Interrupt() as interrupt, Bar(wanted=not args.quiet) as bar:
        found = track(
            args.inputs,
            args.output,
            profile=args.profile,
            format=args.format,
            verdicts=args.verdicts,
            events=args.events,
            compare=args.compare,
            limits=args.limits,
            settings=dict(args.settings),
            keep=False,
            threads=args.threads,
            progress=bar,
            stopped=interrupt,
        )
    targets = (args.output, args.verdicts, args.events)
    with summary_stream(*targets) as stream:
        _show(args, found, stream)
    return end_status(found.summary, interrupt.signal, targets)


def _check(args: Namespace) -> None:
    """Refuse what cannot be meant."""
    check_read_once([*args.inputs, args.compare])
    check_streams(
        args.inputs,
        {
            "-o -": args.output == "-",
            "--verdicts -": args.verdicts == "-",
            "--events -": args.events == "-",
            "--json": args.json,
        },
    )
    if args.format in BINARY and to_terminal(args.output):
        raise ConfigError(f"{args.format} is not for a terminal: use -o FILE, or pipe it on")


def _show(args: Namespace, found: Tracked, stream: TextIO | None) -> None:
    summary = found.summary
    if args.json:
        told = summary.as_dict()
        if found.comparison is not None:
            told["comparison"] = found.comparison.as_dict()
        print_json(told, stream)
    elif stream is not None and not args.quiet and (summary.packets or not summary.interrupted):
        _print(args, found, stream)
    if found.comparison is not None and stream is not None and not args.json:
        from fragtrack.cli.report import print_lines
        from fragtrack.cli.track_report import comparison_lines
        from fragtrack.sources import name_of

        print_lines(comparison_lines(found.comparison, name_of(args.compare)), stream)


def _print(args: Namespace, found: Tracked, stream: TextIO) -> None:
    from fragtrack.cli.report import print_lines
    from fragtrack.cli.track_report import Places, summary_lines
    from fragtrack.sources import name_of

    places = Places(
        tuple(name_of(name) for name in args.inputs),
        shown(args.output),
        shown(args.verdicts),
        shown(args.events),
        form=_form(args),
        old=args.profile != PROFILES[0],
        options=_options(args),
    )
    print_lines(summary_lines(found.summary, places), stream)


def _form(args: Namespace) -> str | None:
    """Give the format of the connections."""
    if args.output is None:
        return None
    from fragtrack.sinks.track import FORMATS as SUFFIXES
    from fragtrack.sinks.track import connection_suffix

    suffix = connection_suffix(args.output, args.format)
    return next(name for name, known in SUFFIXES.items() if known == suffix)


def _options(args: Namespace) -> tuple[str, ...]:
    """Give the options that decide on verdicts, as the user wrote them."""
    from shlex import quote

    return (
        *([f"--profile {args.profile}"] if args.profile != PROFILES[0] else []),
        *([f"--limits {args.limits}"] if args.limits != "capture" else []),
        *(f"--set {quote(f'{name}={value}')}" for name, value in args.settings),
    )
