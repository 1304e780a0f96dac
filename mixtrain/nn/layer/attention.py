"""`MultiheadAttention`: weighted means of values, by how well their keys fit the queries."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import keras
import numpy as np

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import as_dtype, float32
from mixtrain.nn.layer.dense import Dense
from mixtrain.nn.layer.dropout import Dropout
from mixtrain.nn.layer.inputs import float_tensor
from mixtrain.ops.products import matmul
from mixtrain.precision.families import Family


class MultiheadAttention(Cell):
    """Attention of several heads, each on its own part of the features.

    Args:
        embed_dim: Features of queries and of the output.
        num_heads: How many heads; they divide `embed_dim`.
        dropout: Probability that a weight is dropped in training.
        has_bias: Whether the projections have biases.
        add_bias_kv: False, the only one.
        add_zero_attn: False, the only one.
        kdim: Features of the keys; `embed_dim` without it, and the only one.
        vdim: Features of the values; likewise.
        batch_first: Whether inputs are (N, L, E); (L, N, E) otherwise.
        dtype: Dtype of the parameters.

    Inputs:
        query, key, value; and `key_padding_mask`, (N, S), True or -inf where keys are left out; `need_weights`;
        `attn_mask`, (L, S), True or -inf where there is no attention, or added to the fits; `average_attn_weights`.

    Returns:
        (output, weights); the weights are None without `need_weights`.

    Raises:
        ValueError: The heads do not divide the features, or an argument is not offered.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> x = mixtrain.Tensor(np.ones((5, 2, 8), np.float32))
        >>> output, weights = nn.MultiheadAttention(8, 2)(x, x, x)
        >>> output.shape, weights.shape
        ((5, 2, 8), (2, 5, 5))

    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.MultiheadAttention`.
    """

    precision_family: ClassVar[Family] = "matmul"

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, has_bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        dtype: Any = float32,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.embed_dim = checks.integer(where, "embed_dim", embed_dim, at_least=1)
        self.num_heads = checks.integer(where, "num_heads", num_heads, at_least=1)
        if self.embed_dim % self.num_heads:
            raise checks.fail_value(where, "num_heads must divide embed_dim", num_heads, "num_heads=1")
        others = (add_bias_kv, add_zero_attn, kdim not in (None, embed_dim), vdim not in (None, embed_dim))
        if any(others):
            raise checks.fail_value(
                where, "add_bias_kv and add_zero_attn must be False, kdim and vdim those of the queries",
                (add_bias_kv, add_zero_attn, kdim, vdim), "nn.Dense before it to change the features",
            )
        self.batch_first = checks.boolean(where, "batch_first", batch_first)
        self.in_proj_weight = Parameter(
            initializer("xavier_uniform", (3 * embed_dim, embed_dim), dtype), name="in_proj_weight"
        )
        self.in_proj_bias = Parameter(
            initializer("zeros", (3 * embed_dim,), dtype), name="in_proj_bias"
        ) if has_bias else None
        self.out_proj = Dense(embed_dim, embed_dim, has_bias=has_bias, dtype=as_dtype(dtype))
        self.dropout = Dropout(p=dropout)

    def construct(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, average_attn_weights: bool = True,
    ) -> tuple[Any, Any]:
        """Attend with `query` to `value` by `key`."""
        parts = [float_tensor(self, one) for one in (query, key, value)]
        single = len(parts[0].shape) == 2
        parts = [keras.ops.expand_dims(one, 0 if self.batch_first else 1) if single else one for one in parts]
        if not self.batch_first:
            parts = [keras.ops.swapaxes(one, 0, 1) for one in parts]
        heads = [self._heads(one, number) for number, one in enumerate(parts)]
        q, k, v = heads
        fits = matmul(q / math.sqrt(self.embed_dim // self.num_heads), keras.ops.swapaxes(k, -1, -2))
        fits = keras.ops.cast(fits, float32)
        for mask, axes in ((attn_mask, None), (key_padding_mask, (1, 2))):
            if mask is not None:
                added = _as_added(mask)
                if axes is not None:
                    added = keras.ops.expand_dims(keras.ops.reshape(added, (-1, added.shape[-1])), axes)
                elif len(added.shape) == 3:
                    added = keras.ops.reshape(added, (-1, self.num_heads, *added.shape[1:]))
                fits = fits + added
        weights = keras.ops.softmax(fits, axis=-1)
        mixed = matmul(keras.ops.cast(self.dropout(weights), v.dtype), v)
        joined = keras.ops.reshape(
            keras.ops.swapaxes(mixed, 1, 2), (keras.ops.shape(mixed)[0], mixed.shape[2], self.embed_dim)
        )
        output = self.out_proj(joined)
        if not self.batch_first:
            output = keras.ops.swapaxes(output, 0, 1)
        weights = keras.ops.mean(weights, axis=1) if average_attn_weights else weights
        if single:
            output = keras.ops.squeeze(output, 0 if self.batch_first else 1)
            weights = keras.ops.squeeze(weights, 0)
        return output, weights if need_weights else None

    def _heads(self, x: Any, number: int) -> Any:
        """Return (N, heads, L, features) of one of the three projections."""
        own = slice(number * self.embed_dim, (number + 1) * self.embed_dim)
        weight = keras.ops.convert_to_tensor(self.in_proj_weight.value)[own]
        projected = matmul(x, keras.ops.transpose(weight))
        if self.in_proj_bias is not None:
            projected = projected + keras.ops.cast(
                keras.ops.convert_to_tensor(self.in_proj_bias.value)[own], projected.dtype
            )
        shape = (keras.ops.shape(projected)[0], projected.shape[1], self.num_heads, self.embed_dim // self.num_heads)
        return keras.ops.swapaxes(keras.ops.reshape(projected, shape), 1, 2)


def _as_added(mask: Any) -> Any:
    """Return a mask as what is added: -inf where a bool one is True."""
    mask = keras.ops.convert_to_tensor(mask)
    if keras.backend.standardize_dtype(mask.dtype) != "bool":
        return keras.ops.cast(mask, float32)
    return keras.ops.where(mask, np.float32(-np.inf), np.float32(0))
