"""Constant, reflection and replication padding of the last one, two or three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

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
        if len(widths) != count:
            raise checks.fail_value(self.cls_name, f"padding must be an int or {count} ints", widths, write)
        self.padding = tuple(int(width) for width in widths)
        self.value = value

    def construct(self, x: Tensor) -> Tensor:
        """Pad `x`; negative padding crops."""
        x = backend.to_tensor(x)
        rank = len(x.shape)
        if rank < self._axes:
            raise checks.fail_value(
                name_of(self), f"the input must have at least {self._axes} axes", tuple(x.shape), "a larger input"
            )
        pairs = [(0, 0)] * (rank - self._axes)
        pairs += [(self.padding[2 * n], self.padding[2 * n + 1]) for n in reversed(range(self._axes))]
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


class ConstantPad1d(_ConstantPad):
    """Pad the last axis with `value`; `padding` is an int or (left, right). Example: ``nn.ConstantPad1d(1, 0.5)(x)``.
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """Pad the last two axes with `value`; `padding` is an int or (left, right, top, bottom).

    Example: ``nn.ConstantPad2d(1, 0.5)(x)``.
    """

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """Pad the last three axes with `value`; `padding` is an int or six ints. Example: ``nn.ConstantPad3d(1, 0.5)(x)``.
    """

    _axes = 3


class ZeroPad2d(_ConstantPad):
    """Pad the last two axes with zeros; `padding` is an int or (left, right, top, bottom).

    Example: ``nn.ZeroPad2d(1)(x)``.
    """

    _axes = 2

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding)


class ReflectionPad1d(_ReflectionPad):
    """Pad the last axis with mirrored elements; `padding` is an int or two. Example: ``nn.ReflectionPad1d(1)(x)``."""

    _axes = 1


class ReflectionPad2d(_ReflectionPad):
    """Pad the last two axes with mirrored elements; `padding` is an int or four. Example: ``nn.ReflectionPad2d(1)(x)``.
    """

    _axes = 2


class ReflectionPad3d(_ReflectionPad):
    """Pad the last three axes with mirrored elements; `padding` is an int or six.

    Example: ``nn.ReflectionPad3d(1)(x)``.
    """

    _axes = 3


class ReplicationPad1d(_ReplicationPad):
    """Pad the last axis with its edges; `padding` is an int or two. Example: ``nn.ReplicationPad1d(1)(x)``."""

    _axes = 1


class ReplicationPad2d(_ReplicationPad):
    """Pad the last two axes with their edges; `padding` is an int or four. Example: ``nn.ReplicationPad2d(1)(x)``."""

    _axes = 2


class ReplicationPad3d(_ReplicationPad):
    """Pad the last three axes with their edges; `padding` is an int or six. Example: ``nn.ReplicationPad3d(1)(x)``."""

    _axes = 3
