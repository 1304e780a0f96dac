"""Products in float8: exact rounding, both gradients, each way of scaling, and nothing that is hidden by clipping."""

from __future__ import annotations

from typing import Any

import keras
import ml_dtypes
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.dtype import float_format
from mixtrain.precision.float8 import float8_einsum, to_float8
from mixtrain.precision.float8_state import AmaxHistory

FORMATS = ("float8_e4m3fn", "float8_e5m2")
DENSE = "...k,kn->...n"


def drawn(*shape: int, seed: int = 0, size: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * size).astype(np.float32)


def rounded(values: np.ndarray, name: str, scale: float | None = None) -> np.ndarray:
    """Return what float8 makes of values, by ml_dtypes, scaled by their largest magnitude."""
    largest = np.float32(float_format(name).max)
    factor = np.float32(np.abs(values).max() / largest if scale is None else scale)
    narrow = np.clip(values / factor, -largest, largest).astype(getattr(ml_dtypes, name))
    return narrow.astype(np.float32) * factor


def gradients_of(equation: str, x: np.ndarray, kernel: np.ndarray, upstream: np.ndarray, **options: Any) -> Any:
    """Return a product, and the gradients of its operands for a gradient of the product."""
    operands = [keras.Variable(value) for value in (x, kernel)]

    def loss() -> tuple[Any, Any]:
        product = float8_einsum(equation, *[variable.value for variable in operands], **options)
        return keras.ops.sum(product * upstream), product

    _, product, gradients = backend.value_and_gradient(loss, operands)
    return [backend.to_numpy(tensor) for tensor in (product, *gradients)]


@pytest.mark.parametrize("name", FORMATS)
def test_values_are_rounded_as_ml_dtypes_rounds_them(name: str) -> None:
    form = float_format(name)
    values = np.concatenate([
        np.linspace(-form.max, form.max, 10_001), drawn(20_000, size=2 * form.smallest_normal), [0.0, -0.0],
    ]).astype(np.float32)
    got = backend.to_numpy(keras.ops.cast(to_float8(backend.to_tensor(values), form), "float32"))
    np.testing.assert_array_equal(got, values.astype(getattr(ml_dtypes, name)).astype(np.float32))


@pytest.mark.parametrize(
    ("equation", "x", "kernel"),
    [(DENSE, (5, 8), (8, 3)), (DENSE, (2, 5, 8), (8, 3)), ("abc,cde->abde", (2, 5, 8), (8, 3, 4)),
     ("abcd,cde->abe", (2, 5, 3, 4), (3, 4, 8)), ("...k,nk->...n", (5, 8), (3, 8)), ("bi,bij->bj", (4, 6), (4, 6, 5))],
)
def test_product_and_gradients_are_those_of_the_rounded_operands(
    equation: str, x: tuple[int, ...], kernel: tuple[int, ...]
) -> None:
    inputs, weights = drawn(*x, seed=1, size=30), drawn(*kernel, seed=2, size=0.05)
    narrow = [backend.to_tensor(rounded(value, "float8_e4m3fn")) for value in (inputs, weights)]
    expected = backend.to_numpy(keras.ops.einsum(equation, *narrow))
    upstream = drawn(*expected.shape, seed=3, size=1e-4)
    narrow_upstream = rounded(upstream, "float8_e5m2")
    operands = [keras.Variable(value) for value in narrow]
    of_expected = backend.value_and_gradient(
        lambda: (keras.ops.sum(keras.ops.einsum(equation, *[each.value for each in operands]) * narrow_upstream), ()),
        operands,
    )[2]
    for got, right in zip(
        gradients_of(equation, inputs, weights, upstream), (expected, *map(backend.to_numpy, of_expected)), strict=True
    ):
        np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6 * np.abs(right).max())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_product_of_half_operands_is_half_and_sums_in_float32(dtype: str) -> None:
    x, kernel = keras.ops.full((1, 4096), 8.0, dtype), keras.ops.full((4096, 1), 1.0, dtype)
    product = float8_einsum(DENSE, x, kernel)
    assert keras.backend.standardize_dtype(product.dtype) == dtype
    assert float(keras.ops.cast(product, "float32")[0, 0]) == 32768.0


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("where", ["x", "kernel", "upstream"])
def test_what_is_not_finite_is_not_clipped_away(where: str, bad: float) -> None:
    arrays = {"x": drawn(4, 8), "kernel": drawn(8, 3), "upstream": drawn(4, 3)}
    arrays[where].flat[1] = bad
    product, of_x, of_kernel = gradients_of(DENSE, **arrays)
    if where == "upstream":
        assert not np.isfinite(of_x).all() and not np.isfinite(of_kernel).all()
    else:
        assert not np.isfinite(product).all()


@pytest.mark.parametrize("size", [0.0, 1e-42, 1e-30, 1e30])
def test_operands_of_any_size_give_finite_products(size: float) -> None:
    x, kernel = np.full((2, 16), size, np.float32), np.full((16, 2), 0.5, np.float32)
    values = gradients_of(DENSE, x, kernel, np.ones((2, 2), np.float32))
    assert all(np.isfinite(value).all() for value in values)
    if size >= 1e-30:
        np.testing.assert_allclose(values[0], 8 * x[:, :2], rtol=1e-6)


def test_histories_scale_by_what_they_know_and_learn_what_they_see() -> None:
    histories = [AmaxHistory(operand) for operand in ("inputs", "kernel", "outputs_grad")]
    histories[0].variables[1].assign(np.float32([0.0] * 1023 + [7.0]))
    variables = [variable for history in histories for variable in history.variables]
    x, kernel, upstream = np.float32([[1000.0, 2.0]]), np.float32([[1.0], [0.5]]), np.float32([[-3.0]])

    def loss() -> tuple[Any, Any]:
        product = float8_einsum(DENSE, backend.to_tensor(x), backend.to_tensor(kernel), histories)
        return keras.ops.sum(product * upstream), product

    _, product, values = backend.value_and_gradient(loss, variables)
    # The first scale is 1, so 1000 is clipped to 448.
    assert float(backend.to_numpy(product)[0, 0]) == 449.0
    scales = [float(value) for value in map(backend.to_numpy, values[::2])]
    assert scales == [7.0 / 448.0, 1.0, 1.0]
    assert [float(value[0]) for value in map(backend.to_numpy, values[1::2])] == [1000.0, 1.0, 3.0]
    assert [float(value.max()) for value in map(backend.to_numpy, values[1::2])] == [1000.0, 1.0, 3.0]
    assert float(backend.to_numpy(values[1])[-2]) == 7.0
