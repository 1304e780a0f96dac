"""`Pad`: constant, reflect and symmetric padding of all axes."""

from __future__ import annotations

from typing import Final, Literal

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.nn.layer.windows import is_integral
from mixtrain.ops import nhwc
from mixtrain.typing import Tensor

_MODES: Final = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}


class Pad(Cell):
    """Add elements before and after each axis.

    Args:
        paddings: A tuple ((before, after), ...) with one pair for each axis of the input, up to four.
        mode: "CONSTANT" (zeros), "REFLECT" (mirrored, without the edge) or "SYMMETRIC" (mirrored, with the edge).

    Inputs: x, of any dtype, with as many axes as `paddings` has pairs.
    Returns: The padded tensor, dtype of `x`.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> nn.Pad(((0, 0), (1, 2)))(mixtrain.Tensor([[5.0]])).numpy().tolist()
        [[0.0, 5.0, 0.0, 0.0]]
    """

    def __init__(
        self, paddings: tuple[tuple[int, int], ...], mode: Literal["CONSTANT", "REFLECT", "SYMMETRIC"] = "CONSTANT"
    ) -> None:
        super().__init__()
        where, write = self.cls_name, "paddings=((0, 0), (1, 1))"
        self.mode = checks.one_of(where, "mode", mode, tuple(_MODES))
        checks.instance(where, "paddings", paddings, (tuple, list), write)
        if not 1 <= len(paddings) <= 4:
            raise checks.fail_value(where, "paddings must have one to four pairs", paddings, write)
        for pair in paddings:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise checks.fail_value(where, "paddings must be pairs (before, after)", paddings, write)
            for value in pair:
                if not is_integral(value):
                    raise checks.fail_type(where, "each padding must be an int", value, write)
                if value < 0:
                    raise checks.fail_value(where, "each padding must be at least 0", value, write)
        self.paddings = tuple((int(before), int(after)) for before, after in paddings)

    def construct(self, x: Tensor) -> Tensor:
        """Pad `x`."""
        x = backend.to_tensor(x)
        if len(x.shape) != len(self.paddings):
            raise ValueError(
                f"{name_of(self)}: expected an input of {len(self.paddings)} axes, as paddings has as many pairs; got "
                f"input shape {tuple(x.shape)}. Write one pair for each of its axes."
            )
        if self.mode == "CONSTANT" and len(self.paddings) == 4:
            paddings = [self.paddings[axis] for axis in (0, 2, 3, 1)]
            return nhwc.from_channels_last(keras.ops.pad(nhwc.to_channels_last(x), paddings))
        return keras.ops.pad(x, self.paddings, mode=_MODES[self.mode])
