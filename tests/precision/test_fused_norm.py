"""Keras's BatchNormalization in a planned network: the numbers of its own call, in one kernel, and undone later."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain.amp import apply_plan, plan_precision
from tests.backends import on_jax_only_some, quick_every

SHAPES = [(6, 4, 5, 3), (16, 3), (6, 4, 3), (2, 3, 2, 4, 3)]
OPTIONS = [{}, {"center": False}, {"scale": False, "momentum": 0.5}, {"trainable": False}]
HALF = {"float16": 2e-3, "bfloat16": 2e-2}


def network(shape: tuple[int, ...], **options: Any) -> keras.Model:
    """Return a network of one batch normalization with parameters and statistics that are not the first ones."""
    layer = keras.layers.BatchNormalization(name="norm", **options)
    model = keras.Sequential([keras.Input(shape[1:]), layer])
    rng = np.random.default_rng(3)
    for weight in layer.weights:
        weight.assign(rng.uniform(0.5, 1.5, weight.shape))
    return model


def gradients(model: keras.Model, x: np.ndarray, training: bool) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return outputs, and the gradients of a weighted sum by input and parameters."""
    weights = np.random.default_rng(4).standard_normal(x.shape).astype(np.float32)

    def forward(x: Any) -> tuple[Any, Any]:
        outputs = keras.ops.cast(model(x, training=training), "float32")
        return keras.ops.sum(outputs * weights), outputs

    tensors = [mixtrain.backend.to_tensor(x)]
    _, outputs, result = mixtrain.backend.value_and_gradient(forward, model.trainable_variables, tensors)
    return np.asarray(outputs), [np.asarray(gradient) for gradient in result if gradient is not None]


def draw(shape: tuple[int, ...]) -> np.ndarray:
    return (np.random.default_rng(5).standard_normal(shape) * 2 + 1).astype(np.float32)


@quick_every(5)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", on_jax_only_some(OPTIONS, [0, 2]))
@pytest.mark.parametrize("shape", on_jax_only_some(SHAPES, [0, 3]), ids=str)
def test_outputs_gradients_and_statistics_are_those_of_the_layers_own_call(
    shape: tuple[int, ...], options: dict[str, Any], training: bool
) -> None:
    own, planned = network(shape, **options), network(shape, **options)
    apply_plan(planned, plan_precision(planned, "O0"))
    x = draw(shape)
    (expected, by), (result, found_by) = gradients(own, x, training), gradients(planned, x, training)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=2e-5)
    for one, other in zip(found_by, by, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    for one, other in zip(planned.weights, own.weights, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("half", HALF)
def test_in_half_the_layer_takes_and_gives_half_and_keeps_float32_inside(half: str) -> None:
    shape = (6, 4, 5, 3)
    own, planned = network(shape), network(shape)
    plan = plan_precision(planned, "O2", cast_model_type=half)
    row = plan.row("norm")
    assert (row.compute_dtype, row.output_dtype, row.fused) == ("float32", half, True)
    apply_plan(planned, plan)
    layer, seen = planned.get_layer("norm"), []
    before = layer.call
    object.__setattr__(layer, "call", lambda inputs, **kw: seen.append(inputs.dtype) or before(inputs, **kw))
    x = draw(shape)
    outputs = layer(keras.ops.cast(x, half), training=True)
    assert seen == [half] and outputs.dtype == half
    expected = own(keras.ops.cast(keras.ops.cast(x, half), "float32"), training=True)
    result = np.asarray(keras.ops.cast(outputs, "float32"))
    np.testing.assert_allclose(result, np.asarray(expected), atol=4 * HALF[half])
    for one, other in zip(layer.weights, own.weights, strict=True):
        assert one.dtype == "float32"
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "options", "reason"),
    [
        ((6, 3, 4, 4), {"axis": 1}, "axis=1"),
        # Keras has it on TensorFlow alone.
        pytest.param((6, 4, 5, 3), {"synchronized": True}, "synchronized=True", marks=pytest.mark.tensorflow),
    ],
)
def test_where_the_kernel_does_not_apply_the_report_says_so(
    shape: tuple[int, ...], options: dict[str, Any], reason: str
) -> None:
    planned = network(shape, **options)
    plan = plan_precision(planned, "O2")
    assert not plan.row("norm").fused and plan.row("norm").why.endswith(f"in separate operations: {reason}")
    apply_plan(planned, plan)
    if "axis" in options:
        own, x = network(shape, **options), draw(shape)
        result = np.asarray(planned(x, training=True))
        np.testing.assert_allclose(result, np.asarray(own(x, training=True)), atol=2e-2)


def test_masked_inputs_go_through_the_layers_own_call() -> None:
    shape = (4, 5, 3)
    own, planned = network(shape), network(shape)
    apply_plan(planned, plan_precision(planned, "O0"))
    x, mask = draw(shape), np.arange(5) < np.array([[5], [3], [2], [5]])
    for model in (own, planned):
        model.get_layer("norm")(x, training=True, mask=mask)
    for one, other in zip(planned.weights, own.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_undoing_the_plan_leaves_the_layer_as_it_was() -> None:
    planned = network((6, 4, 5, 3))
    layer = planned.get_layer("norm")
    applied = apply_plan(planned, plan_precision(planned, "O2"))
    assert "call" in vars(layer) and layer.compute_dtype == "float16"
    applied.undo()
    assert "call" not in vars(layer) and layer.dtype_policy.name == "float32"


def test_a_class_with_a_call_of_its_own_is_left_alone() -> None:
    class Loud(keras.layers.BatchNormalization):
        def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
            return super().call(inputs, training=training, mask=mask) + 1.0

    model = keras.Sequential([keras.Input((4, 4, 3)), Loud(name="loud")])
    plan = plan_precision(model, "O2")
    assert plan.row("loud").why.endswith("its class has a call of its own")
