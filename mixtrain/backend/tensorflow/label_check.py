"""Labels that are class numbers, looked at inside a graph that runs many steps: before each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import keras
import tensorflow as tf

from mixtrain.backend.class_labels import ClassRule, LabelOutOfRange

_MARK: Final = "labels out of range"
_FOUND: Final = re.compile(rf"\[{_MARK}\] \[(-?\d+)\] \[(-?\d+)\] \[(\d+)\] \[(\d+)\]")


def label_assertions(rules: Sequence[ClassRule], batch: Sequence[Any], index: Any) -> list[Any]:
    """Return operations of the graph that is being made, which fail where a label is no class number.

    Weights are not asked: TensorFlow's own kernels fail on such a label too, whatever its weight.

    Args:
        rules: What labels must be.
        batch: The columns of a batch.
        index: Which of the steps that run together it is for.
    """
    columns, found = keras.tree.flatten(batch), []
    # The labels come from the host: to look at them there makes no device wait.
    with tf.device("/CPU:0"):
        for rule in rules:
            labels = tf.cast(columns[rule.column], tf.int64)
            if rule.ignored is not None:
                labels = tf.where(labels == rule.ignored, tf.zeros_like(labels), labels)
            low, high = tf.reduce_min(labels), tf.reduce_max(labels)
            fits = tf.logical_or(tf.equal(tf.size(labels), 0), tf.logical_and(low >= 0, high < rule.classes))
            data = [_MARK, low, high, tf.constant(rule.classes), index]
            found.append(tf.raw_ops.Assert(condition=fits, data=data, summarize=1))
    return found


def read_label(error: tf.errors.InvalidArgumentError) -> LabelOutOfRange | None:
    """Return what an assertion found; None for another error."""
    found = _FOUND.search(error.message)
    if found is None:
        return None
    low, high, classes, index = map(int, found.groups())
    return LabelOutOfRange("a compiled step", low if low < 0 else high, classes, index)
