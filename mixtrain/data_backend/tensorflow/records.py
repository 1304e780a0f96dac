"""Examples in TFRecord files: the features of the first one, and rows parsed in order by several threads."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import tensorflow as tf

from mixtrain.data_backend.example_columns import ExampleColumn, Kind, UnreadableRecord
from mixtrain.data_backend.tensorflow.op_errors import reason_of

_VALUES: Final = {"bytes": tf.string, "float": tf.float32, "int": tf.int64}
_KINDS: Final[dict[str, Kind]] = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int"}
_BLOCK = 32


def first_example(path: str, compression: str) -> dict[str, Kind]:
    try:
        record = next(iter(tf.data.TFRecordDataset(path, compression_type=compression).take(1)), None)
        features = {} if record is None else tf.train.Example.FromString(record.numpy()).features.feature
    except (tf.errors.OpError, ValueError) as error:
        raise UnreadableRecord(_first_reason(error)) from error
    except Exception as error:  # The parser's error class has no public name.
        if type(error).__name__ != "DecodeError":
            raise
        raise UnreadableRecord("a record that is no tf.train.Example") from error
    kinds = {name: feature.WhichOneof("kind") for name, feature in sorted(features.items())}
    if not kinds or None in kinds.values():
        raise UnreadableRecord("no record with features")
    return {name: _KINDS[kind] for name, kind in kinds.items()}


def _first_reason(error: Exception) -> str:
    return reason_of(error) if isinstance(error, tf.errors.OpError) else str(error)


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    columns: Sequence[ExampleColumn]
    compression: str
    workers: int

    def read(self, paths: Sequence[str], *, start: int = 0, count: int) -> Iterator[tuple[np.ndarray, ...]]:
        records = tf.data.TFRecordDataset(list(paths), compression_type=self.compression)
        blocks = records.repeat().skip(start).take(count).batch(_BLOCK).map(
            self._parse, num_parallel_calls=self.workers, deterministic=True
        )
        try:
            for block in blocks.prefetch(self.workers):
                parts = [(values.numpy(), splits.numpy().tolist()) for values, splits in block]
                for row in range(len(parts[0][1]) - 1):
                    yield tuple(
                        _convert(values[splits[row] : splits[row + 1]], column)
                        for (values, splits), column in zip(parts, self.columns, strict=True)
                    )
        except tf.errors.OpError as error:
            raise UnreadableRecord(reason_of(error)) from error

    @functools.cached_property
    def _parse(self) -> Any:
        """The compiled function from records to the values and row splits of each column."""
        features = {column.name: tf.io.RaggedFeature(_VALUES[column.kind]) for column in self.columns}

        def parse(records: tf.Tensor) -> tuple[tuple[tf.Tensor, tf.Tensor], ...]:
            parsed = tf.io.parse_example(records, features)
            return tuple((parsed[column.name].values, parsed[column.name].row_splits) for column in self.columns)

        with tf.device("CPU"):
            return tf.function(parse, autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])


def _convert(values: np.ndarray, column: ExampleColumn) -> np.ndarray:
    """Return the value of one row from the values of its feature."""
    if not len(values):
        raise UnreadableRecord(f'values in column "{column.name}"; got none')
    value: np.ndarray
    if column.dtype == "string":
        value = np.char.decode(values.astype(bytes), "utf-8")
    elif column.kind == "bytes":
        longest = max(map(len, values))
        value = np.frombuffer(b"".join(text.ljust(longest) for text in values), np.uint8).copy()
    else:
        value = values.astype(column.dtype)
    if column.shape is None:
        return value
    known = math.prod(size for size in column.shape if size >= 0)
    if len(value) % known if -1 in column.shape else len(value) != known:
        shape = ", ".join(map(str, column.shape))
        raise UnreadableRecord(f'values of shape ({shape}) in column "{column.name}"; got {len(value)} values')
    return value.reshape(column.shape)
