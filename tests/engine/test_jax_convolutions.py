"""Convolutions inside a loop on JAX: in the form that is fast on CPU, with the same numbers."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="about the JAX engine")
if keras.backend.backend() == "jax":
    import jax

    from mixtrain.engine.jax import convolutions

X = np.random.default_rng(0).standard_normal((2, 9, 8, 3), np.float32)
KERNEL = np.random.default_rng(1).standard_normal((3, 3, 3, 4), np.float32)
FAST = "dim_labels=b01f_01io->b01f"


def loss(x: Any, kernel: Any, strides: tuple[int, int] = (1, 1), axes: Any = ("NHWC", "HWIO", "NHWC")) -> Any:
    """A number of a convolution, through a function of its own gradient and one that is compiled apart."""
    y = jax.jit(jax.lax.conv_general_dilated, static_argnums=(2, 3), static_argnames="dimension_numbers")(
        x, kernel, strides, "SAME", dimension_numbers=axes
    )
    return jax.numpy.square(jax.nn.relu(y)).sum()


def looped(function: Any) -> Any:
    """A loop of two rounds around a function of two tensors."""
    return lambda x, kernel: jax.lax.scan(lambda carry, _: (carry, function(x + carry, kernel)), 0.0, None, length=2)[1]


@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
def test_gradients_have_the_same_numbers_in_the_form_that_is_fast(strides: tuple[int, int]) -> None:
    gradient = jax.grad(lambda x, kernel: loss(x, kernel, strides), argnums=(0, 1))
    fast = convolutions.with_fast_convolutions(gradient)
    for seen, expected in zip(fast(X, KERNEL), gradient(X, KERNEL), strict=True):
        np.testing.assert_allclose(seen, expected, rtol=1e-5, atol=1e-4)
    text = jax.jit(looped(fast)).lower(X, KERNEL).as_text(dialect="hlo")
    lines = [line for line in text.splitlines() if " convolution(" in line]
    assert len(lines) == 3 and all(FAST in line for line in lines)


def test_channels_first_stays_what_it_means() -> None:
    axes = ("NCHW", "OIHW", "NCHW")
    x, kernel = np.moveaxis(X, -1, 1), np.transpose(KERNEL, (3, 2, 0, 1))
    fast = convolutions.with_fast_convolutions(lambda x, kernel: loss(x, kernel, axes=axes))
    np.testing.assert_allclose(fast(x, kernel), loss(X, KERNEL), rtol=1e-5)


def test_depthwise_and_other_operations_are_left_as_they_are() -> None:
    kernel = np.ones((3, 3, 1, 6), np.float32)

    def depthwise(x: Any, kernel: Any) -> Any:
        y = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=3
        )
        return jax.lax.cond(y.sum() > 0, lambda: jax.numpy.sort(y, axis=-1).max(), lambda: y.min())

    gradient = jax.value_and_grad(depthwise, argnums=1)
    seen, expected = convolutions.with_fast_convolutions(gradient)(X, kernel), gradient(X, kernel)
    np.testing.assert_allclose(seen[0], expected[0], rtol=1e-6)
    np.testing.assert_allclose(seen[1], expected[1], rtol=1e-5, atol=1e-5)
