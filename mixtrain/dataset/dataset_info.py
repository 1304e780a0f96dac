"""What a dataset can be asked: its columns, sizes, shapes and dtypes."""

from __future__ import annotations

import abc
import functools
from typing import Any, Generic, TypeVar

import numpy as np

from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage

# What a step returns: `Dataset`, which is made of these classes and which they therefore do not know.
_DatasetT = TypeVar("_DatasetT", bound="DatasetInfo[Any]")


class DatasetInfo(abc.ABC, Generic[_DatasetT]):
    """The questions; `Dataset` adds the steps.

    Args:
        stage: Makes the rows.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._input_indexs: Any = ()

    @abc.abstractmethod
    def _with(self, stage: Stage) -> _DatasetT:
        """Return the dataset of another stage."""

    def _become(self, stage: Stage) -> None:
        """Take another stage's rows from here on."""
        self._stage = stage
        for name in ("_counted", "_first"):
            self.__dict__.pop(name, None)

    @property
    def children(self) -> list[_DatasetT]:
        """The datasets that this one reads; a source has none."""
        return [self._with(parent) for parent in self._stage.parents]

    @property
    def input_indexs(self) -> Any:
        """What was assigned to it, () before: MindSpore's order of columns in sink mode. Here it has no effect."""
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
        """Return how many rows (after `batch`: batches) an epoch has.

        Where only reading can tell (a generator without `__len__`, a filter), this reads one epoch, once. A dataset
        that repeats without end has the size of one repetition.
        """
        size = self._stage.size
        return self._counted if size is None else size

    @functools.cached_property
    def _counted(self) -> int:
        return sum(1 for _ in self._stage.rows(PassSeed.start().at_epoch(0)))

    def __len__(self) -> int:
        return self.get_dataset_size()

    def __bool__(self) -> bool:
        return True

    def get_batch_size(self) -> int:
        """Return the rows of a batch; 1 where nothing batches."""
        return self._stage.batch_size

    def get_repeat_count(self) -> int:
        """Return how often the dataset repeats: 1 where nothing does, -1 where it does without end."""
        return self._stage.repeat_count

    def output_shapes(self, estimate: bool = False) -> list[list[int | None]]:
        """Return the shape of each column in the first row.

        Args:
            estimate: Whether to read a whole epoch and give None for each dimension that changes.
        """
        shapes: list[list[int | None]] = [list(value.shape) for value in self._first]
        for row in self._stage.rows(PassSeed.start().at_epoch(0)) if estimate else ():
            shapes = [_common_shape(shape, value) for shape, value in zip(shapes, row, strict=True)]
        return shapes

    def output_types(self) -> list[Any]:
        """Return the NumPy dtype of each column in the first row; strings without their length."""
        return [np.dtype(v.dtype.kind) if v.dtype.kind in "US" else v.dtype for v in self._first]

    def num_classes(self) -> int | None:
        """Return the number of classes, which data from Python does not tell: None."""
        return None

    def get_class_indexing(self) -> dict[str, int]:
        """Return the numbers of named classes, which data from Python does not have: an empty dict."""
        return {}

    def reset(self) -> None:
        """Do nothing: every epoch starts from the beginning. Kept for MindSpore scripts."""

    @functools.cached_property
    def _first(self) -> Row:
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
    return [one if one == other else None for one, other in zip(shape, value.shape, strict=True)]
