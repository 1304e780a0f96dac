"""Keras's layer and group normalization in a planned network: the numbers of their own call, undone later."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain.amp import apply_plan, plan_precision
from tests.backends import on_jax_only_some
from tests.precision.test_fused_norm import draw, gradients

SHAPE = (6, 4, 5, 3)
L = keras.layers


def network(kind: Any = L.LayerNormalization, **options: Any) -> keras.Model:
    """Return a network of one normalization with parameters that are not the first ones."""
    model = keras.Sequential([keras.Input(SHAPE[1:]), kind(name="norm", **options)])
    rng = np.random.default_rng(3)
    for weight in model.weights:
        weight.assign(rng.uniform(0.5, 1.5, weight.shape))
    return model


@pytest.mark.parametrize(
    "options",
    on_jax_only_some(
        [
            {}, {"axis": (1, 3)}, {"axis": 2, "epsilon": 0.1}, {"center": False}, {"scale": False, "axis": (-2, -1)},
            {"kind": L.GroupNormalization, "groups": 3}, {"kind": L.GroupNormalization, "groups": -1, "axis": 1},
            {"kind": L.GroupNormalization, "groups": 2, "axis": 1, "scale": False, "center": False},
        ],
        [0, 4, 7],
    ),
)
def test_outputs_and_gradients_are_those_of_the_layers_own_call(options: dict[str, Any]) -> None:
    own, planned = network(**options), network(**options)
    applied = apply_plan(planned, plan_precision(planned, "O0"))
    x = draw(SHAPE)
    (expected, by), (result, found_by) = gradients(own, x, True), gradients(planned, x, True)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=2e-5)
    for one, other in zip(found_by, by, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    applied.undo()
    assert "call" not in vars(planned.get_layer("norm"))


@pytest.mark.parametrize("kind", [L.LayerNormalization, L.GroupNormalization])
def test_the_gradient_of_constant_rows_is_that_of_zero_variance(kind: Any) -> None:
    """Where all numbers of a row are equal, its gradient is the upstream less its mean, over sqrt(epsilon)."""
    options = {"axis": (1, 2, 3)} if kind is L.LayerNormalization else {"groups": 1}
    planned = network(kind, epsilon=1e-3, **options)
    apply_plan(planned, plan_precision(planned, "O0"))
    gamma = planned.get_layer("norm").gamma
    gamma.assign(np.ones(gamma.shape))
    x = np.broadcast_to(1e4 * draw((6, 1, 1, 1)), SHAPE)
    weights = np.random.default_rng(4).standard_normal(SHAPE)  # What `gradients` weighs the outputs by.
    expected = (weights - weights.mean((1, 2, 3), keepdims=True)) / np.sqrt(1e-3)
    *_, of_x = gradients(planned, x, True)[1]
    np.testing.assert_allclose(of_x, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("given", ["float32", "half"])
@pytest.mark.parametrize("options", [{}, {"kind": L.GroupNormalization, "groups": 1}], ids=["layer", "group"])
def test_in_half_the_layer_gives_half_computed_in_float32(options: dict[str, Any], half: str, given: str) -> None:
    planned = network(**options)
    plan = plan_precision(planned, "O2", cast_model_type=half)
    row = plan.row("norm")
    assert (row.compute_dtype, row.output_dtype) == ("float32", half)
    apply_plan(planned, plan)
    # Squares of 400 do not fit into float16.
    x = keras.ops.cast(400 * draw(SHAPE), half if given == "half" else given)
    result = planned.get_layer("norm")(x)
    assert result.dtype == half
    expected = network(**options)(keras.ops.cast(x, "float32"))
    np.testing.assert_allclose(np.asarray(keras.ops.cast(result, "float32")), expected, atol=3e-2)


@pytest.mark.tensorflow  # JAX has no float64 without its own mode for it.
def test_float64_goes_through_the_layers_own_call() -> None:
    planned = network(dtype="float64")
    apply_plan(planned, plan_precision(planned, "O0"))
    x = draw(SHAPE).astype(np.float64)
    np.testing.assert_array_equal(planned.get_layer("norm")(x), network(dtype="float64").get_layer("norm")(x))


@pytest.mark.parametrize("kind", [L.LayerNormalization, L.GroupNormalization, L.BatchNormalization])
def test_an_output_that_is_planned_in_float32_is_not_rounded_to_half_before(kind: Any) -> None:
    options = {"groups": 2} if kind is L.GroupNormalization else {}
    model = keras.Sequential([keras.Input((4,)), L.Dense(8), kind(name="norm", **options)])
    model.get_layer("norm").gamma.assign(np.full(8, 1e5, np.float32))
    mixtrain.to_float(model.get_layer("norm"), mixtrain.float32)
    plan = plan_precision(model, "O2")
    assert plan.row("norm").output_dtype == mixtrain.float32
    apply_plan(model, plan)
    result = keras.ops.convert_to_numpy(model(draw((6, 4)), training=True))
    assert np.isfinite(result).all() and np.abs(result).max() > 65504
