"""Batch statistics of one pass on JAX: their errors against float64 and beside Keras's own, whatever the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np
import pytest

from mixtrain import backend

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="TensorFlow has a kernel of its own")

CHANNELS, EPSILON = 8, 1e-3
RANDOM = np.random.default_rng(11)
NOISE = RANDOM.standard_normal((8, 32, 9, CHANNELS))
GAMMA = RANDOM.uniform(0.5, 1.5, CHANNELS).astype(np.float32)
UPSTREAM = RANDOM.standard_normal(NOISE.shape).astype(np.float32)
ROWS = np.arange(32)[:, None, None]
FIRST, ROW_9 = ROWS < 2, ROWS == 9  # The sums are about the mean of the first 2 of 32 rows of all images.

# Batch -> values, and the largest errors in float32: of the variance relative to it and epsilon, of the outputs, and of
# the gradient relative to its largest number. In comments those of Keras's formula, which reads the batch twice.
BATCHES: Final[dict[str, tuple[Any, tuple[float, float, float]]]] = {
    "ordinary": (NOISE, (4e-7, 2e-6, 4e-7)),  # 6e-8, 7e-7, 1e-7
    "one image": (NOISE[:1], (2e-6, 2e-6, 4e-7)),  # 1e-7, 6e-7, 9e-8
    "3 rows": (NOISE[:, :3], (2e-6, 2e-6, 6e-7)),  # 4e-7, 6e-7, 1e-7
    "5 rows": (NOISE[:, :5], (2e-6, 2e-6, 6e-7)),  # 4e-7, 8e-7, 2e-7
    "one value": (NOISE[:1, :1, :1], (0.0, 0.0, 0.0)),  # 0, 0, 0
    "constant": (0 * NOISE + 1e4 * NOISE[0, 0, 0], (5e-7, 0.0, 3e-7)),  # 9e-3, 1e-1, 3e-3
    "constant but one": (1.0 + 1e3 * ROW_9 + 0 * NOISE, (2e-7, 4e-6, 4e-7)),  # 0, 5e-7, 1e-7
    "mean of 1e4 deviations": (1e4 + NOISE, (4e-7, 1e-3, 4e-5)),  # 1e-6, 2e-3, 4e-5
    "mean of 1e6 deviations": (1e6 + NOISE, (4e-7, 8e-2, 3e-3)),  # 1e-3, 1e-1, 5e-3
    "last rows 1e4 deviations off": (NOISE + 1e4 * FIRST[::-1], (4e-7, 2e-6, 4e-7)),  # 6e-8, 7e-7, 1e-7
    "small": (1e-6 * NOISE, (2e-7, 2e-6, 4e-7)),  # 1e-16, 2e-11, 8e-8
    "large": (1e15 * NOISE, (4e-7, 2e-6, 4e-7)),  # 7e-8, 6e-7, 4e-2
    # The worst there is: the sums are about a mean that lies the square root of 15 deviations away.
    "first rows 20 deviations off": (NOISE + 20 * FIRST, (1e-5, 4e-5, 6e-6)),  # 8e-8, 7e-7, 1e-7
    "first rows 1e4 deviations off": (NOISE + 1e4 * FIRST, (1e-5, 4e-5, 6e-6)),  # 1e-7, 1e-6, 2e-7
    "first rows constant": (np.where(FIRST, 5.0, NOISE), (1e-5, 4e-5, 6e-6)),  # 1e-7, 4e-7, 1e-7
}
# What the outputs and the gradient are rounded by, relative to the largest one.
HALF: Final = ("float16", "bfloat16")
ROUNDING: Final = {"float32": 0.0, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def errors_of(normalize: Callable[..., Any], x: Any) -> tuple[float, float, float]:
    """Return the errors of the variance, the outputs and the gradient of one formula against float64."""
    upstream = UPSTREAM[: x.shape[0], : x.shape[1], : x.shape[2]]

    def loss(x: Any) -> Any:
        y, variance = normalize(x)
        y = keras.ops.cast(y, "float32")
        return keras.ops.sum(y * upstream), (y, variance)

    _, (y, variance), (gradient,) = backend.value_and_gradient(loss, [], [x])
    wide, axes = backend.to_numpy(keras.ops.cast(x, "float32")).astype(np.float64), (0, 1, 2)
    exact_variance = wide.var(axes)
    scale = 1 / np.sqrt(exact_variance + EPSILON)
    normal = (wide - wide.mean(axes)) * scale
    d_normal = upstream * GAMMA.astype(np.float64)
    exact_gradient = scale * (d_normal - d_normal.mean(axes) - normal * (d_normal * normal).mean(axes))
    size = max(np.abs(exact_gradient).max(), np.abs(scale * d_normal).max())
    return (
        float((np.abs(backend.to_numpy(variance).reshape(-1) - exact_variance) / (exact_variance + EPSILON)).max()),
        float(np.abs(backend.to_numpy(y) - normal * GAMMA).max()),
        float(np.abs(backend.to_numpy(keras.ops.cast(gradient, "float32")) - exact_gradient).max() / size),
    )


def own(x: Any) -> tuple[Any, Any]:
    y, _, variance = backend.normalize_axes(
        x, keras.ops.convert_to_tensor(GAMMA), keras.ops.zeros(CHANNELS), axes=(0, 1, 2), epsilon=EPSILON
    )
    return y, variance


def of_keras(x: Any) -> tuple[Any, Any]:
    """As Keras's layer: statistics and normalization in float32."""
    wide = keras.ops.cast(x, "float32")
    mean, variance = keras.ops.moments(wide, axes=(0, 1, 2))
    y = keras.ops.batch_normalization(wide, mean, variance, -1, keras.ops.zeros(CHANNELS), GAMMA, EPSILON)
    return keras.ops.cast(y, x.dtype), variance


@pytest.mark.parametrize("dtype", ["float32", *(pytest.param(half, marks=pytest.mark.slow) for half in HALF)])
def test_errors_against_float64_stay_small_whatever_the_batch(dtype: str) -> None:
    for name, (values, bounds) in BATCHES.items():
        if dtype == "float16" and np.abs(values).max() > 65504:
            continue
        x = backend.to_tensor(values.astype(np.float32), dtype)
        errors, keras_errors = errors_of(own, x), errors_of(of_keras, x)
        rounding = (0.0, 8 * ROUNDING[dtype], ROUNDING[dtype])
        for error, keras_error, bound, rounded in zip(errors, keras_errors, bounds, rounding, strict=True):
            assert error <= bound + rounded, (name, errors, keras_errors)
            if "first rows" not in name:
                assert error <= 2 * keras_error + bound / 2, (name, errors, keras_errors)


@pytest.mark.parametrize("where", [0, 31])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_value_that_is_not_finite_shows_in_statistics_and_gradient(value: float, where: int) -> None:
    """Also where it is not among the rows that the sums are about."""
    values = NOISE.astype(np.float32)
    values[5, where, 0, 3] = value

    def loss(x: Any) -> Any:
        y, variance = own(x)
        return keras.ops.sum(y), (y, variance)

    _, (y, variance), (gradient,) = backend.value_and_gradient(loss, [], [backend.to_tensor(values)])
    for result in (y, variance.reshape(1, 1, 1, -1), gradient):
        finite = np.isfinite(backend.to_numpy(result)).all((0, 1, 2))
        assert not finite[3] and finite[[0, 1, 2, 4, 5, 6, 7]].all()


def test_the_batch_is_read_once_for_both_sums() -> None:
    """One more pass is over a sixteenth of its rows: of all images, since the batch may be sharded."""
    import jax

    program = jax.make_jaxpr(lambda x: own(x)[1])(NOISE.astype(np.float32))
    sizes = [equation.invars[0].aval.shape for equation in equations_of(program.jaxpr) if "reduce_sum" in str(equation)]
    assert sorted(shape[1] for shape in sizes) == [2, 32, 32]


def equations_of(program: Any) -> list[Any]:
    """Return the operations of a program and of its functions."""
    found = []
    for equation in program.eqns:
        inner = [value for value in equation.params.values() if hasattr(value, "eqns") or hasattr(value, "jaxpr")]
        found += [deeper for value in inner for deeper in equations_of(getattr(value, "jaxpr", value))] or [equation]
    return found

