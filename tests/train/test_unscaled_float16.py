"""float16 without loss scaling is warned of once, and a Keras network in mixed_float16 is scaled as Keras scales it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, amp, nn
from tests.backends import quick_every

_draw = np.random.default_rng(5)
X = _draw.standard_normal((16, 6)).astype(np.float32)
# Gradients of such labels are below what float16 can hold.
Y = (_draw.standard_normal((16, 1)) * 1e-4).astype(np.float32)
DATA = [(X[at : at + 4], Y[at : at + 4]) for at in range(0, 16, 4)]
SAYS = r"layers compute in float16 and the loss is not scaled.*Write {}\(\.\.\., loss_scale_manager=mixtrain\.Dynamic"


def cell() -> nn.Cell:
    return nn.SequentialCell([nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 1)])


def network(dtype: str | None = None) -> keras.Model:
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((6,)), layers.Dense(5, "relu", dtype=dtype), layers.Dense(1, dtype=dtype)]
    )


def keras_model(made: keras.Model, level: str = "O0", **options: Any) -> Model:
    return Model(made, "mse", keras.optimizers.SGD(0.1), amp_level=level, **options)


def cell_model(made: nn.Cell, level: str = "O0", **options: Any) -> Model:
    return Model(made, nn.MSELoss(), nn.SGD(made.trainable_params(), 0.1), amp_level=level, **options)


def half_cell() -> nn.Cell:
    made = cell()
    made.to_float(mixtrain.float16)
    return made


UNSCALED: dict[str, Callable[..., Model]] = {
    "a cell at O1": lambda **options: cell_model(cell(), "O1", **options),
    "a cell at O3": lambda **options: cell_model(cell(), "O3", **options),
    "a Keras network at O1": lambda **options: keras_model(network(), "O1", **options),
    "a Keras network at O3": lambda **options: keras_model(network(), "O3", **options),
    "to_float": lambda **options: cell_model(half_cell(), **options),
    "a list": lambda **options: cell_model(amp.custom_mixed_precision(cell(), white_list=[nn.Dense]), **options),
    "rewritten at O3": lambda **options: cell_model(amp.auto_mixed_precision(cell(), "O3"), **options),
}


@quick_every(7)
@pytest.mark.parametrize("case", UNSCALED)
def test_float16_without_a_manager_warns_once_with_the_line_to_write(case: str) -> None:
    with pytest.warns(UserWarning, match=SAYS.format("Model")) as caught:
        model = UNSCALED[case]()
        model.train(1, DATA, verbose=0)
    assert len(caught) == 1
    assert model.loss_scale_manager is None
    model.train(1, DATA, verbose=0)  # Warnings are errors here.


@pytest.mark.parametrize("case", UNSCALED)
def test_it_does_not_where_the_loss_is_scaled_or_that_was_refused(case: str) -> None:
    UNSCALED[case](loss_scale_manager=None)
    UNSCALED[case](loss_scale_manager=FixedLossScaleManager(1024))
    if case not in ("to_float", "a list", "rewritten at O3"):
        UNSCALED[case](cast_model_type=mixtrain.bfloat16)


def test_a_keras_network_that_is_not_built_warns_when_it_is() -> None:
    model = keras_model(keras.Sequential([keras.layers.Dense(1)]), "O3")
    with pytest.warns(UserWarning, match=SAYS.format("Model")):
        model.build(DATA)


def test_an_optimizer_that_scales_by_itself_is_no_reason_to_warn() -> None:
    Model(network(), "mse", keras.optimizers.SGD(0.1, loss_scale_factor=1024.0), amp_level="O3")


def test_build_train_network_warns_too() -> None:
    net = cell()
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    with pytest.warns(UserWarning, match=SAYS.format("build_train_network")):
        amp.build_train_network(net, optimizer, nn.MSELoss(), level="O3")
    amp.build_train_network(net, optimizer, nn.MSELoss(), level="O3", loss_scale_manager=None)


def test_a_list_and_a_level_of_the_network_hold_in_a_model_without_one() -> None:
    listed = amp.custom_mixed_precision(cell(), white_list=["2"])
    report = cell_model(listed, loss_scale_manager=None).precision_report()
    assert (report.row("0").compute_dtype, report.row("2").compute_dtype) == ("float32", "float16")
    rewritten = amp.auto_mixed_precision(cell(), "O2", mixtrain.bfloat16)
    model = cell_model(rewritten)
    assert model.precision_report().row("2").compute_dtype == "bfloat16" and model.loss_scale_manager is None
    assert isinstance(cell_model(amp.auto_mixed_precision(cell(), "O2")).loss_scale_manager, DynamicLossScaleManager)
    assert cell_model(rewritten, "O1", loss_scale_manager=None).precision_report().level == "O1"


# ---- mixed_float16 as Keras has it ----------------------------------------------------------------------------
def layers_of_their_own() -> keras.Model:
    return network("mixed_float16")


def under_the_global_policy() -> keras.Model:
    keras.config.set_dtype_policy("mixed_float16")
    try:
        return network()
    finally:
        keras.config.set_dtype_policy("float32")


class Subclassed(keras.Model):
    """A network that makes its layers when it is built."""

    def __init__(self) -> None:
        super().__init__(dtype="mixed_float16")

    def build(self, shape: Any) -> None:
        self.first = keras.layers.Dense(5, "relu", dtype="mixed_float16")
        self.last = keras.layers.Dense(1, dtype="mixed_float16")
        self.first.build(shape)
        self.last.build((None, 5))

    def call(self, x: Any) -> Any:
        return self.last(self.first(x))


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
@pytest.mark.parametrize(
    "make", [under_the_global_policy, Subclassed, layers_of_their_own]
)
def test_mixed_float16_moves_the_weights_as_keras_does(make: Callable[[], keras.Model], sink: bool) -> None:
    ours, theirs = make(), make()
    for network in (ours, theirs):
        if not network.built:
            network.build((None, 6))
    theirs.set_weights(ours.get_weights())
    before = [weight.copy() for weight in ours.get_weights()]
    theirs.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)), "mse", auto_scale_loss=False)
    model = keras_model(ours)
    manager = model.loss_scale_manager
    assert isinstance(manager, DynamicLossScaleManager) and manager.get_loss_scale() == 2.0**15
    model.train(1, DATA, verbose=0, dataset_sink_mode=sink)
    theirs.fit(X, Y, batch_size=4, shuffle=False, verbose=0)
    for one, other, start in zip(ours.get_weights(), theirs.get_weights(), before, strict=True):
        moved = np.abs(other - start).max()
        assert moved > 0 and np.abs(one - other).max() < 2e-2 * moved


def test_it_is_as_the_user_says_where_that_is_written() -> None:
    assert keras_model(layers_of_their_own(), loss_scale_manager=None).loss_scale_manager is None
    fixed = FixedLossScaleManager(128)
    assert keras_model(layers_of_their_own(), loss_scale_manager=fixed).loss_scale_manager is fixed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert keras_model(network("mixed_bfloat16")).loss_scale_manager is None
