"""Class labels: noted while a function is traced, and checked in each batch before it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain.backend.refused_batch import RefusedBatch
from mixtrain.typing import Tensor, Tree


class LabelOutOfRange(RefusedBatch):
    """A label is not a class number."""

    def __init__(self, where: str, label: int, classes: int, index: int = 0) -> None:
        super().__init__(
            f"labels must be from 0 to {classes - 1}; got {label}{{}}, where there are {classes} classes. Write labels "
            "in that range, or a network with an output for each class.",
            where, index,
        )


@dataclasses.dataclass(frozen=True)
class ClassRule:
    """The valid labels of one column."""

    column: int  # The index of the column among the tensors of a batch.
    classes: int
    ignored: int | None = None  # The label that is ignored.
    weights: int | None = None  # The index of the column of their weights, of which 0 ignores a label.


class _Noting(threading.local):
    columns: Sequence[Tensor] = ()
    rules: list[ClassRule] | None = None


_noting = _Noting()


def note_class_labels(
    labels: Tensor, classes: int | None, ignored: int | None = None, weights: Tensor | None = None
) -> None:
    """Note, while a function is traced, that a tensor holds class numbers.

    They are checked before the function runs if the tensor is a column of the batch: a computed tensor has no value
    yet. `classes`: The number of classes; None where it is unknown. `ignored`: The label that is ignored.
    """
    if _noting.rules is None or classes is None:
        return
    column = _index_of(labels)
    if column is not None:
        _noting.rules.append(ClassRule(column, classes, ignored, _index_of(weights)))


@contextlib.contextmanager
def noting_shards(columns: Sequence[Tensor], shards: Sequence[Tensor]) -> Iterator[None]:
    """Let labels noted for shards, the rows that the code inside sees, count as labels of the whole columns."""
    shard_of = {id(column): shard for column, shard in zip(columns, shards, strict=True)}
    previous = _noting.columns
    _noting.columns = [shard_of.get(id(column), column) for column in previous]
    try:
        yield
    finally:
        _noting.columns = previous


def _index_of(tensor: Tensor) -> int | None:
    return next((index for index, column in enumerate(_noting.columns) if column is tensor), None)


class ClassLabels:
    """The rules for the labels in the batches of a function: those of all batches; without, a trace notes them."""

    def __init__(self, rules: tuple[ClassRule, ...] | None = None) -> None:
        self._known = rules
        self._flat = False  # Whether the columns of a batch have no parts.
        # By the number of columns: batches with and without weights have different traces.
        self._rules: dict[int, tuple[ClassRule, ...]] = {}

    def rules_of(self, batch: Sequence[Tensor]) -> tuple[ClassRule, ...] | None:
        """Return the rules for the labels in a batch; None before a trace for a batch of its structure."""
        return self._rules.get(len(batch), self._known)

    def forget(self) -> None:
        """Clear the rules, as the function is retraced."""
        self._rules.clear()

    @contextlib.contextmanager
    def noting(self, batch: Sequence[Tree]) -> Iterator[None]:
        """Note the rules for the labels in the columns of a batch, while the code inside is traced with it."""
        previous = _noting.columns, _noting.rules
        _noting.columns, _noting.rules = keras.tree.flatten(batch), []
        self._flat = all(column is leaf for column, leaf in zip(batch, _noting.columns, strict=False))
        try:
            yield
            self._rules[len(batch)] = tuple(dict.fromkeys(_noting.rules))
        finally:
            _noting.columns, _noting.rules = previous

    def ignored(self) -> set[int]:
        """Return the labels that any rule ignores."""
        return {rule.ignored for rules in self._rules.values() for rule in rules if rule.ignored is not None}

    def check(self, batch: Sequence[Tensor], *, stacked: bool = False) -> None:
        """Check the labels, with known values, of a batch, or of several ones, stacked on a first axis.

        Raises: LabelOutOfRange if a label is not a class number.
        """
        rules = self.rules_of(batch)
        if not rules:
            return
        columns = batch if self._flat else keras.tree.flatten(batch)
        for rule in rules:
            weights = None if rule.weights is None else columns[rule.weights]
            ignored = () if rule.ignored is None else (rule.ignored,)
            outside = first_outside(columns[rule.column], rule.classes, ignored, weights)
            if outside is not None:
                index, label = outside
                raise LabelOutOfRange("a compiled step", label, rule.classes, index if stacked else 0)


def first_outside(
    labels: Tensor, classes: int, ignored: Collection[int] = (), weights: Tensor | None = None
) -> tuple[int, int] | None:
    """Return the first label that is not a class number, as ``(index on the first axis, label)``; None without one.

    `labels`: An array or a tensor with known values. `weights`: One for each label or one for each row; labels of
    weight 0 are ignored.

    Example:
        >>> first_outside(np.array([[0, 2], [-1, 5]]), 3, ignored=[-1])
        (1, 5)
    """
    values = _own_values(labels)
    if not values.size or _all_fit(values, classes):
        return None  # The fast path, for nearly all batches.
    wrong = ~((values >= 0) & (values < classes))
    for label in ignored:
        wrong &= values != label
    if weights is not None:
        counted = _own_values(weights) != 0
        row_shape = (*counted.shape, *[1] * (wrong.ndim - counted.ndim))
        wrong &= counted.reshape(wrong.shape if counted.size == wrong.size else row_shape)
    indices = np.argwhere(wrong)
    if not len(indices):
        return None
    index = tuple(indices[0])
    return int(index[0]) if index else 0, int(values[index])


def _own_values(tensor: Any) -> np.ndarray:
    """Return the values of a tensor; of one over several processes those rows that are on this process's devices."""
    if getattr(tensor, "is_fully_addressable", True):
        return np.asarray(tensor)
    parts = {shard.index[0].start or 0: np.asarray(shard.data) for shard in tensor.addressable_shards}
    return np.concatenate([parts[start] for start in sorted(parts)])


def _all_fit(values: np.ndarray, classes: int) -> bool:
    """Whether all labels are class numbers."""
    if values.dtype.kind == "i" and classes <= np.iinfo(values.dtype).max:
        # As an unsigned integer a negative number is larger than any class: one pass instead of two.
        return bool(values.view(f"u{values.itemsize}").max() < classes)
    return bool(values.min() >= 0 and values.max() < classes)
