"""A train step that calls the models inside its model one by one, as generative models are written."""

from __future__ import annotations

import contextlib
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain.keras import prepare
from tests.backends import ON_TENSORFLOW

layers, ops = keras.layers, keras.ops
X = np.random.default_rng(0).uniform(size=(32, 8)).astype(np.float32)


class Sampling(layers.Layer):
    """Draws a code around its mean, by noise in the dtype of the mean or in Keras's default one."""

    def __init__(self, *, casts: bool) -> None:
        super().__init__(name="sampling")
        self.seed = keras.random.SeedGenerator(3)
        self.casts = casts

    def call(self, inputs: Any) -> Any:
        mean, log_variance = inputs
        noise = keras.random.normal(ops.shape(mean), seed=self.seed)
        return mean + ops.exp(0.5 * log_variance) * (ops.cast(noise, mean.dtype) if self.casts else noise)


def encoder(*, casts: bool) -> keras.Model:
    entry = keras.Input((8,))
    hidden = layers.Dense(16, "relu")(entry)
    mean, log_variance = layers.Dense(2)(hidden), layers.Dense(2)(hidden)
    return keras.Model(entry, [mean, log_variance, Sampling(casts=casts)([mean, log_variance])], name="encoder")


class Autoencoder(keras.Model):
    """A variational autoencoder, whose step adds the losses of two models."""

    def __init__(self, *, casts: bool = True) -> None:
        super().__init__()
        self.encoder = encoder(casts=casts)
        self.decoder = keras.Sequential(
            [keras.Input((2,)), layers.Dense(16, "relu"), layers.Dense(8, "sigmoid")], name="decoder"
        )
        self.critic = keras.Sequential([keras.Input((8,)), layers.Dense(1, "sigmoid", name="real")], name="critic")
        self.dtypes: list[str] = []

    def call(self, x: Any) -> Any:
        code = self.encoder(x)
        self.dtypes.append(keras.backend.standardize_dtype(code[0].dtype))
        return self.decoder(code[0])

    def terms(self, data: Any) -> tuple[Any, Any, Any]:
        mean, log_variance, code = self.encoder(data)
        result = self.decoder(code)
        error = ops.mean(ops.sum(ops.square(data - result), axis=1)) - ops.mean(self.critic(result))
        divergence = -0.5 * (1 + log_variance - ops.square(mean) - ops.exp(log_variance))
        divergence = ops.mean(ops.sum(divergence, axis=1))
        return error + divergence, error, divergence


def _logs(terms: Any) -> dict[str, Any]:
    return dict(zip(("loss", "error", "divergence"), terms, strict=True))


class OnTensorFlow(Autoencoder):
    def train_step(self, data: Any) -> dict[str, Any]:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            terms = self.terms(data)
            scaled = self.optimizer.scale_loss(terms[0])
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
        return _logs(terms)


class OnJax(Autoencoder):
    # Whether `scale_loss` is called in a scope of the optimizer's state, as few scripts do.
    in_scope = False

    def train_step(self, state: Any, data: Any) -> Any:
        import jax

        weights, others, slots, metrics = state

        def compute(weights: Any, others: Any) -> Any:
            variables = [*self.trainable_variables, *self.non_trainable_variables]
            with keras.StatelessScope(state_mapping=zip(variables, [*weights, *others], strict=True)) as scope:
                terms = self.terms(data)
            after = [scope.get_current_value(variable) for variable in self.non_trainable_variables]
            mapping = zip(self.optimizer.variables, slots, strict=True)
            with keras.StatelessScope(state_mapping=mapping) if self.in_scope else contextlib.nullcontext():
                return self.optimizer.scale_loss(terms[0]), (terms, after)

        (_, (terms, after)), gradients = jax.value_and_grad(compute, has_aux=True)(weights, others)
        weights, slots = self.optimizer.stateless_apply(slots, gradients, weights)
        return _logs(terms), (weights, after, slots, metrics)


def made(**options: Any) -> Any:
    keras.utils.set_random_seed(0)
    return OnTensorFlow(**options) if ON_TENSORFLOW else OnJax(**options)


def history(model: keras.Model, level: Any = None) -> Any:
    optimizer: Any = keras.optimizers.SGD(0.1)
    model.compile(optimizer if level is None else prepare(model, optimizer, level))
    return model.fit(X, epochs=2, batch_size=8, shuffle=False, verbose=0).history


def losses(model: Any) -> list[float]:
    y = X.mean(1, keepdims=True)  # Small enough that no step overflows.
    return model.fit(X, y, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]  # type: ignore


def assert_close(actual: Any, expected: Any, **tolerance: float) -> None:
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(actual[name], values, **tolerance, err_msg=name)


def test_the_outputs_of_models_that_a_step_calls_are_float32_and_those_inside_the_network_half() -> None:
    model = made()
    optimizer: Any = prepare(model, "adam", "O2")
    outputs = [*model.encoder(X), model.decoder(X[:, :2])]
    assert {keras.backend.standardize_dtype(output.dtype) for output in outputs} == {"float32"}
    model(X)
    assert model.dtypes == ["float16"]
    # Both probabilities reach the step, although `call` returns those of the decoder alone.
    ends = {"decoder": model.decoder.layers[-1].name, "critic": "real"}
    assert {optimizer.plan.row(f"{name}/{end}").compute_dtype.name for name, end in ends.items()} == {"float32"}
    assert optimizer.plan.row("encoder").output_dtype.name == "float16"


@pytest.mark.slow
def test_a_step_that_adds_losses_of_two_models_trains_as_in_keras_at_o0_and_nearly_so_in_half() -> None:
    expected = history(made())
    assert_close(history(made(), "O0"), expected, rtol=1e-5)
    assert_close(history(made(), "O2"), expected, rtol=0.02, atol=0.002)


@pytest.mark.slow
@pytest.mark.skipif(ON_TENSORFLOW, reason="the scope of a state is JAX's")
def test_on_jax_the_loss_is_scaled_inside_and_outside_of_a_scope_of_the_optimizers_state() -> None:
    inside, outside = made(), made()
    inside.in_scope = True
    assert history(inside, "O2") == history(outside, "O2")


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX promotes half to the dtype of the noise")
def test_a_layer_that_needs_float32_is_named_with_its_rule_and_the_line_to_write() -> None:
    with pytest.raises(Exception, match=r"(?s)Sampling encoder/sampling computes in float16: O2.*mixtrain\.to_float\("):
        history(made(casts=False), "O2")


class Penalized(keras.Model):
    """A functional model with a loss of its own."""

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        return ops.mean(ops.square(y - y_pred)) + 0.1 * ops.mean(ops.abs(y_pred))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("prepared", [False, True])
def test_a_functional_model_that_computes_its_loss_trains_as_in_keras(prepared: bool, level: Any) -> None:
    def functional() -> keras.Model:
        keras.utils.set_random_seed(0)
        entry = keras.Input((8,))
        return Penalized(entry, layers.Dense(1)(layers.Dense(4, "relu")(entry)))

    theirs = functional()
    theirs.compile("sgd")
    expected, ours = losses(theirs), functional()
    if prepared:
        ours.compile(prepare(ours, "sgd", level))
    else:
        ours = mixtrain.Model(ours, None, keras.optimizers.SGD(), amp_level=level)
    np.testing.assert_allclose(losses(ours), expected, rtol=1e-5 if level == "O0" else 2e-3)
