"""Check products, normalization and the loss-scale rule against float64, and LeNet-5 against golden traces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import keras
import numpy as np

from benchmarks.gpu_ceilings import PRODUCTS
from mixtrain import FixedLossScaleManager, backend
from mixtrain.loss_scale.rule import LossScaleRule, next_loss_scale
from tests.golden.lenet import EPOCHS, TRACES, train

# Error bound of a product, relative to the product of the absolute values: a few roundings.
PRODUCT_TOLERANCE: Final = {"float32": 2e-6, "tensorfloat32": 2e-3, "float16": 2e-3, "bfloat16": 1.6e-2}
TRACED: Final[dict[str, tuple[dict[str, Any], bool]]] = {
    "O0": ({}, False),
    "O0, sink": ({}, True),
    "O0_fixed1024_keep": ({"manager": (1024, False), "loss_scale": 1024.0}, False),
    "O2": ({"level": "O2"}, False),
    "O2, sink": ({"level": "O2"}, True),
    "O3": ({"level": "O3"}, False),
    "O2_fixed1024_keep": ({"level": "O2", "manager": (1024, False), "loss_scale": 1024.0}, False),
}


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run all checks; return a row for each with the error, its limit and whether it is met.

    Args:
        request: "traces": the golden traces to train, keys of `TRACED`.
    """
    rows = [*map(product_row, PRODUCTS), *map(convolution_row, PRODUCTS)]
    rows += [normalization_row(dtype) for dtype in ("float32", "float16", "bfloat16")]
    rows.append(rule_row())
    for name in request["traces"]:
        rows += trace_rows(name)
    return {"checks": rows}


def row(what: str, measured: float, limit: float) -> dict[str, Any]:
    """Return the row of a check; NaN never meets a limit."""
    return {"what": what, "measured": float(measured), "limit": limit, "met": bool(measured <= limit)}


def product_row(name: str) -> dict[str, Any]:
    """Check the matrix product of a precision."""
    return _linear_row(name, "matrix product, 192x320x256", (192, 320), (320, 256), jnp.matmul, np.matmul)


def convolution_row(name: str) -> dict[str, Any]:
    """Check the convolution of a precision."""
    compute = functools.partial(keras.ops.conv, strides=1, padding="valid", data_format="channels_last")
    return _linear_row(name, "3x3 convolution, 16 to 24 channels", (2, 12, 12, 16), (3, 3, 16, 24), compute, convolve)


def _linear_row(
    name: str, what: str, left: tuple[int, ...], right: tuple[int, ...], compute: Callable[..., Any],
    exact: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> dict[str, Any]:
    dtype, precision = PRODUCTS[name]
    random = np.random.default_rng(1)
    a, b = (jnp.asarray(random.standard_normal(shape, np.float32), dtype) for shape in (left, right))
    with jax.default_matmul_precision(precision):
        product = np.asarray(backend.product(compute, a, b), np.float64)
    wide = (np.asarray(a, np.float64), np.asarray(b, np.float64))
    error = np.abs(product - exact(*wide)) / exact(*map(np.abs, wide))
    return row(f"{what}, {name}", error.max(), PRODUCT_TOLERANCE[name])


def convolve(x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return the channels-last convolution without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], (1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, kernel)


def normalization_row(dtype: str) -> dict[str, Any]:
    """Check batch normalization of activations of a dtype, with float32 statistics."""
    random = np.random.default_rng(2)
    x = jnp.asarray(random.standard_normal((4, 8, 8, 12), np.float32) * 3 + 2, dtype)
    gamma, beta = (random.standard_normal(12, np.float32) for _ in range(2))
    zeros = np.zeros(12, np.float32)
    parameters = [jnp.asarray(value) for value in (gamma, beta, zeros, zeros + 1)]
    y, mean, variance = backend.fused_batch_norm(x, *parameters, epsilon=1e-3, training=True)
    wide = np.asarray(x, np.float64)
    axes = (0, 1, 2)
    exact = (wide - wide.mean(axes)) / np.sqrt(wide.var(axes) + 1e-3) * gamma + beta
    statistics = np.abs(np.asarray(mean) - wide.mean(axes)).max(), np.abs(
        np.asarray(variance) / wide.var(axes, ddof=1) - 1
    ).max()
    # Only the output is rounded to half precision; the statistics must be accurate to float32.
    step = {"float32": 2.0**-18, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    error = (np.abs(np.asarray(y, np.float64) - exact) / (1 + np.abs(exact))).max()
    worst = max(error / step, *(value / 2.0**-18 for value in statistics))
    return row(f"batch normalization, {dtype}, float32 statistics, in roundings", worst, 1.0)


def rule_row() -> dict[str, Any]:
    """Check the compiled loss-scale rule against exact arithmetic over 600 steps."""
    rule = LossScaleRule(2.0, 7, minimum=1.0)
    finite = np.random.default_rng(3).random(600) > 0.15

    @jax.jit
    def move(scale: Any, good: Any, finite: Any) -> Any:
        return next_loss_scale(rule, scale, good, finite)

    scale, good = jnp.float32(2.0**12), jnp.int32(0)
    exact, count, wrong = 2.0**12, 0, 0
    for is_finite in finite:
        scale, good = move(scale, good, jnp.bool_(is_finite))
        count = count + 1 if is_finite else 0
        exact = exact if is_finite else max(exact / 2, 1.0)
        if count == 7:
            exact, count = exact * 2, 0
        wrong += (float(scale), int(good)) != (exact, count)
    return row("loss-scale rule, 600 steps, steps that differ", wrong, 0)


def trace_rows(name: str) -> list[dict[str, Any]]:
    """Check one golden trace of LeNet-5: the losses of 192 steps."""
    settings, sink = TRACED[name]
    case = name.removesuffix(", sink")
    options = dict(settings)
    if "manager" in options:
        options["manager"] = FixedLossScaleManager(*options["manager"])
    with jax.default_matmul_precision("float32"):
        records, _ = train(**options, sink=sink)
    golden = np.load(TRACES)[f"loss/{case}"]
    if case.startswith("O0"):
        return [row(f"LeNet-5 {name}, losses of 64 steps", np.abs(records.loss[:64] - golden[:64]).max(), 1e-4)]
    ours, theirs = (losses.reshape(EPOCHS, -1).mean(axis=1) for losses in (records.loss, golden))
    return [
        row(f"LeNet-5 {name}, losses of 8 steps", np.abs(records.loss[:8] - golden[:8]).max(), 2e-2),
        row(f"LeNet-5 {name}, mean losses of epochs, relative", np.abs(ours / theirs - 1).max(), 0.02),
    ]
