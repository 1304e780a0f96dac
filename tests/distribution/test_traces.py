"""Over many steps, n devices have the losses and weights of one, and the same skips and scales."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager
from tests import devices
from tests.backends import quick_every
from tests.distribution.networks import Run, batches, cnn, farthest, images, train

COUNTS = [count for count in (1, 2, 4, 8) if count <= devices.COUNT]


@functools.cache
def one_device(sink: bool) -> Run:
    return train(None, batches(*[8] * 50), sink=sink, metrics={"accuracy"})


@quick_every(2 * len(COUNTS), 3)  # Two devices, in sink feed.
@pytest.mark.parametrize(("count", "sink"), [(count, sink) for count in COUNTS for sink in (False, True)])
def test_fifty_steps_of_adam_have_the_numbers_of_one_device(count: int, sink: bool) -> None:
    several = train(count, batches(*[8] * 50), sink=sink, metrics={"accuracy"})
    assert farthest(several, one_device(sink)) < (1e-5 if count > 1 else 1e-30)
    assert several.history["accuracy"] == one_device(sink).history["accuracy"]


@functools.cache
def one_device_of_images() -> Run:
    return train(None, images(*[8] * 50), network=cnn)


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_fifty_steps_of_convolutions_have_the_losses_of_one_device(count: int) -> None:
    several = train(count, images(*[8] * 50), network=cnn)
    losses = several.records.column("loss")
    assert len(losses) == 50
    assert np.abs(losses - one_device_of_images().records.column("loss")).max() < 1e-5


@functools.cache
def faulty(count: int | None) -> Run:
    """Train at O2 in float16 on batches of which some overflow, each in one row."""
    data = batches(*[8] * 20)
    for place, row in ((3, 1), (4, 6), (9, 7), (17, 0)):
        data[place][0][row, 2] = np.inf
    return train(count, data, amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2**10, 2, 4))


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_skips_and_scales_at_o2_are_those_of_one_device(count: int) -> None:
    assert np.flatnonzero(faulty(None).records.column("overflow")).tolist() == [3, 4, 9, 17]
    for name in ("overflow", "loss_scale"):
        assert np.array_equal(faulty(None).records.column(name), faulty(count).records.column(name))
