"""Faster forms of convolutions, the gradient of max pooling and some products, by device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.rewrite import Rewrite, rewritten
from mixtrain.typing import Tensor

# The maximum number of values in a window for which one product of all windows is faster: in the first layer of LeNet-5
# (25) and of networks for CIFAR (27) it takes half the time, with 3x3 windows of 16 channels (144) twice the time.
_MAX_WINDOW: Final = 32
# The maximum number of values in a window of max pooling that are compared one by one: a program for more grows long.
_MAX_COMPARED: Final = 32


def with_fast_windows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure function with operations on windows in their fast forms on this device, in gradients too.

    Loops in the function stay as they are: the body of a loop is passed by itself.

    `function`: Takes and returns structures of arrays.

    Example:
        >>> square = with_fast_windows(lambda x: {"y": x * x})
        >>> square(jnp.float32(3))["y"].tolist()
        9.0
    """
    forms = fast_forms()
    return rewritten(function, forms) if forms else function


def fast_forms() -> dict[str, Rewrite]:
    """Return the fast forms on this device, by the names of JAX's primitives."""
    return _FAST.get(describe_device().kind, {})


def _channels_last_convolution(primitive: Any, params: dict[str, Any], x: Tensor, kernel: Tensor) -> Tensor:
    """Compute a convolution in channels-last layout, with an HWIO kernel.

    Outside of loops XLA converts every convolution to that layout itself. Inside a loop it does not, and those of a
    gradient, for which JAX uses other layouts, take several times as long.
    """
    if params["batch_group_count"] != 1:
        return None
    axes = params["dimension_numbers"]
    last = x.ndim - 1
    # A spec of `ConvDimensionNumbers` lists the batch (or output) axis, the channel axis, then the spatial axes.
    spatial = range(2, last + 1)
    channels_last = jax.lax.ConvDimensionNumbers(
        (0, last, *range(1, last)), (last, last - 1, *range(last - 1)), (0, last, *range(1, last))
    )
    x = jnp.transpose(x, [axes.lhs_spec[axis] for axis in (0, *spatial, 1)])
    kernel = jnp.transpose(kernel, [axes.rhs_spec[axis] for axis in (*spatial, 1, 0)])
    plain = params["feature_group_count"] == 1 and all(step == 1 for step in params["lhs_dilation"])
    if plain and 1 < math.prod(kernel.shape[:-1]) <= _MAX_WINDOW:
        y = _convolution_by_product(x, kernel, params)
    else:
        y = primitive.bind(x, kernel, **{**params, "dimension_numbers": channels_last})
    return jnp.transpose(y, np.argsort([axes.out_spec[axis] for axis in (0, *spatial, 1)]).tolist())


def _convolution_by_product(x: Tensor, kernel: Tensor, params: dict[str, Any]) -> Tensor:
    *sizes, channels, filters = kernel.shape
    x = jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *((*pair, 0) for pair in params["padding"]), (0, 0, 0)])
    dilation = np.array(params["rhs_dilation"])
    strides = (1, *params["window_strides"], 1)
    slices = []
    for offset in np.ndindex(*sizes):
        start = dilation * offset
        stop = x.shape[1:-1] - dilation * (np.array(sizes) - 1) + start
        slices.append(jax.lax.slice(x, (0, *start, 0), (x.shape[0], *stop, channels), strides))
    windows = jnp.concatenate(slices, axis=-1)
    return jax.lax.dot_general(
        windows, kernel.reshape(-1, filters), (((windows.ndim - 1,), (0,)), ((), ())),
        precision=params["precision"], preferred_element_type=params["preferred_element_type"],
    )


def _disjoint_max_pool_gradient(primitive: Any, params: dict[str, Any], gradient: Tensor, x: Tensor) -> Tensor:
    """Compute the gradient of max pooling with windows that do not overlap: each value goes to its window's maximum.

    Of equal values the first one gets it, as in XLA's own operation, which goes through the windows value by value.
    """
    sizes = params["window_dimensions"]
    covered = [count * size for count, size in zip(gradient.shape, sizes, strict=True)]
    disjoint = sizes == params["window_strides"] and not np.any(params["padding"])
    if not disjoint or params["select_prim"] is not jax.lax.ge_p:
        return _max_pool_gradient(primitive, params, gradient, x)
    # (a * p, b * q, ...) as (a, b, ..., p, q, ...) and back.
    split = [size for pair in zip(gradient.shape, sizes, strict=True) for size in pair]
    outer, inner = range(0, len(split), 2), range(1, len(split), 2)
    windows = jax.lax.slice(x, [0] * x.ndim, covered).reshape(split).transpose(*outer, *inner)
    values = windows.reshape(*gradient.shape, -1)
    is_max = jnp.arange(values.shape[-1]) == jnp.argmax(values, axis=-1, keepdims=True)
    scattered = jnp.where(is_max, gradient[..., None], 0).reshape(windows.shape)
    merged = scattered.transpose(*np.argsort([*outer, *inner]).tolist()).reshape(covered)
    return jnp.pad(merged, [(0, length - end) for length, end in zip(x.shape, covered, strict=True)])


def _max_pool_gradient(primitive: Any, params: dict[str, Any], gradient: Tensor, x: Tensor) -> Tensor:
    """Compute the gradient of max (or min) pooling by comparisons and sums of padded tensors.

    XLA's own operation scatters: on a GPU it adds with atomics, in any order, and on a CPU it takes 3 to 10 times as
    long. Here, as there, of equal values the first one of a window gets the gradient, and padding counts as a value.
    """
    sizes, strides, padding = params["window_dimensions"], params["window_strides"], params["padding"]
    select = params["select_prim"]
    if math.prod(sizes) > _MAX_COMPARED or not jnp.issubdtype(x.dtype, jnp.floating):
        return None
    wide = jnp.promote_types(x.dtype, jnp.float32)  # On a CPU half comparisons are slow, and half sums round.
    lowest = jnp.array(-np.inf if select is jax.lax.ge_p else np.inf, wide)
    padded = jax.lax.pad(x.astype(wide), lowest, [(*pair, 0) for pair in padding])
    # Of each offset in a window, the values of all windows.
    starts = list(np.ndindex(*sizes))
    ends = [np.array(start) + (np.array(gradient.shape) - 1) * strides + 1 for start in starts]
    parts = [jax.lax.slice(padded, start, end, strides) for start, end in zip(starts, ends, strict=True)]
    best, chosen = parts[0], jnp.zeros(gradient.shape, jnp.int8)
    for index, part in enumerate(parts[1:], 1):
        stays = select.bind(best, part)
        best, chosen = jnp.where(stays, best, part), jnp.where(stays, chosen, jnp.int8(index))
    total = jnp.zeros(x.shape, wide)
    gradient = gradient.astype(wide)
    # From the last offset to the first: a value gets the gradients of its windows in their order, as from XLA.
    for index, (start, end) in reversed(list(enumerate(zip(starts, ends, strict=True)))):
        sides = zip(start, end, strides, x.shape, padding, strict=True)
        # Negative where they cut off gradients that go to the padding.
        around = [(begin - low, size + low - stop, stride - 1) for begin, stop, stride, size, (low, _) in sides]
        part = jnp.where(chosen == index, gradient, 0)
        total += jax.lax.pad(part, jnp.zeros((), wide), [tuple(map(int, sizes)) for sizes in around])
    return total.astype(x.dtype)


def _float16_product(primitive: Any, params: dict[str, Any], x: Tensor, y: Tensor) -> Tensor:
    """Compute a float16 product with float32 accumulation by converting to float32: XLA refuses it on a CPU.

    `jax.nn.dot_product_attention`, and so Keras's attention, requests it, and XLA's error comes too late to fall back.
    """
    if params["precision"] != jax.lax.DotAlgorithmPreset.F16_F16_F32:
        return None
    wide = (value.astype(jnp.float32) for value in (x, y))
    product = jax.lax.dot_general(*wide, params["dimension_numbers"], preferred_element_type=jnp.float32)
    return product.astype(params["preferred_element_type"] or x.dtype)


_FAST: Final[dict[str, dict[str, Rewrite]]] = {
    "CPU": {
        "conv_general_dilated": _channels_last_convolution,
        "dot_general": _float16_product,
        "select_and_scatter_add": _disjoint_max_pool_gradient,
    },
    "GPU": {"select_and_scatter_add": _max_pool_gradient},
}
