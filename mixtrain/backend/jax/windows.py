"""Convolutions, the gradient of max pooling and some products, in forms for which XLA's CPU compiler has code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.backend.jax.rewrite import Rewrite, rewritten

# Numbers that a kernel reads at most where the product of all windows is faster: in the first layer of LeNet-5 (25) and
# of networks for CIFAR (27) it takes half the time; with 3x3 windows of 16 channels (144) it takes twice as long.
_SMALL_WINDOW: Final = 32


def with_fast_windows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure function in whose gradients and loops, too, XLA's CPU compiler has fast code for windows.

    Args:
        function: Takes and returns structures of arrays.

    Example:
        >>> square = with_fast_windows(lambda x: {"y": x * x})
        >>> square(jnp.float32(3))["y"].tolist()
        9.0
    """
    return rewritten(function, _FAST_ON_CPU)


def _convolved(primitive: Any, told: dict[str, Any], x: Any, kernel: Any) -> Any:
    """Return a convolution by way of one that has the batch first, channels last and rows of the kernel first.

    At the top of a program XLA brings every convolution into that form; inside a loop it does not, and those of a
    gradient, whose axes JAX has in another order, take several times as long.
    """
    if told["batch_group_count"] != 1:
        return None
    axes = told["dimension_numbers"]
    last = x.ndim - 1
    between = range(2, last + 1)
    fast = jax.lax.ConvDimensionNumbers(
        (0, last, *range(1, last)), (last, last - 1, *range(last - 1)), (0, last, *range(1, last))
    )
    x = jnp.transpose(x, [axes.lhs_spec[axis] for axis in (0, *between, 1)])
    kernel = jnp.transpose(kernel, [axes.rhs_spec[axis] for axis in (*between, 1, 0)])
    if _has_small_windows(kernel, told):
        y = _product_of_windows(x, kernel, told)
    else:
        y = primitive.bind(x, kernel, **{**told, "dimension_numbers": fast})
    return jnp.transpose(y, np.argsort([axes.out_spec[axis] for axis in (0, *between, 1)]).tolist())


def _has_small_windows(kernel: Any, told: dict[str, Any]) -> bool:
    plain = told["feature_group_count"] == 1 and all(step == 1 for step in told["lhs_dilation"])
    return plain and 1 < math.prod(kernel.shape[:-1]) <= _SMALL_WINDOW


def _product_of_windows(x: Any, kernel: Any, told: dict[str, Any]) -> Any:
    *sizes, channels, filters = kernel.shape
    x = jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *((*pair, 0) for pair in told["padding"]), (0, 0, 0)])
    steps = np.array(told["rhs_dilation"])
    windows = []
    for place in np.ndindex(*sizes):
        first = steps * place
        end = x.shape[1:-1] - steps * (np.array(sizes) - 1) + first
        windows.append(jax.lax.slice(x, (0, *first, 0), (x.shape[0], *end, channels), (1, *told["window_strides"], 1)))
    numbers = jnp.concatenate(windows, axis=-1)
    return jax.lax.dot_general(
        numbers, kernel.reshape(-1, filters), (((numbers.ndim - 1,), (0,)), ((), ())),
        precision=told["precision"], preferred_element_type=told["preferred_element_type"],
    )


def _scattered_to_largest(primitive: Any, told: dict[str, Any], gradient: Any, x: Any) -> Any:
    """Return the gradient of max pooling where windows stand side by side: each number goes to its window's largest.

    Of equals the first one has it, as in XLA's own operation, which goes through the windows number by number.
    """
    sizes = told["window_dimensions"]
    covered = [count * size for count, size in zip(gradient.shape, sizes, strict=True)]
    apart = sizes == told["window_strides"] and not np.any(told["padding"])
    if not apart or told["select_prim"] is not jax.lax.ge_p:
        return None
    # (a * p, b * q, ...) as (a, b, ..., p, q, ...) and back.
    split = [number for pair in zip(gradient.shape, sizes, strict=True) for number in pair]
    outer, inner = range(0, len(split), 2), range(1, len(split), 2)
    windows = jax.lax.slice(x, [0] * x.ndim, covered).reshape(split).transpose(*outer, *inner)
    numbers = windows.reshape(*gradient.shape, -1)
    at = jnp.arange(numbers.shape[-1]) == jnp.argmax(numbers, axis=-1, keepdims=True)
    scattered = jnp.where(at, gradient[..., None], 0).reshape(windows.shape)
    together = scattered.transpose(*np.argsort([*outer, *inner]).tolist()).reshape(covered)
    return jnp.pad(together, [(0, length - end) for length, end in zip(x.shape, covered, strict=True)])


def _summed_in_float32(primitive: Any, told: dict[str, Any], x: Any, y: Any) -> Any:
    """Return a product of float16 that is to be summed in float32, which XLA refuses on a CPU: of the same values wide.

    `jax.nn.dot_product_attention`, and so Keras's attention, asks for it, and learns too late to take another.
    """
    if told["precision"] != jax.lax.DotAlgorithmPreset.F16_F16_F32:
        return None
    wide = (value.astype(jnp.float32) for value in (x, y))
    product = jax.lax.dot_general(*wide, told["dimension_numbers"], preferred_element_type=jnp.float32)
    return product.astype(told["preferred_element_type"] or x.dtype)


_FAST_ON_CPU: Final[dict[str, Rewrite]] = {
    "conv_general_dilated": _convolved,
    "dot_general": _summed_in_float32,
    "select_and_scatter_add": _scattered_to_largest,
}
