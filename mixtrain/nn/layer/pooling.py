"""`Pool`: the base class of poolings, with arguments, checks, padding and ceil_mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.lazy_names import serve_names
from mixtrain.nn.layer.inputs import check_fits, check_rank, float_tensor
from mixtrain.nn.layer.windows import pair, pool_padding
from mixtrain.ops import nhwc
from mixtrain.ops.windows import NO_PADS, Pads, Pair, ceil_padding
from mixtrain.typing import Tensor


class Pool(Cell):
    """Base class of poolings; a sequence is pooled as an image of height 1.

    `kernel_size`, `stride`: Size and stride of the window: an int or (height, width). `pad_mode`: "valid", "same" or
    "pad", case-insensitive. `padding`: With "pad": an int or (height, width). `ceil_mode`: Whether the output includes
    a partial window at the end. `data_format`: "NCHW".

    Example:
        >>> import mixtrain.nn as nn
        >>> nn.MaxPool2d(2, 2)
        MaxPool2d(kernel_size=2, stride=2, pad_mode=VALID)
    """

    _rank: ClassVar[int] = 2

    def __init__(
        self, kernel_size: int | Sequence[int], stride: int | Sequence[int], pad_mode: str,
        padding: int | Sequence[int], ceil_mode: bool, data_format: str,
    ) -> None:
        super().__init__()
        where = self.cls_name
        if self._rank == 1:
            kernel_size, stride = (
                (1, checks.integer(where, name, value, at_least=1, example=2))
                for name, value in (("kernel_size", kernel_size), ("stride", stride))
            )
            padding = self._sequence_padding(padding)
        self._kernel, self._stride = pair(where, "kernel_size", kernel_size), pair(where, "stride", stride)
        self.kernel_size = kernel_size if isinstance(kernel_size, int) else self._kernel
        self.stride = stride if isinstance(stride, int) else self._stride
        mode = pad_mode.lower() if isinstance(pad_mode, str) else pad_mode
        checks.one_of(where, "pad_mode", mode, ("valid", "same", "pad"))
        self.pad_mode = mode.upper()
        self.padding = padding
        self._pads = pool_padding(where, mode, padding, self._kernel)
        self.ceil_mode = checks.boolean(where, "ceil_mode", ceil_mode)
        self.data_format = checks.one_of(where, "data_format", data_format, ("NCHW",))

    def _sequence_padding(self, padding: int | Sequence[int]) -> Any:
        """Convert the padding of a sequence to that of an image of height 1."""
        values = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,)
        if len(values) != 1:
            raise checks.fail_value(self.cls_name, "padding must be an int", padding, "padding=1")
        return (0, checks.integer(self.cls_name, "padding", values[0], at_least=0)) if values[0] != 0 else 0

    def construct(self, x: Tensor) -> Tensor:
        """Pool `x`, batched or not."""
        x = float_tensor(self, x)
        axes = "(N, C, H, W) or (C, H, W)" if self._rank == 2 else "(N, C, L) or (C, L)"
        check_rank(self, x, (self._rank + 1, self._rank + 2), axes)
        if len(x.shape) == self._rank + 1:
            return keras.tree.map_structure(lambda y: y[0], self.construct(x[None]))
        if self.pad_mode != "SAME":
            check_fits(self, x, self._effective_kernel_size(), self._pads)
        if self._rank == 1:
            pooled = self._pool_channels_first(keras.ops.expand_dims(x, 2))
            return keras.tree.map_structure(lambda y: keras.ops.squeeze(y, 2), pooled)
        return self._pool_channels_first(x)

    def _pool_channels_first(self, x: Tensor) -> Tensor:
        return keras.tree.map_structure(nhwc.from_channels_last, self._pool(nhwc.to_channels_last(x)))

    def _effective_kernel_size(self) -> Pair:
        """Return the (height, width) of the window, including dilation."""
        return self._kernel

    def _pool(self, x: Tensor) -> Tensor:
        """Pool a channels-last tensor."""
        raise NotImplementedError(f"{self.cls_name}: a subclass must define _pool(self, x).")

    def _overrun(self, x: Tensor) -> Pads:
        """Return the extra padding that ceil_mode's last, partial window needs at the bottom and the right."""
        if not self.ceil_mode:
            return NO_PADS
        self._require_static_size(x)
        return ceil_padding(x.shape[1:3], self._effective_kernel_size(), self._stride, self._pads)

    def _require_static_size(self, x: Tensor) -> None:
        if None in x.shape[1:3]:
            raise ValueError(
                f"{name_of(self)}: expected batches of one known height and width; got input shape {tuple(x.shape)}. "
                "Write ceil_mode=False, or make all images of one size."
            )

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


serve_names(__name__)
