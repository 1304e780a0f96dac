"""Examples in TFRecord files: TensorFlow reads them, JAX has nothing that does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from mixtrain.backend.example_columns import ExampleColumn, Kind
from mixtrain.errors import UnsupportedBackendError


def first_example(path: str, compression: str) -> dict[str, Kind]:
    """Return the names of the features of the first example of a file, and what they hold.

    Raises:
        UnsupportedBackendError: Always.
    """
    _refuse()


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """How the records of some files become rows.

    Attributes:
        columns: What to read.
        compression: "", "GZIP" or "ZLIB".
        workers: How many records are parsed at a time.
    """

    columns: Sequence[ExampleColumn]
    compression: str
    workers: int

    def read(self, paths: Sequence[str], *, start: int = 0, count: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield the rows of some files, one after the other.

        Args:
            paths: The files.
            start: The row to begin with.
            count: How many rows to read, from the first file again after the last.

        Raises:
            UnsupportedBackendError: Always.
        """
        _refuse()


def _refuse() -> NoReturn:
    raise UnsupportedBackendError(
        "TFRecordDataset: expected TensorFlow, which reads TFRecord files; got the Keras backend jax. Set "
        "KERAS_BACKEND=tensorflow, or write the rows to .npy files and read them with NumpySlicesDataset."
    )
