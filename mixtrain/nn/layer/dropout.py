"""`Dropout`: random zeroing of elements in training."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import float32
from mixtrain.nn.layer.inputs import float_tensor
from mixtrain.ops import nhwc
from mixtrain.seed import next_seed
from mixtrain.typing import DTypeLike, Tensor


class Dropout(Cell):
    """In training, zero elements at random and scale up the others, so that the mean is preserved.

    Args:
        keep_prob: Probability that an element is kept, in (0, 1]; ignored if `p` is given.
        p: Probability that an element is dropped, in [0, 1).
        dtype: Accepted for compatibility with MindSpore; the output has the dtype of the input.

    Inputs: x, floating point.
    Returns: Same shape and dtype as `x`; outside training, `x` itself.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> dropout = nn.Dropout(p=0.5)
        >>> dropout(mixtrain.Tensor([1.0, 2.0])).numpy().tolist()
        [1.0, 2.0]

    Source: Srivastava et al., 2014; MindSpore, `mindspore.nn.Dropout`.
    """

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: DTypeLike = float32) -> None:
        super().__init__()
        where = self.cls_name
        if p is None:
            self.keep_prob = checks.number(where, "keep_prob", keep_prob, above=0, at_most=1, example=0.5)
            self._keep_prob = self.keep_prob
        else:
            self.keep_prob = keep_prob
            self._keep_prob = 1.0 - checks.number(where, "p", p, at_least=0, below=1, example=0.5)
        self.p, self.dtype = p, dtype
        # Its state is a variable, so each call of a compiled step samples anew; it is not a Parameter of the network.
        self.seed_generator = keras.random.SeedGenerator(seed=next_seed())

    def construct(self, x: Tensor) -> Tensor:
        """Drop elements of `x` in training."""
        if not self.training or self._keep_prob == 1.0:
            return x
        x = float_tensor(self, x)
        if len(x.shape) != 4:
            return self._drop(x, self._sample_mask(keras.ops.shape(x)))
        # Sampled channels-last for both layouts, so that compiled and eager runs drop the same elements.
        batch, channels, height, width = keras.ops.shape(x)
        mask = nhwc.from_channels_last(self._sample_mask((batch, height, width, channels)))
        return nhwc.elementwise(self._drop, x, mask)

    def _sample_mask(self, shape: int | Sequence[int]) -> Tensor:
        """Return a bool tensor that is True for elements to keep."""
        return keras.random.uniform(shape, dtype="float32", seed=self.seed_generator) < self._keep_prob

    def _drop(self, x: Tensor, mask: Tensor) -> Tensor:
        return keras.ops.where(mask, x / self._keep_prob, keras.ops.zeros_like(x))

    def extend_repr(self) -> str:
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"
