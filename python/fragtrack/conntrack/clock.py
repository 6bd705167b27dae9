"""Dates as the C library writes them, in English whatever the locale, read as UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

SECOND: Final = 1_000_000_000
LATEST: Final = 253_402_300_799
"""The last second of the year 9999: no later one is read or written."""

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
_DATE: Final = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ 0-9][0-9]) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})"
)


def date(time: int) -> str:
    """Write a time (ns since 1970) as ``ctime`` does.

    Examples
    --------
    >>> date(1796093215_853442556)
    'Tue Dec  1 02:46:55 2026'
    """
    t = datetime.fromtimestamp(min(time // SECOND, LATEST), UTC)
    day, month = _DAYS[t.weekday()], _MONTHS[t.month - 1]
    return f"{day} {month} {t.day:2} {t.hour:02}:{t.minute:02}:{t.second:02} {t.year:04}"


def undate(text: str) -> int | None:
    """Read such a date, to ns since 1970; None if it is none, or before that.

    Examples
    --------
    >>> undate("Tue Dec  1 02:46:55 2026")
    1796093215000000000
    """
    match = _DATE.fullmatch(text)
    if match is None or match[1] not in _MONTHS:
        return None
    day, hour, minute, second, year = (int(match[n]) for n in (2, 3, 4, 5, 6))
    return moment((year, _MONTHS.index(match[1]) + 1, day), (hour, minute, second))


def moment(day: tuple[int, int, int], clock: tuple[int, int, int]) -> int | None:
    """Tell ns since 1970 of year, month, day and hour, minute, second.

    None if there is no such date, or it is before that.
    """
    try:
        t = datetime(*day, *clock, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    seconds = int(t.timestamp())
    return seconds * SECOND if seconds >= 0 else None


def when(time: int) -> tuple[tuple[str, int | str], ...]:
    """Take a time apart as XML does. Sunday is day 1 of the week; only two parts are padded."""
    t = datetime.fromtimestamp(min(time // SECOND, LATEST), UTC)
    return (
        ("hour", t.hour),
        ("min", f"{t.minute:02}"),
        ("sec", f"{t.second:02}"),
        ("wday", t.isoweekday() % 7 + 1),
        ("day", t.day),
        ("month", t.month),
        ("year", t.year),
    )
