"""Cross entropy of logits with class numbers or probabilities, with class weights and label smoothing."""

from __future__ import annotations

import keras

from mixtrain import backend, checks
from mixtrain.dtype import float32, is_float
from mixtrain.ops.labels import as_float32, check_class_numbers, check_same_shape, reduce_loss, shape_of
from mixtrain.ops.primitive import as_primitive
from mixtrain.typing import Tensor, TensorLike


def cross_entropy(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy between the softmax of logits and class labels, in float32.

    Args:
        input: Logits (C,), (N, C) or (N, C, d1, ...), any float dtype.
        target: Class numbers (), (N,) or (N, d1, ...), any int dtype; or probabilities of the shape of `input`.
        weight: One weight for each class, or None.
        ignore_index: The class number to ignore.
        reduction: "mean" (weighted, without ignored labels), "sum" or "none".
        label_smoothing: The share of the labels that is spread over all classes, from 0 to 1 (Szegedy et al., 2016).

    Example: ``ops.cross_entropy(Tensor([[0.0, 0.0]]), Tensor([1]))`` is 0.6931.
    """
    where = "ops.cross_entropy"
    checks.integer(where, "ignore_index", ignore_index, at_least=-(2**31), example=-100)
    smoothing = checks.number(where, "label_smoothing", label_smoothing, at_least=0, at_most=1)
    weights = None if weight is None else as_float32(weight)
    logits, labels = classes_last(where, input, target, weights, ignore_index)
    if is_float(labels.dtype):
        losses = of_probabilities(keras.ops.log_softmax(logits, axis=-1), labels, weights, smoothing)
        return reduce_loss(where, losses, reduction)
    losses, loss_weights = of_class_numbers(logits, labels, weights, ignore_index, smoothing)
    return _weighted_reduction(where, losses, loss_weights, reduction)


def nll_loss(
    inputs: TensorLike, target: TensorLike, weight: TensorLike | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:
    """The negative log likelihood of class numbers: `cross_entropy` of log-probabilities `inputs`.

    `target`, `weight`, `ignore_index`, `reduction` and `label_smoothing` as there. Example:
    ``ops.nll_loss(Tensor([[-0.5, -2.0]]), Tensor([1]))`` is 2.0.
    """
    where = "ops.nll_loss"
    checks.integer(where, "ignore_index", ignore_index, at_least=-(2**31), example=-100)
    smoothing = checks.number(where, "label_smoothing", label_smoothing, at_least=0, at_most=1)
    weights = None if weight is None else as_float32(weight)
    log_probs, labels = classes_last(where, inputs, target, weights, ignore_index)
    if is_float(labels.dtype):
        raise checks.fail_type(where, "target must be class numbers", labels, "ops.cross_entropy for probabilities")
    losses, loss_weights = of_class_numbers(log_probs, labels, weights, ignore_index, smoothing, are_logs=True)
    return _weighted_reduction(where, losses, loss_weights, reduction)


def classes_last(
    where: str, logits: Tensor, labels: Tensor, weights: Tensor | None, ignored: int, *, numbers_only: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return logits (..., C) in float32 with their labels: class numbers (...) or probabilities (..., C).

    `numbers_only`: what to write for one-hot labels, where probabilities are not accepted.
    """
    given, labels = backend.to_tensor(logits), backend.to_tensor(labels)
    if not is_float(given.dtype):
        raise checks.fail_type(where, "logits must be of a float dtype", given, "logits first, then labels")
    logits = as_float32(given)
    shape = shape_of(logits)
    if not shape:
        raise checks.fail_value(where, "logits must have a class axis", shape, "logits (N, C)")
    axis = min(1, len(shape) - 1)
    if weights is not None and shape_of(weights) != (shape[axis],):
        raise checks.fail_value(
            where, f"weight must have shape ({shape[axis]},)", shape_of(weights), "one weight for each class"
        )
    last = keras.ops.moveaxis(logits, axis, -1)
    if numbers_only is None and is_float(labels.dtype):
        check_same_shape(where, logits, labels)
        return last, keras.ops.moveaxis(as_float32(labels), axis, -1)
    expected = shape[:axis] + shape[axis + 1 :]
    one_hot = numbers_only or "one-hot labels as float32"
    return last, check_class_numbers(where, labels, expected, shape, one_hot, classes=shape[axis], ignored=ignored)


def of_probabilities(log_probs: Tensor, labels: Tensor, weights: Tensor | None, smoothing: float) -> Tensor:
    """Return the losses (...) of log-probabilities (..., C) with probabilities as labels."""
    if smoothing:
        labels = labels * (1 - smoothing) + smoothing / log_probs.shape[-1]
    if weights is not None:
        labels = labels * weights
    return -keras.ops.sum(labels * log_probs, axis=-1)


def of_class_numbers(
    logits: Tensor, labels: Tensor, weights: Tensor | None, ignored: int, smoothing: float, *, are_logs: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the losses (...) of logits (..., C), or of log-probabilities, and their weights."""
    ops, classes = keras.ops, logits.shape[-1]
    mask = labels != ignored
    labels = ops.where(mask, labels, ops.zeros_like(labels))  # An ignored label may be no valid index.
    loss_weights = ops.cast(mask, float32)
    if weights is not None:
        loss_weights = loss_weights * ops.take(weights, labels)
    if are_logs:
        losses = -ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    else:
        losses = backend.sparse_softmax_cross_entropy(labels, logits)
    losses = losses * loss_weights
    if smoothing:
        smooth = -(logits if are_logs else ops.log_softmax(logits, axis=-1))
        smooth = ops.sum(smooth if weights is None else smooth * weights, axis=-1)
        losses = losses * (1 - smoothing) + ops.where(mask, smooth, ops.zeros_like(smooth)) * (smoothing / classes)
    return losses, loss_weights


def _weighted_reduction(where: str, losses: Tensor, weights: Tensor | None, reduction: str) -> Tensor:
    if reduction == "mean":
        return keras.ops.sum(losses) / keras.ops.sum(weights)
    return reduce_loss(where, losses, reduction)


@as_primitive
def SoftmaxCrossEntropyWithLogits(logits: TensorLike, labels: TensorLike) -> tuple[Tensor, Tensor]:
    """The cross entropy of `logits` (N, C) with probabilities `labels`, and its gradient by the logits, float32.

    Example: ``ops.SoftmaxCrossEntropyWithLogits()(Tensor([[0.0, 0.0]]), Tensor([[1.0, 0.0]]))``.
    """
    where, logits, labels = "SoftmaxCrossEntropyWithLogits", as_float32(logits), as_float32(labels)
    if len(shape_of(logits)) != 2:
        raise checks.fail_value(where, "logits must have 2 axes (N, C)", shape_of(logits), "logits (N, C)")
    check_same_shape(where, logits, labels)
    gradient = keras.ops.stop_gradient(keras.ops.softmax(logits, axis=-1) - labels)
    return backend.softmax_cross_entropy(labels, logits), gradient


@as_primitive
def SparseSoftmaxCrossEntropyWithLogits(logits: TensorLike, labels: TensorLike, *, is_grad: bool = False) -> Tensor:
    """The mean cross entropy of `logits` (N, C) with class numbers `labels` (N,), or with `is_grad` its gradient.

    Example: ``ops.SparseSoftmaxCrossEntropyWithLogits()(Tensor([[0.0, 0.0]]), Tensor([1]))`` is 0.6931.
    """
    where, logits, shape = "SparseSoftmaxCrossEntropyWithLogits", as_float32(logits), shape_of(logits)
    if len(shape) != 2:
        raise checks.fail_value(where, "logits must have 2 axes (N, C)", shape, "logits (N, C)")
    labels = check_class_numbers(where, labels, shape[:1], shape, "class numbers (N,)", classes=shape[1])
    if not is_grad:
        return keras.ops.mean(backend.sparse_softmax_cross_entropy(labels, logits))
    one_hot = keras.ops.one_hot(labels, shape[1], dtype=float32)
    return (keras.ops.softmax(logits, axis=-1) - one_hot) / keras.ops.cast(keras.ops.shape(logits)[0], float32)
