"""Networks of the families that public projects have learn what they do under MindSpore, import swapped."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import DynamicLossScaleManager, Model, nn
from tests.conformance import cell_zoo

KNOWN = np.load(pathlib.Path(__file__).parents[1] / "data" / "cell_zoo_reference.npz")


@pytest.mark.slow
@pytest.mark.parametrize("name", cell_zoo.ZOO)
def test_a_network_learns_what_it_does_under_mindspore(name: str) -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    result = cell_zoo.trained(name)
    assert result.pop("names").tolist() == str(KNOWN[f"{name}/names"]).split("\n")
    for what, values in result.items():
        expected = KNOWN[f"{name}/{what}"]
        by_array = what in ("gradients", "weights")
        size, error = (np.abs(item).max(axis=-1 if by_array else None) for item in (expected, values - expected))
        # A gradient that is nothing but rounding, as before a normalization, is measured by the network's largest.
        least = 1e-2 * np.abs(expected).max() if what == "gradients" else 1e-6
        assert np.max(error / np.maximum(size, least)) <= (1e-4 if what == "gradients" else 1e-5), what


@pytest.mark.slow
@pytest.mark.parametrize("name", cell_zoo.ZOO)
def test_a_network_trains_in_float16_to_about_the_same_losses(name: str) -> None:
    network, batch = cell_zoo.made(name), cell_zoo.batch()
    model = Model(
        network, nn.CrossEntropyLoss(label_smoothing=0.1),
        nn.Momentum(network.trainable_params(), 0.05, 0.9, weight_decay=1e-3), amp_level="O2",
        loss_scale_manager=DynamicLossScaleManager(2**10),
    )
    history = model.train(1, [batch] * cell_zoo.STEPS, dataset_sink_mode=False, verbose=0).history
    assert history["skipped_steps"] == [0]
    np.testing.assert_allclose(history["loss"], KNOWN[f"{name}/losses"].mean(), rtol=0.02)
