"""Checks of batches inside a graph that runs many steps: that they have rows, and their class labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import keras
import tensorflow as tf

from mixtrain.backend.class_labels import ClassRule, LabelOutOfRange
from mixtrain.backend.refused_batch import EmptyBatch, RefusedBatch
from mixtrain.typing import Tensor

_MARK: Final = "labels out of range"
_MESSAGE: Final = re.compile(rf"\[{_MARK}\] \[(-?\d+)\] \[(-?\d+)\] \[(\d+)\] \[(\d+)\]")
_NO_ROWS: Final = "batch without rows"
_NO_ROWS_MESSAGE: Final = re.compile(rf"\[{_NO_ROWS}\] \[([\d ]+)\] \[(\d+)\]")


def row_assertions(batch: Sequence[Tensor], index: Any) -> list[Any]:
    """Return operations of the current graph that fail where a batch has no rows; none where it is known to have some.

    `index`: The index of the step in the loop.
    """
    first = keras.tree.flatten(batch)[0]
    if not isinstance(first, tf.Tensor) or not first.shape.rank or first.shape[0]:
        return []
    with tf.device("/CPU:0"):
        shape = tf.shape(first)
        return [tf.raw_ops.Assert(condition=shape[0] > 0, data=[_NO_ROWS, shape, index], summarize=-1)]


def label_assertions(rules: Sequence[ClassRule], batch: Sequence[Tensor], index: Any) -> list[Any]:
    """Return operations of the current graph that fail where a label is not a class number.

    Weights are ignored: TensorFlow's own kernels fail on such a label too, whatever its weight.
    """
    columns, assertions = keras.tree.flatten(batch), []
    # The labels come from the host: checked there, no device waits for them.
    with tf.device("/CPU:0"):
        for rule in rules:
            labels = tf.cast(columns[rule.column], tf.int64)
            if rule.ignored is not None:
                labels = tf.where(labels == rule.ignored, tf.zeros_like(labels), labels)
            low, high = tf.reduce_min(labels), tf.reduce_max(labels)
            fits = tf.logical_or(tf.equal(tf.size(labels), 0), tf.logical_and(low >= 0, high < rule.classes))
            data = [_MARK, low, high, tf.constant(rule.classes), index]
            assertions.append(tf.raw_ops.Assert(condition=fits, data=data, summarize=1))
    return assertions


def read_refusal(error: tf.errors.InvalidArgumentError) -> RefusedBatch | None:
    """Return the error of an assertion about a batch; None for another error."""
    no_rows = _NO_ROWS_MESSAGE.search(error.message)
    if no_rows is not None:
        shape, index = no_rows.groups()
        return EmptyBatch("a compiled step", [*map(int, shape.split())], int(index))
    match = _MESSAGE.search(error.message)
    if match is None:
        return None
    low, high, classes, index = map(int, match.groups())
    return LabelOutOfRange("a compiled step", low if low < 0 else high, classes, index)
