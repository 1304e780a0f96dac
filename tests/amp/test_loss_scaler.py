"""The scalers for loops of the user's own: the same rule, scale and unscale in every format, a whole loop."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend, data_backend, nn
from mixtrain.amp import DynamicLossScaler, LossScaler, StaticLossScaler, all_finite
from tests.backends import quick_every
from tests.train.planted import GOLDEN, Chain, batches


@quick_every(5)
@pytest.mark.parametrize("tensors", [False, True], ids=["bools", "tensors"])
@pytest.mark.parametrize(("first", "factor", "window", "flags", "expected"), GOLDEN)
def test_adjust_follows_every_golden_sequence(
    first: float, factor: float, window: int, flags: str, expected: list[float], tensors: bool
) -> None:
    scaler = DynamicLossScaler(first, factor, window)
    seen = []
    for flag in flags:
        finite: Any = mixtrain.Tensor(flag == "0") if tensors else flag == "0"
        assert scaler.adjust(finite) is True
        seen.append(float(scaler.scale_value))
    assert seen == expected


@pytest.mark.slow
def test_5000_good_and_5000_bad_adjustments_stay_finite() -> None:
    scaler = DynamicLossScaler(2**24, 2, 1)

    def step(finite: Any) -> tuple[Any]:
        scaler.adjust(finite)
        return (keras.ops.convert_to_tensor(scaler.scale_value),)

    loop = backend.CompiledSteps(step, choice=backend.JitChoice(False, "test")).run_stream
    flags = data_backend.pipeline_from_arrays([np.repeat([True, False], 5000)])
    scales = backend.to_numpy(loop(flags.graph_iterator(), 10_000)[0])
    assert np.isfinite(scales).all() and scales.min() >= 1
    assert (scales[4999], scales[9999]) == (2.0**127, 1.0)


def test_the_counter_counts_good_steps() -> None:
    scaler = DynamicLossScaler(16, 2, 3)
    for finite, count in ((True, 1), (True, 2), (True, 0), (True, 1), (False, 0)):
        scaler.adjust(finite)
        assert int(scaler.counter) == count
    assert (scaler.scale_factor, scaler.scale_window) == (2, 3)


def test_a_static_scaler_stays() -> None:
    scaler = StaticLossScaler(8)
    assert scaler.adjust(mixtrain.Tensor(False)) is False
    assert float(scaler.scale_value) == 8


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_scaling_keeps_the_format_and_unscaling_undoes_it(dtype: str) -> None:
    scaler = StaticLossScaler(2**24)
    given = mixtrain.Tensor([2.0**-20, 0.0], mixtrain.dtype.as_dtype(dtype))
    scaled = scaler.scale(given)
    assert scaled.dtype == given.dtype
    assert backend.to_numpy(scaled).tolist() == [16.0, 0.0]
    assert backend.to_numpy(scaler.unscale(scaled)).tolist() == [2.0**-20, 0.0]


def test_structures_numbers_and_none_are_scaled() -> None:
    scaler = StaticLossScaler(8)
    assert float(scaler.scale(2.0)) == 16.0
    first, (second, missing) = scaler.unscale((mixtrain.Tensor(8.0), [mixtrain.Tensor([16.0]), None]))
    assert (float(first), backend.to_numpy(second).tolist(), missing) == (1.0, [2.0], None)


@pytest.mark.tensorflow  # JAX's gradients are never sparse.
def test_sparse_gradients_are_scaled() -> None:
    tf = pytest.importorskip("tensorflow")
    scaler = StaticLossScaler(8)
    sparse = tf.IndexedSlices(tf.fill((1, 2), 24.0), tf.constant([3]), tf.constant([5, 2]))
    assert scaler.unscale((sparse,))[0].values.numpy().tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DynamicLossScaler(0.5, 2, 3), ValueError, "scale_value must be at least 1; got 0.5. Write "),
        (lambda: DynamicLossScaler("8", 2, 3), TypeError, "scale_value must be a number; got str '8'"),
        (lambda: DynamicLossScaler(1e39, 2, 3), ValueError, "scale_value must be at most"),
        (lambda: DynamicLossScaler(16, 1, 3), ValueError, "scale_factor must be greater than 1; got 1. Write "),
        (lambda: DynamicLossScaler(16, 2, 0), ValueError, "scale_window must be at least 1; got 0. Write "),
        (lambda: DynamicLossScaler(16, 2, 3.0), TypeError, "scale_window must be an int; got float 3.0"),
        (lambda: StaticLossScaler(0), ValueError, "scale_value must be at least 1; got 0. Write scale_value="),
        (lambda: StaticLossScaler(math.inf), ValueError, "scale_value must be finite; got inf"),
        (lambda: StaticLossScaler(True), TypeError, "scale_value must be a number; got bool True"),
    ],
)
def test_a_bad_argument_is_refused_with_what_to_write(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert "LossScaler: " + message in str(caught.value)


def test_a_scaler_of_ones_own_must_define_all_three() -> None:
    with pytest.raises(TypeError, match="Half.*adjust"):
        type("Half", (LossScaler,), {"scale": lambda s, x: x, "unscale": lambda s, x: x})()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[1.0, 2.0]], True), ([[1.0, math.inf]], False), ([[1.0], [math.nan]], False), ([[1.0], [-math.inf]], False),
        ([[3.0], []], True),
    ],
)
def test_all_finite_looks_at_every_value(values: Any, expected: bool) -> None:
    assert bool(all_finite([mixtrain.Tensor(np.array(value, np.float32)) for value in values])) is expected


def test_all_finite_passes_over_none_and_integers_and_looks_into_structures_and_half() -> None:
    assert bool(all_finite((None, mixtrain.Tensor(np.array([1])), mixtrain.Tensor(1.0)))) is True
    assert bool(all_finite([[mixtrain.Tensor(1.0)], (mixtrain.Tensor(np.inf),)])) is False
    assert bool(all_finite([mixtrain.Tensor(np.float16(65504), mixtrain.float16) * 2])) is False


@pytest.mark.parametrize("inputs", [mixtrain.Tensor(1.0), [], 5, None])
def test_all_finite_takes_a_list(inputs: Any) -> None:
    with pytest.raises(TypeError, match=r"all_finite: inputs must be a tuple or list of tensors.*Write all_finite\(\["):
        all_finite(inputs)


@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE], ids=["graph", "eager"])
def test_a_loop_of_ones_own_follows_a_golden_sequence(mode: int) -> None:
    mixtrain.set_context(mode=mode)
    first, factor, window, flags, expected = GOLDEN[2]
    net = Chain()
    weights, scaler = net.trainable_params(), DynamicLossScaler(first, factor, window)
    optimizer, with_loss = nn.SGD(weights, 2.0**-20), nn.WithLossCell(net, nn.L1Loss())

    def step(data: Any, label: Any) -> Any:
        scaled, _, gradients = backend.value_and_gradient(lambda: (scaler.scale(with_loss(data, label)), ()), weights)
        gradients = scaler.unscale(gradients)
        finite = all_finite(gradients)
        backend.cond(finite, lambda: optimizer(gradients), lambda: None)
        scaler.adjust(finite)
        return scaler.unscale(scaled)

    compiled = backend.compile_function(step, choice=backend.JitChoice(False, "test"))
    seen = []
    for data, label in batches(flags):
        compiled(mixtrain.Tensor(data), mixtrain.Tensor(label))
        seen.append(float(scaler.scale_value))
    assert seen == expected
    assert net.first.asnumpy() == 2.0**-10 - flags.count("0") * 2.0**-20
