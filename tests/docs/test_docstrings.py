"""Run the examples in the docstrings of the package."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import fragtrack


def modules() -> list[str]:
    found = pkgutil.walk_packages(fragtrack.__path__, prefix="fragtrack.")
    return ["fragtrack", *(module.name for module in found if not module.name.endswith("__main__"))]


@pytest.mark.parametrize("name", modules())
def test_examples_of(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module)
    assert failed == 0
