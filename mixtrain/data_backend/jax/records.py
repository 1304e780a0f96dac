"""Examples in TFRecord files: JAX has no reader for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from mixtrain.data_backend.example_columns import ExampleColumn, Kind
from mixtrain.errors import UnsupportedBackendError


def first_example(path: str, compression: str) -> dict[str, Kind]:
    """Return the names of the features of the first example of a file, and their kinds.

    Raises:
        UnsupportedBackendError: Always.
    """
    _refuse()


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """Reader of the rows in record files.

    Attributes:
        columns: The columns to read.
        compression: "", "GZIP" or "ZLIB".
        workers: How many records are parsed in parallel.
    """

    columns: Sequence[ExampleColumn]
    compression: str
    workers: int

    def read(self, paths: Sequence[str], *, start: int = 0, count: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield the rows of some files, one after the other.

        Args:
            paths: The files.
            start: The first row to read.
            count: The number of rows to read; after the last file the first one follows again.

        Raises:
            UnsupportedBackendError: Always.
        """
        _refuse()


def _refuse() -> NoReturn:
    raise UnsupportedBackendError(
        "TFRecordDataset: expected TensorFlow, which reads TFRecord files; got the Keras backend jax. Set "
        "KERAS_BACKEND=tensorflow, or write the rows to .npy files and read them with NumpySlicesDataset."
    )
