"""Columns of a row: reading and finding their names, replacing some, and converting their values to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain import checks


def read_names(where: str, argument: str, value: Any) -> tuple[str, ...]:
    """Return `value`, a name or a list of names, as a tuple."""
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise checks.fail_type(where, f"{argument} must be a str or a list of str", value, f'{argument}=["data"]')
    if not names or not all(names):
        raise checks.fail_value(where, f"{argument} must have names that are not empty", value, f'{argument}=["data"]')
    if len(set(names)) != len(names):
        raise checks.fail_value(where, f"{argument} must name each column once", value, f"{argument} without doubles")
    return tuple(names)


def find(where: str, argument: str, columns: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
    """Return the positions of the columns with the given names."""
    for name in names:
        checks.one_of(where, argument, name, columns)
    return tuple(columns.index(name) for name in names)


class Replacement:
    """Columns replaced by others: in place if their number is the same, else the new ones first, as in MindSpore.

    Attributes:
        inputs: Positions of the columns that are replaced.
        outputs: Names of the columns that replace them.
        columns: Names of all columns afterwards.
    """

    def __init__(self, where: str, columns: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.inputs = find(where, "input_columns", columns, inputs)
        self.outputs = tuple(outputs)
        self._in_place = len(inputs) == len(outputs)
        self._unchanged = tuple(index for index in range(len(columns)) if index not in self.inputs)
        self.columns: tuple[str, ...] = self.merge(columns, outputs)
        duplicates = [name for name in outputs if name in {columns[index] for index in self._unchanged}]
        if duplicates:
            raise checks.fail_value(
                where, "output_columns must not name a column that stays", duplicates[0],
                "another name in output_columns",
            )

    def merge(self, row: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        """Return the row with the input columns replaced by `results`."""
        if not self._in_place:
            return (*results, *(row[index] for index in self._unchanged))
        merged = list(row)
        for index, result in zip(self.inputs, results, strict=True):
            merged[index] = result
        return tuple(merged)

    def check_count(self, where: str, count: int) -> None:
        """Raise if a function returned another number of columns than `outputs` names."""
        if count != len(self.outputs):
            raise ValueError(
                f"{where}: expected {len(self.outputs)} columns from the function ({checks.join_names(self.outputs)}); "
                f"got {count}. Write output_columns with one name for each."
            )


def to_array(where: str, name: str, value: Any) -> np.ndarray:
    """Return a copy of one column's value as an array; a dict of values as an array that holds the dict."""
    if isinstance(value, dict):
        return boxed(_leaves(where, name, value))
    try:
        array = np.array(value)
    except ValueError as error:  # Nested lists of unequal lengths.
        raise _not_an_array(where, name, value) from error
    if array.dtype.hasobject:
        if array.ndim == 0 and isinstance(array.item(), dict):
            return array
        raise _not_an_array(where, name, value)
    return array


def _leaves(where: str, name: str, value: Any) -> Any:
    """Return a dict with its values as arrays; nested dicts and lists are preserved."""
    if isinstance(value, dict):
        return {key: _leaves(where, name, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_leaves(where, name, item) for item in value]
    return to_array(where, name, value)


def boxed(value: dict[Any, Any]) -> np.ndarray:
    """Return a dict as an array of shape (), so that it can be a value of a row."""
    array = np.empty((), object)
    array[()] = value
    return array


def unboxed(array: np.ndarray) -> Any:
    """Return the value of a column as functions take it: the array, or the dict that it holds."""
    return array.item() if array.dtype.hasobject else array


def length(column: Any) -> int:
    """Return the number of rows stacked in a column."""
    value = unboxed(column) if isinstance(column, np.ndarray) else column
    return length(next(iter(value.values()))) if isinstance(value, dict) else len(value)


def _not_an_array(where: str, name: str, value: Any) -> TypeError:
    return TypeError(
        f'{where}: expected numbers, strings, an array or a dict of them in column "{name}"; got '
        f"{type(value).__name__}. Write np.array(value, dtype) around it."
    )
