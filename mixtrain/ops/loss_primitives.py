"""Losses as primitives, with the weights as arguments of the call."""

from __future__ import annotations

import keras

from mixtrain.ops.cross_entropy import classes_last, of_class_numbers
from mixtrain.ops.inputs import as_floats
from mixtrain.ops.labels import as_float32, reduce_loss
from mixtrain.ops.loss import binary_cross_entropy, binary_cross_entropy_with_logits, kl_div
from mixtrain.ops.primitive import as_primitive, configured
from mixtrain.typing import Tensor, TensorLike


@as_primitive
def BinaryCrossEntropy(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, *, reduction: str = "mean"
) -> Tensor:
    """`binary_cross_entropy` with a fixed `reduction`. Example: ``ops.BinaryCrossEntropy()(x, y)``."""
    return binary_cross_entropy(input, target, weight, reduction)


@as_primitive
def BCEWithLogitsLoss(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, posWeight: TensorLike | None = None, *,
    reduction: str = "mean",
) -> Tensor:  # noqa: N803
    """`binary_cross_entropy_with_logits` with a fixed `reduction`. Example: ``ops.BCEWithLogitsLoss()(x, y)``."""
    return binary_cross_entropy_with_logits(input, target, weight, posWeight, reduction)


KLDivLoss = configured("KLDivLoss", kl_div, reduction="mean")


@as_primitive
def NLLLoss(
    logits: TensorLike, labels: TensorLike, weight: TensorLike, *, reduction: str = "mean", ignore_index: int = -100
) -> tuple[Tensor, Tensor]:
    """The negative log likelihood of class numbers, and the sum of the weights: ``(loss, total weight)``.

    `reduction`: "mean", "sum" or "none"; `ignore_index`: the class number to ignore. Example:
    ``ops.NLLLoss()(Tensor([[-0.5, -2.0]]), Tensor([1]), Tensor([1.0, 3.0]))`` is ``(2.0, 3.0)``.
    """
    weights = as_float32(weight)
    log_probs, labels = classes_last("NLLLoss", logits, labels, weights, ignore_index)
    losses, loss_weights = of_class_numbers(log_probs, labels, weights, ignore_index, 0.0, are_logs=True)
    total = keras.ops.sum(loss_weights)
    if reduction == "mean":
        return keras.ops.sum(losses) / total, total
    return reduce_loss("NLLLoss", losses, reduction), total


@as_primitive
def L2Loss(input_x: TensorLike) -> Tensor:
    """Half the sum of squares, in the dtype of `input_x`. Example: ``ops.L2Loss()(x)``."""
    x = as_floats("L2Loss", input_x)
    return keras.ops.cast(keras.ops.sum(keras.ops.square(as_float32(x))) / 2, x.dtype)
