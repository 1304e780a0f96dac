"""`LossBase`: weighting and reduction, in float32 whatever comes in."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.dtype import as_dtype, float32

Reduction = Literal["mean", "sum", "none"]


class LossBase(Cell):
    """The base of losses; a subclass defines `construct` and ends it with `get_loss`.

    Args:
        reduction: "mean" or "sum" over all elements, or "none".

    Raises:
        ValueError: `reduction` is none of these.

    Example:
        >>> import keras, mixtrain.nn as nn
        >>> class Quartic(nn.LossBase):
        ...     def construct(self, logits, labels):
        ...         return self.get_loss(keras.ops.power(logits - labels, 4))

    Source: MindSpore, `mindspore.nn.LossBase`.
    """

    _reductions: ClassVar[tuple[str, ...]] = ("mean", "sum", "none")
    # What subclasses of MindSpore's find on themselves.
    reduce_mean = staticmethod(lambda x, axis=None: keras.ops.mean(x, None if axis == () else axis))
    reduce_sum = staticmethod(lambda x, axis=None: keras.ops.sum(x, None if axis == () else axis))
    mul = staticmethod(lambda x, y: keras.ops.multiply(x, y))
    cast = staticmethod(lambda x, dtype: keras.ops.cast(x, as_dtype(dtype)))

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = checks.one_of(self.cls_name, "reduction", reduction, self._reductions)
        # As in MindSpore: elements are averaged unless they are summed, where they are reduced at all.
        self.average = reduction != "sum"
        self.reduce = reduction != "none"

    def get_axis(self, x: Any) -> tuple[int, ...]:
        """Return the numbers of all axes of `x`."""
        return tuple(range(len(x.shape)))

    def get_loss(self, x: Any, weights: Any = 1.0) -> Any:
        """Weight the elements of a loss and reduce them.

        Args:
            x: Losses, of any float dtype.
            weights: A number or a tensor that broadcasts with `x`.

        Returns:
            A float32 tensor: a scalar, or the shape of `x` for "none".
        """
        x = as_float32(x)
        if not isinstance(weights, (int, float)) or weights != 1:
            x = x * as_float32(weights)
        if not self.reduce:
            return x
        return keras.ops.mean(x) if self.average else keras.ops.sum(x)


def as_float32(value: Any) -> Any:
    """Return a tensor, array or number as a float32 tensor."""
    return keras.ops.cast(backend.to_tensor(value), float32)


# The name before MindSpore 1.3.
_Loss = LossBase
