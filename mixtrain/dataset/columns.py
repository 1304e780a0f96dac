"""Names of columns: reading them from arguments, finding them, and replacing some by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain import checks


def read_names(where: str, argument: str, value: Any) -> tuple[str, ...]:
    """Return `value`, a name or a list of names, as a tuple.

    Raises:
        TypeError: It is neither.
        ValueError: It has no name, an empty name or the same name twice.
    """
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise checks.fail_type(where, f"{argument} must be a str or a list of str", value, f'{argument}=["data"]')
    if not names or not all(names):
        raise checks.fail_value(where, f"{argument} must have names that are not empty", value, f'{argument}=["data"]')
    if len(set(names)) != len(names):
        raise checks.fail_value(where, f"{argument} must name each column once", value, f"{argument} without doubles")
    return tuple(names)


def find(where: str, argument: str, columns: Sequence[str], wanted: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the `wanted` columns.

    Raises:
        ValueError: One is not among `columns`.
    """
    for name in wanted:
        checks.one_of(where, argument, name, columns)
    return tuple(columns.index(name) for name in wanted)


class Replacement:
    """Some columns replaced by others: in place where their number stays, else new ones first, as in MindSpore.

    Attributes:
        inputs: Positions of the columns that are replaced.
        outputs: Names of those that come instead.
        columns: Names of all columns afterwards.
    """

    def __init__(self, where: str, columns: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.inputs = find(where, "input_columns", columns, inputs)
        self.outputs = tuple(outputs)
        self._in_place = len(inputs) == len(outputs)
        self._kept = tuple(index for index in range(len(columns)) if index not in self.inputs)
        self.columns: tuple[str, ...] = self.merge(columns, outputs)
        clash = [name for name in outputs if name in {columns[index] for index in self._kept}]
        if clash:
            raise checks.fail_value(
                where, "output_columns must not name a column that stays", clash[0], "another name in output_columns"
            )

    def merge(self, row: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        """Return the row with `results` instead of the input columns."""
        if not self._in_place:
            return (*results, *(row[index] for index in self._kept))
        merged = list(row)
        for index, result in zip(self.inputs, results, strict=True):
            merged[index] = result
        return tuple(merged)

    def check_count(self, where: str, count: int) -> None:
        """Raise where a function returned another number of columns than `outputs` names."""
        if count != len(self.outputs):
            raise ValueError(
                f"{where}: expected {len(self.outputs)} columns from the function ({checks.listed(self.outputs)}); "
                f"got {count}. Write output_columns with one name for each."
            )


def to_array(where: str, name: str, value: Any) -> np.ndarray:
    """Return one column's value as an array of its own; a dict of values as one that holds the dict.

    Raises:
        TypeError: It is no array of numbers or strings, and no dict of such.
    """
    if isinstance(value, dict):
        return boxed(_leaves(where, name, value))
    try:
        array = np.array(value)
    except ValueError as error:  # Lists of unequal lengths.
        raise _not_an_array(where, name, value) from error
    if array.dtype.hasobject:
        if array.ndim == 0 and isinstance(array.item(), dict):
            return array
        raise _not_an_array(where, name, value)
    return array


def _leaves(where: str, name: str, value: Any) -> Any:
    """Return a dict with arrays for its values; dicts and lists inside stay what they are."""
    if isinstance(value, dict):
        return {key: _leaves(where, name, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_leaves(where, name, item) for item in value]
    return to_array(where, name, value)


def boxed(value: dict[Any, Any]) -> np.ndarray:
    """Return an array without axes that holds a dict, which a row can have like any other array."""
    box = np.empty((), object)
    box[()] = value
    return box


def unboxed(array: np.ndarray) -> Any:
    """Return what a column's array is to functions: itself, or the dict that it holds."""
    return array.item() if array.dtype.hasobject else array


def length(column: Any) -> int:
    """Return how many rows were stacked into a column."""
    value = unboxed(column) if isinstance(column, np.ndarray) else column
    return length(next(iter(value.values()))) if isinstance(value, dict) else len(value)


def _not_an_array(where: str, name: str, value: Any) -> TypeError:
    return TypeError(
        f'{where}: expected numbers, strings, an array or a dict of them in column "{name}"; got '
        f"{type(value).__name__}. Write np.array(value, dtype) around it."
    )
