"""Kernels: gathering, products, normalization, pooling and losses in the fastest form that a device has."""

from __future__ import annotations

from collections.abc import Callable

from mixtrain.typing import Tensor

# Dtypes of volumes that no kernel max-pools.
UNPOOLED_VOLUMES: frozenset[str]


def gather_in_batches(x: Tensor, indices: Tensor, *, axis: int, batch_axes: int) -> Tensor:
    """Take slices along `axis`, separately for each index of the leading `batch_axes` axes."""

def gather_nd(x: Tensor, indices: Tensor) -> Tensor:
    """Take the slices of `x` at indices (..., k) into its first k axes."""

def boolean_mask(x: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of `x` where `mask`, of the same shape, is True, in a vector.

    Raises: TypeError in a compiled function, if sizes cannot depend on values there.
    """

def unique_with_indices(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the unique elements in order of appearance, and the index of each element among them.

    Raises: TypeError in a compiled function, if sizes cannot depend on values there.
    """

def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Compute the cross entropies (...), float32, of class numbers (...), int32 or int64, and scores (..., C), float32.

    For a label outside [0, C) the loss is NaN, or an error where a kernel can raise one (TensorFlow's on a CPU without
    XLA).
    """

def softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Compute the cross entropies (...), float32, of class probabilities and scores, both (..., C), float32.

    Each row of probabilities sums to 1, which the gradient relies on.
    """

def fused_batch_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float, training: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize a channels-last batch of rank 4.

    `x`: Activations (N, H, W, C), float32, float16 or bfloat16. `gamma`, `beta`: Scale and shift (C,), float32. `mean`,
    `variance`: Moving statistics (C,), float32; used where `training` is False, else those of the batch are.

    Returns: ``(y, batch_mean, batch_variance)``: `y` has the shape and dtype of `x`; the statistics are float32 (C,),
    the variance with Bessel's correction (divided by n - 1; 0 where n is 1). Outside training they are the moving ones.
    """

def normalize_axes(
    x: Tensor, gamma: Tensor, beta: Tensor, *, axes: tuple[int, ...], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize a tensor over axes, with a custom gradient that keeps `x` itself and its statistics.

    `x`: Tensor, float32, float16 or bfloat16. `gamma`, `beta`: Scale and shift, float32, of one known shape that
    broadcasts to that of `x`. `axes`: Axes that are reduced, counted from the front.

    Returns: ``(y, mean, variance)``: `y` has the shape and dtype of `x`; the statistics are float32, keep the axes with
    size 1 and have no gradient.
    """

def float8_einsum(
    equation: str, x: Tensor, x_scale: Tensor, y: Tensor, y_scale: Tensor, *, dtype: str, exact: bool
) -> Tensor:
    """Return the product of two tensors, each times its scale, in a dtype.

    On a device with `fast_float8` they are of float8 dtypes, and multiplied as they are; elsewhere they have the same
    values in float32. `equation`: The product, in which each letter is in two of the three terms. `exact`: Whether all
    of the sum is kept in float32, not in the fewer bits that are faster.
    """

def pool(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return ``function(x)``, a max or average pooling, of the dtype of `x`."""

def product(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Return ``function(x, y)``, linear in each argument (a convolution or a matrix product), all of one dtype."""

def times_transposed(x: Tensor, weight: Tensor) -> Tensor:
    """Return ``x @ weight.T`` of two matrices of one dtype."""
