"""Examples in TFRecord files: JAX has no reader for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from mixtrain.data_backend.example_columns import ExampleColumn, Kind
from mixtrain.errors import UnsupportedBackendError


def first_example(path: str, compression: str) -> dict[str, Kind]:
    _refuse()


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    columns: Sequence[ExampleColumn]
    compression: str
    workers: int

    def read(self, paths: Sequence[str], *, start: int = 0, count: int) -> Iterator[tuple[np.ndarray, ...]]:
        _refuse()


def _refuse() -> NoReturn:
    raise UnsupportedBackendError(
        "TFRecordDataset: expected TensorFlow, which reads TFRecord files; got the Keras backend jax. Set "
        "KERAS_BACKEND=tensorflow, or write the rows to .npy files and read them with NumpySlicesDataset."
    )
