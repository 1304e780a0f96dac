"""The namespace for image arithmetic: TensorFlow's functions by NumPy's names, and what NumPy has no name for."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from mixtrain.typing import Tensor


def _sum(values: Tensor, axis: int | None = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    del dtype  # A sum has the dtype of the values.
    return tf.reduce_sum(values, axis=axis, keepdims=keepdims)


_NAMES = types.SimpleNamespace(
    abs=tf.abs, asarray=tf.convert_to_tensor, clip=tf.clip_by_value, cos=tf.cos, cumsum=tf.cumsum, floor=tf.floor,
    left_shift=tf.bitwise.left_shift, max=tf.reduce_max, maximum=tf.maximum, mean=tf.reduce_mean, min=tf.reduce_min,
    minimum=tf.minimum, mod=tf.math.floormod, reshape=tf.reshape, round=tf.round, sin=tf.sin, stack=tf.stack, sum=_sum,
    take=tf.gather, tan=tf.tan, where=tf.where,
)


def space(*values: Any) -> tuple[Any, ...]:
    return (_NAMES, *values)


def cast(values: Any, dtype: Any) -> Tensor:
    return tf.cast(values, dtype)


def exact(values: Tensor) -> Tensor:
    """In float32: TensorFlow rounds each product before it is summed."""
    return tf.cast(values, tf.float32)


def number(value: Any) -> Any:
    """As it is: TensorFlow's operators convert Python's numbers."""
    return value


def numbers_to(count: Any, dtype: str | None = None) -> Tensor:
    return tf.range(tf.cast(count, dtype or "int32"))


def one_hot(indices: Tensor, count: Tensor | int) -> Tensor:
    return tf.one_hot(indices, count)


def choose(condition: Tensor, yes: Callable[[], Tensor], no: Callable[[], Tensor]) -> Tensor:
    return tf.where(condition, yes(), no())


def lanczos(x: Tensor) -> Tensor:
    return _sinc(x) * _sinc(x / 3.0)


def _sinc(x: Tensor) -> Tensor:
    angle = tf.where(x == 0.0, 1.0, x * 3.14159265358979)
    return tf.where(x == 0.0, 1.0, tf.sin(angle) / angle)


def is_integer(dtype: Any) -> bool:
    return bool(dtype.is_integer)


def size_of(image: Tensor) -> tuple[Tensor | int, Tensor | int]:
    known = image.shape[-3:-1]
    shape = tf.shape(image)
    return tuple(shape[index - 3] if size is None else size for index, size in enumerate(known))  # type: ignore


def sized(image: Tensor, height: Tensor | int, width: Tensor | int, channels: int | None) -> Tensor:
    sizes = [value if isinstance(value, int) else None for value in (height, width)]
    return tf.ensure_shape(image, [*sizes, channels])


def saturate(values: Tensor, dtype: Any) -> Tensor:
    if not dtype.is_integer:
        return tf.cast(values, dtype)
    return tf.cast(tf.clip_by_value(tf.round(values), float(dtype.min), float(dtype.max)), dtype)
