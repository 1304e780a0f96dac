"""`MultiheadAttention`: scaled dot-product attention with several heads."""

from __future__ import annotations

import math

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
from mixtrain.ops import matmul
from mixtrain.typing import DTypeLike, Tensor


class MultiheadAttention(Cell):
    """Multi-head attention: each head attends on its own part of the features.

    Args:
        embed_dim: Features of queries and of the output, and of keys and values: `kdim` and `vdim` must be None or the
            same.
        num_heads: Number of heads; must divide `embed_dim`.
        dropout: Probability that a weight is dropped in training.
        has_bias: Whether the projections have biases.
        add_bias_kv, add_zero_attn: False, the only supported value.
        batch_first: Whether inputs are (N, L, E); (L, N, E) otherwise.
        dtype: Dtype of the parameters.

    Inputs:
        query, key, value; `key_padding_mask` (N, S), True or -inf where keys are ignored; `need_weights`; `attn_mask`
        (L, S), True or -inf where attention is masked out, or added to the scores; `average_attn_weights`.

    Returns: (output, weights); the weights are None unless `need_weights`.
    Raises: ValueError: `num_heads` does not divide `embed_dim`, or an argument is not supported.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> x = mixtrain.Tensor(np.ones((5, 2, 8), np.float32))
        >>> output, weights = nn.MultiheadAttention(8, 2)(x, x, x)
        >>> output.shape, weights.shape
        ((5, 2, 8), (2, 5, 5))

    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.MultiheadAttention`.
    """

    precision_family = "matmul"
    product_equation = "...k,nk->...n"

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, has_bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.embed_dim = checks.integer(where, "embed_dim", embed_dim, at_least=1)
        self.num_heads = checks.integer(where, "num_heads", num_heads, at_least=1)
        if self.embed_dim % self.num_heads:
            raise checks.fail_value(where, "num_heads must divide embed_dim", num_heads, "num_heads=1")
        if add_bias_kv or add_zero_attn or kdim not in (None, embed_dim) or vdim not in (None, embed_dim):
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
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from `query` to `value` by the similarity of `query` and `key`."""
        inputs = [float_tensor(self, x) for x in (query, key, value)]
        unbatched = len(inputs[0].shape) == 2
        if unbatched:
            inputs = [keras.ops.expand_dims(x, 0 if self.batch_first else 1) for x in inputs]
        if not self.batch_first:
            inputs = [keras.ops.swapaxes(x, 0, 1) for x in inputs]
        q, k, v = (self._project(x, index) for index, x in enumerate(inputs))
        scores = matmul(q / math.sqrt(self.embed_dim // self.num_heads), keras.ops.swapaxes(k, -1, -2))
        # Masks and softmax are float32 whatever the dtype of the products.
        scores = keras.ops.cast(scores, float32)
        if attn_mask is not None:
            mask = _additive_mask(attn_mask)
            if len(mask.shape) == 3:
                mask = keras.ops.reshape(mask, (-1, self.num_heads, *mask.shape[1:]))
            scores = scores + mask
        if key_padding_mask is not None:
            mask = _additive_mask(key_padding_mask)
            scores = scores + keras.ops.expand_dims(keras.ops.reshape(mask, (-1, mask.shape[-1])), (1, 2))
        weights = keras.ops.softmax(scores, axis=-1)
        context = matmul(keras.ops.cast(self.dropout(weights), v.dtype), v)
        context = keras.ops.reshape(
            keras.ops.swapaxes(context, 1, 2), (keras.ops.shape(context)[0], context.shape[2], self.embed_dim)
        )
        output = self.out_proj(context)
        if not self.batch_first:
            output = keras.ops.swapaxes(output, 0, 1)
        weights = keras.ops.mean(weights, axis=1) if average_attn_weights else weights
        if unbatched:
            output = keras.ops.squeeze(output, 0 if self.batch_first else 1)
            weights = keras.ops.squeeze(weights, 0)
        return output, weights if need_weights else None

    @property
    def product_shape(self) -> tuple[int, int]:
        """Shape of the weight of each projection in `product_equation`."""
        return self.embed_dim, self.embed_dim

    def multiply(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return ``x @ weight.T``, a projection; a plan may replace it."""
        return matmul(x, keras.ops.transpose(weight))

    def _project(self, x: Tensor, index: int) -> Tensor:
        """Apply the query (0), key (1) or value (2) projection; return (N, heads, L, features)."""
        rows = slice(index * self.embed_dim, (index + 1) * self.embed_dim)
        weight = keras.ops.convert_to_tensor(self.in_proj_weight.value)[rows]
        projected = self.multiply(x, weight)
        if self.in_proj_bias is not None:
            projected = projected + keras.ops.cast(
                keras.ops.convert_to_tensor(self.in_proj_bias.value)[rows], projected.dtype
            )
        shape = (keras.ops.shape(projected)[0], projected.shape[1], self.num_heads, self.embed_dim // self.num_heads)
        return keras.ops.swapaxes(keras.ops.reshape(projected, shape), 1, 2)


def _additive_mask(mask: Tensor) -> Tensor:
    """Return a mask that is added to the scores: -inf where a bool mask is True."""
    mask = keras.ops.convert_to_tensor(mask)
    if keras.backend.standardize_dtype(mask.dtype) != "bool":
        return keras.ops.cast(mask, float32)
    return keras.ops.where(mask, np.float32(-np.inf), np.float32(0))
