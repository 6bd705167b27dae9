"""Both backends by name, so that one test can ask either; skips where the native one is missing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

BACKENDS = ("reference", "native")

HOMES = {
    "Follower": "fragtrack.reference.follower",
    "Rewriter": "fragtrack.reference.rewriter",
    "Reassembler": "fragtrack.reference.reassembler",
    "Tracker": "fragtrack.reference.track",
}


def _module(backend: str, name: str) -> ModuleType:
    if backend == "reference":
        return importlib.import_module(HOMES[name])
    try:
        native = importlib.import_module("fragtrack._core")
    except ImportError:
        pytest.skip("fragtrack._core is not built")
    if not hasattr(native, name):
        pytest.skip(f"fragtrack._core has no {name}")
    return native


def rewriter_class(backend: str) -> Callable[..., Any]:
    """Give the Rewriter of a backend, or skip the test."""
    found: Callable[..., Any] = _module(backend, "Rewriter").Rewriter
    return found


def reassembler_class(backend: str) -> Callable[..., Any]:
    """Give the Reassembler of a backend, or skip the test."""
    found: Callable[..., Any] = _module(backend, "Reassembler").Reassembler
    return found


def tracker_class(backend: str) -> Callable[..., Any]:
    """Give the Tracker of a backend, or skip the test."""
    found: Callable[..., Any] = _module(backend, "Tracker").Tracker
    return found


def follower_class(backend: str) -> Callable[..., Any]:
    """Give the Follower of a backend, or skip the test."""
    found: Callable[..., Any] = _module(backend, "Follower").Follower
    return found
