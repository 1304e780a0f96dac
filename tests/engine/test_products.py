"""Half products by float32 kernels: rounded once, the half tensors held, and native kernels where a device has them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from mixtrain import engine
from mixtrain.engine import DeviceFacts
from mixtrain.engine.tensorflow.products import multiplies

HALF = pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
SLOW, FAST = (DeviceFacts("CPU", "a CPU", fast_bfloat16=fast) for fast in (False, True))


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts the tests on a device."""
    return lambda device: monkeypatch.setattr(
        "mixtrain.engine.tensorflow.products.describe_device", lambda: device
    )


def _pair(dtype: str) -> list[Any]:
    draw = np.random.default_rng(3)
    return [tf.cast(draw.standard_normal(shape), dtype) for shape in ((5, 64), (64, 7))]


@pytest.mark.parametrize(
    ("device", "own"),
    [
        (SLOW, {"float16": False, "bfloat16": False, "float32": True}),
        (FAST, {"float16": False, "bfloat16": True, "float32": True}),
        (DeviceFacts("GPU", "a GPU", True), {"float16": True, "bfloat16": True, "float32": True}),
    ],
)
def test_a_device_multiplies_what_it_has_kernels_for(device: DeviceFacts, own: dict[str, bool]) -> None:
    assert {dtype: multiplies(dtype, device) for dtype in own} == own


@HALF
def test_the_sum_is_float32_and_rounded_once(dtype: str, on: Any) -> None:
    on(SLOW)
    x, y = _pair(dtype)
    exact = tf.cast(tf.matmul(tf.cast(x, "float64"), tf.cast(y, "float64")), "float32")
    result = engine.product(tf.matmul, x, y)
    assert result.dtype == dtype
    # Half a unit in the last place of the half format, and what float32 sums differ by.
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    np.testing.assert_allclose(tf.cast(result, "float32"), exact, rtol=unit * 1.01, atol=1e-5)


@HALF
def test_gradients_are_those_of_the_half_values(dtype: str, on: Any) -> None:
    on(SLOW)
    x, y = _pair(dtype)
    found = {}
    for name, function in (("by float32", lambda a, b: engine.product(tf.matmul, a, b)), ("own", tf.matmul)):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            loss = tf.reduce_sum(tf.cast(function(x, y), "float32") ** 2)
        found[name] = tape.gradient(loss, [x, y])
    for one, other in zip(found["by float32"], found["own"], strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(tf.cast(one, "float32"), tf.cast(other, "float32"), rtol=0.03, atol=0.5)


@HALF
def test_the_backward_pass_starts_from_the_half_tensors(dtype: str, on: Any) -> None:
    on(SLOW)

    @tf.function(autograph=False)
    def gradients(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            loss = tf.reduce_sum(engine.product(tf.matmul, x, y))
        return tape.gradient(loss, [x, y])

    graph = gradients.get_concrete_function(*_pair(dtype)).graph
    products = [operation for operation in graph.get_operations() if operation.type == "MatMul"]
    # A repeated forward pass that nothing reads is pruned.
    products = [operation for operation in products if operation.outputs[0].consumers()]
    assert len(products) == 3
    assert {operation.outputs[0].dtype for operation in products} == {tf.float32}
    forward, *backward = products
    casts = {tensor.name for operation in backward for tensor in operation.inputs}
    assert not casts & {tensor.name for tensor in forward.inputs}


@HALF
def test_a_device_with_half_units_uses_them(dtype: str, on: Any) -> None:
    on(DeviceFacts("GPU", "a GPU", True))
    seen: list[str] = []

    def matmul(x: Any, y: Any) -> Any:
        seen.append(x.dtype.name)
        return tf.matmul(x, y)

    engine.product(matmul, *_pair(dtype))
    assert seen == [dtype]


def test_float32_and_mixed_formats_are_left_alone(on: Any) -> None:
    on(SLOW)
    x, y = _pair("float32")
    np.testing.assert_array_equal(engine.product(tf.matmul, x, y), tf.matmul(x, y))


def test_second_derivatives_pass_through(on: Any) -> None:
    on(SLOW)
    x = tf.constant([[3.0]], tf.float16)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = engine.product(tf.matmul, engine.product(tf.matmul, x, x), x)
        first = inner.gradient(y, x)
    assert first.numpy().item() == 27 and outer.gradient(first, x).numpy().item() == 18


def test_products_of_keras_kernels_take_variables(on: Any) -> None:
    on(SLOW)
    kernel = keras.Variable(np.eye(2, dtype=np.float32), dtype="bfloat16")
    assert engine.product(keras.ops.matmul, tf.ones((1, 2), tf.bfloat16), kernel).dtype == tf.bfloat16
