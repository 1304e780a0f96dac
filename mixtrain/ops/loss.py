"""Regression and binary classification losses, computed in float32 for every dtype."""

from __future__ import annotations

import warnings
from typing import Final

import keras

from mixtrain import checks
from mixtrain.ops.inputs import check_broadcast as check_two
from mixtrain.ops.labels import as_float32, check_broadcast, check_range, check_same_shape, reduce_loss, shape_of
from mixtrain.ops.primitive import as_primitive
from mixtrain.ops.unary import magnitude
from mixtrain.typing import Tensor, TensorLike

# Added to probabilities before their logarithm, as in MindSpore: the largest loss is -log(1e-12) = 27.631021.
_EPSILON: Final = 1e-12
# Of x * (1 - x): from it on `_EPSILON` changes no digit of a derivative.
_NEAR: Final = 1e-5


def mse_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The squared difference of `input` and `target`, float32; `reduction` is "mean", "sum" or "none".

    Example: ``ops.mse_loss(x, y)``.
    """
    return reduce_loss("ops.mse_loss", keras.ops.square(_difference("ops.mse_loss", input, target)), reduction)


def l1_loss(input: TensorLike, target: TensorLike, reduction: str = "mean") -> Tensor:
    """The absolute difference of `input` and `target`, float32; `reduction` as in `mse_loss`: ``ops.l1_loss(x, y)``."""
    return reduce_loss("ops.l1_loss", magnitude(_difference("ops.l1_loss", input, target)), reduction)


def smooth_l1_loss(input: TensorLike, target: TensorLike, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """The squared difference / (2 `beta`) below `beta`, and the absolute difference - `beta` / 2 from there on.

    Args:
        input: Predictions, of any dtype.
        target: Targets of the shape of `input`.
        beta: The difference where the loss becomes linear, at least 0; 0 gives the absolute difference.
        reduction: "none", "mean" or "sum"; the result is float32 (Girshick, 2015).

    Example: ``ops.smooth_l1_loss(Tensor([0.5, 3.0]), Tensor([0.0, 0.0]))`` is ``[0.125, 2.5]``.
    """
    where = "ops.smooth_l1_loss"
    beta = checks.number(where, "beta", beta, at_least=0, example=1.0)
    x, y = as_float32(input), as_float32(target)
    check_same_shape(where, x, y, ("input", "target"))
    error = keras.ops.absolute(x - y)
    losses = error if beta == 0 else keras.ops.where(error < beta, 0.5 * error * error / beta, error - 0.5 * beta)
    return reduce_loss(where, losses, reduction)


def huber_loss(input: TensorLike, target: TensorLike, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """`smooth_l1_loss` of `input` and `target` with `beta` = `delta`, times `delta`; `reduction` as there.

    Example: ``ops.huber_loss(x, y)``. Source: Huber, 1964; MindSpore, `mindspore.ops.huber_loss`.
    """
    delta = checks.number("ops.huber_loss", "delta", delta, above=0, example=1.0)
    error = keras.ops.absolute(_difference("ops.huber_loss", input, target))
    losses = keras.ops.where(error < delta, 0.5 * error * error, delta * (error - 0.5 * delta))
    return reduce_loss("ops.huber_loss", losses, reduction)


def _difference(where: str, x: TensorLike, y: TensorLike) -> Tensor:
    """Return x - y in float32; warn if both are broadcast."""
    x, y = as_float32(x), as_float32(y)
    check_two(where, x, y)
    result = x - y
    if tuple(result.shape) not in (tuple(x.shape), tuple(y.shape)) and None not in result.shape:
        warnings.warn(
            f"{where}: input {tuple(x.shape)} and target {tuple(y.shape)} are both stretched to one shape, so each "
            f"prediction meets other samples' targets. Write a target of shape {tuple(x.shape)} if that is not meant.",
            stacklevel=3,
        )
    return result


def binary_cross_entropy(
    logits: TensorLike, labels: TensorLike, weight: TensorLike | None = None, reduction: str = "mean"
) -> Tensor:
    """The binary cross entropy between probabilities `logits` in [0, 1] and `labels` of the same shape, in float32.

    `weight`: weights that broadcast to that shape, or None; `reduction`: "mean", "sum" or "none". Example:
    ``ops.binary_cross_entropy(Tensor([0.5]), Tensor([1.0]))`` is 0.6931.
    """
    where, x, y = "ops.binary_cross_entropy", as_float32(logits), as_float32(labels)
    check_same_shape(where, x, y)
    check_range(where, "logits, which are probabilities here,", x, 0, 1)
    return reduce_loss(where, _times(where, binary_losses(x, y), weight), reduction)


def binary_losses(x: Tensor, y: Tensor) -> Tensor:
    """Return the cross entropies of probabilities and labels, float32 of one shape, for which `_EPSILON` is added.

    The derivative is (x - y) / (x * (1 - x)), its divisor at least `_EPSILON`, as in MindSpore: 0 where x is y.
    """
    # Compilers turn (1 - x) + c into (1 + c) - x, which is 0 at 1: there the sum is written out.
    logs = keras.ops.log(keras.ops.where(keras.ops.equal(x, 0), _EPSILON, x + _EPSILON))
    rest = keras.ops.log(keras.ops.where(keras.ops.equal(x, 1), _EPSILON, 1 - x + _EPSILON))
    fixed = keras.ops.stop_gradient
    spread = x * (1 - x)
    slope = fixed((x - y) / keras.ops.maximum(spread, _EPSILON))
    # Near 0 and 1 the value without its derivative, and 0 with that of the rule.
    at_ends = -(y * fixed(logs) + (1 - y) * fixed(rest)) + slope * (x - fixed(x))
    return keras.ops.where(spread < _NEAR, at_ends, -(y * logs + (1 - y) * rest))


def binary_cross_entropy_with_logits(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, pos_weight: TensorLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy between the sigmoid of logits and labels, without overflow, in float32.

    Args:
        input: Logits, any float dtype.
        target: Labels of the same shape, in [0, 1], any dtype.
        weight: Weights that broadcast to that shape, or None.
        pos_weight: Weights of the positive class, which broadcast to that shape, or None.
        reduction: "mean", "sum" or "none".

    Example: ``ops.binary_cross_entropy_with_logits(Tensor([0.0]), Tensor([1.0]))`` is 0.6931.
    """
    where, x, y = "ops.binary_cross_entropy_with_logits", as_float32(input), as_float32(target)
    check_same_shape(where, x, y, ("input", "target"))
    losses = logit_losses(x, y, _times(where, y, pos_weight, name="pos_weight"))
    return reduce_loss(where, _times(where, losses, weight), reduction)


def logit_losses(x: Tensor, y: Tensor, positive: Tensor) -> Tensor:
    """Return the cross entropies of logits and labels, float32 of one shape; `positive` is labels times their weights.

    -log sigmoid(x) is softplus(-x), and -log(1 - sigmoid(x)) is softplus(x): without differences, small losses and
    their gradients keep their digits.
    """
    return positive * keras.ops.softplus(-x) + (1 - y) * keras.ops.softplus(x)


def _times(where: str, x: Tensor, weight: Tensor | None, *, name: str = "weight") -> Tensor:
    if weight is None:
        return x
    weight = as_float32(weight)
    check_broadcast(where, shape_of(x), name, weight)
    return x * weight


def kl_div(logits: TensorLike, labels: TensorLike, reduction: str = "mean") -> Tensor:
    """`labels` * (log(`labels`) - `logits`), float32; `reduction` "mean", "sum", "none" or "batchmean".

    Example: ``ops.kl_div(ops.log_softmax(x), y)``.
    """
    where, x, y = "ops.kl_div", as_float32(logits), as_float32(labels)
    checks.one_of(where, "reduction", reduction, ("mean", "sum", "none", "batchmean"))
    check_same_shape(where, x, y)
    safe, products = keras.ops.where(y > 0, y, keras.ops.ones_like(y)), y * x
    # Where y is no probability the loss is 0, and the derivative is -y, as MindSpore has it.
    losses = keras.ops.where(y > 0, y * keras.ops.log(safe), keras.ops.stop_gradient(products)) - products
    if reduction == "batchmean":
        return keras.ops.sum(losses) / keras.ops.cast(keras.ops.shape(x)[0], "float32")
    return reduce_loss(where, losses, reduction)


@as_primitive
def SigmoidCrossEntropyWithLogits(logits: TensorLike, label: TensorLike) -> Tensor:
    """`binary_cross_entropy_with_logits`, not reduced. Example: ``ops.SigmoidCrossEntropyWithLogits()(x, y)``."""
    return binary_cross_entropy_with_logits(logits, label, reduction="none")


@as_primitive
def SmoothL1Loss(prediction: TensorLike, target: TensorLike, *, beta: float = 1.0, reduction: str = "none") -> Tensor:
    """`smooth_l1_loss` with a fixed `beta`, more than 0, and `reduction`. Example: ``ops.SmoothL1Loss()(x, y)``."""
    return smooth_l1_loss(prediction, target, beta, reduction)
