"""Which backend does the work: the native module, or the reference in plain Python.

Both have the same classes and give the same answers. The reference is used when the environment
says ``FRAGTRACK_PURE=1``, and where the native module cannot be imported; the latter is said once.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from fragtrack.config import ReassemblyConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from fragtrack.reference.capture import Format
    from fragtrack.reference.follower import Follower
    from fragtrack.reference.reassembler import Reassembler
    from fragtrack.reference.rewriter import Rewriter
    from fragtrack.reference.track import Tracker
    from fragtrack.track_config import TrackConfig

    Config = TypeVar("Config", ReassemblyConfig, TrackConfig)

PURE = "FRAGTRACK_PURE"
"""Environment variable: ``1`` chooses the reference."""


class Backend(NamedTuple):
    """The classes of a backend, and its name: ``native`` or ``reference``.

    They are typed as those of the reference: it says what the methods of both do.
    """

    name: str
    reassembler: type[Reassembler]
    rewriter: type[Rewriter]

    @property
    def tracker(self) -> type[Tracker]:
        """The class that takes packets and gives verdicts."""
        return cast("type[Tracker]", _home(self.name).Tracker)

    @property
    def follower(self) -> type[Follower]:
        """The class that takes captures and gives connections."""
        return cast("type[Follower]", _home(self.name).Follower)


_loaded: list[Backend] = []


def load(tell: Callable[[str], object] | None = None) -> Backend:
    """Import the backend, once.

    Parameters
    ----------
    tell
        Called with one line if the native module is missing; without it that is a `RuntimeWarning`.
    """
    if not _loaded:
        _loaded.append(_choose(tell))
    return _loaded[0]


def backend_name() -> str:
    """Tell which backend is in use: ``native`` or ``reference``."""
    return load().name


def new_rewriter(
    config: ReassemblyConfig,
    *,
    output: Format | None,
    keep_incomplete: bool = True,
    rows: bool = False,
    payloads: bool = False,
) -> Rewriter:
    """Make a rewriter of the backend.

    Parameters
    ----------
    config
        How to put together.
    output
        ``pcap``, ``pcapng``, or None to write nothing.
    keep_incomplete
        Whether fragments that belong to no complete datagram are written.
    rows
        Whether datagrams are recorded for `take_rows`.
    payloads
        Whether these rows hold their bytes.
    """
    return load().rewriter(
        keyed(config),
        output=output,
        keep_incomplete=keep_incomplete,
        rows=rows,
        payloads=payloads,
    )


def new_reassembler(config: ReassemblyConfig) -> Reassembler:
    """Make a reassembler of the backend."""
    return load().reassembler(keyed(config))


def new_tracker(
    config: TrackConfig, *, limits: str = "capture", events: bool = True, ended: bool = True
) -> Tracker:
    """Make a tracker of the backend.

    Parameters
    ----------
    config
        How to follow connections.
    limits
        Those of the reassembly in front of it, as in `fragtrack.ReassemblyConfig`.
    events, ended
        Whether they are kept for ``take_events`` and ``take_ended``.
    """
    return load().tracker(keyed(config), _in_front(limits), events=events, ended=ended)


def new_follower(
    config: TrackConfig,
    *,
    limits: str = "capture",
    verdicts: bool = False,
    events: bool = False,
    zeek: bool = False,
) -> Follower:
    """Make a follower of the backend.

    Parameters
    ----------
    config, limits
        As for `new_tracker`.
    verdicts, events, zeek
        What is recorded for ``take_verdicts``, ``take_events`` and ``take_zeek``.
    """
    more: dict[str, Any] = {"zeek": True} if zeek else {}
    return load().follower(
        keyed(config), _in_front(limits), verdicts=verdicts, events=events, **more
    )


def _in_front(limits: str) -> ReassemblyConfig:
    """Give the settings of the reassembly that precedes tracking."""
    return keyed(ReassemblyConfig(path="netfilter", limits=limits))


def keyed(config: Config) -> Config:
    """Fill in a random hash key where none is set: nobody may choose packets that collide."""
    if config.hash_key is not None:
        return config
    from dataclasses import replace

    return replace(config, hash_key=int.from_bytes(os.urandom(16)))


def _choose(tell: Callable[[str], object] | None) -> Backend:
    if os.environ.get(PURE) != "1":
        try:
            from fragtrack import _core
        except ImportError as error:
            line = f"no native module ({error}); the reference does the same, slower"
            if tell is None:
                warnings.warn(line, RuntimeWarning, stacklevel=4)
            else:
                tell(line)
        else:
            reassembler = cast("type[Reassembler]", _core.Reassembler)
            rewriter = cast("type[Rewriter]", _core.Rewriter)
            return Backend("native", reassembler, rewriter)
    from fragtrack import reference

    return Backend("reference", reference.Reassembler, reference.Rewriter)


def _home(name: str) -> Any:  # noqa: ANN401  two modules that look alike
    """Give the module with the classes of a backend."""
    if name == "native":
        from fragtrack import _core

        return _core
    from fragtrack import reference

    return reference
