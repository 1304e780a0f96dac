"""Losses of pairs, margins and distributions as functions, computed in float32."""

from __future__ import annotations

import math

import keras

from mixtrain import checks
from mixtrain.ops.labels import as_float32, check_same_shape, reduce_loss
from mixtrain.ops.limits import clamp
from mixtrain.ops.primitive import configured
from mixtrain.typing import Tensor, TensorLike


def soft_margin_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-`target` * `input`)); `reduction` is "mean", "sum" or "none"."""
    return reduce_loss("ops.soft_margin_loss", keras.ops.softplus(-as_float32(target) * as_float32(input)), reduction)


def hinge_embedding_loss(
    inputs: TensorLike, targets: TensorLike, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """`inputs` where `targets` are 1, max(0, `margin` - `inputs`) where they are -1; `reduction` as in `mse_loss`."""
    x, y = as_float32(inputs), as_float32(targets)
    return reduce_loss(
        "ops.hinge_embedding_loss", keras.ops.where(y > 0, x, keras.ops.relu(float(margin) - x)), reduction
    )


def cosine_embedding_loss(
    input1: TensorLike, input2: TensorLike, target: TensorLike, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos of `input1` and `input2` where `target` is 1, max(0, cos - `margin`) where it is -1.

    `reduction` is "mean", "sum" or "none".
    """
    x, y, labels = as_float32(input1), as_float32(input2), as_float32(target)
    norms = keras.ops.sqrt((keras.ops.sum(x * x, -1) + 1e-12) * (keras.ops.sum(y * y, -1) + 1e-12))
    cosine = keras.ops.sum(x * y, -1) / norms
    losses = keras.ops.where(labels > 0, 1 - cosine, keras.ops.relu(cosine - float(margin)))
    return reduce_loss("ops.cosine_embedding_loss", losses, reduction)


def margin_ranking_loss(
    input1: TensorLike, input2: TensorLike, target: TensorLike, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, `margin` - `target` * (`input1` - `input2`)); `reduction` is "mean", "sum" or "none"."""
    losses = float(margin) - as_float32(target) * (as_float32(input1) - as_float32(input2))
    # A loss of 0 has the derivative of those above it.
    return reduce_loss("ops.margin_ranking_loss", clamp(losses, 0.0), reduction)


def multi_margin_loss(
    input: TensorLike, target: TensorLike, p: int = 1, margin: float = 1, weight: TensorLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of max(0, `margin` - the score of the class `target` + that of each other)^`p`.

    `input`: scores (N, C); `target`: class indices (N,); `p`: 1 or 2; `weight`: a factor for each class, or None;
    `reduction`: "mean", "sum" or "none".
    """
    where, x = "ops.multi_margin_loss", as_float32(input)
    checks.one_of(where, "p", p, (1, 2))
    one_hot = keras.ops.one_hot(target, x.shape[1], dtype="float32")
    score = keras.ops.sum(x * one_hot, axis=1, keepdims=True)
    losses = keras.ops.relu(float(margin) - score + x) ** p * (1 - one_hot)
    if weight is not None:
        losses = losses * keras.ops.sum(as_float32(weight) * one_hot, axis=1, keepdims=True)
    return reduce_loss(where, keras.ops.sum(losses, axis=1) / x.shape[1], reduction)


def multilabel_soft_margin_loss(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes of the cross entropy of sigmoid(`input`) with `target`, times `weight`.

    `reduction` is "mean", "sum" or "none".
    """
    x, y = as_float32(input), as_float32(target)
    losses = y * keras.ops.softplus(-x) + (1 - y) * keras.ops.softplus(x)
    losses = losses if weight is None else losses * as_float32(weight)
    return reduce_loss("ops.multilabel_soft_margin_loss", keras.ops.mean(losses, axis=-1), reduction)


def multilabel_margin_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The sum of max(0, 1 - target score + other score) over such pairs, divided by the number of classes.

    `input`: scores (N, C) or (C,); `target`: class indices of the same shape, those before the first -1 are the
    targets; `reduction`: "mean", "sum" or "none".
    """
    x, count = as_float32(input), input.shape[-1]
    valid = keras.ops.cumprod(keras.ops.cast(keras.ops.greater_equal(target, 0), "float32"), axis=-1)
    one_hot = keras.ops.one_hot(keras.ops.maximum(target, 0), count, dtype="float32") * valid[..., None]
    is_target = keras.ops.max(one_hot, axis=-2)
    scores = keras.ops.sum(one_hot * x[..., None, :], axis=-1)
    pairs = keras.ops.relu(1 - scores[..., :, None] + x[..., None, :])
    losses = pairs * valid[..., None] * (1 - is_target[..., None, :])
    return reduce_loss("ops.multilabel_margin_loss", keras.ops.sum(losses, axis=(-1, -2)) / count, reduction)


def gaussian_nll_loss(
    x: TensorLike, target: TensorLike, var: TensorLike, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
) -> Tensor:
    """(log(`var`) + (`x` - `target`)^2 / `var`) / 2, with variances of at least `eps`.

    `full` adds log(2 pi) / 2; `reduction` is "mean", "sum" or "none".
    """
    where, full = "ops.gaussian_nll_loss", checks.boolean("ops.gaussian_nll_loss", "full", full)
    if not isinstance(eps, (int, float)) or eps <= 0:
        raise checks.fail_value(where, "eps must be a positive number", eps, "eps=1e-6")
    variance = keras.ops.maximum(as_float32(var), float(eps))
    losses = (keras.ops.log(variance) + keras.ops.square(as_float32(x) - as_float32(target)) / variance) / 2
    return reduce_loss(where, losses + (math.log(2 * math.pi) / 2 if full else 0), reduction)


def poisson_nll_loss(
    input: TensorLike, target: TensorLike, log_input: bool = True, full: bool = False, eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """exp(`input`) - `target` * `input`; without `log_input`, `input` - `target` * log(`input` + `eps`).

    `full` adds Stirling's approximation of log(target!); `reduction` is "mean", "sum" or "none".
    """
    x, y = as_float32(input), as_float32(target)
    losses = keras.ops.exp(x) - y * x if log_input else x - y * keras.ops.log(x + eps)
    if full:
        # The 1 keeps the unused logarithm and its gradient finite.
        safe = keras.ops.where(y > 1, y, 1.0)
        stirling = safe * keras.ops.log(safe) - safe + 0.5 * keras.ops.log(2 * math.pi * safe)
        losses = losses + keras.ops.where(y > 1, stirling, 0.0)
    return reduce_loss("ops.poisson_nll_loss", losses, reduction)


def triplet_margin_loss(
    anchor: TensorLike, positive: TensorLike, negative: TensorLike, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, reduction: str = "mean",
) -> Tensor:
    """max(0, `margin` + the distance of `anchor` to `positive` - that to `negative`), by the norm of order `p`.

    `eps` is added to differences; with `swap` the distance to `negative` is the smaller one of `anchor` and `positive`;
    `reduction` is "mean", "sum" or "none".
    """
    def distance(x: Tensor, y: Tensor) -> Tensor:
        return keras.ops.sum(keras.ops.abs(x - y + eps) ** p, axis=-1) ** (1 / p)

    anchor, positive, negative = (as_float32(value) for value in (anchor, positive, negative))
    check_same_shape("ops.triplet_margin_loss", anchor, positive, ("anchor", "positive"))
    to_negative = distance(anchor, negative)
    to_negative = keras.ops.minimum(to_negative, distance(positive, negative)) if swap else to_negative
    losses = keras.ops.relu(distance(anchor, positive) - to_negative + float(margin))
    return reduce_loss("ops.triplet_margin_loss", losses, reduction)


def _multi_margin(
    x: Tensor, target: Tensor, weight: TensorLike | None = None, *, p: int, margin: float, reduction: str
) -> Tensor:
    return multi_margin_loss(x, target, p, margin, weight, reduction)


MultiMarginLoss = configured("MultiMarginLoss", _multi_margin, p=1, margin=1.0, reduction="mean")
