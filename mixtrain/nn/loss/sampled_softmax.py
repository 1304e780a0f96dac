"""`SampledSoftmaxLoss`: a softmax cross-entropy over the labels' classes and a sample of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import keras

from mixtrain import checks
from mixtrain.dtype import int32, int64
from mixtrain.nn.loss.base import LossBase
from mixtrain.ops.distributions import UniformCandidateSampler
from mixtrain.ops.inputs import tensor, tensor_dtype
from mixtrain.ops.labels import as_float32
from mixtrain.typing import Tensor, TensorLike


class SampledSoftmaxLoss(LossBase):
    """Softmax cross-entropy over the true classes and `num_sampled` others, for classes too many to compute them all.

    Args:
        num_sampled, num_classes: How many classes are sampled, of how many.
        num_true: Number of labels of each row, which share the probability 1.
        sampled_values: The sampled classes (S,), the expected counts of the true classes (N, `num_true`) or (N, 1) and
            of the sampled ones (S,), as a sampler returns them; None to sample uniformly at each call.
        remove_accidental_hits: Whether no true class is sampled, where there are as many others.
        seed: Of the samples; each call draws the same for one seed, and goes on drawing for 0.
        reduction: "none". MindSpore takes "mean" and "sum", too, but returns the losses of the rows all the same: write
            ``loss(...).mean()``.

    Inputs:
        weights (C, D) and biases (C,) of the last layer, any float dtype. labels: class numbers (N, `num_true`), int32
        or int64. logits: its inputs (N, D).

    Returns: float32 (N,).
    Raises: TypeError or ValueError for an argument or labels of another type or value.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> w, b, x = mixtrain.ops.zeros((9, 2)), mixtrain.ops.zeros(9), mixtrain.ops.zeros((1, 2))
        >>> round(float(nn.SampledSoftmaxLoss(3, 9, seed=1)(w, b, mixtrain.Tensor([[4]]), x)), 4)  # log(1 + 3)
        1.3863
    """

    _reductions: ClassVar[tuple[str, ...]] = ("none",)

    def __init__(
        self, num_sampled: int, num_classes: int, num_true: int = 1, sampled_values: Sequence[TensorLike] | None = None,
        remove_accidental_hits: bool = True, seed: int = 0, reduction: str = "none",
    ) -> None:
        super().__init__(reduction)
        where = self.cls_name
        for name, value in (("num_sampled", num_sampled), ("num_true", num_true)):
            if checks.integer(where, name, value, at_least=1) > checks.integer(where, "num_classes", num_classes,
                                                                               at_least=1):
                raise checks.fail_value(where, f"{name} must be at most num_classes", value, f"{name}={num_classes}")
        if sampled_values is not None:
            checks.instance(where, "sampled_values", sampled_values, (list, tuple), "what a sampler returns")
            if len(sampled_values) != 3:
                raise checks.fail_value(where, "sampled_values must be 3", len(sampled_values), "all of a sampler's")
        self.num_true = num_true
        self.sampled_values = sampled_values
        self.sampler = UniformCandidateSampler(
            num_true, num_sampled, True, num_classes, checks.integer(where, "seed", seed, at_least=0),
            checks.boolean(where, "remove_accidental_hits", remove_accidental_hits),
        )

    def construct(self, weights: Tensor, biases: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
        """Compute the loss from the last layer's `weights`, `biases`, inputs `logits`, and the `labels`."""
        ops = keras.ops
        labels = tensor(self.cls_name, labels)
        if (dtype := tensor_dtype(labels)) not in (int32, int64):
            raise checks.fail_type(self.cls_name, "labels must be int32 or int64", dtype.name, "Tensor(y, int32)")
        labels = ops.reshape(ops.cast(labels, int32), (-1, self.num_true))
        weights, biases, inputs = as_float32(weights), as_float32(biases), as_float32(logits)
        sampled, *counts = self.sampler(labels) if self.sampled_values is None else self.sampled_values
        sampled = ops.cast(tensor(self.cls_name, sampled), int32)
        true_count, sampled_count = map(as_float32, counts)
        true = ops.einsum("nd,ntd->nt", inputs, ops.take(weights, labels, axis=0)) + ops.take(biases, labels)
        others = ops.matmul(inputs, ops.transpose(ops.take(weights, sampled, axis=0))) + ops.take(biases, sampled)
        scores = ops.concatenate([true - ops.log(true_count), others - ops.log(sampled_count)], axis=1)
        # As in MindSpore, no loss is over -log(1e-20).
        logs = ops.log(ops.softmax(scores) + 1e-20)
        return -ops.mean(logs[:, : self.num_true], axis=1)
