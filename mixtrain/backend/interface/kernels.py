"""Kernels: gathering, products, normalization, pooling and losses in the fastest form that a device has."""

from __future__ import annotations

from collections.abc import Callable

from mixtrain.typing import Tensor


def gather_in_batches(x: Tensor, indices: Tensor, *, axis: int, batch_axes: int) -> Tensor:
    """Take slices along `axis`, separately for each index of the leading `batch_axes` axes."""

def gather_nd(x: Tensor, indices: Tensor) -> Tensor:
    """Take the slices of `x` at indices (..., k) into its first k axes."""

def boolean_mask(x: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of `x` where `mask`, of the same shape, is True, in a vector.

    Raises:
        TypeError: In a compiled function, if sizes cannot depend on values there.
    """

def unique_with_indices(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the unique elements in order of appearance, and the index of each element among them.

    Raises:
        TypeError: In a compiled function, if sizes cannot depend on values there.
    """

def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Compute the cross entropy of class numbers.

    Args:
        labels: Class numbers (...), int32 or int64.
        logits: Scores (..., C), float32.

    Returns:
        Losses (...), float32. For a label outside [0, C) the loss is NaN, or an error where a kernel can raise one
        (TensorFlow's on a CPU without XLA).
    """

def softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Compute the cross entropy of class probabilities.

    Args:
        labels: Probabilities (..., C), float32; each row sums to 1, which the gradient relies on.
        logits: Scores (..., C), float32.

    Returns:
        Losses (...), float32.
    """

def fused_batch_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float, training: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize a channels-last batch of rank 4.

    Args:
        x: Activations (N, H, W, C), float32, float16 or bfloat16.
        gamma: Scale (C,), float32.
        beta: Shift (C,), float32.
        mean: Moving mean (C,), float32; used where `training` is False.
        variance: Moving variance (C,), float32; used where `training` is False.
        epsilon: Added to the variance.
        training: Whether to normalize by the batch's own statistics.

    Returns:
        ``(y, batch_mean, batch_variance)``: `y` has the shape and dtype of `x`; the statistics are float32 (C,), the
        variance with Bessel's correction (divided by n - 1; 0 where n is 1). Outside training they are the moving ones.
    """

def normalize_axes(
    x: Tensor, gamma: Tensor, beta: Tensor, *, axes: tuple[int, ...], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize a tensor over axes, with a custom gradient that keeps `x` itself and its statistics.

    Args:
        x: Tensor, float32, float16 or bfloat16.
        gamma: Scale, float32, of a known shape that broadcasts to that of `x`.
        beta: Shift, float32, of the shape of `gamma`.
        axes: Axes that are reduced, counted from the front.
        epsilon: Added to the variance.

    Returns:
        ``(y, mean, variance)``: `y` has the shape and dtype of `x`; the statistics are float32, keep the axes with size
        1 and have no gradient.
    """

def pool(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return ``function(x)``, a max or average pooling, of the dtype of `x`."""

def product(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """Return ``function(x, y)``, linear in each argument (a convolution or a matrix product), all of one dtype."""

def times_transposed(x: Tensor, weight: Tensor) -> Tensor:
    """Return ``x @ weight.T`` of two matrices of one dtype."""
