"""Padding: the rows of a batch padded at their ends to one shape."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.columns import find, to_array

Shape = tuple[int | None, ...] | None
_EXAMPLE = 'pad_info={"x": ([10], 0)}'


class Padding:
    """The shape and the value to pad each column with, read from `pad_info`.

    Args:
        where: The caller, for messages.
        columns: Names of the columns.
        pad_info: From column name to shape and value; an empty dict pads every column with 0 to its longest row. None
            as a size, or as the whole shape, means the longest row of the batch.
    """

    def __init__(self, where: str, columns: Sequence[str], pad_info: Mapping[str, Any]) -> None:
        checks.instance(where, "pad_info", pad_info, Mapping, _EXAMPLE)
        find(where, "a column of pad_info", columns, list(pad_info))
        self._where = where
        self._rules: dict[str, tuple[Shape, Any]] = {
            name: _read_rule(where, rule) for name, rule in pad_info.items()
        } or {name: (None, 0) for name in columns}

    def __call__(self, name: str, values: Sequence[Any]) -> Sequence[Any]:
        """Return the values of a column, padded; those of a column without a rule unchanged."""
        if name not in self._rules:
            return values
        shape, value = self._rules[name]
        arrays = [to_array(self._where, name, item) for item in values]
        ranks = {array.ndim for array in arrays}
        if len(ranks) > 1 or (shape is not None and len(shape) not in ranks):
            raise checks.fail_value(
                self._where, f'column "{name}" must have {len(shape or arrays[0].shape)} dimensions in every row',
                [array.shape for array in arrays], "a shape of that rank in pad_info",
            )
        sizes = (None,) * arrays[0].ndim if shape is None else shape
        longest = tuple(map(max, zip(*(array.shape for array in arrays), strict=True)))
        target = tuple(maximum if size is None else size for size, maximum in zip(sizes, longest, strict=True))
        return [_pad(array, target, value) for array in arrays]

    def with_size(self, length: int) -> Padding:
        """Return a copy with `length` for each size that is None."""
        copied = copy.copy(self)
        copied._rules = {
            name: (shape if shape is None else tuple(length if size is None else size for size in shape), value)
            for name, (shape, value) in self._rules.items()
        }
        return copied


def _pad(array: np.ndarray, shape: tuple[int, ...], value: Any) -> np.ndarray:
    """Return the array padded with `value`, or truncated, at the end of each axis to a shape of the same rank."""
    if array.shape == shape:
        return array
    if array.dtype.kind in "US":
        padded = np.full(shape, "" if value in (0, None) else value, np.result_type(array.dtype, np.array(str(value))))
    else:
        padded = np.full(shape, np.array(value or 0).astype(array.dtype), array.dtype)
    common = tuple(map(slice, map(min, array.shape, shape)))
    padded[common] = array[common]
    return padded


def _read_rule(where: str, rule: Any) -> tuple[Shape, Any]:
    if not isinstance(rule, (tuple, list)) or len(rule) != 2:
        raise checks.fail_type(where, "each value of pad_info must be a tuple (shape, value)", rule, _EXAMPLE)
    shape, value = rule
    if shape is None:
        return None, value
    checks.instance(where, "a shape in pad_info", shape, (list, tuple), _EXAMPLE)
    for size in shape:
        if size is not None:
            checks.integer(where, "a size in pad_info", size, at_least=1)
    return tuple(shape), value
