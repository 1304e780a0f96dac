"""Losses as primitives, with the weights as arguments of the call."""

from __future__ import annotations

from typing import ClassVar

import keras

from mixtrain import checks
from mixtrain.ops.cross_entropy import classes_last, of_class_numbers
from mixtrain.ops.inputs import as_floats
from mixtrain.ops.labels import as_float32, reduce_loss
from mixtrain.ops.loss import binary_cross_entropy, binary_cross_entropy_with_logits, kl_div
from mixtrain.ops.primitive import Primitive
from mixtrain.typing import Tensor, TensorLike


class _Reduced(Primitive):
    """Base of the losses with a setting `reduction`."""

    _reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = checks.one_of(self.name, "reduction", reduction, self._reductions)


class BinaryCrossEntropy(_Reduced):
    """`binary_cross_entropy` with a fixed `reduction`."""

    def __call__(self, input: TensorLike, target: TensorLike, weight: TensorLike | None = None) -> Tensor:
        """Return the loss of probabilities `input` with `target`, weighted by `weight`."""
        return binary_cross_entropy(input, target, weight, self.reduction)


class BCEWithLogitsLoss(_Reduced):
    """`binary_cross_entropy_with_logits` with a fixed `reduction`."""

    def __call__(
        self, input: TensorLike, target: TensorLike, weight: TensorLike | None = None,
        posWeight: TensorLike | None = None,
    ) -> Tensor:  # noqa: N803
        """Return the loss of logits `input` with `target`, weighted by `weight` and `posWeight`."""
        return binary_cross_entropy_with_logits(input, target, weight, posWeight, self.reduction)


class KLDivLoss(_Reduced):
    """`kl_div` with a fixed `reduction`."""

    _reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none", "batchmean")

    def __call__(self, logits: TensorLike, labels: TensorLike) -> Tensor:
        """Return the divergence of `labels` from exp(`logits`)."""
        return kl_div(logits, labels, self.reduction)


class NLLLoss(Primitive):
    """The negative log likelihood of class numbers, and the sum of the weights: ``(loss, total weight)``.

    `reduction`: "mean", "sum" or "none"; `ignore_index`: the class number to ignore. Example:
    ``ops.NLLLoss()(Tensor([[-0.5, -2.0]]), Tensor([1]), Tensor([1.0, 3.0]))`` is ``(2.0, 3.0)``.
    """

    def __init__(self, reduction: str = "mean", ignore_index: int = -100) -> None:
        super().__init__()
        self.reduction = checks.one_of(self.name, "reduction", reduction, ("mean", "sum", "none"))
        self.ignore_index = checks.integer(self.name, "ignore_index", ignore_index, at_least=-(2**31), example=-100)

    def __call__(self, logits: TensorLike, labels: TensorLike, weight: TensorLike) -> tuple[Tensor, Tensor]:
        """Return the loss of `logits` (N, C) with `labels` (N,), and the sum of the classes' `weight` (C,)."""
        weights = as_float32(weight)
        log_probs, labels = classes_last(self.name, logits, labels, weights, self.ignore_index)
        losses, loss_weights = of_class_numbers(log_probs, labels, weights, self.ignore_index, 0.0, are_logs=True)
        total = keras.ops.sum(loss_weights)
        if self.reduction == "mean":
            return keras.ops.sum(losses) / total, total
        return reduce_loss(self.name, losses, self.reduction), total


class L2Loss(Primitive):
    """Half the sum of squares. Example: ``ops.L2Loss()(x)``."""

    def __call__(self, input_x: TensorLike) -> Tensor:
        """Return sum(`input_x` ** 2) / 2, in the dtype of `input_x`."""
        x = as_floats(self.name, input_x)
        return keras.ops.cast(keras.ops.sum(keras.ops.square(as_float32(x))) / 2, x.dtype)
