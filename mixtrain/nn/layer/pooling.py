"""What the poolings share: a window that slides over an image or a sequence, its padding and its last, partial step."""

from __future__ import annotations

from typing import Any, ClassVar

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.nn.layer.inputs import check_fits, check_rank, float_tensor, name_of
from mixtrain.nn.layer.windows import pair, pool_sides
from mixtrain.ops.windows import NO_SIDES, Pair, Sides


class Pool(Cell):
    """A cell that makes one number of each window; a sequence is pooled as an image of one row.

    Args:
        kernel_size: Window: an int or (height, width).
        stride: Step of the window: an int or (height, width).
        pad_mode: "valid", "same" or "pad", in any case.
        padding: With "pad": an int or (height, width).
        ceil_mode: Whether a partial window at the end counts.
        data_format: "NCHW".

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import mixtrain.nn as nn
        >>> nn.MaxPool2d(2, 2)
        MaxPool2d(kernel_size=2, stride=2, pad_mode=VALID)
    """

    _rank: ClassVar[int] = 2

    def __init__(
        self, kernel_size: Any, stride: Any, pad_mode: str, padding: Any, ceil_mode: bool, data_format: str
    ) -> None:
        super().__init__()
        where = self.cls_name
        if self._rank == 1:
            kernel_size, stride = (
                (1, checks.integer(where, name, value, at_least=1, example=2))
                for name, value in (("kernel_size", kernel_size), ("stride", stride))
            )
            padding = self._padding_of_row(padding)
        self._kernel, self._stride = pair(where, "kernel_size", kernel_size), pair(where, "stride", stride)
        self.kernel_size = kernel_size if isinstance(kernel_size, int) else self._kernel
        self.stride = stride if isinstance(stride, int) else self._stride
        mode = pad_mode.lower() if isinstance(pad_mode, str) else pad_mode
        checks.one_of(where, "pad_mode", mode, ("valid", "same", "pad"))
        self.pad_mode = mode.upper()
        self.padding = padding
        self._sides = pool_sides(where, mode, padding, self._kernel)
        self.ceil_mode = checks.boolean(where, "ceil_mode", ceil_mode)
        self.data_format = checks.one_of(where, "data_format", data_format, ("NCHW",))

    def _padding_of_row(self, padding: Any) -> Any:
        values = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,)
        if len(values) != 1:
            raise checks.fail_value(self.cls_name, "padding must be an int", padding, "padding=1")
        return (0, checks.integer(self.cls_name, "padding", values[0], at_least=0)) if values[0] != 0 else 0

    def construct(self, x: Any) -> Any:
        """Pool `x`, which may lack the batch axis."""
        x = float_tensor(self, x)
        axes = "(N, C, H, W) or (C, H, W)" if self._rank == 2 else "(N, C, L) or (C, L)"
        check_rank(self, x, (self._rank + 1, self._rank + 2), axes)
        if len(x.shape) == self._rank + 1:
            return keras.tree.map_structure(lambda y: y[0], self.construct(x[None]))
        if self.pad_mode != "SAME":
            check_fits(self, x, self._span(), self._sides)
        if self._rank == 1:
            pooled = self._pooled(keras.ops.expand_dims(x, 2))
            return keras.tree.map_structure(lambda y: keras.ops.squeeze(y, 2), pooled)
        return self._pooled(x)

    def _pooled(self, x: Any) -> Any:
        return keras.tree.map_structure(backend.from_channels_last, self._pool(backend.to_channels_last(x)))

    def _span(self) -> Pair:
        """Return the rows and columns that a window reaches over."""
        return self._kernel

    def _pool(self, x: Any) -> Any:
        """Pool a channels-last tensor."""
        raise NotImplementedError(f"{self.cls_name}: a subclass must define _pool(self, x).")

    def _overrun(self, x: Any) -> Sides:
        """Return how far ceil_mode's last window reaches beyond the padded rows and columns of a batch."""
        if not self.ceil_mode:
            return NO_SIDES
        self._need_sizes(x)
        sizes = zip(x.shape[1:3], self._span(), self._stride, self._sides, strict=True)
        down, across = (_missing(size, span, step, *around) for size, span, step, around in sizes)
        return (0, down), (0, across)

    def _need_sizes(self, x: Any) -> None:
        if None in x.shape[1:3]:
            raise ValueError(
                f"{name_of(self)}: expected batches of one known height and width; got input shape {tuple(x.shape)}. "
                "Write ceil_mode=False, or make all images of one size."
            )

    def extend_repr(self) -> str:
        """Return window, step and padding."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


def _missing(size: int, span: int, step: int, before: int, after: int) -> int:
    """Return how many places the last, partial window lacks at the end of an axis."""
    last = -(-(size + before + after - span) // step) * step
    if last >= size + before:
        # That window would hold no element of the input at all.
        last -= step
    return max(last + span - size - before - after, 0)
