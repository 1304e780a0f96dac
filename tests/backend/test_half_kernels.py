"""Half pooling and batch normalization without half kernels: the half kernels' numbers, and half tensors held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import amp, backend
from mixtrain.backend import DeviceInfo

pytestmark = pytest.mark.tensorflow
tf = pytest.importorskip("tensorflow")
CPU = DeviceInfo("CPU", "a CPU", fast_bfloat16=False)
GPU = DeviceInfo("GPU", "a GPU", fast_bfloat16=True)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[DeviceInfo], None]:
    """Return a function that puts the tests on a device."""

    def put(device: DeviceInfo) -> None:
        for file in ("kernels", "normalize"):
            monkeypatch.setattr(f"mixtrain.backend.tensorflow.{file}.describe_device", lambda: device)

    return put


def draw(*shape: int) -> Any:
    # Few different values: many are equal within a window.
    return tf.cast(np.random.default_rng(8).integers(-9, 9, shape) / 8, tf.float16)


def gradients(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return the results, and the gradients of a weighted sum of the first one."""
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        results = tf.nest.flatten(function(*arguments))
        weights = tf.cast(np.random.default_rng(9).standard_normal(results[0].shape), results[0].dtype)
        loss = tf.reduce_sum(results[0] * weights)
    return [*results, *tape.gradient(loss, arguments)]


def test_only_float16_on_cpu_has_no_kernels() -> None:
    from mixtrain.backend.tensorflow.kernels import has_kernels

    dtypes = ("float16", "bfloat16", "float32")
    assert [has_kernels(dtype, CPU) for dtype in dtypes] == [False, True, True]
    assert [has_kernels(dtype, GPU) for dtype in dtypes] == [True, True, True]


@pytest.mark.parametrize("mode", ["valid", "same"])
@pytest.mark.parametrize("compiled", [False, True])
def test_max_pooling_and_its_gradient_are_those_of_the_half_kernel(mode: str, compiled: bool, on: Any) -> None:
    def pooled(x: Any) -> Any:
        return backend.pool(lambda x: keras.ops.max_pool(x, 2, 2, mode), x)

    x, results = draw(2, 7, 6, 3), {}
    for device in (CPU, GPU):
        on(device)
        run = tf.function(gradients, autograph=False) if compiled else gradients
        results[device.kind] = run(pooled, x)
    for one, other in zip(results["CPU"], results["GPU"], strict=True):
        assert one.dtype == tf.float16
        np.testing.assert_array_equal(one, other)


def test_a_mean_is_rounded_once(on: Any) -> None:
    on(CPU)
    # In float16 2048 + 1 is 2048.
    x = tf.constant([2048.0, 1.0, 1.0, 2.0], tf.float16, (1, 2, 2, 1))
    assert backend.pool(lambda x: keras.ops.average_pool(x, 2), x).numpy().item() == 513.0


@pytest.mark.parametrize("training", [True, False])
def test_batch_normalization_has_the_half_kernels_numbers(training: bool, on: Any) -> None:
    parameters = [tf.constant(np.random.default_rng(2).uniform(0.5, 2, 3), tf.float32) for _ in range(4)]

    def normalized(*arguments: Any) -> Any:
        return backend.fused_batch_norm(*arguments, *parameters[2:], epsilon=1e-3, training=training)

    results = {}
    for device in (CPU, GPU):
        on(device)
        results[device.kind] = gradients(normalized, draw(4, 5, 6, 3), *parameters[:2])
    for one, other in zip(results["CPU"], results["GPU"], strict=True):
        assert one.dtype == other.dtype
        # Half a unit in the last place, where sums in another order fall on the other side.
        unit = 1e-3 if one.dtype == tf.float16 else 1e-5
        np.testing.assert_allclose(one, other, rtol=unit, atol=unit)


def test_second_derivatives_of_a_batch_normalization_pass_through(on: Any) -> None:
    results = {}
    for device in (CPU, GPU):
        on(device)
        x = draw(2, 3, 2, 2)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y, _, _ = backend.fused_batch_norm(
                    x, tf.ones(2), tf.zeros(2), tf.zeros(2), tf.ones(2), epsilon=1e-3, training=True
                )
                loss = tf.reduce_sum(tf.cast(y, tf.float32) ** 3)
            squares = tf.reduce_sum(tf.cast(inner.gradient(loss, x), tf.float32) ** 2)
        results[device.kind] = outer.gradient(squares, x)
    np.testing.assert_allclose(results["CPU"], results["GPU"], rtol=0.02, atol=0.1)


@pytest.mark.parametrize("name", ["pool", "norm"])
def test_the_backward_pass_starts_from_the_half_tensors(name: str, on: Any) -> None:
    on(CPU)

    def run(x: Any) -> Any:
        def pool(x: Any) -> Any:
            return backend.pool(lambda x: keras.ops.max_pool(x, 2), x)

        def norm(x: Any) -> Any:
            some = tf.ones(3)
            return backend.fused_batch_norm(x, some, some, some, some, epsilon=1e-3, training=True)[0]

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = {"pool": pool, "norm": norm}[name](x)
        return tape.gradient(y, x, output_gradients=tf.identity(y, name="seed"))

    graph = tf.function(run, autograph=False).get_concrete_function(draw(2, 4, 4, 3)).graph
    backward, read = {"seed"}, []
    for operation in graph.get_operations():
        before = {item.name for item in (*(tensor.op for tensor in operation.inputs), *operation.control_inputs)}
        if operation.name == "seed" or before & backward:
            backward.add(operation.name)
            read += [tensor for tensor in operation.inputs if tensor.op.name not in backward]
    assert {tensor.dtype for tensor in read if tensor.shape.rank == 4} == {tf.float16}


def test_keras_poolings_are_the_backend_under_a_plan_and_their_own_again() -> None:
    layers = keras.layers
    network = keras.Sequential([keras.Input((8, 8, 2)), layers.MaxPooling2D(2), layers.AveragePooling2D(2)])
    kinds = []

    def run(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = network(x)
        return tape.gradient(y, x)

    for level in ("O0", "O2"):
        applied = amp.apply_plan(network, amp.plan_precision(network, level))
        graph = tf.function(run, autograph=False).get_concrete_function(tf.ones((1, 8, 8, 2))).graph
        kinds.append({op.outputs[0].dtype for op in graph.get_operations() if op.type in ("MaxPool", "AvgPool")})
        assert ["call" in vars(layer) for layer in network.layers] == [level == "O2"] * 2
        applied.undo()
    assert kinds == [{tf.float32}] * 2
    assert not any("call" in vars(layer) for layer in network.layers)
