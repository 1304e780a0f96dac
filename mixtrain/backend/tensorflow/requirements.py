"""What must hold for values: looked at now or, in a graph that is being made, before what comes later in it."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from typing import Any, Final

import tensorflow as tf

_MARK: Final = "\N{SECTION SIGN}"
_MARKED: Final = re.compile(f"{_MARK}(.*?){_MARK}", flags=re.DOTALL)


class _Spoken(threading.local):
    subject = ""


_spoken = _Spoken()


@contextlib.contextmanager
def speaking_of(subject: str) -> Iterator[None]:
    """Begin the sentences of `require` with a subject: what is made inside, now or in a graph, is about it."""
    before = _spoken.subject
    _spoken.subject = f"{subject}: "
    try:
        yield
    finally:
        _spoken.subject = before


def require(condition: Any, message: str, *values: Any) -> None:
    """Raise a ValueError where the condition, a bool or a tensor, is false.

    Args:
        condition: What must hold.
        message: The sentence, with ``{}`` for each value.
        values: Python numbers or tensors.
    """
    message = _spoken.subject.replace("{", "(").replace("}", ")") + message
    if tf.is_tensor(condition) and not tf.executing_eagerly():
        marked = f"{_MARK}{message}{_MARK}"
        holds = tf.cond(
            condition,
            lambda: tf.constant(True),
            lambda: _fail(tf.strings.format(marked, tuple(map(tf.convert_to_tensor, values)))),
        )
        # Entered, never left: all that is made later in this graph waits, and cannot fail with words of its own.
        tf.control_dependencies([holds]).__enter__()
    elif not bool(condition):
        raise ValueError(message.format(*(int(value) for value in values)))


def _fail(message: Any) -> Any:
    tf.debugging.Assert(False, [message], summarize=1)
    return tf.constant(False)


def read_error(error: tf.errors.InvalidArgumentError) -> ValueError:
    """Return the sentence that `require` put into an error, as a ValueError; any other text as it is."""
    found = _MARKED.search(error.message)
    if not found:
        return ValueError(error.message)
    return ValueError(found.group(1).replace('\\"', '"').replace("\\'", "'"))  # TensorFlow escapes quotes.
