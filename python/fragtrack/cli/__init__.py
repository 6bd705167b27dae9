"""The command ``fragtrack``: one file per command, errors turned into lines and exit statuses.

====== ==================================================================================
status meaning
====== ==================================================================================
0      done
1      done, but the input was damaged: what could be read was processed
2      wrong usage
3      nothing could be done: not a capture, not readable, output not writable
129    ended by SIGHUP; as 130
130    ended by Ctrl-C: the output is valid and shorter, or there is none; a line says which
141    who reads standard output has gone away
143    ended by SIGTERM; as 130
====== ==================================================================================

With ``FRAGTRACK_DEBUG=1`` in the environment an error shows its traceback.
"""

from __future__ import annotations

import os
import signal
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from fragtrack.cli.status import Status, complain, error_line
from fragtrack.errors import ConfigError, FragtrackError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

COMMANDS = ("reassemble", "track")
"""Each is a module of this package with SUMMARY, DESCRIPTION, EXAMPLES, add_arguments and run."""

DEBUG = "FRAGTRACK_DEBUG"


class Parser(ArgumentParser):
    """A parser that says what is wrong in one line, and where the rest is to be read."""

    def error(self, message: str) -> NoReturn:
        """Complain, and end with the status of wrong usage."""
        complain(f"{message}; see '{self.prog} --help'")
        raise SystemExit(Status.USAGE)


def build_parser() -> ArgumentParser:
    """Make the parser of the whole command line."""
    parser = Parser(
        prog="fragtrack",
        description="Put IP fragments back together and follow connections, with the verdicts of a "
        "real Linux kernel.",
        epilog="Run 'fragtrack COMMAND --help' for the options of a command, with examples.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and end")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    for name in COMMANDS:
        module = import_module(f"{__name__}.{name}")
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            epilog=module.EXAMPLES,
            formatter_class=RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and give the exit status."""
    _occupy_standard_descriptors()
    parser = build_parser()
    args = parser.parse_args(argv)
    try:
        if args.version:
            return _print_version()
        if not hasattr(args, "run"):
            parser.error("a command is missing")
        return _run(args)
    except BrokenPipeError:
        if _debugging():
            raise
        return _reader_gone()


def _run(args: Namespace) -> int:
    try:
        status: int = args.run(args)
    except KeyboardInterrupt:
        complain("interrupted; no output is left behind")
        return Status.SIGNAL + signal.SIGINT
    except BrokenPipeError:
        raise
    except (FragtrackError, OSError) as error:
        if _debugging():
            raise
        complain(error_line(error))
        return Status.USAGE if isinstance(error, ConfigError) else Status.NOTHING
    return status


def _occupy_standard_descriptors() -> None:
    """Keep files away from the descriptors 0, 1 and 2 if they are closed (as ``<&-`` does).

    What is put there refuses the use it stands for: reading from 0, writing to 1 and 2.
    """
    for descriptor, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number, which is this one


def _debugging() -> bool:
    return os.environ.get(DEBUG) == "1"


def _print_version() -> int:
    from fragtrack import __version__, backend_name

    sys.stdout.write(f"fragtrack {__version__} ({backend_name()} backend)\n")
    sys.stdout.flush()
    return Status.DONE


def _reader_gone() -> int:
    # What is still buffered for standard output would fail once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return Status.SIGNAL + signal.SIGPIPE
