"""What `explain_overflow` says of scales and cures holds for the step, and for each batch by itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model
from tests.backends import ON_TENSORFLOW, quick_every


@pytest.fixture(autouse=True)
def losses_that_are_not_finite() -> Iterator[None]:
    """Expect losses that are not finite."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch .* steps ")
        yield


class RootOfMasked(keras.layers.Layer):
    """Masks the root of 0 after it was taken: its derivative is 0 * inf, for which some operations have 0."""

    def call(self, x: Any) -> Any:
        return keras.ops.where(x > 0, keras.ops.sqrt(keras.ops.abs(x)), 0.0 * x)


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
def test_a_scale_is_said_to_do_only_if_the_step_shows_it(sink: bool) -> None:
    network = keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(4, kernel_initializer="identity"), RootOfMasked(name="root"),
        keras.layers.Dense(1, kernel_initializer="ones"),
    ])
    model = Model(
        network, keras.losses.MeanSquaredError(), keras.optimizers.SGD(1e-3), amp_level="O2",
        loss_scale_manager=DynamicLossScaleManager(2.0**100), explain_overflow=True,
    )
    data = np.array([[1, 2, 0, 4]], np.float32), np.zeros((1, 1), np.float32)
    model.train(1, [data], dataset_sink_mode=sink, verbose=0)
    (record,) = model.overflows
    # In float32 TensorFlow does not compile by XLA: there the derivative is 0, and the layer alone cures.
    cure = ("root",) if ON_TENSORFLOW else ()
    assert (record.finding.scale, record.finding.in_float32, record.finding.cure) == (None, not ON_TENSORFLOW, cure)
    assert "1 of 4 values not finite (1 NaN)" in str(record)


class RootOfSquare(keras.layers.Layer):
    """Overflows on the way to a small result."""

    def call(self, x: Any) -> Any:
        return keras.ops.sqrt(x * x + 1)


@pytest.mark.slow
def test_a_cure_of_one_batch_is_not_that_of_another_where_more_overflows() -> None:
    inputs = [keras.Input((4,)) for _ in range(2)]
    roots = [RootOfSquare(name=name)(part) for name, part in zip(("first", "second"), inputs, strict=True)]
    network = keras.Model(inputs, keras.layers.Dense(1, name="head")(keras.layers.Add(name="sum")(roots)))
    model = Model(
        network, keras.losses.MeanSquaredError(), keras.optimizers.SGD(1e-9), amp_level="O2",
        loss_scale_manager=DynamicLossScaleManager(1.0), explain_overflow=True,
    )
    small, large, label = (np.full((1, size), value, np.float32) for size, value in ((4, 1), (4, 1000), (1, 0)))
    model.train(1, [((large, small), label), ((large, large), label), ((large, small), label)], verbose=0)
    assert [record.finding.layer for record in model.overflows] == ["first"] * 3
    one, both = ("first", "head"), ("first", "second", "head")
    assert [record.finding.cure for record in model.overflows] == [one, both, one]


class Square(keras.layers.Layer):
    """Overflows inside, or in its output."""

    def call(self, x: Any) -> Any:
        return x * x * 1e-4


@pytest.mark.slow
def test_another_cure_is_another_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    network = keras.Sequential([
        keras.Input((2,)), Square(name="square"), keras.layers.Dense(1, kernel_initializer="ones", name="head"),
    ])
    model = Model(
        network, "mse", keras.optimizers.SGD(1e-9), amp_level="O2", loss_scale_manager=DynamicLossScaleManager(8.0),
        explain_overflow=True,
    )
    label = np.zeros((2, 1), np.float32)
    model.train(1, [(np.full((2, 2), size, np.float32), label) for size in (300, 300, 32000)], verbose=0)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[1].startswith("  the same in 1 more step, to step 2")
    assert "keep layer square in float32, to_float(mixtrain.float32)" in lines[0] and "and so head" in lines[2]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1024.0, 2.0])
def test_a_loss_that_is_not_finite_is_not_cured_by_a_scale_at_which_its_gradients_are(scale: float) -> None:
    # The gradient of an absolute error does not depend on how large it is.
    network = keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(2, kernel_initializer=keras.initializers.Constant(0.25), name="first"),
        keras.layers.Dense(2, kernel_initializer=keras.initializers.Constant(5e4), name="head"),
    ])
    model = Model(
        network, "mae", keras.optimizers.SGD(0.0), amp_level="O2", loss_scale_manager=FixedLossScaleManager(scale),
        explain_overflow=True,
    )
    data = [(np.ones((2, 4), np.float32), np.zeros((2, 2), np.float32))]
    model.train(1, data, verbose=0)
    for record in model.overflows:
        assert (record.finding.kind, record.finding.layer, record.finding.scale) == ("forward", "head", None)
        assert "keep layer head in float32" in str(record)
    assert model.overflows or scale == 2.0  # Gradients of 5e4 times 1/4 are finite at small scales.
    checked = model.check(data)
    assert checked.finding is not None and checked.finding.layer == "head" and checked.finding.cure == ("head",)


def test_what_float32_has_too_is_told_beside_a_cure() -> None:
    inputs = keras.Input((4,))
    large = keras.layers.Dense(3, kernel_initializer=keras.initializers.Constant(500.0), name="large")(inputs)
    zero = keras.layers.Lambda(lambda x: keras.ops.sqrt(keras.ops.sum(x * x, -1, keepdims=True)), (1,), name="norm")(
        keras.layers.Dense(2, kernel_initializer="zeros")(inputs))
    joined = keras.layers.Concatenate(name="joined")([large, zero])
    head = keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(1e-3), name="head")(joined)
    model = Model(
        keras.Model(inputs, head), "mse", keras.optimizers.SGD(0.0), amp_level="O2", explain_overflow=True,
        loss_scale_manager=FixedLossScaleManager(1.0),
    )
    model.train(1, [(np.full((2, 4), 40, np.float32), np.zeros((2, 1), np.float32))], verbose=0)
    (record,) = model.overflows
    assert record.finding.layer == "large" and not record.finding.cures_all
    assert str(record).endswith("then a gradient is not finite, which float32 has too")


def test_the_one_layer_whose_small_output_half_loses_is_named_for_an_infinite_loss() -> None:
    network = keras.Sequential([
        keras.Input((2,)), keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(6.0)),
        keras.layers.Lambda(lambda x: 1 - keras.ops.sigmoid(x), name="rest"),
        keras.layers.Dense(1, kernel_initializer="ones", use_bias=False),
    ])
    model = Model(
        network, lambda y, p: -keras.ops.mean(keras.ops.log(p)), keras.optimizers.SGD(0.0), amp_level="O2",
        loss_scale_manager=FixedLossScaleManager(1.0), explain_overflow=True,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: .* off")
        model.train(1, [(np.ones((3, 2), np.float32), np.zeros((3, 1), np.float32))], verbose=0)
    (record,) = model.overflows
    assert (record.finding.kind, record.finding.cure) == ("loss", ("rest",))


@quick_every(2)
@pytest.mark.parametrize(("value", "kind"), [(np.nan, "not finite"), (-1e6, "above 65504")])
def test_of_a_column_with_several_tensors_the_one_is_named(value: float, kind: str) -> None:
    inputs = {name: keras.Input((4,), name=name) for name in ("clean", "wrong")}
    outputs = keras.layers.Dense(1)(keras.layers.Concatenate()([*inputs.values()]))
    model = Model(
        keras.Model(inputs, outputs), keras.losses.MeanSquaredError(), keras.optimizers.SGD(1e-3), amp_level="O2",
        loss_scale_manager=DynamicLossScaleManager(), explain_overflow=True,
    )
    columns = {name: np.ones((2, 4), np.float32) for name in inputs}
    columns["wrong"][1, 2] = value
    model.fit(columns, np.zeros((2, 1), np.float32), epochs=1, verbose=0)
    (record,) = model.overflows
    assert f"column 0['wrong'] of the batch: 1 of 8 values {kind}" in str(record)
