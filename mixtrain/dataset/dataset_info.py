"""The properties of a dataset: its columns, sizes, shapes and dtypes."""

from __future__ import annotations

import abc
import functools
from typing import Any, Generic, TypeVar

import numpy as np

from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage

# The class that a step returns: `Dataset`, which inherits from these classes and cannot be imported here.
_DatasetT = TypeVar("_DatasetT", bound="DatasetInfo[Any]")


class DatasetInfo(abc.ABC, Generic[_DatasetT]):
    """Base class of `Dataset` with its properties. `stage`: the last stage of the pipeline, which yields the rows."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._input_indexs: Any = ()

    @abc.abstractmethod
    def _with(self, stage: Stage) -> _DatasetT:
        """Return the dataset of another stage."""

    def _replace_stage(self, stage: Stage) -> None:
        """Read the rows of another stage from now on."""
        self._stage = stage
        for name in ("_counted_size", "_first_row"):  # Cached properties of the previous stage.
            self.__dict__.pop(name, None)

    @property
    def children(self) -> list[_DatasetT]:
        """The datasets whose rows are read; a source has none."""
        return [self._with(parent) for parent in self._stage.parents]

    @property
    def input_indexs(self) -> Any:
        """MindSpore's order of columns in sink mode: the value assigned to it, () by default. Without effect here."""
        return self._input_indexs

    @input_indexs.setter
    def input_indexs(self, value: Any) -> None:
        self._input_indexs = value

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._stage.columns

    def get_col_names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.columns)

    def get_dataset_size(self) -> int:
        """Return the number of rows (after `batch`: batches) in an epoch.

        If it is unknown before reading (a generator without `__len__`, a filter), one epoch is read, once. A dataset
        that repeats infinitely has the size of one repetition.
        """
        size = self._stage.size
        return self._counted_size if size is None else size

    @property
    def dataset_size(self) -> int | None:
        """What `get_dataset_size` returns, None where rows would have to be read for it."""
        size = self._stage.size
        return vars(self).get("_counted_size") if size is None else size

    @functools.cached_property
    def _counted_size(self) -> int:
        if self._stage.infinite:
            raise ValueError(
                "get_dataset_size: expected rows that are repeated a known number of times; got an infinite repetition "
                "of rows that are not counted. Write repeat(count), or a source with __len__."
            )
        return sum(1 for _ in self._stage.rows(PassSeed.start().at_epoch(0)))

    def __len__(self) -> int:
        return self.get_dataset_size()

    def __bool__(self) -> bool:
        return True

    def get_batch_size(self) -> int:
        """Return the number of rows in a batch; 1 without batches, -1 if a function decides."""
        return self._stage.batch_size

    def get_repeat_count(self) -> int:
        """Return how often the rows are repeated: 1 without `repeat`, -1 if infinitely."""
        return self._stage.repeat_count

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """Return the shape of each column in the first row.

        Args: estimate: Whether to read a whole epoch and return None for each dimension that varies.
        """
        shapes: list[list[int | None]] = [list(value.shape) for value in self._first_row]
        for row in self._stage.rows(PassSeed.start().at_epoch(0)) if estimate else ():
            shapes = [_common_shape(shape, value) for shape, value in zip(shapes, row, strict=True)]
        return shapes

    def output_types(self) -> list[np.dtype[Any]]:
        """Return the NumPy dtype of each column in the first row; strings without their length."""
        return [np.dtype(v.dtype.kind) if v.dtype.kind in "US" else v.dtype for v in self._first_row]

    def num_classes(self) -> int | None:
        """Return the number of classes; None, which is unknown for data from Python."""
        return None

    def get_class_indexing(self) -> dict[str, int]:
        """Return the labels of named classes; an empty dict, since data from Python has none."""
        return {}

    def reset(self) -> None:
        """Do nothing: every epoch starts from the beginning. Kept for MindSpore scripts."""

    @functools.cached_property
    def _first_row(self) -> Row:
        row = next(self._stage.rows(PassSeed.start().at_epoch(0)), None)
        if row is None:
            raise ValueError(
                "dataset: expected at least one row, to learn shapes and dtypes from; got none. "
                "Write a smaller skip or batch_size, or drop_remainder=False."
            )
        return row


def _common_shape(shape: list[int | None], value: np.ndarray) -> list[int | None]:
    if len(shape) != value.ndim:
        raise ValueError(
            f"dataset: expected {len(shape)} dimensions in every row of a column; got shape {value.shape}. "
            "Write a source whose rows all have the same rank."
        )
    return [size if size == other else None for size, other in zip(shape, value.shape, strict=True)]
