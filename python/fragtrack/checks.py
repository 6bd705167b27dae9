"""What a setting may be: each check names the setting, the value, and what it must be."""

from __future__ import annotations

import math

from fragtrack.errors import ConfigError

__all__ = ["check_number", "check_one_of", "check_seconds", "check_threads"]


def check_one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Raise `ConfigError` if `value` is not one of `allowed`."""
    if value not in allowed:
        raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")


def check_number(name: str, value: object, lowest: int, highest: int) -> None:
    """Raise `ConfigError` if `value` is not a whole number from `lowest` to `highest`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{name} is {value!r}; it must be a whole number")
    if not lowest <= value <= highest:
        raise ConfigError(f"{name} is {value!r}; it must be from {lowest} to {highest}")


def check_seconds(name: str, value: object, longest: int) -> None:
    """Raise `ConfigError` if `value` is not a number of seconds above 0, `longest` at most."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{name} is {value!r}; it must be a number of seconds")
    if not math.isfinite(value) or not 0 < value <= longest:
        raise ConfigError(f"{name} is {value!r}; it must be above 0 and at most {longest} seconds")


def check_threads(threads: object) -> None:
    """Raise `ConfigError` if there cannot be so many threads."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ConfigError(f"threads={threads!r}: it must be a whole number, at least 1")
