"""Random small networks compute and learn what they do under MindSpore: outputs, losses, gradients, five steps."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import nn
from tests.conformance import random_networks

_DATA = np.load(pathlib.Path(__file__).parents[1] / "data" / "random_networks_reference.npz")
_PARTS = np.split(_DATA["values"], _DATA["starts"][1:-1])
KNOWN = dict(zip(map(str, _DATA["names"]), _PARTS, strict=True))
NUMBERS = sorted({int(name.partition("/")[0]) for name in KNOWN})
# Nearly all agree within the first; RMSProp's quotients, and sums that cancel, multiply rounding.
RELATIVE, FARTHEST = 1e-5, 2e-4


def distance(number: int) -> float:
    """Return how far a network is from what is known, relative to the sizes of its arrays."""
    found, farthest = random_networks.run(number, ms, nn), 0.0
    for what, values in found.items():
        known = KNOWN[f"{number}/{what}"].reshape(values.shape)
        by_array = what in ("gradients", "weights")
        size, apart = (np.abs(one).max(axis=-1 if by_array else None) for one in (known, values - known))
        # A gradient that is nothing but rounding is measured by the largest of the network's.
        least = 1e-2 * np.abs(known).max() if what == "gradients" else 1e-6
        farthest = max(farthest, float(np.max(apart / np.maximum(size, least))))
    return farthest


def check(numbers: list[int]) -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    distances = {number: distance(number) for number in numbers}
    assert {number: far for number, far in distances.items() if not far <= FARTHEST} == {}
    assert sum(far <= RELATIVE for far in distances.values()) >= 0.85 * len(numbers), distances


def test_there_are_enough_of_them() -> None:
    assert len(NUMBERS) >= random_networks.COUNT


def test_a_network_learns_what_it_does_under_mindspore() -> None:
    check(NUMBERS[:1])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_networks_learn_what_they_do_under_mindspore(part: int) -> None:
    check(NUMBERS[part::10])
