"""Errors of compiled calls, in one sentence that names the layer."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final

import tensorflow as tf

# What an eager operation raises for values, shapes or dtypes that it does not support.
VALUE_ERRORS: Final[tuple[type[Exception], ...]] = (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError)

# The operation's path as the graph knows it, with one or two pairs of braces.
_NODE = re.compile(r"\{\{(?:function_)?node ([^}]*)\}\}")
# The operation's name, which ends the error of an eager one.
_OPERATION = re.compile(r" *\[Op:\w+\].*")
# The operation in the error of one that is being traced, with its attributes and the paths of its inputs.
_TRACED = re.compile(r" for '\{\{node [^']*'")
# XLA's message for an operation that it lacks, and the parts of other refusals that are not the reason.
_MISSING = re.compile(r" on XLA_\w+: (\w+) \(")
_CONTEXT = re.compile(r"during context \[\w+\]: | to node `[^`]*`|, metadata=.*")


@contextlib.contextmanager
def naming_layers(where: str) -> Iterator[None]:
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        layer, reason = explain(error.message)
        at = f" in {layer}" if layer else ""
        raise ValueError(
            f"{where}: expected columns whose shapes and values fit the network and each other; got, at run time{at}: "
            f"{reason}. Write batches of one shape, or train with dataset_sink_mode=False to see the batch."
        ) from error


def error_reason(error: Exception) -> str:
    message = error.message if isinstance(error, tf.errors.OpError) else str(error)
    first = next(iter(message.strip().splitlines()), "")
    return _OPERATION.sub("", _NODE.sub("", _TRACED.sub("", first))).strip(" .") or type(error).__name__


def explain(message: str) -> tuple[str, str]:
    """Return the layer's path and the reason in an error message of the backend.

    Example:
        >>> explain("sizes differ: [5] [8]\\n\\t [[{{node Net/conv/Conv2D}}]] [Op:__inference_loop_1]")
        ('Net/conv', 'sizes differ: [5] [8]')
    """
    nodes = [node for node in _NODE.findall(message) if "/" in node]
    lines = [_NODE.sub("", line).strip() for line in message.splitlines()]
    reasons = (line for line in reversed(lines) if line and not line.startswith(("File", "[[", "Detected", "[")))
    return (nodes[-1].rpartition("/")[0] if nodes else ""), next(reasons, "").rstrip(".")


def explain_refusal(message: str) -> tuple[str, str]:
    """Return the layer's path and the reason why XLA does not compile a function, as a clause.

    Example:
        >>> message = "unsupported operations on XLA_CPU_JIT: ResizeArea (No registered ...){{node Net/up/Resize}}"
        >>> explain_refusal(message)
        ('Net/up', 'it has no ResizeArea')
    """
    layer, _ = explain(message)
    first = message.splitlines()[0]
    missing = _MISSING.search(first)
    return layer, f"it has no {missing[1]}" if missing else _CONTEXT.sub("", _NODE.sub("", first)).strip().rstrip(".")
