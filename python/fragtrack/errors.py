"""Everything fragtrack raises on purpose, as one tree.

::

    Exception
    └── FragtrackError              catch this one to catch them all
        ├── ConfigError             a setting that cannot work (also a ValueError)
        ├── CaptureError            an input that is no capture, or breaks off
        └── OutputError             an output that cannot be written (also an OSError)

Bad packets never raise: what is wrong with a packet is data, a
:class:`fragtrack.events.Reason`, and is counted.
"""

from __future__ import annotations


class FragtrackError(Exception):
    """The root of every exception of this package."""


class ConfigError(FragtrackError, ValueError):
    """A setting that cannot work; the message names the setting and its value."""


class CaptureError(FragtrackError):
    """An input that is not a capture, or that breaks off.

    Parameters
    ----------
    file : str
        Name of the input, as the user gave it.
    offset : int
        Where the input broke, in bytes from its start (after decompression).
    why : str
        What is wrong there, in one clause.
    """

    def __init__(self, file: str, offset: int, why: str) -> None:
        super().__init__(file, offset, why)
        self.file = file
        self.offset = offset
        self.why = why

    def __str__(self) -> str:
        """Return the one line a user reads."""
        return f"{self.file}: offset {self.offset}: {self.why}"


class OutputError(FragtrackError, OSError):
    """An output that cannot be written, or cannot hold what it should hold.

    Parameters
    ----------
    message : str
        One clear line: the output and what is wrong with it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        """Return the one line a user reads."""
        return self.message
