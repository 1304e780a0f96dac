"""`Dropout`: in training, elements are set to zero at random."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import float32
from mixtrain.nn.layer.inputs import float_tensor
from mixtrain.seed import next_seed


class Dropout(Cell):
    """In training, set elements to zero at random and scale up the others, so that the mean stays.

    Args:
        keep_prob: Probability that an element is kept, in (0, 1]; not used where `p` is given.
        p: Probability that an element is dropped, in [0, 1).
        dtype: Accepted for MindSpore scripts; the output has the format of the input.

    Inputs:
        x, floating point.

    Returns:
        Same shape and dtype as `x`; outside training `x` itself.

    Raises:
        TypeError: A probability is not a number.
        ValueError: A probability is out of range.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> dropout = nn.Dropout(p=0.5)
        >>> dropout(mixtrain.Tensor([1.0, 2.0])).numpy().tolist()
        [1.0, 2.0]

    Source: Srivastava et al., 2014; MindSpore, `mindspore.nn.Dropout`.
    """

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: Any = float32) -> None:
        super().__init__()
        where = self.cls_name
        if p is None:
            self.keep_prob = checks.number(where, "keep_prob", keep_prob, above=0, at_most=1, example=0.5)
            self._keep = self.keep_prob
        else:
            self.keep_prob = keep_prob
            dropped = checks.number(where, "p", p, at_least=0, example=0.5)
            if dropped >= 1:
                raise checks.fail_value(where, "p must be less than 1", p, "p=0.5")
            self._keep = 1.0 - dropped
        self.p, self.dtype = p, dtype
        # Its state is a variable, so a compiled step draws anew each time; it is no Parameter of the network.
        self.seed_generator = keras.random.SeedGenerator(seed=next_seed())

    def construct(self, x: Any) -> Any:
        """Drop elements of `x` in training."""
        if not self.training or self._keep == 1.0:
            return x
        x = float_tensor(self, x)
        if len(x.shape) != 4:
            return self._drop(x, self._kept(keras.ops.shape(x)))
        # Drawn in one order for both layouts, so that compiled and eager runs drop the same elements.
        count, channels, height, width = keras.ops.shape(x)
        kept = backend.from_channels_last(self._kept((count, height, width, channels)))
        return backend.elementwise(self._drop, x, kept)

    def _kept(self, shape: Any) -> Any:
        return keras.random.uniform(shape, dtype="float32", seed=self.seed_generator) < self._keep

    def _drop(self, x: Any, kept: Any) -> Any:
        return keras.ops.where(kept, x / self._keep, keras.ops.zeros_like(x))

    def extend_repr(self) -> str:
        """Return the probability that was given."""
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"
