"""The reason in an error of TensorFlow, without the names of operations."""

from __future__ import annotations

import re

import tensorflow as tf

_NAMES = re.compile(r"^.*Iterator::[\w:]+: |^\{\{.*?\}\} | \[Op:.*$")


def reason_of(error: tf.errors.OpError) -> str:
    """Return the first line of an error's message, without operations and iterators."""
    return _NAMES.sub("", str(error.message).split("\n")[0]).rstrip(". ")
