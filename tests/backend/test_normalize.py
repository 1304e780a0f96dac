"""Normalization over axes: the numbers of the plain formula and of float64, and its gradients twice over."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from tests.backends import MODES, ON_KERAS_3_10, ON_TENSORFLOW, compiled, on_jax_only_some, quick_every

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((4, 3, 2, 5)).astype(np.float32)
CASES = [((3,), (5,)), ((2, 3), (2, 5)), ((1, 3), (2, 5)), ((2, 3), (3, 1, 1))]
ops = keras.ops


def plain(x: Any, gamma: Any, beta: Any, axes: tuple[int, ...]) -> Any:
    centered = x - ops.mean(x, axes, keepdims=True)
    variance = ops.mean(ops.square(centered), axes, keepdims=True)
    return centered / ops.sqrt(variance + 1e-3) * gamma + beta


def ours(x: Any, gamma: Any, beta: Any, axes: tuple[int, ...]) -> Any:
    return backend.normalize_axes(x, gamma, beta, axes=axes, epsilon=1e-3)[0]


def values_and_gradients(function: Callable[..., Any], axes: tuple[int, ...], *arguments: Any) -> list[Any]:
    """Return the output, the gradients of a loss, and the gradients of these gradients' squares."""

    def squares(*arguments: Any) -> Any:
        def loss(*arguments: Any) -> Any:
            y = function(*arguments, axes)
            return ops.sum(ops.sin(3 * y)), y

        _, y, first = backend.value_and_gradient(loss, [], arguments)
        return sum(ops.sum(ops.square(gradient)) for gradient in first), [y, *first]

    _, results, second = backend.value_and_gradient(squares, [], arguments)
    return [*results, *second]


@quick_every(3)
@pytest.mark.parametrize(("axes", "shape"), on_jax_only_some(CASES, [1, 3]))
@pytest.mark.parametrize("in_graph", on_jax_only_some([False, True], [1]))
def test_values_and_two_orders_of_gradients_are_those_of_the_formula(axes: Any, shape: Any, in_graph: bool) -> None:
    values = [X, *(RANDOM.standard_normal(shape).astype(np.float32) for _ in range(2))]

    def run(function: Any, run_as: Any = lambda f: f) -> Any:
        arguments = map(backend.to_tensor, values)
        return run_as(lambda *given: tuple(values_and_gradients(function, axes, *given)))(*arguments)

    expected, results = run(plain), run(ours, compiled) if in_graph else run(ours)
    for one, other in zip(map(backend.to_numpy, results), map(backend.to_numpy, expected), strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() < 1e-5 * max(1.0, np.abs(other).max())


@pytest.mark.parametrize(("axes", "shape"), on_jax_only_some(CASES, [0, 3]))
def test_values_and_gradients_of_the_input_are_those_of_float64(axes: Any, shape: Any) -> None:
    gamma, beta = (RANDOM.standard_normal(shape) for _ in range(2))
    weights, x = RANDOM.standard_normal(X.shape), X.astype(np.float64)
    scale = 1 / np.sqrt(x.var(axes, keepdims=True) + 1e-3)
    normal = (x - x.mean(axes, keepdims=True)) * scale
    upstream = weights * gamma
    along = (upstream * normal).mean(axes, keepdims=True)
    gradient = scale * (upstream - upstream.mean(axes, keepdims=True) - normal * along)

    def loss(x: Any) -> Any:
        y = ours(x, *(backend.to_tensor(value.astype(np.float32)) for value in (gamma, beta)), axes)
        return ops.sum(y * weights.astype(np.float32)), y

    _, y, (of_x,) = backend.value_and_gradient(loss, [], [backend.to_tensor(X)])
    np.testing.assert_allclose(backend.to_numpy(y), normal * gamma + beta, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(backend.to_numpy(of_x), gradient, rtol=1e-4, atol=2e-5)


# What rows have in common with the numbers in them, and how far the gradient may be from float64's, relative to its
# largest number. In float32, the numbers of the rows that lie close together are known only to some digits themselves.
ROWS: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "ordinary": (lambda base, noise: noise, 3e-7),
    "constant": (lambda base, noise: 1e4 * base + 0 * noise, 3e-7),
    "nearly constant": (lambda base, noise: base + 1e-4 * noise, 3e-7),
    "far from zero": (lambda base, noise: 1e3 * base + noise, 1e-4),
    "small": (lambda base, noise: 1e-6 * noise, 3e-7),
    "large": (lambda base, noise: 1e4 * noise, 3e-7),
    "constant but one": (lambda base, noise: np.where(np.arange(300) == 7, 1e3 * base, base), 2e-6),
}
# What the gradient that comes in and the one that goes out are rounded by, together.
ROUNDING = {"float32": 0.0, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def gradient_in_float64(x: Any, gamma: Any, upstream: Any, epsilon: float) -> Any:
    x, gamma, upstream = (value.astype(np.float64) for value in (x, gamma, upstream))
    scale = 1 / np.sqrt(x.var(-1, keepdims=True) + epsilon)
    normal, of_normal = (x - x.mean(-1, keepdims=True)) * scale, upstream * gamma
    along = (of_normal * normal).mean(-1, keepdims=True)
    return scale * (of_normal - of_normal.mean(-1, keepdims=True) - normal * along)


@pytest.mark.slow
@pytest.mark.parametrize("mode", on_jax_only_some(["compiled", "eager", "xla"]))
@pytest.mark.parametrize("dtype", ROUNDING)
def test_the_gradient_of_any_rows_is_that_of_float64(dtype: str, mode: str) -> None:
    def gradient(normalize: Callable[..., Any], x: Any, gamma: Any, upstream: Any) -> Any:
        def loss(x: Any) -> tuple[Any, Any]:
            return ops.sum(ops.cast(normalize(x, gamma), "float32") * upstream), None

        return backend.value_and_gradient(loss, [], [x])[2][0]

    def own(x: Any, gamma: Any) -> Any:
        return backend.normalize_axes(x, gamma, ops.zeros(300), axes=(1,), epsilon=1e-3)[0]

    def of_keras(x: Any, gamma: Any) -> Any:
        if ON_KERAS_3_10:  # It has no such operation.
            return ops.cast(plain(ops.cast(x, "float32"), gamma, ops.zeros(300), (1,)), x.dtype)
        return ops.layer_normalization(x, gamma, ops.zeros(300), axis=-1, epsilon=1e-3)

    run, run_keras = (MODES[mode](functools.partial(gradient, function)) for function in (own, of_keras))
    base, noise, upstream = (RANDOM.standard_normal(shape) for shape in ((8, 1), (8, 300), (8, 300)))
    gamma, upstream = (value.astype(np.float32) for value in (RANDOM.uniform(0.5, 1.5, 300), upstream))
    for name, (rows, bound) in ROWS.items():
        x = backend.to_tensor(rows(base, noise).astype(np.float32), dtype)
        wide = backend.to_numpy(ops.cast(x, "float32"))
        expected = gradient_in_float64(wide, gamma, upstream, 1e-3)
        error, keras_error = (
            np.abs(backend.to_numpy(ops.cast(call(x, backend.to_tensor(gamma), backend.to_tensor(upstream)), "float32"))
                   - expected).max() / np.abs(expected).max()
            for call in (run, run_keras)
        )
        assert error <= bound + ROUNDING[dtype], (name, error)
        assert error <= 2 * keras_error + 3e-7, (name, error, keras_error)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_is_normalized_in_float32_and_its_gradient_is_half(half: str) -> None:
    x, gamma, beta = backend.to_tensor(400 * X, half), ops.ones(5), ops.zeros(5)

    def loss(x: Any, gamma: Any) -> Any:
        y, *statistics = backend.normalize_axes(x, gamma, beta, axes=(3,), epsilon=1e-3)
        return ops.sum(ops.cast(ops.square(y), "float32")), (y, *statistics)

    _, (y, mean, variance), (of_x, of_gamma) = backend.value_and_gradient(loss, [], [x, gamma])
    assert [y.dtype, of_x.dtype] == [half, half]
    assert [mean.dtype, variance.dtype, of_gamma.dtype] == ["float32"] * 3
    # Squares of 400 do not fit into float16; the mean of y^2 is 1.
    values = backend.to_numpy(variance)
    assert np.isfinite(values).all() and values.max() > 65504
    assert float(ops.sum(of_gamma)) == pytest.approx(2 * X.size, rel=1e-2)


def test_statistics_are_the_formulas_and_have_no_gradient() -> None:
    def total(x: Any) -> Any:
        _, mean, variance = backend.normalize_axes(x, ops.ones(5), ops.zeros(5), axes=(0, 2), epsilon=1e-3)
        return ops.sum(mean + variance), (mean, variance)

    _, (mean, variance), (gradient,) = backend.value_and_gradient(total, [], [backend.to_tensor(X)])
    assert np.abs(backend.to_numpy(mean) - X.mean((0, 2), keepdims=True)).max() < 1e-6
    assert np.abs(backend.to_numpy(variance) - X.var((0, 2), keepdims=True)).max() < 1e-6
    assert gradient is None or not backend.to_numpy(gradient).any()


@pytest.mark.parametrize("values", [[2e38, -2e38], [1.1e37, 3.3e37, 2.7e37, 0.7e37, 1.9e37, 3.1e37, 1.3e37]])
def test_a_batch_whose_variance_overflows_has_no_finite_gradient(values: list[float]) -> None:
    """Its moving variance is not finite, and its loss is: loss scaling must see that step."""
    x = backend.to_tensor(np.array(values, np.float32).reshape(-1, 1, 1, 1))
    one, zero = backend.to_tensor(np.ones(1, np.float32)), backend.to_tensor(np.zeros(1, np.float32))

    def loss(x: Any) -> Any:
        y, _, variance = backend.fused_batch_norm(x, one, zero, zero, one, epsilon=1e-3, training=True)
        return y[0, 0, 0, 0] - y[1, 0, 0, 0], variance

    value, variance, (gradient,) = backend.value_and_gradient(loss, [], [x])
    assert np.isfinite(backend.to_numpy(value)) and np.isinf(backend.to_numpy(variance)).all()
    assert not np.isfinite(backend.to_numpy(variance)).any() and not np.isfinite(backend.to_numpy(gradient)).any()


@pytest.mark.skipif(ON_TENSORFLOW, reason="XLA computes what is normalized again for each part of the gradient")
@pytest.mark.parametrize("axes", [(1, 2, 3), (0, 1, 2), (3,)])
def test_the_gradient_of_a_maximum_of_normalized_values_goes_to_it(axes: Any) -> None:
    """JAX finds a maximum by comparing with it, so values that are computed again must have the same bits."""
    import jax

    for seed in range(12):
        draw = np.random.default_rng(seed)
        weights, gamma, beta, x, chosen = (
            draw.standard_normal(shape).astype(np.float32)
            for shape in ((3, 3), (1, 1, 1, 3), (1, 1, 1, 3), (4, 4, 4, 3), (4, 3))
        )

        def loss(*values: Any, x: Any = x, chosen: Any = chosen) -> Any:
            weights, gamma, beta = values
            y = backend.normalize_axes(keras.ops.tanh(x @ weights), gamma, beta, axes=axes, epsilon=1e-3)[0]
            return keras.ops.sum(keras.ops.max(y, axis=(1, 2)) * chosen)

        gradient = jax.grad(loss, (0, 1, 2))
        pairs = zip(jax.jit(gradient)(weights, gamma, beta), gradient(weights, gamma, beta), strict=True)
        for fused, eager in pairs:
            np.testing.assert_allclose(fused, eager, rtol=1e-4, atol=1e-4)
