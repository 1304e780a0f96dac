"""Elements on the device: stacked ones, and single ones that are copied there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from mixtrain.backend.signatures import Row


class Stacked(Sequence[Row]):
    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return int(tf.nest.flatten(self.columns)[0].shape[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        row = index % len(self)
        return tf.nest.map_structure(lambda column: column[row], self.columns)

    def __iter__(self) -> Iterator[Row]:
        for parts in zip(*map(tf.unstack, tf.nest.flatten(self.columns)), strict=True):
            yield tf.nest.pack_sequence_as(self.columns, parts)


class DevicePut:
    @property
    def ahead(self) -> bool:
        return False

    def __call__(self, columns: tuple[np.ndarray, ...]) -> Row:
        return tuple(map(tf.convert_to_tensor, columns))

    def lend(self, columns: tuple[np.ndarray, ...]) -> Row:
        return self(tuple(map(np.array, columns)))  # TensorFlow may use the memory of an array.

    def take_back(self) -> None:
        """Do nothing: `lend` has copied them."""

