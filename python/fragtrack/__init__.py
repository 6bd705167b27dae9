"""fragtrack: IP fragments put back together, with the verdicts of a real Linux kernel.

>>> import fragtrack
>>> summary = fragtrack.reassemble("in.pcapng", "whole.pcapng")  # doctest: +SKIP
>>> for datagram in fragtrack.datagrams("in.pcapng"):  # doctest: +SKIP
...     print(datagram.src, datagram.dst, datagram.frames)
>>> connections = fragtrack.track("in.pcapng")  # doctest: +SKIP
>>> fragtrack.Reassembler(policy="linux").queues
0
>>> len(fragtrack.Tracker(tcp_loose=False))
0

The names below are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragtrack.config import ReassemblyConfig
    from fragtrack.engine import backend_name
    from fragtrack.errors import CaptureError, ConfigError, FragtrackError, OutputError
    from fragtrack.events import (
        Datagram,
        DatagramRow,
        GivenUp,
        IcmpError,
        Outcome,
        Reason,
    )
    from fragtrack.files import Datagrams, datagrams, reassemble
    from fragtrack.reassembler import Reassembler
    from fragtrack.sources.base import Damage
    from fragtrack.summary import Summary
    from fragtrack.track_config import TrackConfig
    from fragtrack.track_summary import TrackSummary
    from fragtrack.tracker import Tracker
    from fragtrack.tracking import Tracked, track
    from fragtrack.verdicts import Connection, Event, TrackReason, Verdict

__all__ = [
    "CaptureError",
    "ConfigError",
    "Connection",
    "Damage",
    "Datagram",
    "DatagramRow",
    "Datagrams",
    "Event",
    "FragtrackError",
    "GivenUp",
    "IcmpError",
    "Outcome",
    "OutputError",
    "Reason",
    "Reassembler",
    "ReassemblyConfig",
    "Summary",
    "TrackConfig",
    "TrackReason",
    "TrackSummary",
    "Tracked",
    "Tracker",
    "Verdict",
    "__version__",
    "backend_name",
    "datagrams",
    "reassemble",
    "track",
]

_HOMES = {
    "config": ("ReassemblyConfig",),
    "engine": ("backend_name",),
    "errors": ("CaptureError", "ConfigError", "FragtrackError", "OutputError"),
    "events": ("Datagram", "DatagramRow", "GivenUp", "IcmpError", "Outcome", "Reason"),
    "files": ("Datagrams", "datagrams", "reassemble"),
    "reassembler": ("Reassembler",),
    "sources.base": ("Damage",),
    "summary": ("Summary",),
    "track_config": ("TrackConfig",),
    "track_summary": ("TrackSummary",),
    "tracker": ("Tracker",),
    "tracking": ("Tracked", "track"),
    "verdicts": ("Connection", "Event", "TrackReason", "Verdict"),
}

_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name from its home at first use."""
    if name == "__version__":
        value: object = _version()
    elif name in _HOME:
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)


def _version() -> str:
    """Read the version of the installed package; a source tree has none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(__name__)
    except PackageNotFoundError:
        return "0+source"
