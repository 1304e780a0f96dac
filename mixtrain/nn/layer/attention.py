"""`MultiheadAttention`: scaled dot-product attention with several heads, and the function of its parameters."""

from __future__ import annotations

import math
from collections.abc import Callable

import keras
import numpy as np

from mixtrain import checks
from mixtrain.boundary import library
from mixtrain.cell.cell import Cell
from mixtrain.common.initializer import XavierNormal, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import as_dtype, float32
from mixtrain.nn.layer.dense import Dense
from mixtrain.nn.layer.dropout import Dropout
from mixtrain.nn.layer.inputs import float_tensor
from mixtrain.ops import dense, dropout, matmul
from mixtrain.typing import DTypeLike, Tensor


class MultiheadAttention(Cell):
    """Multi-head attention: each head attends on its own part of the features.

    Args:
        embed_dim: Features of queries and of the output.
        num_heads: Number of heads; must divide `embed_dim`.
        dropout: Probability that a weight is dropped in training.
        has_bias: Whether the projections have biases.
        add_bias_kv: Whether a learned key and value, `bias_k` and `bias_v`, are appended to the others.
        add_zero_attn: Whether a key and value of zeros are appended.
        kdim, vdim: Features of keys and of values; None for `embed_dim`. With others than that the projections are
            `q_proj_weight`, `k_proj_weight` and `v_proj_weight` instead of `in_proj_weight`.
        batch_first: Whether inputs are (N, L, E); (L, N, E) otherwise.
        dtype: Dtype of the parameters.

    Inputs:
        query, key, value; `key_padding_mask` (N, S), True or -inf where keys are ignored; `need_weights`; `attn_mask`
        (L, S), True or -inf where attention is masked out, or added to the scores; `average_attn_weights`.

    Returns: (output, weights); the weights are None unless `need_weights`.
    Raises: ValueError: `num_heads` does not divide `embed_dim`.

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
        self.add_zero_attn = checks.boolean(where, "add_zero_attn", add_zero_attn)
        self.batch_first = checks.boolean(where, "batch_first", batch_first)
        self.kdim, self.vdim = (
            embed_dim if dim is None else checks.integer(where, name, dim, at_least=1)
            for name, dim in (("kdim", kdim), ("vdim", vdim))
        )
        self.in_proj_weight = None
        if self.kdim == self.vdim == embed_dim:
            self.in_proj_weight = Parameter(
                initializer("xavier_uniform", (3 * embed_dim, embed_dim), dtype), name="in_proj_weight"
            )
        else:
            for name, dim in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
                weight = initializer("xavier_uniform", (embed_dim, dim), dtype)
                setattr(self, f"{name}_proj_weight", Parameter(weight, name=f"{name}_proj_weight"))
        self.in_proj_bias = Parameter(
            initializer("zeros", (3 * embed_dim,), dtype), name="in_proj_bias"
        ) if has_bias else None
        self.out_proj = Dense(embed_dim, embed_dim, has_bias=has_bias, dtype=as_dtype(dtype))
        self.bias_k, self.bias_v = (
            Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype), name=name)
            if checks.boolean(where, "add_bias_kv", add_bias_kv) else None for name in ("bias_k", "bias_v")
        )
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
        context, weights = _attend(
            q, k, v, (self.bias_k, self.bias_v), self.add_zero_attn, attn_mask, key_padding_mask, self.dropout
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
        """Shape of the weight of the projection of queries in `product_equation`."""
        return self.embed_dim, self.embed_dim

    def multiply(self, x: Tensor, weight: Tensor) -> Tensor:
        """Return ``x @ weight.T``, a projection; a plan may replace it."""
        return matmul(x, keras.ops.transpose(weight))

    def _project(self, x: Tensor, index: int) -> Tensor:
        """Apply the query (0), key (1) or value (2) projection; return (N, heads, L, features)."""
        rows = slice(index * self.embed_dim, (index + 1) * self.embed_dim)
        if self.in_proj_weight is not None:
            weight = keras.ops.convert_to_tensor(self.in_proj_weight.value)[rows]
        else:
            weight = keras.ops.convert_to_tensor(getattr(self, f"{'qkv'[index]}_proj_weight").value)
        projected = self.multiply(x, weight)
        if self.in_proj_bias is not None:
            projected = projected + keras.ops.cast(
                keras.ops.convert_to_tensor(self.in_proj_bias.value)[rows], projected.dtype
            )
        return _split_heads(projected, self.num_heads)


@library
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: bool = True,
    is_causal: bool = False, k_is_v: bool = False, q_is_k: bool = False, dtype: DTypeLike = float32,
) -> tuple[Tensor, Tensor]:
    """Return what `MultiheadAttention` of such parameters returns for `query`, `key` and `value` (L, N, E).

    The weights are `in_proj_weight` (3 * E, E), or with `use_separate_proj_weight` `q_proj_weight`, `k_proj_weight` and
    `v_proj_weight`. `static_k`, `static_v`: Keys and values (N * heads, S, E / heads) instead of projected ones.
    `k_is_v`, `q_is_k`, `dtype`: Accepted for MindSpore scripts.

    Raises: ValueError: `is_causal` is True, or query has other features than `embed_dim_to_check`.

    Source: MindSpore, `mindspore.ops.function.nn_func`.
    """
    where = "multi_head_attention_forward"
    if is_causal:
        raise checks.fail_value(where, "is_causal must be False", True, "attn_mask=ops.triu(ones, 1).bool()")
    if query.shape[-1] != embed_dim_to_check:
        expected = f"query must have {embed_dim_to_check} features"
        raise checks.fail_value(where, expected, query.shape[-1], "embed_dim_to_check=query.shape[-1]")
    unbatched = len(query.shape) == 2
    inputs = [keras.ops.swapaxes(x[:, None] if unbatched else x, 0, 1) for x in (query, key, value)]
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    if not use_separate_proj_weight:
        weights = keras.ops.split(in_proj_weight, 3)
    biases = [None] * 3 if in_proj_bias is None else keras.ops.split(in_proj_bias, 3)
    q, k, v = (
        _split_heads(dense(x, weight, bias), num_heads) for x, weight, bias in zip(inputs, weights, biases, strict=True)
    )
    k, v = (
        projected if given is None else keras.ops.reshape(given, (-1, num_heads, *given.shape[1:]))
        for projected, given in ((k, static_k), (v, static_v))
    )
    context, shares = _attend(
        q, k, v, (bias_k, bias_v), add_zero_attn, attn_mask, key_padding_mask,
        lambda x: dropout(x, dropout_p, training),
    )
    output = keras.ops.swapaxes(dense(context, out_proj_weight, out_proj_bias), 0, 1)
    shares = keras.ops.mean(shares, axis=1) if average_attn_weights else shares
    return (output[:, 0], shares[0]) if unbatched else (output, shares)


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """Return features (N, L, E) as (N, heads, L, E / heads)."""
    return keras.ops.swapaxes(keras.ops.reshape(x, (keras.ops.shape(x)[0], x.shape[1], heads, -1)), 1, 2)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, appended: tuple[Tensor | None, Tensor | None], add_zero: bool,
    attn_mask: Tensor | None, key_padding_mask: Tensor | None, drop: Callable[[Tensor], Tensor],
) -> tuple[Tensor, Tensor]:
    """Return the context (N, L, E) and the weights (N, heads, L, S) of queries, keys and values of each head."""
    heads, more = q.shape[1], 0
    if appended[0] is not None:
        rows = (_split_heads(keras.ops.convert_to_tensor(row), heads) for row in appended)
        k, v = (_append(x, row) for x, row in zip((k, v), rows, strict=True))
        more += 1
    if add_zero:
        k, v = (_append(x, keras.ops.zeros((1, heads, 1, x.shape[-1]), x.dtype)) for x in (k, v))
        more += 1
    # Masks and softmax are float32 whatever the dtype of the products.
    scores = matmul(q / math.sqrt(q.shape[-1]), keras.ops.swapaxes(k, -1, -2))
    scores = keras.ops.cast(scores, float32)
    if attn_mask is not None:
        mask = _additive_mask(attn_mask, more)
        scores = scores + (keras.ops.reshape(mask, (-1, heads, *mask.shape[1:])) if len(mask.shape) == 3 else mask)
    if key_padding_mask is not None:
        mask = _additive_mask(key_padding_mask, more)
        scores = scores + keras.ops.expand_dims(keras.ops.reshape(mask, (-1, mask.shape[-1])), (1, 2))
    weights = drop(keras.ops.softmax(scores, axis=-1))
    context = keras.ops.swapaxes(matmul(keras.ops.cast(weights, v.dtype), v), 1, 2)
    return keras.ops.reshape(context, (keras.ops.shape(context)[0], context.shape[1], -1)), weights


def _append(x: Tensor, row: Tensor) -> Tensor:
    """Return keys or values (N, heads, S, E / heads) and one more, the same for each sample."""
    shape = (keras.ops.shape(x)[0], *row.shape[1:])
    return keras.ops.concatenate([x, keras.ops.broadcast_to(keras.ops.cast(row, x.dtype), shape)], axis=2)


def _additive_mask(mask: Tensor, more: int) -> Tensor:
    """Return a mask that is added to the scores, -inf where a bool mask is True, and 0 for `more` keys at its end."""
    mask = keras.ops.convert_to_tensor(mask)
    if keras.backend.standardize_dtype(mask.dtype) == "bool":
        mask = keras.ops.where(mask, np.float32(-np.inf), np.float32(0))
    return keras.ops.pad(keras.ops.cast(mask, float32), [(0, 0)] * (len(mask.shape) - 1) + [(0, more)])
