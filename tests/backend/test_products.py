"""Half products by float32 kernels: rounded once, the half tensors held, and native kernels where a device has them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.backend import DeviceInfo
from tests.backends import ON_TENSORFLOW

HALF = pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
SLOW, FAST = (DeviceInfo("CPU", "a CPU", fast_bfloat16=fast) for fast in (False, True))
matmul = keras.ops.matmul


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts the tests on a device; XLA has half kernels on any."""
    if not ON_TENSORFLOW:
        return lambda device: None
    return lambda device: monkeypatch.setattr(
        "mixtrain.backend.tensorflow.kernels.describe_device", lambda: device
    )


def _pair(dtype: str) -> list[Any]:
    draw = np.random.default_rng(3)
    values = [draw.standard_normal(shape).astype(np.float32) for shape in ((5, 64), (64, 7))]
    return [backend.to_tensor(value, dtype) for value in values]


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("device", "own"),
    [
        (SLOW, {"float16": False, "bfloat16": False, "float32": True}),
        (FAST, {"float16": False, "bfloat16": True, "float32": True}),
        (DeviceInfo("GPU", "a GPU", True), {"float16": True, "bfloat16": True, "float32": True}),
    ],
)
def test_a_device_multiplies_what_it_has_kernels_for(device: DeviceInfo, own: dict[str, bool]) -> None:
    from mixtrain.backend.tensorflow.kernels import multiplies

    assert {dtype: multiplies(dtype, device) for dtype in own} == own


@HALF
def test_the_sum_is_float32_and_rounded_once(dtype: str, on: Any) -> None:
    on(SLOW)
    x, y = _pair(dtype)
    exact = backend.to_numpy(x).astype(np.float64) @ backend.to_numpy(y).astype(np.float64)
    result = backend.product(matmul, x, y)
    assert result.dtype == dtype
    # Half a unit in the last place of the half-precision dtype, and what float32 sums differ by.
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    np.testing.assert_allclose(backend.to_numpy(result), exact, rtol=unit * 1.01, atol=1e-5)


@HALF
def test_gradients_are_those_of_the_half_values(dtype: str, on: Any) -> None:
    on(SLOW)
    results = {}
    for name, function in (("by the backend", lambda a, b: backend.product(matmul, a, b)), ("own", matmul)):

        def loss(x: Any, y: Any, function: Any = function) -> Any:
            return keras.ops.sum(keras.ops.cast(function(x, y), "float32") ** 2), None

        results[name] = backend.value_and_gradient(loss, [], _pair(dtype))[2]
    for one, other in zip(results["by the backend"], results["own"], strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(backend.to_numpy(one), backend.to_numpy(other), rtol=0.03, atol=0.5)


@pytest.mark.tensorflow
@HALF
def test_the_backward_pass_starts_from_the_half_tensors(dtype: str, on: Any) -> None:
    tf = pytest.importorskip("tensorflow")
    on(SLOW)

    @tf.function(autograph=False)
    def gradients(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            loss = tf.reduce_sum(backend.product(tf.matmul, x, y))
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


@pytest.mark.tensorflow
def test_the_two_gradients_hold_float32_copies_one_after_the_other(on: Any) -> None:
    tf = pytest.importorskip("tensorflow")
    on(SLOW)

    @tf.function(autograph=False)
    def gradients(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            loss = tf.reduce_sum(backend.product(tf.matmul, x, y))
        return tape.gradient(loss, [x, y])

    graph = gradients.get_concrete_function(*_pair("float16")).graph
    products = [operation for operation in graph.get_operations() if operation.type == "MatMul"]
    first, second = [operation for operation in products if operation.outputs[0].consumers()][1:]
    before, waiting = set(), [second]
    while waiting:
        operation = waiting.pop()
        if operation.name not in before:
            before.add(operation.name)
            waiting += [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
    assert first.name in before


@HALF
def test_a_device_with_half_units_uses_them(dtype: str, on: Any) -> None:
    on(DeviceInfo("GPU", "a GPU", True))
    seen: list[str] = []

    def product(x: Any, y: Any) -> Any:
        seen.append(keras.backend.standardize_dtype(x.dtype))
        return matmul(x, y)

    backend.product(product, *_pair(dtype))
    assert seen == [dtype]


def test_float32_and_mixed_formats_are_left_alone(on: Any) -> None:
    on(SLOW)
    x, y = _pair("float32")
    results, expected = backend.product(matmul, x, y), matmul(x, y)
    np.testing.assert_array_equal(backend.to_numpy(results), backend.to_numpy(expected))


def test_a_matrix_times_the_transpose_of_another(on: Any) -> None:
    on(SLOW)
    x, y = _pair("float16")
    results, expected = backend.times_transposed(x, keras.ops.transpose(y)), backend.product(matmul, x, y)
    assert results.dtype == "float16"
    np.testing.assert_array_equal(backend.to_numpy(results), backend.to_numpy(expected))


def test_second_derivatives_pass_through(on: Any) -> None:
    on(SLOW)

    def first(x: Any) -> Any:
        def cube(x: Any) -> Any:
            return keras.ops.sum(backend.product(matmul, backend.product(matmul, x, x), x)), None

        (gradient,) = backend.value_and_gradient(cube, [], [x])[2]
        return keras.ops.sum(gradient), gradient

    _, derivative, (second,) = backend.value_and_gradient(first, [], [backend.to_tensor([[3.0]], "float16")])
    assert backend.to_numpy(derivative).item() == 27 and backend.to_numpy(second).item() == 18


def test_products_of_keras_kernels_take_variables(on: Any) -> None:
    on(SLOW)
    kernel = keras.Variable(np.eye(2, dtype=np.float32), dtype="bfloat16")
    assert backend.product(matmul, keras.ops.ones((1, 2), "bfloat16"), kernel).dtype == "bfloat16"
