"""Checks of class labels inside a graph that runs many steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import keras
import tensorflow as tf

from mixtrain.backend.class_labels import ClassRule, LabelOutOfRange
from mixtrain.typing import Tensor

_MARK: Final = "labels out of range"
_MESSAGE: Final = re.compile(rf"\[{_MARK}\] \[(-?\d+)\] \[(-?\d+)\] \[(\d+)\] \[(\d+)\]")


def label_assertions(rules: Sequence[ClassRule], batch: Sequence[Tensor], index: Any) -> list[Any]:
    """Return operations of the current graph that fail where a label is not a class number.

    Weights are ignored: TensorFlow's own kernels fail on such a label too, whatever its weight.

    Args:
        rules: The rules for labels.
        batch: The columns of a batch.
        index: The index of the step in the loop.
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


def read_label(error: tf.errors.InvalidArgumentError) -> LabelOutOfRange | None:
    """Return the error of a label assertion; None for another error."""
    match = _MESSAGE.search(error.message)
    if match is None:
        return None
    low, high, classes, index = map(int, match.groups())
    return LabelOutOfRange("a compiled step", low if low < 0 else high, classes, index)
