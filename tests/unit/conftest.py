"""Fixtures of the tests of single parts."""

from __future__ import annotations

import pytest

from tests.rewriting import Run


@pytest.fixture
def run(backend: str) -> Run:
    """Run the rewriter of a backend."""
    return Run(backend)
