"""Transformer layers, encoders and decoders."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import ClassVar, Final

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import float32
from mixtrain.nn.layer.activation import ActivationLike
from mixtrain.nn.layer.attention import MultiheadAttention
from mixtrain.nn.layer.container import CellList
from mixtrain.nn.layer.dense import Dense
from mixtrain.nn.layer.dropout import Dropout
from mixtrain.nn.layer.layer_norm import LayerNorm
from mixtrain.ops import gelu, relu
from mixtrain.typing import DTypeLike, Tensor

_ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {"relu": relu, "gelu": gelu}


class _TransformerLayer(Cell):
    """One layer: attention and a feed-forward network, each with dropout, a residual connection and a layer norm.

    Args:
        d_model: Number of features of each token.
        nhead: Number of attention heads.
        dim_feedforward: Hidden features of the feed-forward network.
        dropout: Probability that an element is dropped.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: Added to the variance in layer norms.
        batch_first: Whether inputs are (N, L, E); (L, N, E) otherwise.
        norm_first: Whether layer norms precede the sublayers (pre-norm) or follow them.
        dtype: Dtype of the parameters.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> x = mixtrain.Tensor(np.ones((5, 2, 8), np.float32))
        >>> nn.TransformerEncoderLayer(8, 2, 16)(x).shape
        (5, 2, 8)

    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.TransformerEncoderLayer`.
    """

    _num_sublayers: ClassVar[int] = 2

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: ActivationLike = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self._add_cross_attention(d_model, nhead, dropout, batch_first, dtype)
        self.dense1 = Dense(d_model, dim_feedforward, weight_init="he_uniform", dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, weight_init="he_uniform", dtype=dtype)
        sublayers = range(1, self._num_sublayers + 1)
        for number in sublayers:
            setattr(self, f"norm{number}", LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype))
        for number in sublayers:
            setattr(self, f"dropout{number}", Dropout(p=dropout))
        self.norm_first = checks.boolean(self.cls_name, "norm_first", norm_first)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        if not callable(activation):
            checks.one_of(self.cls_name, "activation", activation, tuple(_ACTIVATIONS))
        self.activation = _ACTIVATIONS[activation] if isinstance(activation, str) else activation

    def _add_cross_attention(
        self, d_model: int, nhead: int, dropout: float, batch_first: bool, dtype: DTypeLike
    ) -> None:
        """Create the attention to the encoder's output, which only decoder layers have."""

    def _residual(self, number: int, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply a sublayer with dropout, its residual connection and its layer norm."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        return x + dropout(sublayer(norm(x))) if self.norm_first else norm(x + dropout(sublayer(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.dense2(self.dropout(self.activation(self.dense1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    __doc__ = _TransformerLayer.__doc__

    def construct(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None
    ) -> Tensor:
        """Encode `src`; the masks are those of `MultiheadAttention`."""
        x = self._residual(1, src, lambda x: self.self_attn(
            x, x, x, attn_mask=src_mask, key_padding_mask=src_key_padding_mask, need_weights=False)[0])
        return self._residual(2, x, self._feed_forward)


class TransformerDecoderLayer(_TransformerLayer):
    __doc__ = (_TransformerLayer.__doc__ or "").replace("Encoder", "Decoder").replace("16)(x)", "16)(x, x)")

    _num_sublayers: ClassVar[int] = 3

    def _add_cross_attention(
        self, d_model: int, nhead: int, dropout: float, batch_first: bool, dtype: DTypeLike
    ) -> None:
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)

    def construct(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Decode `tgt` given `memory`, the output of the encoder; the masks are those of the two attentions."""
        x = self._residual(1, tgt, lambda x: self.self_attn(
            x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask, need_weights=False)[0])
        x = self._residual(2, x, lambda x: self.multihead_attn(
            x, memory, memory, attn_mask=memory_mask, key_padding_mask=memory_key_padding_mask, need_weights=False)[0])
        return self._residual(3, x, self._feed_forward)


class TransformerEncoder(Cell):
    """`num_layers` copies of `encoder_layer`, followed by `norm` unless it is None.

    Example: ``nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 3)(x)``.
    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.TransformerEncoder`.
    """

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.layers = CellList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def construct(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None
    ) -> Tensor:
        """Encode `src`; the masks are those of `MultiheadAttention`."""
        for layer in self.layers:
            src = layer(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    """`num_layers` copies of `decoder_layer`, followed by `norm` unless it is None.

    Example: ``nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 3)(x, memory)``.
    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.TransformerDecoder`.
    """

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.layers = CellList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def construct(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Decode `tgt` given `memory`, the output of the encoder; the masks are those of the two attentions."""
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """A `TransformerEncoder` and a `TransformerDecoder`.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype: As in
            `TransformerEncoderLayer`.
        num_encoder_layers, num_decoder_layers: Number of layers of each.
        custom_encoder, custom_decoder: Replacements for the encoder and the decoder, or None.

    Example: ``nn.Transformer(8, 2, 1, 1, 16)(src, tgt)``.
    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.Transformer`.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: ActivationLike = "relu",
        custom_encoder: Cell | None = None, custom_decoder: Cell | None = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, dtype: DTypeLike = float32,
    ) -> None:
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype)
        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*options), num_encoder_layers, LayerNorm((d_model,), epsilon=layer_norm_eps)
        )
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*options), num_decoder_layers, LayerNorm((d_model,), epsilon=layer_norm_eps)
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Encode `src` and decode `tgt` given the result; the masks are those of the attentions."""
        memory = self.encoder(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
        )
