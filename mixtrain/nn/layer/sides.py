"""Constant, reflection and replication padding of the last one, two or three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.typing import Tensor


class _ConstantPad(Cell):
    """Pad the last `_axes` axes with a constant; subclasses override `_pad` for other modes."""

    _axes: ClassVar[int]

    def __init__(self, padding: int | Sequence[int], value: float = 0) -> None:
        super().__init__()
        count = 2 * self._axes
        write = f"padding=1, or {count} ints, of the last axis first"
        widths = (padding,) * count if isinstance(padding, int) else padding
        checks.instance(self.cls_name, "padding", widths, (tuple, list), write)
        if len(widths) > count or len(widths) % 2:
            raise checks.fail_value(self.cls_name, f"padding must be an int or {count} ints", widths, write)
        if not all(isinstance(width, int) for width in widths):
            raise checks.fail_type(self.cls_name, "padding must hold ints", widths, write)
        self.padding = tuple(widths)  # Fewer than all sides, as in MindSpore, are those of the last axes.
        self.value = value

    def construct(self, x: Tensor) -> Tensor:
        """Pad `x`; negative padding crops."""
        x = backend.to_tensor(x)
        rank = len(x.shape)
        if rank < self._axes:
            raise checks.fail_value(
                name_of(self), f"the input must have at least {self._axes} axes", tuple(x.shape), "a larger input"
            )
        axes = len(self.padding) // 2
        pairs = [(0, 0)] * (rank - axes)
        pairs += [(self.padding[2 * n], self.padding[2 * n + 1]) for n in reversed(range(axes))]
        for axis, (before, after) in enumerate(pairs):
            if before < 0 or after < 0:
                indices = keras.ops.arange(max(-before, 0), x.shape[axis] - max(-after, 0))
                x = keras.ops.take(x, indices, axis=axis)
        return self._pad(x, [(max(before, 0), max(after, 0)) for before, after in pairs])

    def _pad(self, x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
        return keras.ops.pad(x, pairs, mode="constant", constant_values=self.value)

    def extend_repr(self) -> str:
        return f"padding={self.padding}"


class _ReflectionPad(_ConstantPad):
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding)
        if min(self.padding, default=0) < 0:
            raise checks.fail_value(self.cls_name, "padding must be at least 0", padding, "padding=1")

    def _pad(self, x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
        return keras.ops.pad(x, pairs, mode="reflect")


class _ReplicationPad(_ConstantPad):
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding)

    def _pad(self, x: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
        for axis, (before, after) in enumerate(pairs):
            if before or after:
                last = x.shape[axis] - 1
                indices = keras.ops.clip(keras.ops.arange(-before, last + after + 1), 0, last)
                x = keras.ops.take(x, indices, axis=axis)
        return x


def _pads(name: str, base: type[_ConstantPad], with_what: str, example: str = "1") -> type[_ConstantPad]:
    """Create a class that pads as many of the last axes as the digit in its name says."""
    axes = int(name[-2])
    which = ("", "axis", "two axes", "three axes")[axes]
    sides = ("", "(left, right)", "(left, right, top, bottom)", "six ints")[axes]
    doc = f"Pad the last {which} with {with_what}; `padding`: an int or {sides}. Example: ``nn.{name}({example})(x)``."
    return type(name, (base,), {"_axes": axes, "__doc__": doc, "__module__": __name__})


ConstantPad1d: Final = _pads("ConstantPad1d", _ConstantPad, "`value`", "1, 0.5")
ConstantPad2d: Final = _pads("ConstantPad2d", _ConstantPad, "`value`", "1, 0.5")
ConstantPad3d: Final = _pads("ConstantPad3d", _ConstantPad, "`value`", "1, 0.5")
ReflectionPad1d: Final = _pads("ReflectionPad1d", _ReflectionPad, "mirrored elements")
ReflectionPad2d: Final = _pads("ReflectionPad2d", _ReflectionPad, "mirrored elements")
ReflectionPad3d: Final = _pads("ReflectionPad3d", _ReflectionPad, "mirrored elements")
ReplicationPad1d: Final = _pads("ReplicationPad1d", _ReplicationPad, "their edges")
ReplicationPad2d: Final = _pads("ReplicationPad2d", _ReplicationPad, "their edges")
ReplicationPad3d: Final = _pads("ReplicationPad3d", _ReplicationPad, "their edges")


class ZeroPad2d(_ConstantPad):
    """Pad the last two axes with zeros; `padding` is an int or four. Example: ``nn.ZeroPad2d(1)(x)``."""

    _axes = 2

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding)
