"""Keras optimizers under loss scaling: clipping, averages, decay, accumulation, schedules, with planted overflows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, backend, nn
from tests.backends import on_jax_only_some, quick_every
from tests.train.planted import Trace

optimizers = keras.optimizers
_draw = np.random.default_rng(0)
GOOD = [(_draw.standard_normal((4, 3)).astype(np.float32), _draw.standard_normal((4, 1)).astype(np.float32))] * 2
GOOD += [(2 * x, y) for x, y in GOOD]
BAD = (GOOD[0][0] * np.float32(2e37), GOOD[0][1])  # the loss is finite and a gradient is not
PLANTED = [BAD, GOOD[0], GOOD[1], BAD, BAD, GOOD[2], BAD, GOOD[3]]

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd-clipnorm-momentum": lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True, clipnorm=0.1),
    "nadam": lambda: optimizers.Nadam(0.1),
    "adam-global-clipnorm-schedule": lambda: optimizers.Adam(
        optimizers.schedules.CosineDecay(0.1, 6, warmup_target=0.2, warmup_steps=2), global_clipnorm=0.1
    ),
    "adamw-clipvalue-ema": lambda: optimizers.AdamW(
        0.1, weight_decay=0.1, clipvalue=0.05, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3
    ),
    "adam-accumulating-ema": lambda: optimizers.Adam(
        optimizers.schedules.ExponentialDecay(0.1, 2, 0.5), gradient_accumulation_steps=2, clipnorm=0.1, use_ema=True
    ),
    "rmsprop-decay": lambda: optimizers.RMSprop(0.01, momentum=0.5, centered=True, weight_decay=0.01),
    "lion-accumulating": lambda: optimizers.Lion(0.01, gradient_accumulation_steps=3, global_clipnorm=0.01),
}


def network() -> Any:
    keras.utils.set_random_seed(2)
    dense = keras.layers.Dense
    return keras.Sequential([keras.Input((3,)), dense(4), keras.layers.BatchNormalization(), dense(1)])


def end(model: Model) -> list[bytes]:
    """Return every variable that a step could write."""
    step = model.train_network
    return [backend.to_numpy(v).tobytes() for v in (*step.network.get_parameters(), *step.driver.state_variables())]


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_run_with_skipped_steps_is_the_run_without_those_batches_bit_for_bit(name: str) -> None:
    ends, sink = [], name.startswith("ad")
    for batches in (GOOD, PLANTED):
        manager = DynamicLossScaleManager(2**16, 2, 3)  # powers of two: another scale, the same bits
        model = Model(network(), nn.MSELoss(), OPTIMIZERS[name](), loss_scale_manager=manager)
        history = model.train(2, batches, dataset_sink_mode=sink, verbose=0)
        ends.append((end(model), history["loss"], int(model.train_network.driver.iterations)))
    assert history["skipped_steps"] == [4, 4]
    assert ends[0] == ends[1]
    assert ends[0][2] == 8 // (OPTIMIZERS[name]().gradient_accumulation_steps or 1)


@quick_every(6)
@pytest.mark.parametrize("name", on_jax_only_some(list(OPTIMIZERS)[:5], [0, 1, 3]))
def test_a_power_of_two_as_loss_scale_changes_no_bit(name: str) -> None:
    """Clipping, decay and averages see gradients that are unscaled; a compiler may round another program otherwise."""
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    ends = []
    for manager in (None, FixedLossScaleManager(2.0**10)):
        model = Model(network(), nn.MSELoss(), OPTIMIZERS[name](), loss_scale_manager=manager)
        ends.append((model.train(1, GOOD, verbose=0)["loss"], end(model)))
    assert ends[0] == ends[1]


@pytest.mark.slow
def test_a_half_accumulated_gradient_survives_a_skipped_step() -> None:
    seen: list[list[bytes]] = []

    class Watch(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            seen.append(end(model))

    trace = Trace()
    optimizer = OPTIMIZERS["adam-accumulating-ema"]()
    model = Model(network(), nn.MSELoss(), optimizer, loss_scale_manager=DynamicLossScaleManager(2**10))
    model.train(1, [GOOD[0], BAD, BAD, GOOD[1]], callbacks=[Watch(), trace], verbose=0)
    assert trace.overflows == [False, True, True, False]
    assert seen[0] == seen[1] == seen[2] != seen[3]


def one_weight() -> Any:
    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    return keras.Sequential([keras.Input((1,)), dense])


ONE = [(np.ones((1, 1), np.float32), np.full((1, 1), 2.0, np.float32))]  # gradient -4 at weight 0


@pytest.mark.slow
def test_a_loss_scale_factor_is_adopted_once_and_clipping_sees_the_unscaled_gradient() -> None:
    net = one_weight()
    history = Model(net, "mse", optimizers.SGD(0.5, loss_scale_factor=1024.0, clipvalue=3.0)).train(1, ONE, verbose=0)
    assert history["loss"] == [4.0]
    assert net.get_weights()[0].item() == 1.5
    theirs = one_weight()
    theirs.compile(optimizers.SGD(0.5, loss_scale_factor=1024.0, clipvalue=3.0), "mse")
    theirs.fit(*ONE[0], verbose=0)
    assert theirs.get_weights()[0].item() == 1.5


def test_a_loss_scale_factor_that_is_the_managers_own_is_used_once() -> None:
    net = one_weight()
    manager = FixedLossScaleManager(64.0, drop_overflow_update=False)
    Model(net, "mse", optimizers.SGD(0.5, loss_scale_factor=64.0), loss_scale_manager=manager).train(1, ONE, verbose=0)
    assert net.get_weights()[0].item() == 2.0


@pytest.mark.parametrize(
    ("manager", "message"),
    [
        (DynamicLossScaleManager(64), "would divide twice. Write SGD.*loss_scale_factor=1"),
        (FixedLossScaleManager(64.0), "would divide twice"),
        (FixedLossScaleManager(64.0, drop_overflow_update=False), "must be the manager's 64; got 8"),
    ],
    ids=["dynamic", "fixed", "kept"],
)
def test_a_loss_scale_factor_beside_another_scale_is_refused(manager: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Model(one_weight(), "mse", optimizers.SGD(0.5, loss_scale_factor=8.0), loss_scale_manager=manager)


def test_a_train_cell_with_loss_scale_refuses_an_optimizer_that_scales_too() -> None:
    with_loss = nn.WithLossCell(one_weight(), "mse")
    optimizer = optimizers.SGD(0.5, loss_scale_factor=8.0)
    with pytest.raises(ValueError, match="the loss must be scaled once, by scale_sense; got 'loss_scale_factor=8"):
        nn.TrainOneStepWithLossScaleCell(with_loss, optimizer, mixtrain.Tensor(4.0))


@pytest.mark.slow
def test_a_loss_scale_optimizer_is_taken_over_with_its_scale_and_its_window() -> None:
    rows, label = np.ones((4, 1), np.float32), np.ones((4, 1), np.float32)
    batches = [(rows, label)] * 2 + [(rows * np.inf, label)] + [(rows, label)] * 2
    ours, theirs = one_weight(), one_weight()
    theirs.set_weights(ours.get_weights())
    given: Any = optimizers.SGD(0.125)
    model = Model(ours, "mse", optimizers.LossScaleOptimizer(given, initial_scale=64.0, dynamic_growth_steps=2))
    assert model.optimizer is given
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch 1, 1 of 5 steps were skipped")
        history = model.train(1, batches, verbose=0)
    peer = optimizers.LossScaleOptimizer(optimizers.SGD(0.125), initial_scale=64.0, dynamic_growth_steps=2)
    theirs.compile(peer, "mse", auto_scale_loss=False)
    for batch in batches:
        theirs.train_on_batch(*batch)
    np.testing.assert_array_equal(ours.get_weights()[0], theirs.get_weights()[0])
    assert model.loss_scale_manager.get_loss_scale() == float(peer.dynamic_scale) == 128.0
    assert history["skipped_steps"] == [1]


@pytest.mark.parametrize("manager", [None, FixedLossScaleManager(64.0)])
def test_a_loss_scale_optimizer_is_refused_in_one_sentence(manager: Any) -> None:
    inner: Any = optimizers.Adam(0.1)
    for given in (inner, optimizers.Adam(0.1, loss_scale_factor=8.0)):
        with pytest.raises(ValueError, match=r"mixtrain scales the loss itself.*Write optimizer=keras.optimizers.Adam"):
            Model(one_weight(), "mse", optimizers.LossScaleOptimizer(given), loss_scale_manager=manager)


class Centralized(optimizers.SGD):
    """Subtracts the mean of each gradient in `apply_gradients`, which Keras's `fit` calls on TensorFlow."""

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        return super().apply_gradients([(gradient - keras.ops.mean(gradient), v) for gradient, v in grads_and_vars])


class CentralizedInApply(optimizers.SGD):
    """The same in `apply`, which Keras's `fit` calls on both backends."""

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        super().apply([gradient - keras.ops.mean(gradient) for gradient in grads], trainable_variables)


class CentralizedKernels(optimizers.RMSprop):
    """Subtracts the means of the gradients of kernels alone, which TensorFlow reduces with those of biases."""

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        return super().apply_gradients(
            [(g - keras.ops.mean(g, 0, keepdims=True) if len(g.shape) > 1 else g, v) for g, v in grads_and_vars]
        )


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_an_optimizer_that_changes_some_of_the_gradients_trains(level: Any) -> None:
    def network() -> keras.Model:
        keras.utils.set_random_seed(0)
        return keras.Sequential([keras.Input((4,)), keras.layers.Dense(6, "relu"), keras.layers.Dense(1)])

    x = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    y, fit = x.sum(1, keepdims=True), {"batch_size": 4, "epochs": 2, "shuffle": False, "verbose": 0}
    ours, at_o0 = network(), network()
    history = Model(ours, "mse", CentralizedKernels(0.01), amp_level=level).fit(x, y, **fit).history
    if keras.backend.backend() == "tensorflow":  # On JAX Keras's `fit` does not call `apply_gradients`.
        at_o0.compile(CentralizedKernels(0.01), "mse")
        expected = at_o0.fit(x, y, **fit).history["loss"]
    else:
        expected = Model(at_o0, "mse", CentralizedKernels(0.01)).fit(x, y, **fit).history["loss"]
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-5 if level == "O0" else 2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("kind", [Centralized, CentralizedInApply])
def test_an_optimizer_that_changes_gradients_on_their_way_in_is_obeyed(kind: Any, level: Any) -> None:
    expected = network()
    expected.compile(CentralizedInApply(0.1, momentum=0.9), "mse")
    columns = [np.concatenate(column) for column in zip(*GOOD, strict=True)]
    fit = {"batch_size": 4, "shuffle": False, "verbose": 0}
    expected.fit(*columns, **fit)
    ours, prepared = network(), network()
    Model(ours, "mse", kind(0.1, momentum=0.9), amp_level=level, cast_model_type="bfloat16").train(1, GOOD, verbose=0)
    optimizer = mixtrain.keras.prepare(prepared, kind(0.1, momentum=0.9), amp_level=level, cast_model_type="bfloat16")
    prepared.compile(optimizer, "mse")
    prepared.fit(*columns, **fit)
    tolerance = {"O0": 1e-6, "O2": 0.02}[level]
    for weights in (ours.get_weights(), prepared.get_weights()):
        for weight, same in zip(weights, expected.get_weights(), strict=True):
            np.testing.assert_allclose(weight, same, atol=tolerance)
