"""What losses ask of their arguments: float32, shapes that fit, class numbers in range; and how they are reduced."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, float32, int32, int64, is_float

Shape = tuple[int | None, ...]


def as_float32(value: Any) -> Any:
    """Return a tensor, array or number as a float32 tensor."""
    return keras.ops.cast(backend.to_tensor(value), float32)


def reduced(where: str, losses: Any, reduction: Any) -> Any:
    """Return the mean or the sum of losses, or the losses themselves for "none"."""
    checks.one_of(where, "reduction", reduction, ("mean", "sum", "none"))
    if reduction == "none":
        return losses
    return keras.ops.mean(losses) if reduction == "mean" else keras.ops.sum(losses)


def shape_of(value: Any) -> Shape:
    """Return a tensor's shape as a tuple, None where a size is not known yet."""
    return tuple(value.shape)


def fits(one: Shape, other: Shape) -> bool:
    """Whether two shapes can be equal, as far as they are known."""
    return len(one) == len(other) and all(
        first == second or first is None or second is None for first, second in zip(one, other, strict=True)
    )


def check_same_shape(where: str, x: Any, label: Any, names: tuple[str, str] = ("logits", "labels")) -> None:
    """Raise a ValueError unless both have one shape."""
    if not fits(shape_of(x), shape_of(label)):
        raise ValueError(
            f"{where}: expected {names[1]} of the shape of {names[0]} {shape_of(x)}; got {names[1]} "
            f"{shape_of(label)}. Write {_reshaping(names[1], shape_of(label), shape_of(x))}."
        )


def check_broadcast(where: str, shape: Shape, name: str, value: Any) -> None:
    """Raise a ValueError unless `value` broadcasts to `shape`."""
    given = shape_of(value)
    tail = shape[len(shape) - len(given) :] if len(given) <= len(shape) else ()
    if len(given) > len(shape) or not fits(given, tuple(1 if g == 1 else t for g, t in zip(given, tail, strict=True))):
        raise ValueError(
            f"{where}: expected {name} to broadcast to {shape}; got {name} {given}. Write a {name} of shape {shape}."
        )


def _reshaping(name: str, got: Shape, wanted: Shape) -> str:
    """Return the expression that most likely turns `got` into `wanted`."""
    if len(got) == len(wanted) + 1 and got[-1] == 1:
        return f"{name}[..., 0]"
    if len(wanted) == len(got) + 1 and wanted[-1] == 1:
        return f"{name}[..., None]"
    return f"{name} of shape {wanted}"


def check_class_numbers(
    where: str,
    labels: Any,
    wanted: Shape,
    logits: Shape,
    one_hot: str,
    *,
    classes: int | None,
    ignored: int | None = None,
) -> Any:
    """Return labels as a tensor of class numbers.

    Args:
        where: Who asks.
        labels: The labels; any int format.
        wanted: The shape they must have.
        logits: The logits' shape, for messages.
        one_hot: What to write where one-hot labels came.
        classes: How many classes there are, where that is known.
        ignored: The label that counts for nothing.

    Raises:
        TypeError: They are no ints.
        ValueError: They have another shape; or one is out of range, in a compiled step before that runs.
    """
    labels = backend.to_tensor(labels)
    got = shape_of(labels)
    if not fits(got, wanted):
        write = one_hot if fits(got, logits) and len(got) > 1 and got[-1] != 1 else _reshaping("labels", got, wanted)
        raise ValueError(
            f"{where}: expected labels {wanted}, class numbers, for logits {logits}; got labels {got}. Write {write}."
        )
    if is_float(labels.dtype) or as_dtype(labels.dtype) == "bool":
        raise TypeError(
            f"{where}: expected class numbers of an int dtype; got {as_dtype(labels.dtype).name}. "
            "Write mixtrain.Tensor(labels, mixtrain.int32)."
        )
    require_classes(where, labels, classes, ignored)
    return labels if as_dtype(labels.dtype) in (int32, int64) else keras.ops.cast(labels, int32)


def require_classes(
    where: str, labels: Any, classes: int | None, ignored: int | None = None, weights: Any = None
) -> None:
    """Refuse labels that are no class numbers: now, or where this is being compiled in each batch before it runs.

    Args:
        where: Who asks.
        labels: The labels, as they came with the batch.
        classes: How many classes there are; None where that is not known.
        ignored: The label that counts for nothing.
        weights: What weighs the labels; one of weight 0 counts for nothing.

    Raises:
        LabelOutOfRange: A label is none.
    """
    if backend.is_symbolic(labels):
        backend.note_class_labels(labels, classes, ignored, weights)
    elif classes is not None:
        found = backend.first_outside(labels, classes, () if ignored is None else (ignored,), weights)
        if found is not None:
            raise backend.LabelOutOfRange(where, found[1], classes)


def check_range(where: str, name: str, value: Any, low: float, high: float) -> None:
    """Raise a ValueError where a value is outside [low, high]; only outside compiled functions, which cannot look."""
    if backend.is_tracing():
        return
    array = backend.to_numpy(value)
    outside = array[~((array >= low) & (array <= high))]
    if outside.size:
        raise checks.fail_value(
            where, f"{name} must be from {low} to {high}", outside.flat[0].item(), f"{name} in that range"
        )
