"""What an error of the library says, without the names of its own operations."""

from __future__ import annotations

import re

import tensorflow as tf

_NAMES = re.compile(r"^.*Iterator::[\w:]+: |^\{\{.*?\}\} | \[Op:.*$")


def reason_of(error: tf.errors.OpError) -> str:
    """Return the first line of an error, without operations and iterators."""
    return _NAMES.sub("", str(error.message).split("\n")[0]).rstrip(". ")
