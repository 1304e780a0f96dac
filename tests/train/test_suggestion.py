"""suggest_rules: the planted layer and only it, as code that runs; verified by training, which is undone."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, backend, nn


class Planted(nn.Cell):
    """Squares numbers of some hundreds on the way, which float16 does not hold."""

    def construct(self, x: Any) -> Any:
        large = x * 2.0**10
        return (large * large) * 2.0**-20


class KerasPlanted(keras.layers.Layer):
    """The same in Keras."""

    def call(self, x: Any) -> Any:
        large = x * 2.0**10
        return (large * large) * 2.0**-20


def network(kind: str, planted: bool = True) -> Any:
    mixtrain.set_seed(1)
    keras.utils.set_random_seed(1)
    if kind == "cell":
        middle: Any = Planted() if planted else nn.Dense(4, 4)
        return nn.SequentialCell(nn.Dense(4, 4), nn.SequentialCell(nn.Tanh(), middle), nn.Dense(4, 1))
    middle = KerasPlanted(name="planted") if planted else keras.layers.Dense(4, name="planted")
    nested = keras.Sequential([keras.Input((4,)), keras.layers.Activation("tanh"), middle], name="nested")
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(4), nested, keras.layers.Dense(1)])


def data(batches: int = 3) -> list[tuple[np.ndarray, np.ndarray]]:
    draw = np.random.default_rng(0)
    return [tuple(draw.standard_normal((8, size)).astype(np.float32) for size in (4, 1)) for _ in range(batches)]


def model(net: Any, **options: Any) -> Model:
    manager = DynamicLossScaleManager(2.0**6)
    return Model(net, "mse", keras.optimizers.SGD(0.01), amp_level="O2", loss_scale_manager=manager, **options)


LINES = {
    "cell": "network[1][1].to_float(mixtrain.float32)",
    "keras": 'mixtrain.to_float(network.get_layer("nested").get_layer("planted"), mixtrain.float32)',
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Model. in epoch")
@pytest.mark.parametrize("kind", ["keras", "cell"])
def test_the_planted_layer_and_only_it_is_kept_in_float32(kind: str) -> None:
    net = network(kind)
    one = model(net)
    before = [backend.to_numpy(variable).tobytes() for variable in (
        net.get_parameters() if kind == "cell" else net.variables)]
    result = mixtrain.suggest_rules(one, data(), steps=6)
    assert result.lines == (LINES[kind],)
    assert result.error == float("inf") and result.error_with < 0.1
    # XLA may keep in float32 what lies between two operations that it fuses; TensorFlow's plain graph does not.
    plain_graph = keras.backend.backend() == "tensorflow" and kind == "keras"
    assert result.skipped_with == 0 and np.isfinite(result.loss_with)
    assert not plain_graph or result.skipped == 6
    assert LINES[kind] in str(result)
    # Nothing was trained, and the plan is what it was.
    after = [backend.to_numpy(variable).tobytes() for variable in (
        net.get_parameters() if kind == "cell" else net.variables)]
    assert after == before and one.loss_scale_manager.get_loss_scale() == 2.0**6
    assert one.precision_report().row("1.1" if kind == "cell" else "nested/planted").compute_dtype == mixtrain.float16

    exec(result.lines[0], {"network": net, "mixtrain": mixtrain})  # noqa: S102  (it is code to paste)
    history = model(net).train(25, data(2), verbose=0)
    assert sum(history["skipped_steps"]) == 0


def test_a_loss_scale_that_is_too_large_is_not_blamed_on_layers() -> None:
    net = network("keras")
    one = Model(net, "mse", keras.optimizers.SGD(0.01), amp_level="O2", loss_scale_manager=DynamicLossScaleManager())
    assert mixtrain.suggest_rules(one, data(), steps=0).lines == (LINES["keras"],)


class Penalty(keras.layers.Layer):
    """Adds a loss of which half loses the sum, whose gradients are finite."""

    def call(self, x: Any) -> Any:
        self.add_loss(1e-6 * keras.ops.sum(x * x))
        return x


@pytest.mark.slow
def test_a_loss_that_alone_is_not_finite_has_its_layer() -> None:
    network = keras.Sequential([
        keras.Input((2,)), keras.layers.Dense(2, kernel_initializer="identity"), Penalty(name="penalty"),
        keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(0.1)),
    ])
    manager = mixtrain.FixedLossScaleManager(1.0)
    model = Model(network, "mse", keras.optimizers.SGD(0.0), amp_level="O2", loss_scale_manager=manager)
    data = [(np.full((2, 2), 300, np.float32), np.full((2, 1), 60, np.float32))]
    assert 'network.get_layer("penalty"), mixtrain.float32' in str(mixtrain.suggest_rules(model, data))


def test_a_network_that_is_near_enough_needs_no_rule() -> None:
    result = mixtrain.suggest_rules(model(network("cell", planted=False)), data(), steps=0)
    assert result.lines == () and result.error < 0.1
    assert str(result).endswith("within 0.1: no rule is needed")
    assert {row.path for row in result.layers} >= {"0", "1.1", "2"}


@pytest.mark.slow
def test_a_small_tolerance_takes_the_layers_that_help_most() -> None:
    net = network("cell", planted=False)
    loose, tight = (mixtrain.suggest_rules(model(net), data(), tolerance, steps=0) for tolerance in (0.1, 1e-6))
    assert len(loose.lines) == 0 < len(tight.lines) and tight.error_with <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("tolerance", "dtype"), [(0.03, "bfloat16"), (1e-6, "float32")])
def test_a_layer_that_multiplies_in_float8_is_kept_in_half_where_that_is_enough(tolerance: float, dtype: str) -> None:
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(size, name=name) for name, size in [("first", 32), ("wide", 32), ("last", 1)]]
    net = keras.Sequential([keras.Input((4,)), *layers])
    one = Model(net, "mse", keras.optimizers.SGD(0.01), amp_level="O2", cast_model_type="float8")
    assert one.precision_report().row("wide").float8 is not None
    result = mixtrain.suggest_rules(one, data(), tolerance, steps=2)
    line = f'mixtrain.to_float(network.get_layer("wide"), mixtrain.{dtype})'
    assert line in result.lines and result.error > tolerance >= result.error_with
    assert len(result.lines) == (1 if dtype == "bfloat16" else 3) and one.precision_report().row("wide").float8


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="model"):
        mixtrain.suggest_rules(3, data())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tolerance"):
        mixtrain.suggest_rules(model(network("cell")), data(), 0)
