"""A model with a `train_step` of its own trains in Keras's `fit` with a prepared optimizer."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager
from mixtrain.keras import prepare
from tests.backends import ON_TENSORFLOW

layers, ops = keras.layers, keras.ops
X = np.random.default_rng(0).uniform(size=(32, 8)).astype(np.float32)
# The third batch of eight rows overflows in float16.
BAD = np.insert(X, [16] * 8, 1e30, axis=0)


def _error(result: Any, data: Any) -> Any:
    return ops.mean(ops.square(ops.cast(result, "float32") - ops.cast(data, "float32")))


def _perceptron(inputs: int, outputs: int, name: str) -> keras.Model:
    return keras.Sequential([keras.Input((inputs,)), layers.Dense(6, "relu"), layers.Dense(outputs)], name=name)


class Autoencoder(keras.Model):
    """Two networks and a train step, without `build`, as generative models are written."""

    def __init__(self, *, scales: bool = True) -> None:
        super().__init__()
        self.encoder = _perceptron(8, 2, "encoder")
        self.decoder = _perceptron(2, 8, "decoder")
        self.scales = scales

    def call(self, x: Any, training: bool = False) -> Any:
        return self.decoder(self.encoder(x))

    def scaled(self, loss: Any) -> Any:
        return self.optimizer.scale_loss(loss) if self.scales else loss


class OnTensorFlow(Autoencoder):
    """Its step with a gradient tape."""

    def train_step(self, data: Any) -> dict[str, Any]:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = _error(self.decoder(self.encoder(data)), data)
            scaled = self.scaled(loss)
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
        return {"loss": loss}


class OnJax(Autoencoder):
    """Its step as a function of the state."""

    def train_step(self, state: Any, data: Any) -> Any:
        import jax

        weights, others, slots, metrics = state

        def compute(weights: Any) -> Any:
            outputs, after = self.stateless_call(weights, others, data, training=True)
            loss = _error(outputs, data)
            with keras.StatelessScope(state_mapping=list(zip(self.optimizer.variables, slots, strict=True))):
                return self.scaled(loss), (loss, after)

        (_, (loss, after)), gradients = jax.value_and_grad(compute, has_aux=True)(weights)
        weights, slots = self.optimizer.stateless_apply(slots, gradients, weights)
        return {"loss": loss}, (weights, after, slots, metrics)


def model(**options: Any) -> Autoencoder:
    keras.utils.set_random_seed(0)
    return OnTensorFlow(**options) if ON_TENSORFLOW else OnJax(**options)


def fit(network: Autoencoder, optimizer: Any, x: Any = X) -> list[float]:
    network.compile(optimizer)
    history = network.fit(x, epochs=2, batch_size=8, shuffle=False, verbose=0).history
    return history["loss"]  # type: ignore[no-any-return]


def adam() -> Any:
    return keras.optimizers.Adam(0.01)


@pytest.mark.slow
def test_a_model_that_only_contains_built_layers_trains_as_in_keras_at_o0_and_nearly_so_in_half() -> None:
    expected = fit(model(), adam())
    same, half = model(), model()
    assert fit(same, prepare(same, adam())) == expected
    optimizer = prepare(half, adam(), "O2")
    np.testing.assert_allclose(fit(half, optimizer), expected, rtol=1e-3)
    assert optimizer.plan.row("encoder").compute_dtype.name == "float16" and optimizer.skipped_steps == 0


@pytest.mark.slow
def test_a_step_that_overflows_changes_nothing() -> None:
    bad, good = model(), model()
    first, second = (
        prepare(network, adam(), "O2", loss_scale_manager=DynamicLossScaleManager(1024, 2, 1000))
        for network in (bad, good)
    )
    fit(bad, first, BAD)
    fit(good, second)
    assert (first.skipped_steps, second.skipped_steps) == (2, 0)
    assert first.loss_scale_manager.get_loss_scale() == 256  # type: ignore[union-attr]
    for ours, theirs in zip(bad.get_weights(), good.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_step_that_does_not_scale_its_loss_is_an_error_if_a_manager_is_passed_and_none_without_a_scale() -> None:
    forgetful = model(scales=False)
    with pytest.raises(RuntimeError, match=r"Write gradient\(self\.optimizer\.scale_loss\(loss\), \.\.\.\)"):
        fit(forgetful, prepare(forgetful, adam(), "O2", loss_scale_manager=DynamicLossScaleManager()))
    unscaled = model(scales=False)
    optimizer = prepare(unscaled, adam(), "O2", cast_model_type="bfloat16")
    assert optimizer.loss_scale_manager is None and np.isfinite(fit(unscaled, optimizer)).all()


@pytest.mark.slow
def test_a_step_that_does_not_scale_its_loss_is_warned_of_at_a_level_that_scales_and_trains_without() -> None:
    scaled, unscaled = model(), model(scales=False)
    expected = fit(scaled, prepare(scaled, adam(), "O2"))
    with pytest.warns(UserWarning, match="must scale the loss; got gradients"):
        np.testing.assert_allclose(fit(unscaled, prepare(unscaled, adam(), "O2")), expected, rtol=1e-3)


def test_an_optimizer_that_is_made_in_the_first_step_keeps_its_slots_between_steps() -> None:
    """Nothing else creates variables in the step, as where metrics exist already."""
    skipping, plain = model(), model()
    skipping.compile(prepare(skipping, adam(), "O2"))
    plain.compile(prepare(plain, adam(), "O2", loss_scale_manager=None))
    for network in (skipping, plain):
        for batch in np.split(X, 4):
            network.fit(batch, batch_size=8, verbose=0)
    for one, other in zip(skipping.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
