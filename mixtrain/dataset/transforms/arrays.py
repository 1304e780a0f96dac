"""Transforms of arrays of numbers or strings: filling, padding, joining, comparing, slicing, counting."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dtype import as_dtype
from mixtrain.typing import DTypeLike


class Relational(enum.IntEnum):
    """How `Mask` compares. Example: ``Relational.EQ``."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


_COMPARISONS: dict[Relational, Callable[[Any, Any], Any]] = {
    Relational.EQ: operator.eq,
    Relational.NE: operator.ne,
    Relational.GT: operator.gt,
    Relational.GE: operator.ge,
    Relational.LT: operator.lt,
    Relational.LE: operator.le,
}


class Fill:
    """An array of the same shape and dtype, filled with one value. `fill_value`: a number, bool, str or bytes.

    Example:
        >>> Fill(3)(np.array([1, 2])).tolist()
        [3, 3]
    """

    def __init__(self, fill_value: Any) -> None:
        self.fill_value = checks.instance(
            "Fill", "fill_value", fill_value, (bool, int, float, str, bytes), "fill_value=0"
        )

    def __call__(self, value: Any) -> np.ndarray:
        array = np.asarray(value)
        if isinstance(self.fill_value, (str, bytes)) != (array.dtype.kind in "US"):
            raise checks.fail_type("Fill", f"fill_value must fit {array.dtype}", self.fill_value, "another fill_value")
        return np.full(array.shape, self.fill_value, None if array.dtype.kind in "US" else array.dtype)


class PadEnd:
    """An array padded or truncated to a shape, at the end of each axis.

    Args: pad_shape, pad_value: The shape, None for an axis that keeps its size; and the value, 0 or "" by default.

    Example:
        >>> PadEnd([3], 9)(np.array([1, 2])).tolist()
        [1, 2, 9]
    """

    def __init__(self, pad_shape: list[int | None], pad_value: Any = None) -> None:
        checks.instance("PadEnd", "pad_shape", pad_shape, (list, tuple), "pad_shape=[10]")
        for size in pad_shape:
            if size is not None:
                checks.integer("PadEnd", "pad_shape", size, at_least=1)
        if not isinstance(pad_value, (int, float, str, bytes, np.generic, type(None))):
            raise checks.fail_type("PadEnd", "pad_value must be a number or text", pad_value, "pad_value=0")
        self.pad_shape, self.pad_value = list(pad_shape), pad_value

    def __call__(self, value: Any) -> np.ndarray:
        array = np.asarray(value)
        if array.ndim != len(self.pad_shape):
            raise checks.fail_value(
                "PadEnd", f"pad_shape must have {array.ndim} numbers, as the value", self.pad_shape, "one for each axis"
            )
        shape = [old if new is None else new for old, new in zip(array.shape, self.pad_shape, strict=True)]
        default = "" if array.dtype.kind == "U" else b"" if array.dtype.kind == "S" else 0
        pad_value = np.asarray(default if self.pad_value is None else self.pad_value)
        dtype = np.result_type(array, pad_value) if array.dtype.kind in "US" else array.dtype
        result = np.full(shape, pad_value, dtype)
        common = tuple(map(slice, map(min, array.shape, shape)))
        result[common] = array[common]
        return result


class Concatenate:
    """Vectors with the vector `prepend` before and `append` after them; `axis` is 0 or -1.

    Example:
        >>> Concatenate(append=np.array([3]))(np.array([1, 2])).tolist()
        [1, 2, 3]
    """

    def __init__(self, axis: int = 0, prepend: np.ndarray | None = None, append: np.ndarray | None = None) -> None:
        self.axis = checks.one_of("Concatenate", "axis", axis, (0, -1))
        for name, value in (("prepend", prepend), ("append", append)):
            if value is not None:
                checks.instance("Concatenate", name, value, np.ndarray, f"{name}=np.array([1, 2])")
        self.prepend, self.append = prepend, append

    def __call__(self, *values: Any) -> np.ndarray:
        parts = [np.asarray(part) for part in (self.prepend, *values, self.append) if part is not None]
        return np.concatenate(parts, axis=self.axis)


class Mask:
    """Each value compared with `constant` by `operator`, a member of `Relational`, as `dtype`.

    Example:
        >>> Mask(Relational.GT, 1)(np.array([1, 2])).tolist()
        [False, True]
    """

    def __init__(self, operator: Relational, constant: Any, dtype: DTypeLike = "bool") -> None:
        self.operator = checks.instance("Mask", "operator", operator, Relational, "operator=Relational.EQ")
        self.constant = checks.instance("Mask", "constant", constant, (bool, int, float, str), "constant=0")
        self.dtype = as_dtype(dtype)

    def __call__(self, value: Any) -> np.ndarray:
        return np.asarray(_COMPARISONS[self.operator](np.asarray(value), self.constant)).astype(self.dtype)


class Duplicate:
    """A value and its copy, for two columns. Example: ``Duplicate()(np.array([1]))``."""

    def __call__(self, value: Any) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(value), np.array(value)


class Unique:
    """The unique elements in order of first occurrence, the index of each element among them, and their counts.

    Example:
        >>> [part.tolist() for part in Unique()(np.array([5, 3, 5]))]
        [[5, 3], [0, 1, 0], [2, 1]]
    """

    def __call__(self, value: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        elements, first, inverse, counts = np.unique(
            np.asarray(value).ravel(), return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)
        rank = np.argsort(order)
        return elements[order], rank[inverse].astype(np.int32), counts[order].astype(np.int32)


class Slice:
    """A part of an array.

    Args: slices: For each axis an int, a list of ints or a slice; None: the whole axis; Ellipsis: all other axes.

    Example:
        >>> Slice(slice(1, 3))(np.array([1, 2, 3, 4])).tolist()
        [2, 3]
    """

    def __init__(self, *slices: Any) -> None:
        for part in slices:
            if part is not None and part is not Ellipsis:
                checks.instance("Slice", "slices", part, (int, list, slice), "Slice(slice(0, 3))")
        self.slices = tuple(
            slice(None) if part is None else [part] if isinstance(part, int) else part for part in slices
        )

    def __call__(self, value: Any) -> np.ndarray:
        return np.asarray(value)[self.slices]
