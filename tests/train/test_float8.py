"""Keras's float8 layers under loss scaling: what their scales hold is a next value, not a gradient."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, backend, nn, ops
from mixtrain.amp import DynamicLossScaler, GradScaler, StaticLossScaler, all_finite
from mixtrain.boost import GradientAccumulation
from mixtrain.distribution import data_parallel
from tests.backends import ON_TENSORFLOW, quick_every
from tests.distribution.networks import values_of

SCALE = 1024.0


def float8_network(units: int = 16) -> keras.Model:
    """Return a network of two float8 layers; every call returns the same weights."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(units, "relu", name="d1"), keras.layers.Dense(1, name="d2")]
    network = keras.Sequential([keras.Input((16,)), *layers])
    for layer in layers:
        layer.quantize("float8")
    return network


def batches(*, planted: float | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return 8 batches of 16 rows; the fourth with a planted input."""
    draw = np.random.default_rng(0)
    x = draw.standard_normal((128, 16)).astype(np.float32)
    y = (x @ draw.standard_normal((16, 1)) * 0.3).astype(np.float32)
    if planted is not None:
        x[50, 2] = planted
    return [(x[start : start + 16], y[start : start + 16]) for start in range(0, 128, 16)]


def by_keras(
    optimizer: keras.optimizers.Optimizer, epochs: int = 2, *, growth: int | None = 5, **options: Any
) -> tuple[Any, list[np.ndarray]]:
    """Train by Keras's `fit` and `LossScaleOptimizer`; return the losses and what the variables hold.

    Magnitudes of gradients, in the histories, are those of the scaled loss.
    """
    network = float8_network()
    if growth is not None:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=SCALE, dynamic_growth_steps=growth)
    network.compile(optimizer, "mse")
    x, y = (np.concatenate(column) for column in zip(*batches(**options), strict=True))
    history = network.fit(x, y, batch_size=16, epochs=epochs, shuffle=False, verbose=0)
    return history.history["loss"], values_of(network)


def by_model(
    optimizer: Callable[[keras.Model], Any], epochs: int = 2, *, sink: bool = False, planted: float | None = None,
    manager: Any = None, **options: Any,
) -> tuple[Any, list[np.ndarray], Model]:
    """Train by `Model`; return the losses, what the variables hold, and the Model."""
    network = float8_network()
    manager = manager or DynamicLossScaleManager(SCALE, 2, 5)
    model = Model(
        network, keras.losses.MeanSquaredError(), optimizer(network), loss_scale_manager=manager, **options
    )
    history = model.train(epochs, batches(planted=planted), dataset_sink_mode=sink)
    return history["loss"], values_of(network), model


def distance(ones: list[np.ndarray], others: list[np.ndarray]) -> float:
    """Return the largest difference of two lists of arrays."""
    return max(float(np.abs(one - other).max()) for one, other in zip(ones, others, strict=True))


def keras_sgd(network: keras.Model) -> keras.optimizers.Optimizer:
    """Return Keras's plain descent."""
    del network
    return keras.optimizers.SGD(0.05)


# The optimizer of Keras's run, the one of Model's, and options of Model's.
SAME: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "mixtrain's SGD": (
        lambda: keras.optimizers.SGD(0.05), lambda network: nn.SGD(network.trainable_weights, 0.05), {}
    ),
    "host": (lambda: keras.optimizers.SGD(0.05), keras_sgd, {}),
    "sink": (lambda: keras.optimizers.SGD(0.05), keras_sgd, {"sink": True}),
    "O2": (lambda: keras.optimizers.SGD(0.05), keras_sgd, {"sink": True, "amp_level": "O2"}),
    "momentum": (
        lambda: keras.optimizers.SGD(0.05, 0.9), lambda network: nn.Momentum(network.trainable_weights, 0.05, 0.9), {}
    ),
    "adam": (
        lambda: keras.optimizers.Adam(1e-3, epsilon=1e-8), lambda network: nn.Adam(network.trainable_weights, 1e-3), {}
    ),
    "clipped": (
        lambda: keras.optimizers.SGD(0.05, global_clipnorm=0.1),
        lambda network: keras.optimizers.SGD(0.05, global_clipnorm=0.1), {},
    ),
    "accumulated by Keras": (
        lambda: keras.optimizers.SGD(0.05, gradient_accumulation_steps=2),
        lambda network: keras.optimizers.SGD(0.05, gradient_accumulation_steps=2), {},
    ),
    "accumulated": (
        lambda: keras.optimizers.SGD(0.05, gradient_accumulation_steps=2), keras_sgd, {"accumulate_steps": 2}
    ),
}


@pytest.mark.parametrize("case", [
    name if place == 0 else pytest.param(name, marks=pytest.mark.slow) for place, name in enumerate(SAME)
])
def test_losses_and_scales_are_those_of_keras(case: str) -> None:
    of_keras, of_model, options = SAME[case]
    losses, values = by_keras(of_keras())
    own_losses, own_values, model = by_model(of_model, **options)
    np.testing.assert_allclose(own_losses, losses, rtol=1e-5)
    assert distance(own_values, values) < 1e-5
    # 16 steps, or windows of 2 whose every batch counts as a good step.
    assert model.train_network.state.current_scale() == SCALE * 8


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
def test_a_constant_scale_gives_the_same_numbers_whoever_divides(sink: bool) -> None:
    dropping = by_model(keras_sgd, sink=sink, manager=FixedLossScaleManager(SCALE))
    keeping = by_model(
        lambda network: nn.SGD(network.trainable_weights, 0.05, loss_scale=SCALE), sink=sink,
        manager=FixedLossScaleManager(SCALE, drop_overflow_update=False),
    )
    assert distance(dropping[1], keeping[1]) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("case", ["host", "momentum"])
def test_a_skipped_step_puts_the_scales_back(case: str, sink: bool) -> None:
    of_keras, of_model, _ = SAME[case]
    _, values = by_keras(of_keras(), 1, planted=np.inf)
    _, own_values, model = by_model(of_model, 1, sink=sink, planted=np.inf)
    assert distance(own_values, values) < 1e-5
    assert all(np.isfinite(value).all() for value in own_values)
    assert model.train_network.state.current_scale() == SCALE / 2


@pytest.mark.slow
def test_weight_decay_leaves_the_scales_alone() -> None:
    _, plain, _ = by_model(lambda network: nn.SGD(network.trainable_weights, 0.0))
    _, decayed, model = by_model(lambda network: nn.AdamWeightDecay(network.trainable_weights, 0.0, weight_decay=0.5))
    scales = [index for index, weight in enumerate(model.train_network.weights) if backend.takes_next_value(weight)]
    assert len(scales) == 12
    for index in scales:
        np.testing.assert_array_equal(plain[index], decayed[index])


@pytest.mark.slow
def test_replicas_hold_the_largest_magnitude_of_all_of_them() -> None:
    alone = by_model(keras_sgd, 1)
    with data_parallel(2):
        spread = by_model(keras_sgd, 1)
    # Float8 rounds what the order of a sum changes: 2e-4 here; means over replicas would be 10 % and more below.
    for one, other in zip(spread[1], alone[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)


@pytest.mark.slow
def test_next_values_are_not_reported_as_gradients() -> None:
    class Watcher(mixtrain.Callback):
        needs = frozenset({"gradients"})

        def on_train_step_end(self, run_context: Any) -> None:
            results = run_context.original_args().step_results
            squares = [float((backend.to_numpy(value) ** 2).sum()) for value in results.gradients.values()]
            self.count, self.expected = len(squares), float(np.sqrt(sum(squares)))
            self.norm = float(np.ravel(results.grad_norm)[-1])

    watcher, network = Watcher(), float8_network()
    model = Model(network, "mse", keras.optimizers.SGD(0.05), loss_scale_manager=FixedLossScaleManager(SCALE))
    model.train(1, batches(), callbacks=[watcher])
    assert watcher.count == 4
    assert watcher.norm == pytest.approx(watcher.expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Model. in epoch")
@pytest.mark.parametrize("planted", [np.inf, np.nan])
def test_overflows_are_explained(planted: float) -> None:
    _, values, model = by_model(keras_sgd, planted=planted, explain_overflow=True)
    assert [record.step for record in model.overflows] == [4, 12]
    assert "column 0" in str(model.overflows[0])
    _, unwatched, _ = by_model(keras_sgd, planted=planted)
    assert distance(values, unwatched) == 0.0


@pytest.mark.slow
def test_an_overflow_that_the_layer_clips_is_seen_and_explained() -> None:
    """An infinite gradient of an output without a bias shows in its amax history alone."""
    keras.utils.set_random_seed(1)
    layer = keras.layers.Dense(1, use_bias=False, name="d1")
    network = keras.Sequential([keras.Input((16,)), layer])
    layer.quantize("float8")
    # 100 times the scale is finite from 2**121 on. XLA divides by the 16 rows first: the output's gradient is finite
    # from 2**125 on, and clipped until the amax history knows it; then the weights' gradient, a sum of rows, overflows.
    skipped = 6 if ON_TENSORFLOW else 5
    model = Model(
        network, lambda output, label: keras.ops.mean(output) * 100.0, keras.optimizers.SGD(0.0),
        loss_scale_manager=DynamicLossScaleManager(2.0**127, 2, 5), explain_overflow=True,
    )
    history = model.train(1, batches())
    assert history["skipped_steps"][0] == skipped
    assert "gradient of" in str(model.overflows[0]) and "forward finite" in str(model.overflows[0])
    assert all(np.isfinite(value).all() for value in values_of(network))


@pytest.mark.slow
def test_weight_averages_of_keras_are_refused() -> None:
    with pytest.raises(ValueError, match=r"SGD: .*must not average weights: .*Write use_ema=False"):
        by_model(lambda network: keras.optimizers.SGD(0.05, use_ema=True))


@pytest.mark.slow
def test_rules_are_suggested_ranges_sampled_and_scales_calibrated() -> None:
    network, data = float8_network(), batches()
    monitor = mixtrain.RangeMonitor(2)
    model = Model(network, "mse", keras.optimizers.SGD(0.05), amp_level="O2")
    model.train(1, data, callbacks=[monitor])
    assert mixtrain.suggest_rules(model, data, steps=2) is not None
    assert mixtrain.calibrate_loss_scale(model, data, steps=2).get_loss_scale() >= 1.0


@pytest.mark.slow
def test_a_resumed_run_is_an_undisturbed_one(tmp_path: pathlib.Path) -> None:
    _, undisturbed, _ = by_model(keras_sgd, 4)

    def run(epochs: int) -> list[np.ndarray]:
        network = float8_network()
        model = Model(
            network, keras.losses.MeanSquaredError(), keras_sgd(network),
            loss_scale_manager=DynamicLossScaleManager(SCALE, 2, 5),
        )
        model.train(epochs, batches(), resume=str(tmp_path))
        return values_of(network)

    run(2)
    assert distance(run(4), undisturbed) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("unscale_first", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_grad_scaler_leaves_next_values_undivided(compiled: bool, unscale_first: bool) -> None:
    network, scaler = float8_network(), GradScaler(init_scale=SCALE, growth_interval=5)
    optimizer, loss_fn = keras.optimizers.SGD(0.05), keras.losses.MeanSquaredError()
    variables = network.trainable_variables

    def step(x: Any, y: Any) -> Any:
        gradients = mixtrain.value_and_grad(
            lambda x, y: scaler.scale(loss_fn(y, network(x, training=True))), None, variables
        )(x, y)[1]
        if unscale_first:
            gradients = scaler.unscale_(gradients, optimizer)
        applied = scaler.step(optimizer, gradients, variables)
        scaler.update()
        return applied

    run = mixtrain.jit(step) if compiled else step
    for _ in range(2):
        for x, y in batches():
            run(x, y)
    assert distance(values_of(network), by_keras(keras.optimizers.SGD(0.05))[1]) < 1e-5


def of_cells() -> tuple[nn.Cell, keras.Model]:
    """Return a Cell of the float8 layers, and the network that they are of."""

    class Net(nn.Cell):
        def __init__(self, layers: list[keras.Layer]) -> None:
            super().__init__()
            self.first, self.second = layers

        def construct(self, x: Any) -> Any:
            return self.second(self.first(x))

    network = float8_network()
    return Net(network.layers), network


@pytest.mark.slow
@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE])
def test_a_cell_trains_a_float8_layer(mode: int) -> None:
    cell, network = of_cells()
    mixtrain.set_context(mode=mode)
    try:
        step = nn.TrainOneStepWithLossScaleCell(
            nn.WithLossCell(cell, nn.MSELoss()), nn.SGD(cell.trainable_params(), 0.05),
            nn.DynamicLossScaleUpdateCell(SCALE, 2, 5),
        )
        step.set_train()
        for _ in range(2):
            for x, y in batches():
                step(mixtrain.Tensor(x), mixtrain.Tensor(y))
    finally:
        mixtrain.set_context(mode=mixtrain.GRAPH_MODE)
    assert distance(values_of(network), by_keras(keras.optimizers.SGD(0.05))[1]) < 1e-5


def by_hand(scaler: Any, *, clip: float | None = None, compiled: bool = False) -> list[np.ndarray]:
    """Train by value_and_grad, unscale, clip and optimizer, as MindSpore's scripts do."""
    cell, network = of_cells()
    optimizer, loss_fn = nn.SGD(cell.trainable_params(), 0.05), nn.MSELoss()
    gradient_of = mixtrain.value_and_grad(lambda x, y: scaler.scale(loss_fn(cell(x), y)), None, optimizer.parameters)

    def step(x: Any, y: Any) -> Any:
        gradients = scaler.unscale(gradient_of(x, y)[1])
        scaler.adjust(all_finite(gradients))
        if clip is not None:
            gradients = ops.clip_by_global_norm(gradients, clip)
        return optimizer(gradients)

    cell.set_train()
    run = mixtrain.jit(step) if compiled else step
    for _ in range(2):
        for x, y in batches():
            run(mixtrain.Tensor(x), mixtrain.Tensor(y))
    return values_of(network)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("growth", [5, 10**4])
def test_a_loss_scaler_leaves_next_values_undivided(growth: int, clip: float | None, compiled: bool) -> None:
    _, values = by_keras(keras.optimizers.SGD(0.05, global_clipnorm=clip), growth=growth)
    scaler = DynamicLossScaler(SCALE, 2, 5) if growth == 5 else StaticLossScaler(SCALE)
    assert distance(by_hand(scaler, clip=clip, compiled=compiled), values) < 1e-5


@pytest.mark.slow
def test_next_values_that_a_cell_divides_are_refused() -> None:
    class Train(nn.TrainOneStepCell):
        def construct(self, x: Any, y: Any) -> Any:
            loss = self.network(x, y)
            gradients = self.grad(self.network, self.weights)(x, y, ops.fill(loss.dtype, loss.shape, self.sens))
            self.optimizer(tuple(gradient / self.sens for gradient in gradients))
            return loss

    cell, network = of_cells()
    train = Train(nn.WithLossCell(cell, nn.MSELoss()), nn.SGD(cell.trainable_params(), 0.05), SCALE)
    before = values_of(network)
    x, y = batches()[0]
    with pytest.raises(ValueError, match=r"SGD: the gradient of .*, a scale of a float8 layer, is its next value"):
        train.set_train()(mixtrain.Tensor(x), mixtrain.Tensor(y))
    assert distance(values_of(network), before) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("own", [True, False])
def test_a_grad_scaler_lets_next_values_count_in_no_norm(own: bool, clip: float | None) -> None:
    network, scaler = float8_network(), GradScaler(init_scale=SCALE, growth_interval=5)
    variables, loss_fn = network.trainable_variables, keras.losses.MeanSquaredError()
    optimizer = nn.SGD(variables, 0.05) if own else keras.optimizers.SGD(0.05)
    gradient_of = mixtrain.value_and_grad(
        lambda x, y: scaler.scale(loss_fn(y, network(x, training=True))), None, variables
    )
    for x, y in [*batches(), *batches()]:
        gradients = scaler.unscale_(gradient_of(x, y)[1], optimizer)
        if clip is not None:
            norm = sum(float((backend.to_numpy(value) ** 2).sum()) for value in gradients) ** 0.5
            gradients = [value * min(1.0, clip / norm) for value in gradients]
        scaler.step(optimizer, gradients, variables)
        scaler.update()
    assert distance(values_of(network), by_keras(keras.optimizers.SGD(0.05, global_clipnorm=clip))[1]) < 1e-5


@quick_every(2, 1)
@pytest.mark.parametrize("built", [False, True])
def test_next_values_of_a_plain_gradient_are_known_once_the_optimizer_is_built(built: bool) -> None:
    network, scaler = float8_network(), GradScaler(init_scale=SCALE)
    variables, optimizer = network.trainable_variables, keras.optimizers.SGD(0.05)
    next_values = [variable.overwrite_with_gradient for variable in variables]
    x, y = batches()[0]
    if built:
        optimizer.build(variables)
    gradients = scaler.unscale_(scaled_gradients(network, scaler, x, y), optimizer)
    if not built:
        before = values_of(network)
        with pytest.raises(ValueError, match=r"unscale_ must know .* Write optimizer\.build\(variables\)"):
            scaler.step(optimizer, gradients, variables)
        assert distance(values_of(network), before) == 0.0
        return
    counted = [bool(backend.to_numpy(gradient).any()) for gradient in gradients]
    assert counted == [not is_next for is_next in next_values]
    assert scaler.step(optimizer, gradients, variables)


def scaled_gradients(network: keras.Model, scaler: GradScaler, x: Any, y: Any) -> list[Any]:
    """Return the gradients of a scaled loss, by TensorFlow's tape or JAX's `grad`."""
    variables = network.trainable_variables

    def loss(prediction: Any) -> Any:
        return scaler.scale(keras.ops.mean(keras.ops.square(prediction - y)))

    if ON_TENSORFLOW:
        import tensorflow as tf

        @tf.function  # type: ignore[untyped-decorator]  # Keras's float8 layers have no gradients in eager mode.
        def gradients() -> Any:
            with tf.GradientTape() as tape:
                value = loss(network(x, training=True))
            return tape.gradient(value, [variable.value for variable in variables])

        return gradients()  # type: ignore[no-any-return]
    import jax

    others = [variable.value for variable in network.non_trainable_variables]
    return jax.grad(  # type: ignore[no-any-return]
        lambda values: loss(network.stateless_call(values, others, x, training=True)[0])
    )([variable.value for variable in variables])


@pytest.mark.slow
def test_accumulated_gradients_of_boost_take_the_largest_next_value() -> None:
    cell, network = of_cells()
    optimizer, loss_fn = nn.SGD(cell.trainable_params(), 0.05), nn.MSELoss()
    accumulate = GradientAccumulation(2, optimizer)
    gradient_of = mixtrain.value_and_grad(lambda x, y: loss_fn(cell(x), y), None, optimizer.parameters)
    cell.set_train()
    for x, y in [*batches(), *batches()]:
        accumulate(*gradient_of(mixtrain.Tensor(x), mixtrain.Tensor(y)))
    _, values = by_keras(keras.optimizers.SGD(0.05, gradient_accumulation_steps=2), growth=None)
    assert distance(values_of(network), values) < 1e-5
