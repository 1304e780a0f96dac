"""`mixtrain.keras.prepare`: mixtrain's precision under Keras's own `compile` and `fit`, on both backends."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.keras
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager, nn, ops
from mixtrain.keras import PreparedOptimizer, prepare
from mixtrain.precision.apply import applied_plan
from tests.backends import on_jax_only_some, quick_only_some
from tests.train.planted import GOLDEN, batches

layers = keras.layers
_draw = np.random.default_rng(3)
X, Y = _draw.standard_normal((16, 6)).astype(np.float32), _draw.integers(0, 3, 16).astype(np.int32)
# The third batch of four rows overflows in the forward pass.
BAD_X, BAD_Y = np.insert(X, [8] * 4, 1e30, axis=0), np.insert(Y, [8] * 4, 0)


def network(rate: float = 0.3) -> keras.Model:
    """Return a network with moving statistics and random state."""
    keras.utils.set_random_seed(1)
    return keras.Sequential([
        keras.Input((6,)), layers.Dense(4, name="first"), layers.BatchNormalization(name="norm"),
        layers.Dropout(rate, seed=7), layers.Dense(3, name="head"),
    ])


def compiled(model: keras.Model, optimizer: Any, **options: Any) -> keras.Model:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"], **options)
    return model


def fit(model: keras.Model, x: Any = X, y: Any = Y, **options: Any) -> dict[str, list[float]]:
    return model.fit(x, y, batch_size=4, shuffle=False, verbose=0, **{"epochs": 2, **options}).history  # type: ignore


def values(variables: Any) -> list[np.ndarray]:
    return [np.asarray(keras.ops.convert_to_numpy(variable)) for variable in variables]


def assert_same(actual: Any, expected: Any) -> None:
    for a, b in zip(values(actual), values(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def adam() -> keras.optimizers.Optimizer:
    return keras.optimizers.Adam(0.01)


# ---- precision ------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("make", [adam, lambda: keras.optimizers.SGD(0.1, momentum=0.9, loss_scale_factor=64.0)])
def test_at_o0_a_run_is_that_of_keras_to_the_digit(make: Callable[[], Any]) -> None:
    ours, theirs = network(), network()
    history = fit(compiled(ours, prepare(ours, make())))
    assert history == fit(compiled(theirs, make()))
    assert_same(ours.variables, theirs.variables)
    assert_same(ours.optimizer.inner_optimizer.variables, theirs.optimizer.variables)


@pytest.mark.slow
def test_the_plan_is_in_force_in_fit_evaluate_and_predict() -> None:
    seen: list[str] = []

    class Spy(layers.Layer):
        def call(self, x: Any) -> Any:
            seen.append(keras.backend.standardize_dtype(x.dtype))
            return x

    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, name="dense"), Spy(), layers.Dense(1, name="head")])
    seen.clear()
    optimizer = prepare(model, "sgd", "O2", cast_model_type="bfloat16")
    model.compile(optimizer, "mse")
    x, y = X[:, :4], Y.astype(np.float32)
    for call in (lambda: model.fit(x, y, verbose=0), lambda: model.evaluate(x, y, verbose=0),
                 lambda: model.predict(x, verbose=0)):
        call()
        assert set(seen) == {"bfloat16"}
        seen.clear()
    assert optimizer.plan.row("dense").compute_dtype == mixtrain.bfloat16
    assert model.predict(x, verbose=0).dtype == np.float32


@pytest.mark.slow
def test_a_users_rule_counts_although_it_comes_later() -> None:
    model = network()
    optimizer = prepare(model, adam(), "O2")
    mixtrain.to_float(model.get_layer("first"), mixtrain.float32)
    fit(compiled(model, optimizer), epochs=1)
    assert optimizer.plan.row("first").rule == "to_float"
    assert model.get_layer("first").compute_dtype == "float32"


# ---- loss scaling ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "options",
    quick_only_some([{}, {"steps_per_execution": 3}, {"jit_compile": True}, {"run_eagerly": True}], (3,)),
    ids=str,
)
def test_a_run_with_an_overflow_is_the_run_without_that_batch(options: dict[str, Any]) -> None:
    runs = []
    for x, y in ((X, Y), (BAD_X, BAD_Y)):
        model = network()
        optimizer = prepare(model, adam(), "O2", loss_scale_manager=FixedLossScaleManager(1024))
        compiled(model, optimizer, **options)
        runs.append((model, optimizer, fit(model, x, y)))
    (clean, expected, history), (model, optimizer, actual) = runs
    assert (expected.skipped_steps, optimizer.skipped_steps) == (0, 2)
    assert actual == history
    assert_same(model.variables, clean.variables)  # Moving statistics and random states among them.
    assert_same(optimizer.inner_optimizer.variables, expected.inner_optimizer.variables)
    assert int(optimizer.iterations) == 8


@pytest.mark.slow
def test_metrics_of_several_outputs_leave_a_skipped_step_out() -> None:
    def made() -> keras.Model:
        keras.utils.set_random_seed(1)
        entry = keras.Input((6,))
        model = keras.Model(entry, [layers.Dense(1, name="a")(entry), layers.Dense(1, name="b")(entry)])
        optimizer = prepare(model, adam(), "O2", loss_scale_manager=FixedLossScaleManager(1024))
        model.compile(optimizer, {"a": "mse", "b": "mae"})
        return model

    def labels(y: np.ndarray) -> list[np.ndarray]:
        return [y.astype(np.float32)[:, None]] * 2

    history = fit(made(), BAD_X, labels(BAD_Y))
    assert history == fit(made(), X, labels(Y))
    assert set(history) == {"loss", "a_loss", "b_loss"}


class Chain(layers.Layer):
    """Two numbers in a row, as in `tests.train.planted`."""

    def build(self, input_shape: Any) -> None:
        self.first = self.add_weight((), keras.initializers.Constant(2**-10))
        self.second = self.add_weight((), keras.initializers.Constant(2**10))

    def call(self, x: Any) -> Any:
        return (x * self.first) * self.second


class Scales(keras.callbacks.Callback):
    """Keeps the live scale after every batch, as the optimizer and as the manager itself tell it."""

    def __init__(self, manager: LossScaleManager) -> None:
        super().__init__()
        self.manager = manager
        self.of_manager: list[float] = []
        self.of_optimizer: list[float] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.of_manager.append(float(self.manager.get_loss_scale()))
        self.of_optimizer.append(self.model.optimizer.loss_scale_manager.get_loss_scale())


def train_chain(flags: str, manager: LossScaleManager) -> tuple[keras.Model, Scales]:
    model, scales = keras.Sequential([keras.Input((1,)), Chain()]), Scales(manager)
    model.compile(prepare(model, keras.optimizers.SGD(2.0**-20), loss_scale_manager=manager), "mae")
    x = np.concatenate([batch for batch, _ in batches(flags)])
    model.fit(x, np.zeros_like(x), batch_size=1, shuffle=False, verbose=0, callbacks=[scales])
    return model, scales


@pytest.mark.slow
@pytest.mark.parametrize(("start", "factor", "window", "flags", "expected"), on_jax_only_some(GOLDEN, (2, 5)))
def test_the_scale_moves_by_the_rule(start: int, factor: int, window: int, flags: str, expected: list[int]) -> None:
    model, scales = train_chain(flags, DynamicLossScaleManager(start, factor, window))
    assert scales.of_manager == scales.of_optimizer == expected
    assert model.optimizer.skipped_steps == flags.count("1")
    assert model.optimizer.loss_scale_manager.get_loss_scale() == expected[-1]


class Quartering(nn.Cell):
    """A user's own update cell, with a count of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = mixtrain.Parameter(np.float32(0), name="calls", requires_grad=False)

    def get_loss_scale(self) -> float:
        return 256.0

    def construct(self, loss_scale: Any, overflow: Any) -> Any:
        ops.assign_add(self.calls, mixtrain.Tensor(1.0))
        ops.assign(loss_scale, ops.select(overflow, loss_scale / 4, loss_scale * 1))
        return overflow


class QuarteringManager(LossScaleManager):
    def __init__(self) -> None:
        self.cell = Quartering()

    def get_loss_scale(self) -> float:
        return 256.0

    def update_loss_scale(self, overflow: Any) -> None:
        raise AssertionError("the cell moves the scale")

    def get_update_cell(self) -> nn.Cell:
        return self.cell


@pytest.mark.slow
def test_an_update_cell_of_the_users_own_moves_the_scale_inside_the_step() -> None:
    manager = QuarteringManager()
    model, _ = train_chain("0110", manager)
    names = {variable.name: float(variable) for variable in model.optimizer.variables if variable.shape == ()}
    assert names["scale_sense"] == 16.0
    assert float(manager.cell.calls.asnumpy()) == 4.0


@pytest.mark.slow
def test_a_constant_scale_that_keeps_overflowing_steps_scales_by_the_optimizer_inside() -> None:
    model, _ = train_chain("01", FixedLossScaleManager(16.0, drop_overflow_update=False))
    assert model.optimizer.inner_optimizer.loss_scale_factor == 16.0
    assert not all(np.isfinite(values(model.trainable_variables)))
    assert model.optimizer.skipped_steps == 0


@pytest.mark.parametrize(
    ("level", "half", "scale"), [("O0", None, None), ("O2", None, 2.0**15), ("O2", "bfloat16", None)]
)
def test_a_level_brings_its_manager_with_the_first_scale_of_keras(level: Any, half: Any, scale: float | None) -> None:
    manager = prepare(network(), adam(), level, cast_model_type=half).loss_scale_manager
    assert (manager and manager.get_loss_scale()) == scale


def test_float16_without_loss_scaling_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="float16 and the loss is not scaled"):
        assert prepare(network(), adam(), "O3").loss_scale_manager is None


@pytest.mark.slow
def test_callbacks_of_keras_move_the_learning_rate_of_the_optimizer_inside() -> None:
    model = network()
    compiled(model, prepare(model, adam(), loss_scale_manager=DynamicLossScaleManager(8)))
    fit(model, epochs=1, callbacks=[keras.callbacks.LearningRateScheduler(lambda epoch: 0.5)])
    assert float(model.optimizer.inner_optimizer.learning_rate) == 0.5


# ---- files ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    "manager",
    [lambda: DynamicLossScaleManager(64, 2, 3), lambda: FixedLossScaleManager(32), lambda: None],
    ids=["dynamic", "fixed", "none"],
)
def test_a_saved_model_goes_on_bit_for_bit(manager: Callable[[], Any], tmp_path: pathlib.Path) -> None:
    def made() -> keras.Model:
        model = network(rate=0.0)  # Keras's files do not hold the random state of layers.
        optimizer = prepare(model, adam(), "O2", loss_scale_manager=manager(), keep_batchnorm_fp32=False)
        return compiled(model, optimizer)

    straight = made()
    expected = fit(straight, epochs=3)
    saved = made()
    fit(saved, epochs=2)
    saved.save(tmp_path / "run.keras")
    loaded = mixtrain.keras.load_model(tmp_path / "run.keras")
    assert loaded.optimizer.plan.row("norm").rule == "keep_batchnorm_fp32=False"
    assert fit(loaded, epochs=3, initial_epoch=2)["loss"] == expected["loss"][2:]
    assert_same(loaded.variables, straight.variables)
    assert_same(loaded.optimizer.variables, straight.optimizer.variables)
    if manager() is not None:
        assert type(loaded.optimizer.loss_scale_manager) is type(manager())
        live = [model.optimizer.loss_scale_manager.get_loss_scale() for model in (loaded, straight)]
        assert live[0] == live[1]


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
def test_with_keras_s_backup_a_run_that_broke_off_goes_on_bit_for_bit(level: Any, tmp_path: pathlib.Path) -> None:
    class BreakOff(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 3:
                raise KeyboardInterrupt

    def made() -> keras.Model:
        model = network(0.0)
        return compiled(model, prepare(model, adam(), level, loss_scale_manager=DynamicLossScaleManager(1024, 2, 5)))

    whole, broken, resumed = made(), made(), made()
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup", delete_checkpoint=False)
    history = fit(whole, BAD_X, BAD_Y, epochs=5)
    with pytest.raises(KeyboardInterrupt):
        fit(broken, BAD_X, BAD_Y, epochs=5, callbacks=[BreakOff(), backup])
    rest = fit(resumed, BAD_X, BAD_Y, epochs=5, callbacks=[backup])
    assert rest["loss"] == history["loss"][3:]
    (scale,) = values(variable for variable in whole.optimizer.variables if variable.name == "loss_scale")
    assert scale != 1024
    assert_same(resumed.variables, whole.variables)
    assert_same(resumed.optimizer.variables, whole.optimizer.variables)


@pytest.mark.slow
def test_a_model_that_keras_loads_predicts_and_does_not_train_unprepared(tmp_path: pathlib.Path) -> None:
    model = network()
    fit(compiled(model, prepare(model, adam(), "O2")), epochs=1)
    model.save(tmp_path / "run.keras")
    assert keras.models.load_model(tmp_path / "run.keras", compile=False).predict(X, verbose=0).shape == (16, 3)
    loaded = keras.models.load_model(
        tmp_path / "run.keras", custom_objects={"PreparedOptimizer": PreparedOptimizer}
    )
    with pytest.raises(RuntimeError, match=r"mixtrain\.keras\.load_model\(path\)"):
        fit(loaded, epochs=1)


@pytest.mark.slow
def test_a_file_without_a_prepared_optimizer_is_refused(tmp_path: pathlib.Path) -> None:
    model = network()
    fit(compiled(model, adam()), epochs=1)
    model.save(tmp_path / "run.keras")
    with pytest.raises(TypeError, match=r"Write keras\.models\.load_model"):
        mixtrain.keras.load_model(tmp_path / "run.keras")


@pytest.mark.slow
def test_a_manager_without_a_configuration_is_refused_when_it_is_saved(tmp_path: pathlib.Path) -> None:
    model, _ = train_chain("0", QuarteringManager())
    with pytest.raises(TypeError, match="must have get_config and from_config"):
        model.save(tmp_path / "run.keras")


# ---- models, and what is refused ------------------------------------------------------------------------------------
@pytest.mark.slow
def test_preparing_again_and_another_optimizer_take_the_first_ones_place() -> None:
    model = network()
    prepare(model, adam(), "O2")
    again = prepare(model, adam(), "O0", loss_scale_manager=FixedLossScaleManager(2))
    assert applied_plan(model) is None
    fit(compiled(model, again), np.where(BAD_X == np.float32(1e30), np.float32(np.nan), BAD_X), BAD_Y, epochs=1)
    assert np.isfinite(values(model.get_layer("norm").variables)).all()
    theirs, plain = network(), network()
    prepare(plain, adam(), loss_scale_manager=FixedLossScaleManager(2))
    assert fit(compiled(plain, adam())) == fit(compiled(theirs, adam()))


@pytest.mark.slow
def test_a_prepared_model_trains_with_mixtrain_s_model_too() -> None:
    trained = []
    for ready in (True, False):
        model = network()
        if ready:
            prepare(model, adam(), "O2")
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        ours = mixtrain.Model(model, loss, keras.optimizers.SGD(0.1), amp_level="O0")
        trained.append(ours.train(1, [(X, Y)], verbose=0)["loss"])
    assert trained[0] == trained[1]


@pytest.mark.slow
def test_an_optimizer_prepared_for_another_model_is_refused() -> None:
    optimizer, other = prepare(network(), adam()), network()
    compiled(other, optimizer)
    with pytest.raises(ValueError, match="must train the model that it was prepared for"):
        fit(other)


class HostDriven(LossScaleManager):
    def get_loss_scale(self) -> float:
        return 2.0

    def update_loss_scale(self, overflow: Any) -> None:
        """Do nothing."""


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "error", "text"), [
    (lambda: (nn.Dense(2, 2), adam()), TypeError, "model must be a keras.Model; mixtrain.nn.Cell|Model"),
    (lambda: (keras.Sequential([layers.Dense(2)]), adam()), ValueError, "the layers must be built"),
    (lambda: (network(), nn.SGD([mixtrain.Parameter(np.float32(1))], 0.1)), TypeError, "train with mixtrain.Model"),
    (lambda: (network(), keras.optimizers.LossScaleOptimizer(adam())), ValueError, "loss_scale_manager=... beside it"),
    (lambda: (network(), prepare(network(), adam())), ValueError, "the optimizer must not do it as well"),
    (lambda: (network(), adam(), "O4"), ValueError, "amp_level must be one of"),
])
def test_wrong_arguments_are_named(arguments: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        prepare(*arguments())


@pytest.mark.parametrize(("manager", "optimizer", "error", "text"), [
    (128.0, adam, TypeError, "loss_scale_manager must be a LossScaleManager or None"),
    (HostDriven(), adam, ValueError, "must be moved inside the step.*mixtrain.Model"),
    (FixedLossScaleManager(8), lambda: keras.optimizers.SGD(0.1, loss_scale_factor=4.0), ValueError, "divide twice"),
])
def test_wrong_managers_are_named(manager: Any, optimizer: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        prepare(network(), optimizer(), loss_scale_manager=manager)


class UsesOneOfTwo(keras.layers.Layer):
    """Has a layer for inputs of another width, which stays unbuilt."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = keras.layers.Dense(3), keras.layers.Dense(3)

    def build(self, shape: Any) -> None:
        self.used.build(shape)

    def call(self, x: Any) -> Any:
        return self.used(x)


def test_a_built_network_may_hold_layers_that_it_does_not_use() -> None:
    inputs = keras.Input((3,))
    model = keras.Model(inputs, UsesOneOfTwo()(inputs))
    model.compile(mixtrain.keras.prepare(model, "sgd", amp_level="O2", cast_model_type="bfloat16"), "mse")
    x = np.ones((4, 3), np.float32)
    assert np.isfinite(model.fit(x, 0 * x, verbose=0).history["loss"][0])
    assert str(model.layers[1].used.compute_dtype) == "bfloat16"
