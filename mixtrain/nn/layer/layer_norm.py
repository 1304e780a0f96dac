"""`LayerNorm`: layer normalization, computed in float32."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.common.initializer import InitializerLike, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import as_dtype, float32, is_half
from mixtrain.nn.layer.inputs import float_tensor
from mixtrain.ops.normalize import LayerNorm as OperatorLayerNorm
from mixtrain.typing import DTypeLike, Tensor


class LayerNorm(Cell):
    """Normalize the last axes of each sample, then scale and shift them.

    Args:
        normalized_shape: Shape of `gamma` and `beta`, a tuple or list.
        begin_norm_axis, begin_params_axis: First axis to normalize over, and first axis of `gamma` and `beta`.
        gamma_init, beta_init: Initial values, anything that `initializer` accepts.
        epsilon: Added to the variance.
        dtype: Dtype of the parameters.

    Inputs: x, floating point, whose last axes are `normalized_shape`.
    Returns: Same shape and dtype as `x`, computed in float32.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.LayerNorm((2,))(mixtrain.Tensor([[1.0, 3.0]])).numpy().round(3).tolist()
        [[-1.0, 1.0]]

    Source: Ba et al., 2016; MindSpore, `mindspore.nn.LayerNorm`.
    """

    precision_family = "normalization"

    def __init__(
        self, normalized_shape: Sequence[int], begin_norm_axis: int = -1, begin_params_axis: int = -1,
        gamma_init: InitializerLike = "ones", beta_init: InitializerLike = "zeros", epsilon: float = 1e-7,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        where = self.cls_name
        checks.instance(where, "normalized_shape", normalized_shape, (tuple, list), "normalized_shape=(64,)")
        self.normalized_shape = tuple(
            checks.integer(where, "normalized_shape", size, at_least=1) for size in normalized_shape
        )
        if not self.normalized_shape:
            raise checks.fail_value(where, "normalized_shape must not be empty", (), "normalized_shape=(64,)")
        self.begin_norm_axis, self.begin_params_axis = int(begin_norm_axis), int(begin_params_axis)
        self.epsilon = checks.number(where, "epsilon", epsilon, above=0, example=1e-7)
        # MindSpore's attribute, which subclasses call with their own parameters.
        self.layer_norm = OperatorLayerNorm(self.begin_norm_axis, self.begin_params_axis, self.epsilon)
        self.gamma = Parameter(initializer(gamma_init, self.normalized_shape, dtype), name="gamma")
        self.beta = Parameter(initializer(beta_init, self.normalized_shape, dtype), name="beta")

    def construct(self, x: Tensor) -> Tensor:
        """Normalize `x`."""
        x = float_tensor(self, x)
        axes = self._norm_axes(x)
        dtype = as_dtype(x.dtype)
        gamma, beta = (keras.ops.cast(parameter.value, float32) for parameter in (self.gamma, self.beta))
        if not is_half(dtype):
            x = keras.ops.cast(x, float32)
        y, _, _ = backend.normalize_axes(x, gamma, beta, axes=axes, epsilon=self.epsilon)
        return keras.ops.cast(y, dtype)

    def _norm_axes(self, x: Tensor) -> tuple[int, ...]:
        """Return the axes to normalize over, after checking the input's shape against `normalized_shape`."""
        shape, rank = tuple(x.shape), len(x.shape)
        for name in ("begin_norm_axis", "begin_params_axis"):
            if not -rank <= getattr(self, name) < rank:
                raise checks.fail_value(
                    name_of(self), f"{name} must be an axis of the input {shape}", getattr(self, name), f"{name}=-1"
                )
        last = shape[self.begin_params_axis % rank :]
        fits = len(last) == len(self.normalized_shape) and all(
            size in (None, expected) for size, expected in zip(last, self.normalized_shape, strict=True)
        )
        if not fits:
            axis = -len(self.normalized_shape)
            raise ValueError(
                f"{name_of(self)}: expected the axes from {self.begin_params_axis} on to be {self.normalized_shape}; "
                f"got {last} (input shape {shape}). Write LayerNorm({last}), or begin_norm_axis={axis}, "
                f"begin_params_axis={axis}."
            )
        return tuple(range(self.begin_norm_axis % rank, rank))

    def extend_repr(self) -> str:
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma={self.gamma}, beta={self.beta}"
        )
