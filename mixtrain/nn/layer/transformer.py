"""The transformer's layers: attention and two dense layers, each with dropout, a sum and a normalization."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import float32
from mixtrain.nn.layer.attention import MultiheadAttention
from mixtrain.nn.layer.container import CellList
from mixtrain.nn.layer.dense import Dense
from mixtrain.nn.layer.dropout import Dropout
from mixtrain.nn.layer.layer_norm import LayerNorm
from mixtrain.ops.activation import gelu, relu

_ACTIVATIONS: Final = {"relu": relu, "gelu": gelu}


class _Layer(Cell):
    """What a layer of the encoder and one of the decoder share.

    Args:
        d_model: Features of each token.
        nhead: Heads of the attention.
        dim_feedforward: Features between the two dense layers.
        dropout: Probability that an element is dropped.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: Added to variances.
        batch_first: Whether inputs are (N, L, E); (L, N, E) otherwise.
        norm_first: Whether each part normalizes what goes in; otherwise what comes out.
        dtype: Dtype of the parameters.

    Example:
        >>> import mixtrain, numpy as np, mixtrain.nn as nn
        >>> x = mixtrain.Tensor(np.ones((5, 2, 8), np.float32))
        >>> nn.TransformerEncoderLayer(8, 2, 16)(x).shape
        (5, 2, 8)

    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.TransformerEncoderLayer`.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, dtype: Any = float32,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self._before_dense(d_model, nhead, dropout, batch_first, dtype)
        self.dense1 = Dense(d_model, dim_feedforward, weight_init="he_uniform", dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, weight_init="he_uniform", dtype=dtype)
        for number in self._parts():
            setattr(self, f"norm{number}", LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype))
        for number in self._parts():
            setattr(self, f"dropout{number}", Dropout(p=dropout))
        self.norm_first = checks.boolean(self.cls_name, "norm_first", norm_first)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        if isinstance(activation, str):
            activation = _ACTIVATIONS[checks.one_of(self.cls_name, "activation", activation, tuple(_ACTIVATIONS))]
        self.activation = activation

    def _before_dense(self, d_model: int, nhead: int, dropout: float, batch_first: bool, dtype: Any) -> None:
        """Make what a layer has between its own attention and its dense layers."""

    def _parts(self) -> range:
        return range(1, 3)

    def _added(self, number: int, x: Any, part: Callable[[Any], Any]) -> Any:
        """Return `x` plus what a part makes of it, normalized before or after."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        return x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))

    def _dense(self, x: Any) -> Any:
        return self.dense2(self.dropout(self.activation(self.dense1(x))))


class TransformerEncoderLayer(_Layer):
    __doc__ = _Layer.__doc__

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Any:
        """Encode `src`; the masks are those of the attention."""
        x = self._added(1, src, lambda x: self.self_attn(
            x, x, x, attn_mask=src_mask, key_padding_mask=src_key_padding_mask, need_weights=False)[0])
        return self._added(2, x, self._dense)


class TransformerDecoderLayer(_Layer):
    __doc__ = _Layer.__doc__ and _Layer.__doc__.replace("Encoder", "Decoder").replace("16)(x)", "16)(x, x)")

    def _before_dense(self, d_model: int, nhead: int, dropout: float, batch_first: bool, dtype: Any) -> None:
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype
        )

    def _parts(self) -> range:
        return range(1, 4)

    def construct(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Any:
        """Decode `tgt` with what the encoder made, `memory`; the masks are those of the two attentions."""
        x = self._added(1, tgt, lambda x: self.self_attn(
            x, x, x, attn_mask=tgt_mask, key_padding_mask=tgt_key_padding_mask, need_weights=False)[0])
        x = self._added(2, x, lambda x: self.multihead_attn(
            x, memory, memory, attn_mask=memory_mask, key_padding_mask=memory_key_padding_mask, need_weights=False)[0])
        return self._added(3, x, self._dense)


class TransformerEncoder(Cell):
    """`num_layers` copies of `encoder_layer`, and `norm` at the end where it is given.

    Example: ``nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 3)(x)``.
    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.TransformerEncoder`.
    """

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = CellList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Any:
        """Encode `src`; the masks are those of the attention."""
        for layer in self.layers:
            src = layer(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    """`num_layers` copies of `decoder_layer`, and `norm` at the end where it is given.

    Example: ``nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 3)(x, memory)``.
    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.TransformerDecoder`.
    """

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers = CellList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def construct(
        self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Any:
        """Decode `tgt` with `memory`; the masks are those of the two attentions."""
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """An encoder and a decoder of `TransformerEncoderLayer` and `TransformerDecoderLayer`.

    Args:
        d_model: Features of each token.
        nhead: Heads of the attention.
        num_encoder_layers: Layers of the encoder.
        num_decoder_layers: Layers of the decoder.
        dim_feedforward: Features between the two dense layers.
        dropout: Probability that an element is dropped.
        activation: "relu", "gelu" or a function.
        custom_encoder: An encoder of one's own, or None.
        custom_decoder: Likewise.
        layer_norm_eps: Added to variances.
        batch_first: Whether inputs are (N, L, E); (L, N, E) otherwise.
        norm_first: Whether each part normalizes what goes in; otherwise what comes out.
        dtype: Dtype of the parameters.

    Example: ``nn.Transformer(8, 2, 1, 1, 16)(src, tgt)``.
    Source: Vaswani et al., 2017; MindSpore, `mindspore.nn.Transformer`.
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu", custom_encoder: Any = None,
        custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        dtype: Any = float32,
    ) -> None:
        super().__init__()
        each = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype)
        self.encoder = custom_encoder if custom_encoder is not None else TransformerEncoder(
            TransformerEncoderLayer(*each), num_encoder_layers, LayerNorm((d_model,), epsilon=layer_norm_eps)
        )
        self.decoder = custom_decoder if custom_decoder is not None else TransformerDecoder(
            TransformerDecoderLayer(*each), num_decoder_layers, LayerNorm((d_model,), epsilon=layer_norm_eps)
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None,
        src_key_padding_mask: Any = None, tgt_key_padding_mask: Any = None, memory_key_padding_mask: Any = None,
    ) -> Any:
        """Encode `src` and decode `tgt` with it; the masks are those of the attentions."""
        memory = self.encoder(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
        )
