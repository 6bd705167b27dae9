"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends import BACKENDS

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """Name a backend; `tests.backends` gives its classes, or skips."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def shared() -> Path:
    """Give the folder of recorded vectors and captures beside a development checkout."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared: the recorded vectors and captures are not part of the sources")
    return SHARED
