"""Labels that are class numbers: noted while a function is traced, looked at in each batch before it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import keras
import numpy as np


class LabelOutOfRange(ValueError):
    """A label is no class number.

    Args:
        where: Who looked.
        label: The label.
        classes: How many classes there are.
        index: In which of the batches that were looked at together it is, from 0.
        place: Where that batch is, in words; "" where that is not known.
    """

    def __init__(self, where: str, label: int, classes: int, index: int = 0, place: str = "") -> None:
        super().__init__(
            f"{where}: labels must be from 0 to {classes - 1}; got {label}{place}, where there are {classes} classes. "
            "Write labels in that range, or a network with an output for each class."
        )
        self.label, self.classes, self.index = label, classes, index

    def told(self, where: str, place: str) -> LabelOutOfRange:
        """Return the error with who ran the batches, and the place of the batch in words."""
        return LabelOutOfRange(where, self.label, self.classes, self.index, f" in {place}")


@contextlib.contextmanager
def telling_place(where: str, place: Callable[[int], str]) -> Iterator[None]:
    """Tell an error of labels with who ran the batches, and where the batch is.

    Args:
        where: Who runs them.
        place: Returns the place of a batch in words, given which of those inside it is, from 0.

    Raises:
        LabelOutOfRange: A label is no class number.
    """
    try:
        yield
    except LabelOutOfRange as error:
        raise error.told(where, place(error.index)) from None


@dataclasses.dataclass(frozen=True)
class ClassRule:
    """What the labels of one column must be.

    Attributes:
        column: Index of the column among the tensors of a batch.
        classes: How many classes there are.
        ignored: The label that counts for nothing, or None.
        weights: Index of the column that weighs them, of which 0 lets a label count for nothing; None for none.
    """

    column: int
    classes: int
    ignored: int | None = None
    weights: int | None = None


class _Noting(threading.local):
    columns: Sequence[Any] = ()
    rules: list[ClassRule] | None = None


_noting = _Noting()


def note_class_labels(labels: Any, classes: int | None, ignored: int | None = None, weights: Any = None) -> None:
    """Note, while a function is traced, that a tensor holds class numbers.

    It is looked at before the function runs, if it is a column of the batch as it came: a tensor that was computed
    in between has no value yet.

    Args:
        labels: The tensor.
        classes: How many classes there are; None where that is not known.
        ignored: The label that counts for nothing.
        weights: What weighs the labels.
    """
    if _noting.rules is None or classes is None:
        return
    column, weighing = _index_of(labels), _index_of(weights)
    if column is not None:
        _noting.rules.append(ClassRule(column, classes, ignored, weighing))


@contextlib.contextmanager
def noting_shards(columns: Sequence[Any], shards: Sequence[Any]) -> Iterator[None]:
    """Let the tensors of a batch be known by some of their rows: what is noted of these holds for the whole.

    Args:
        columns: Tensors.
        shards: Of each of them the rows that the code inside sees.
    """
    places = {id(column): shard for column, shard in zip(columns, shards, strict=True)}
    before = _noting.columns
    _noting.columns = [places.get(id(column), column) for column in before]
    try:
        yield
    finally:
        _noting.columns = before


def _index_of(tensor: Any) -> int | None:
    return next((index for index, column in enumerate(_noting.columns) if column is tensor), None)


class ClassLabels:
    """A function of a batch, and what the labels in its batches must be, known once it was traced.

    Called, it runs the function, which is being traced, and notes its rules.

    Args:
        function: Takes the columns of a batch.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._flat = False  # Whether the columns of a batch have no parts.
        # By the number of columns: batches with weights, and without, are traced apart.
        self._rules: dict[int, tuple[ClassRule, ...]] = {}

    def rules_of(self, batch: Sequence[Any]) -> tuple[ClassRule, ...] | None:
        """Return what the labels in a batch must be; None before the function was traced for one of its kind."""
        return self._rules.get(len(batch))

    def forget(self) -> None:
        """Forget what was known, as the function is retraced."""
        self._rules.clear()

    def __call__(self, *batch: Any) -> Any:
        before = _noting.columns, _noting.rules
        _noting.columns, _noting.rules = keras.tree.flatten(batch), []
        self._flat = all(one is other for one, other in zip(batch, _noting.columns, strict=False))
        try:
            result = self._function(*batch)
            self._rules[len(batch)] = tuple(dict.fromkeys(_noting.rules))
        finally:
            _noting.columns, _noting.rules = before
        return result

    def ignored(self) -> set[int]:
        """Return the labels that count for nothing somewhere."""
        return {rule.ignored for rules in self._rules.values() for rule in rules if rule.ignored is not None}

    def check(self, batch: Sequence[Any], *, stacked: bool = False) -> None:
        """Look at the labels of a batch.

        Args:
            batch: The columns, whose values are known.
            stacked: Whether they are several batches, stacked on a first axis.

        Raises:
            LabelOutOfRange: A label is no class number.
        """
        rules = self.rules_of(batch)
        if not rules:
            return
        columns = batch if self._flat else keras.tree.flatten(batch)
        for rule in rules:
            weights = None if rule.weights is None else columns[rule.weights]
            ignored = () if rule.ignored is None else (rule.ignored,)
            found = first_outside(columns[rule.column], rule.classes, ignored, weights)
            if found is not None:
                index, label = found
                raise LabelOutOfRange("a compiled step", label, rule.classes, index if stacked else 0)


def first_outside(
    labels: Any, classes: int, ignored: Collection[int] = (), weights: Any = None
) -> tuple[int, int] | None:
    """Return the first label that counts and is no class number, with its index on the first axis; None for none.

    Args:
        labels: The labels, an array or a tensor whose values are known.
        classes: How many classes there are.
        ignored: Labels that count for nothing.
        weights: What weighs the labels: one number for each, or one for each row.

    Example:
        >>> first_outside(np.array([[0, 2], [-1, 5]]), 3, ignored=[-1])
        (1, 5)
    """
    values = np.asarray(labels)
    if not values.size or _all_fit(values, classes):
        return None  # Nearly all batches: to look is all that they cost.
    wrong = ~((values >= 0) & (values < classes))
    for label in ignored:
        wrong &= values != label
    if weights is not None:
        counted = np.asarray(weights) != 0
        of_rows = (*counted.shape, *[1] * (wrong.ndim - counted.ndim))
        wrong &= counted.reshape(wrong.shape if counted.size == wrong.size else of_rows)
    places = np.argwhere(wrong)
    if not len(places):
        return None
    place = tuple(places[0])
    return int(place[0]) if place else 0, int(values[place])


def _all_fit(values: np.ndarray, classes: int) -> bool:
    """Whether all labels are class numbers."""
    if values.dtype.kind == "i" and classes <= np.iinfo(values.dtype).max:
        # Read without its sign, a negative number is larger than any class: one pass in place of two.
        return bool(values.view(f"u{values.itemsize}").max() < classes)
    return bool(values.min() >= 0 and values.max() < classes)
