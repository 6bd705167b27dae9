"""`fair` reclaim: both backends evict the same, whatever the mix of light and heavy networks."""

from __future__ import annotations

import random

import pytest

from fragtrack.config import ReassemblyConfig
from fragtrack.testing import ipv4
from tests.backends import reassembler_class


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("networks", [1, 3, 8, 40, 3000])
def test_backends_evict_the_same(networks: int, seed: int) -> None:
    chance = random.Random(f"{networks} {seed}")
    config = ReassemblyConfig(memory=chance.choice([20_000, 60_000]), reclaim="fair")
    native, reference = reassembler_class("native")(config), reassembler_class("reference")(config)
    weights = [chance.random() ** 4 for _ in range(networks)]
    for number in range(1200):
        (network,) = chance.choices(range(networks), weights)
        packet = ipv4(
            bytes(8 * chance.randrange(1, 30)),
            src=f"10.{network >> 8}.{network & 255}.{chance.randrange(1, 250)}",
            id=chance.randrange(65536),
            mf=True,
        )
        ended = [
            [(gone.src, gone.id, gone.reason) for gone in backend.push(packet, number).given_up]
            for backend in (native, reference)
        ]
        assert ended[0] == ended[1]
    assert native.memory == reference.memory
    native.check()


def test_who_floods_from_one_network_pays_for_it() -> None:
    for backend in ("native", "reference"):
        reassembler = reassembler_class(backend)(ReassemblyConfig(memory=40_000, reclaim="fair"))
        honest = ipv4(bytes(64), src="192.0.2.1", id=7, mf=True)
        assert reassembler.push(honest, 0).kind == "held"
        lost = set()
        for number in range(1000):
            flood = ipv4(bytes(64), src=f"198.51.100.{number % 250}", id=number, mf=True)
            lost |= {gone.src for gone in reassembler.push(flood, number).given_up}
        assert lost
        assert "192.0.2.1" not in lost
