"""``fragtrack reassemble``: captures in, a capture with whole datagrams out."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from fragtrack.cli.values import size, threads, usual_threads
from fragtrack.config import LIMITS, POLICIES, RECLAIMS
from fragtrack.errors import ConfigError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import TextIO

    from fragtrack.summary import Summary

SUMMARY = "rewrite a capture with whole datagrams in place of fragments"

DESCRIPTION = """\
Read captures, put the IP fragments in them together as a Linux host would, and
write a capture that has the whole datagrams. Everything else passes through
unchanged and in order.

INPUT may be pcap or pcapng, plain or compressed (gzip, zstd, bzip2, xz): the
content decides, not the name. Several inputs are read as one capture."""

EXAMPLES = """\
examples:
  fragtrack reassemble in.pcapng -o whole.pcapng
  fragtrack reassemble day1.pcap.gz day2.pcap.gz -o both.pcapng.zst
  fragtrack reassemble in.pcap --datagrams fragmented.csv --hash
  fragtrack reassemble in.pcap --limits kernel --json | jq .reasons
  tcpdump -i eth0 -w - | fragtrack reassemble - -o - | tshark -r -

exit status:
  0    done
  1    done, but an input was damaged; a line says where
  2    wrong usage
  3    nothing could be done; no output is left behind
  130  ended by Ctrl-C; the output is valid, and shorter"""


DEFAULTS: dict[str, str | float | None] = {
    "policy": "linux",
    "limits": "capture",
    "timeout4": 30.0,
    "timeout6": 60.0,
    "memory": None,
    "reclaim": None,
}
"""The options that decide what comes together."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="capture to read; - is standard input")

    group = parser.add_argument_group("output (at least one of -o, --datagrams, --json)")
    add = group.add_argument
    add(
        "-o",
        "--output",
        metavar="OUTPUT",
        help="capture to write: .pcap or .pcapng, also with .gz, .zst, .bz2 or .xz behind it; "
        "- is standard output",
    )
    add(
        "--format",
        choices=("pcap", "pcapng"),
        help="format of OUTPUT where its name does not tell; default: that of the first input",
    )
    add(
        "--incomplete",
        choices=("keep", "drop"),
        default="keep",
        help="fragments of datagrams that did not come together: keep them in OUTPUT as they are "
        "(default), or drop them",
    )
    add(
        "--datagrams",
        metavar="FILE",
        help="table of all datagrams that came in fragments, with the reason where one is not "
        "complete: .jsonl, .csv or .parquet; - is standard output, as JSON lines",
    )
    add("--hash", action="store_true", help="add the SHA-256 of each payload to that table")
    add("--json", action="store_true", help="print the counts as one JSON object")
    add("-q", "--quiet", action="store_true", help="no summary, no progress bar; only problems")

    add(
        "--threads",
        type=threads,
        default=usual_threads(),
        metavar="N",
        help="2: hashing, compressing and writing get a thread of their own; 3: reading and "
        "inflating, too; more: the rest compresses .zst; the results are the same (default: 2, "
        "or 1 where there is one processor)",
    )

    group = parser.add_argument_group("how to put together")
    add = group.add_argument
    add(
        "--policy",
        choices=POLICIES,
        default=DEFAULTS["policy"],
        metavar="NAME",
        help=f"who wins where fragments overlap: {', '.join(POLICIES)} (default: linux)",
    )
    add(
        "--timeout4",
        type=float,
        default=DEFAULTS["timeout4"],
        metavar="SECONDS",
        help="how long an IPv4 datagram may stay incomplete (default: 30)",
    )
    add(
        "--timeout6",
        type=float,
        default=DEFAULTS["timeout6"],
        metavar="SECONDS",
        help="the same for IPv6 (default: 60)",
    )
    add(
        "--limits",
        choices=LIMITS,
        default=DEFAULTS["limits"],
        help="capture: all that can be put together (default); kernel: what the host would have "
        "done: 4 MiB, refuse, distance 64, checksums verified",
    )
    add(
        "--memory",
        type=size,
        metavar="SIZE",
        help="for fragments held, per IP version: bytes, or as 512M, 1G (default: 512M; with "
        "--limits kernel: 4M)",
    )
    add(
        "--reclaim",
        choices=RECLAIMS,
        metavar="NAME",
        help=f"what gives way at that limit: {', '.join(RECLAIMS)} (default: fair; with --limits "
        "kernel: refuse)",
    )


def run(args: Namespace) -> int:
    """Run the command."""
    from fragtrack import engine
    from fragtrack.cli.interrupt import Interrupt
    from fragtrack.cli.progress import Bar
    from fragtrack.files import reassemble

    _check(args)
    engine.load(tell=ignore if args.quiet else complain)
    with Interrupt() as interrupt, Bar(wanted=not args.quiet) as bar:
        summary = reassemble(
            args.inputs,
            args.output,
            **{name: getattr(args, name) for name in DEFAULTS},
            incomplete=args.incomplete,
            datagrams=args.datagrams,
            sha256=args.hash,
            format=args.format,
            threads=args.threads,
            progress=bar,
            stopped=interrupt,
        )
    targets = (args.output, args.datagrams)
    with summary_stream(*targets) as stream:
        _show(args, summary, stream)
    return end_status(summary, interrupt.signal, targets)


def _check(args: Namespace) -> None:
    """Refuse what cannot be meant."""
    if args.output is None and args.datagrams is None and not args.json:
        raise ConfigError("nothing to do: give -o OUTPUT, --datagrams FILE or --json")
    check_read_once(args.inputs)
    if args.hash and args.datagrams is None:
        raise ConfigError("--hash goes into the table of --datagrams FILE, which is not asked for")
    check_streams(
        args.inputs,
        {
            "-o -": args.output == "-",
            "--datagrams -": args.datagrams == "-",
            "--json": args.json,
        },
    )
    if to_terminal(args.output):
        raise ConfigError("a capture is not for a terminal: use -o FILE, or pipe it on")


def _show(args: Namespace, summary: Summary, stream: TextIO | None) -> None:
    if args.json:
        print_json(summary.as_dict(), stream)
    elif stream is not None and not args.quiet and (summary.packets or not summary.interrupted):
        from fragtrack.cli.report import Places, print_summary
        from fragtrack.sources import name_of

        places = Places(
            tuple(name_of(name) for name in args.inputs),
            shown(args.output),
            shown(args.datagrams),
            keep=args.incomplete == "keep",
            options=_options(args),
        )
        print_summary(summary, places, stream)


def _options(args: Namespace) -> tuple[str, ...]:
    given = {name: getattr(args, name) for name in DEFAULTS}
    return tuple(
        f"--{name} {value:g}" if isinstance(value, float) else f"--{name} {value}"
        for name, value in given.items()
        if value != DEFAULTS[name]
    )
