"""Clip tensors by their global norm, in which the next values of float8 scales do not count."""

from __future__ import annotations

import math
from collections.abc import Sequence

import keras

from mixtrain import backend, checks
from mixtrain.dtype import float32
from mixtrain.ops.inputs import tensor
from mixtrain.typing import Tensor, TensorLike, Tree


def clip_by_global_norm(x: Sequence[TensorLike], clip_norm: float = 1.0, use_norm: TensorLike | None = None) -> Tree:
    """Scale tensors down by one factor where their global norm is greater than `clip_norm` (Pascanu et al., 2013).

    `x` is a tuple or list of float tensors, dense or sparse (None entries stay None), or one tensor. `use_norm` is the
    norm to use; None for that of `x`, computed in float32. Example:
    ``ops.clip_by_global_norm((Tensor([3.0]), Tensor([4.0])), 1.0)`` is ``([0.6], [0.8])``.
    """
    where = "clip_by_global_norm"
    limit = checks.number(where, "clip_norm", clip_norm, above=0, example=1.0)
    if not isinstance(x, (tuple, list)):
        return _clip([_tensor(x)], limit, use_norm)[0]
    if not x:
        raise checks.fail_value(where, "x must hold tensors", x, "ops.clip_by_global_norm(grads)")
    return _clip([None if value is None else _tensor(value) for value in x], limit, use_norm)


def clip_by_norm(x: TensorLike, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """Scale the tensor `x`, or a tuple or list, down by one factor where its norm is greater than `max_norm`.

    `norm_type`: the order of the norm; infinity for the largest absolute value. `error_if_nonfinite`: whether a
    non-finite norm is an error, outside compiled functions. Example: ``ops.clip_by_norm(Tensor([3.0, 4.0]), 1.0)`` is
    ``[0.6, 0.8]``.
    """
    ops, where = keras.ops, "ops.clip_by_norm"
    order = math.inf if norm_type == math.inf else checks.number(where, "norm_type", norm_type, above=0, example=2.0)
    values = [tensor(where, value) for value in (x if isinstance(x, (tuple, list)) else (x,))]
    magnitudes = [ops.abs(ops.cast(value, float32)) for value in values if not backend.is_next_value(value)]
    if order == math.inf:
        norm = ops.max(ops.stack([ops.max(magnitude) for magnitude in magnitudes]))
    else:
        norm = ops.power(sum(ops.sum(ops.power(magnitude, order)) for magnitude in magnitudes), 1 / order)
    if error_if_nonfinite and not bool(backend.to_numpy(ops.isfinite(norm))):
        raise RuntimeError(f"{where}: the norm is not finite. Write error_if_nonfinite=False.")
    factor = ops.minimum(max_norm / (norm + 1e-6), 1.0)
    clipped = [
        value if backend.is_next_value(value) else ops.cast(ops.cast(value, float32) * factor, value.dtype)
        for value in values
    ]
    return type(x)(clipped) if isinstance(x, (tuple, list)) else clipped[0]


def _tensor(value: TensorLike) -> Tensor:
    return value if backend.is_sparse(value) else tensor("clip_by_global_norm", value)


def _clip(values: Sequence[Tensor], limit: float, use_norm: TensorLike | None) -> tuple[Tensor, ...]:
    ops = keras.ops
    norm = _global_norm(values) if use_norm is None else ops.cast(use_norm, float32)
    divisor = ops.maximum(norm, limit)

    def clip(value: Tensor) -> Tensor:
        return ops.cast(ops.cast(value, float32) * limit / divisor, value.dtype)

    return tuple(
        value if value is None or backend.is_next_value(value) else backend.map_values(clip, value) for value in values
    )


def _global_norm(values: Sequence[Tensor]) -> Tensor:
    """Compute the Euclidean norm of all elements in float32."""
    dense = [backend.densified(value) for value in values if value is not None and not backend.is_next_value(value)]
    return keras.ops.sqrt(sum(keras.ops.sum(keras.ops.square(keras.ops.cast(value, float32))) for value in dense))
