"""Convolutions and max pooling on JAX's CPU compiler: in the forms that are fast there, with the same numbers."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from tests.backends import quick_every

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="about the JAX backend")
if keras.backend.backend() == "jax":
    import jax

    from mixtrain.backend.jax.rewrite import rewritten
    from mixtrain.backend.jax.windows import _FAST, with_fast_windows

X = np.random.default_rng(0).standard_normal((2, 9, 8, 4), np.float32)
KERNEL = np.random.default_rng(1).standard_normal((3, 3, 4, 5), np.float32)
FAST = "dim_labels=b01f_01io->b01f"


def loss(
    x: Any, kernel: Any, strides: tuple[int, int] = (1, 1), axes: Any = ("NHWC", "HWIO", "NHWC"), **options: Any
) -> Any:
    """A number of a convolution, through a function of its own gradient and one that is compiled apart."""
    y = jax.jit(
        jax.lax.conv_general_dilated, static_argnums=(2, 3), static_argnames=("dimension_numbers", *options)
    )(x, kernel, strides, "SAME", dimension_numbers=axes, **options)
    return jax.numpy.square(jax.nn.relu(y)).sum()


def looped(function: Any) -> Any:
    """A loop of two rounds around a function of tensors."""
    return lambda x, *rest: jax.lax.scan(lambda carry, _: (carry, function(x + carry, *rest)), 0.0, None, length=2)[1]


def lines_of(function: Any, *given: Any, operation: str) -> list[str]:
    """The lines of a compiled loop of a function that do an operation."""
    text = jax.jit(looped(function)).lower(*given).as_text(dialect="hlo")
    return [line for line in text.splitlines() if f" {operation}(" in line]


def assert_same(seen: Any, expected: Any) -> None:
    for one, other in zip(jax.tree.leaves(seen), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_gradients_of_a_convolution_have_the_same_numbers_in_the_form_that_is_fast(strides: tuple[int, int]) -> None:
    gradient = jax.grad(lambda x, kernel: loss(x, kernel, strides), argnums=(0, 1))
    fast = with_fast_windows(gradient)
    assert_same(fast(X, KERNEL), gradient(X, KERNEL))
    lines = lines_of(fast, X, KERNEL, operation="convolution")
    assert len(lines) == 3 and all(FAST in line for line in lines)


@pytest.mark.parametrize("options", [{}, {"strides": (2, 3)}, {"rhs_dilation": (2, 1)}], ids=str)
@pytest.mark.parametrize("sizes", [(3, 3), (2, 5), (5, 5)], ids=str)
def test_a_convolution_of_windows_of_few_numbers_is_one_product(
    sizes: tuple[int, int], options: dict[str, Any]
) -> None:
    x = X[..., : 1 if sizes == (5, 5) else 3]
    kernel = np.random.default_rng(2).standard_normal((*sizes, x.shape[-1], 5), np.float32)

    def both(x: Any, kernel: Any) -> Any:
        return jax.value_and_grad(lambda x, kernel: loss(x, kernel, **options), argnums=(0, 1))(x, kernel)

    assert_same(with_fast_windows(both)(x, kernel), both(x, kernel))
    forward = with_fast_windows(lambda x, kernel: loss(x, kernel, **options))
    assert len(lines_of(forward, x, kernel, operation="dot")) == 1
    assert not lines_of(forward, x, kernel, operation="convolution")


@pytest.mark.parametrize("channels", [3, 4])
def test_channels_first_stays_what_it_means(channels: int) -> None:
    x, kernel = X[..., :channels], KERNEL[:, :, :channels]
    turned = np.moveaxis(x, -1, 1), np.transpose(kernel, (3, 2, 0, 1))
    fast = with_fast_windows(lambda x, kernel: loss(x, kernel, axes=("NCHW", "OIHW", "NCHW")))
    np.testing.assert_allclose(fast(*turned), loss(x, kernel), rtol=1e-5)


def test_depthwise_and_other_operations_are_left_as_they_are() -> None:
    kernel = np.ones((3, 3, 1, 8), np.float32)

    def depthwise(x: Any, kernel: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4
        )
        return jax.lax.cond(y.sum() > 0, lambda: jax.numpy.sort(y, axis=-1).max(), lambda: y.min())

    gradient = jax.value_and_grad(depthwise, argnums=1)
    assert_same(with_fast_windows(gradient)(X, kernel), gradient(X, kernel))


def pooled(x: Any, window: tuple[int, ...], strides: tuple[int, ...], padding: str = "VALID") -> Any:
    return jax.lax.reduce_window(x, -np.inf, jax.lax.max, window, strides, padding)


@pytest.mark.parametrize(
    "window", [(1, 2, 2, 1), (1, 3, 2, 1), (1, 1, 1, 2), (2, 9, 8, 4)], ids=lambda window: "x".join(map(str, window))
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_gradient_of_max_pooling_goes_to_the_first_largest_number_of_each_window(
    window: tuple[int, ...], dtype: str
) -> None:
    x = np.random.default_rng(3).integers(0, 3, X.shape).astype(dtype)  # many are equal

    def gradient(x: Any, weights: Any) -> Any:
        return jax.grad(lambda x: (pooled(x, window, window) * weights).sum())(x)

    weights = np.random.default_rng(4).standard_normal(pooled(x, window, window).shape).astype(dtype)
    fast = with_fast_windows(gradient)
    np.testing.assert_array_equal(fast(x, weights), gradient(x, weights))
    assert not lines_of(fast, x, weights, operation="select-and-scatter")


@pytest.mark.parametrize(("strides", "padding"), [((1, 1, 1, 1), "VALID"), ((1, 2, 2, 1), "SAME")], ids=str)
def test_max_pooling_of_windows_that_overlap_or_are_padded_has_the_same_numbers(
    strides: tuple[int, ...], padding: str
) -> None:
    def gradient(x: Any) -> Any:
        return jax.grad(lambda x: jax.numpy.square(pooled(x, (1, 2, 2, 1), strides, padding)).sum())(x)

    x = X[:, :, :7]
    np.testing.assert_array_equal(with_fast_windows(gradient)(x), gradient(x))
    assert not lines_of(with_fast_windows(gradient), x, operation="select-and-scatter")


POOLS = [
    ((1, 3, 3, 1), (1, 2, 2, 1), "VALID"),  # of ResNet-50
    ((1, 3, 2, 1), (1, 1, 2, 1), "SAME"),
    ((1, 2, 3, 1), (1, 3, 1, 1), "VALID"),  # some values are in no window
    ((1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (2, 0), (1, 2), (0, 0))),
    ((1, 3, 3, 1), (1, 3, 3, 1), "VALID"),
    ((1, 2, 2, 2), (1, 1, 1, 2), "VALID"),
]


@quick_every(3)
@pytest.mark.parametrize(("window", "strides", "padding"), POOLS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("largest", [True, False])
def test_the_gradient_of_pooling_is_that_of_keras_with_many_equal_values(
    window: Any, strides: Any, padding: Any, dtype: str, largest: bool
) -> None:
    """The sums of these gradients are exact; those of others are rounded once in half."""
    lowest, operation = (-np.inf, jax.lax.max) if largest else (np.inf, jax.lax.min)
    random = np.random.default_rng(5)

    def pool(x: Any) -> Any:
        return jax.lax.reduce_window(x, lowest, operation, window, strides, padding)

    def gradient(x: Any, weights: Any) -> Any:
        return jax.grad(lambda x: (pool(x) * weights).sum())(x)

    fast, expected = jax.jit(rewritten(gradient, _FAST["GPU"])), jax.jit(gradient)
    equal, any_numbers = random.integers(-2, 2, X.shape), random.standard_normal(X.shape)
    for values in (equal, any_numbers, np.where(equal == 1, np.nan, any_numbers), np.full(X.shape, lowest)):
        x = jax.numpy.asarray(values, dtype)
        shape = jax.eval_shape(pool, x).shape
        for weights in (random.integers(-8, 8, shape), random.standard_normal(shape))[: 1 + (dtype == "float32")]:
            given = x, jax.numpy.asarray(weights, dtype)
            np.testing.assert_array_equal(fast(*given), expected(*given))
    assert "select_and_scatter" not in fast.lower(*given).as_text()


def test_large_windows_of_pooling_are_left_as_they_are() -> None:
    def gradient(x: Any) -> Any:
        return jax.grad(lambda x: pooled(x, (1, 6, 6, 1), (1, 1, 1, 1)).sum())(x)

    assert lines_of(with_fast_windows(gradient), X, operation="select-and-scatter")


def test_operations_of_a_rewritten_program_keep_their_names() -> None:
    def gradient(x: Any) -> Any:
        with jax.named_scope("outer"):
            return jax.grad(jax.jit(jax.named_scope("inner")(lambda x: pooled(x, (1, 3, 3, 1), (1, 2, 2, 1)).sum())))(x)

    text = jax.jit(rewritten(gradient, _FAST["GPU"])).lower(X).as_text(dialect="hlo", debug_info=True)
    assert "outer/transpose(jvp(" in text and "inner" in text
