"""Checks of the arguments of losses (float32, shapes, class numbers in range), and the reduction of losses."""

from __future__ import annotations

import keras

from mixtrain import backend, checks
from mixtrain.boundary import tensor
from mixtrain.class_labels import require_classes
from mixtrain.dtype import as_dtype, float32, int32, int64, is_float
from mixtrain.typing import Tensor, TensorLike

Shape = tuple[int | None, ...]


def as_float32(value: TensorLike) -> Tensor:
    """Return a tensor, array or number as a float32 tensor."""
    return keras.ops.cast(tensor("a loss", value), float32)


def reduce_loss(where: str, losses: Tensor, reduction: str | None) -> Tensor:
    """Return the mean or the sum of losses, or the losses themselves for "none"."""
    checks.one_of(where, "reduction", reduction, ("mean", "sum", "none"))
    if reduction == "none":
        return losses
    return keras.ops.mean(losses) if reduction == "mean" else keras.ops.sum(losses)


def shape_of(value: Tensor) -> Shape:
    """Return the shape of a tensor as a tuple, with None for an unknown dimension."""
    return tuple(value.shape)


def fits(first: Shape, second: Shape) -> bool:
    """Whether two shapes can be equal, as far as they are known."""
    return len(first) == len(second) and all(x == y or None in (x, y) for x, y in zip(first, second, strict=True))


def check_same_shape(where: str, x: Tensor, label: Tensor, names: tuple[str, str] = ("logits", "labels")) -> None:
    """Raise a ValueError unless both have the same shape."""
    if not fits(shape_of(x), shape_of(label)):
        raise ValueError(
            f"{where}: expected {names[1]} of the shape of {names[0]} {shape_of(x)}; got {names[1]} "
            f"{shape_of(label)}. Write {_reshaping(names[1], shape_of(label), shape_of(x))}."
        )


def check_broadcast(where: str, shape: Shape, name: str, value: Tensor) -> None:
    """Raise a ValueError unless `value` broadcasts to `shape`."""
    got = shape_of(value)
    tail = shape[len(shape) - len(got) :] if len(got) <= len(shape) else ()
    if len(got) > len(shape) or not fits(got, tuple(1 if g == 1 else t for g, t in zip(got, tail, strict=True))):
        raise ValueError(
            f"{where}: expected {name} to broadcast to {shape}; got {name} {got}. Write a {name} of shape {shape}."
        )


def _reshaping(name: str, got: Shape, expected: Shape) -> str:
    """Return the expression that most likely reshapes `got` to `expected`, for a message."""
    if len(got) == len(expected) + 1 and got[-1] == 1:
        return f"{name}[..., 0]"
    if len(expected) == len(got) + 1 and expected[-1] == 1:
        return f"{name}[..., None]"
    return f"{name} of shape {expected}"


def check_class_numbers(
    where: str, labels: TensorLike, expected: Shape, logits: Shape, one_hot: str, *, classes: int | None,
    ignored: int | None = None,
) -> Tensor:
    """Return labels as a tensor of class numbers of the `expected` shape, each below `classes` or `ignored`.

    `logits`, their shape, and `one_hot`, what to write for one-hot labels, are for messages. A compiled step checks the
    range before it runs.
    """
    labels = backend.to_tensor(labels)
    got = shape_of(labels)
    if not fits(got, expected):
        write = one_hot if fits(got, logits) and len(got) > 1 and got[-1] != 1 else _reshaping("labels", got, expected)
        raise ValueError(
            f"{where}: expected labels {expected}, class numbers, for logits {logits}; got labels {got}. Write {write}."
        )
    if is_float(labels.dtype) or as_dtype(labels.dtype) == "bool":
        raise TypeError(
            f"{where}: expected class numbers of an int dtype; got {as_dtype(labels.dtype).name}. "
            "Write mixtrain.Tensor(labels, mixtrain.int32)."
        )
    require_classes(where, labels, classes, ignored)
    return labels if as_dtype(labels.dtype) in (int32, int64) else keras.ops.cast(labels, int32)


def check_range(where: str, name: str, value: Tensor, low: float, high: float) -> None:
    """Raise a ValueError where a value is outside [low, high]; skipped in compiled functions, which have no values."""
    if backend.is_tracing():
        return
    array = backend.to_numpy(value)
    outside = array[~((array >= low) & (array <= high))]
    if outside.size:
        raise checks.fail_value(
            where, f"{name} must be from {low} to {high}", outside.flat[0].item(), f"{name} in that range"
        )
