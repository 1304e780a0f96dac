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
# Gradients of 12 of them are up to 6e-5 apart: MindSpore's tanh and its like are 1e-6 from the exact values, and sums
# of gradients through a normalization cancel. All else agrees within the first.
RELATIVE, OF_GRADIENTS = 1e-5, 1e-4


def distances(number: int) -> dict[str, float]:
    """Return how far a network is from what is known, relative to the sizes of its arrays."""
    apart = {}
    for what, values in random_networks.run(number, ms, nn).items():
        expected = KNOWN[f"{number}/{what}"].reshape(values.shape)
        by_array = what in ("gradients", "weights")
        size, error = (np.abs(item).max(axis=-1 if by_array else None) for item in (expected, values - expected))
        # A gradient that is nothing but rounding is measured by the largest of the network's.
        least = 1e-2 * np.abs(expected).max() if what == "gradients" else 1e-6
        apart[what] = float(np.max(error / np.maximum(size, least)))
    return apart


def check(numbers: list[int]) -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    for number in numbers:
        for what, apart in distances(number).items():
            assert apart <= (OF_GRADIENTS if what == "gradients" else RELATIVE), (number, what)


def test_there_are_enough_of_them() -> None:
    assert len(NUMBERS) >= random_networks.COUNT


def test_a_network_learns_what_it_does_under_mindspore() -> None:
    check(NUMBERS[:1])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_networks_learn_what_they_do_under_mindspore(part: int) -> None:
    check(NUMBERS[part::10])
