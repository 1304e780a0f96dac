"""Requirements on values: checked at once or, in a graph, before the operations that follow."""

from __future__ import annotations

import re
from typing import Any, Final

import tensorflow as tf

from mixtrain.data_backend.row_part import with_subject
from mixtrain.typing import Tensor

_MARK: Final = "\N{SECTION SIGN}"
_MARKED: Final = re.compile(f"{_MARK}(.*?){_MARK}", flags=re.DOTALL)


def require(condition: Tensor, message: str, *values: Any) -> None:
    message = with_subject(message)
    if tf.is_tensor(condition) and not tf.executing_eagerly():
        marked = f"{_MARK}{message}{_MARK}"
        holds = tf.cond(
            condition,
            lambda: tf.constant(True),
            lambda: _fail(tf.strings.format(marked, tuple(map(tf.convert_to_tensor, values)))),
        )
        # Never exited: all later operations of this graph wait for the check, so that none fails before it.
        tf.control_dependencies([holds]).__enter__()
    elif not bool(condition):
        raise ValueError(message.format(*(int(value) for value in values)))


def _fail(message: Any) -> Any:
    tf.debugging.Assert(False, [message], summarize=1)
    return tf.constant(False)


def read_error(error: tf.errors.InvalidArgumentError) -> ValueError:
    """Return a ValueError with the message of `require` in an error of TensorFlow, or with all its text."""
    match = _MARKED.search(error.message)
    if not match:
        return ValueError(error.message)
    return ValueError(match.group(1).replace('\\"', '"').replace("\\'", "'"))  # TensorFlow escapes quotes.
