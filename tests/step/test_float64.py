"""A network in float64 trains in float64: only half precision is widened to float32."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model
from tests.backends import ON_TENSORFLOW, quick_every

# JAX has float64 in a mode of its own, which is one of the process.
pytestmark = pytest.mark.skipif(not ON_TENSORFLOW, reason="without its 64-bit mode JAX has no float64")


@pytest.fixture(autouse=True)
def floatx() -> Any:
    """Make float64 Keras's default for a test."""
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx(before)


def network() -> keras.Model:
    keras.utils.set_random_seed(0)
    return keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(8, "tanh", kernel_regularizer="l2"), keras.layers.Dense(3)
    ])


@quick_every(4)
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_its_weights_are_those_of_fit_in_float64(sink: bool, scaled: bool) -> None:
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((12, 4)), draw.integers(0, 3, 12)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    theirs, ours = network(), network()
    theirs.compile(keras.optimizers.SGD(0.1), loss)
    theirs.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    manager = DynamicLossScaleManager(64, 2, 2) if scaled else None
    model = Model(ours, loss, keras.optimizers.SGD(0.1), amp_level="O0", loss_scale_manager=manager)
    model.train(2, [(x[at : at + 4], y[at : at + 4]) for at in (0, 4, 8)], dataset_sink_mode=sink, verbose=0)
    for one, other in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
    assert model.predict(x[:2]).dtype == "float64"
