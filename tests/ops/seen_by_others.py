"""Prints what NumPy and TensorFlow make of a TensorFlow tensor, as JSON; `mixtrain` as an argument imports it first.

It prints twice: as it is, and once more with TensorFlow's own NumPy behaviour switched on. With the argument `before`
that is switched on before the import, and it prints once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    name: getattr(np, name)
    for name in (
        "mean", "sum", "prod", "std", "var", "max", "min", "amax", "argmax", "argmin", "argsort", "sort", "cumsum",
        "cumprod", "round", "copy", "squeeze", "ravel", "transpose", "shape", "ndim", "size", "nonzero", "all", "any",
        "ptp", "diagonal", "trace", "exp", "log2", "abs", "floor", "sqrt", "sign", "isnan", "median", "unique",
        "asarray", "array", "zeros_like", "ones_like", "atleast_1d", "flip", "tril", "triu", "isfinite", "negative",
        "square", "count_nonzero",
    )
}
FUNCTIONS |= {
    "mean_axis": lambda t: np.mean(t, axis=1),
    "sum_keepdims": lambda t: np.sum(t, axis=0, keepdims=True),
    "reshape": lambda t: np.reshape(t, (3, 2)),
    "repeat": lambda t: np.repeat(t, 2, axis=1),
    "take": lambda t: np.take(t, [0, 1]),
    "clip": lambda t: np.clip(t, 0.0, 1.0),
    "swapaxes": lambda t: np.swapaxes(t, 0, 1),
    "expand_dims": lambda t: np.expand_dims(t, 0),
    "where": lambda t: np.where(t > 0, t, 0.0),
    "concatenate": lambda t: np.concatenate([t, t]),
    "split": lambda t: np.split(t, [1]),
    "tile": lambda t: np.tile(t, (2, 1)),
    "dot": lambda t: np.dot(t, np.ones((3, 1), np.float32)),
    "partition": lambda t: np.partition(t, 1),
    "searchsorted": lambda t: np.searchsorted(t[0], 0.5),
    "choose": lambda t: np.choose([0, 1, 0], t),
    "percentile": lambda t: np.percentile(t, 50),
    "add": lambda t: np.ones((2, 3), np.float32) + np.asarray(t),
    "array_of": lambda t: np.array([t, t]),
    "float32": lambda t: np.float32(t[0, 0]),
}
NAMES = ("mean", "T", "reshape", "astype", "item", "no_such_name", "size", "asnumpy")


def described(value: Any) -> Any:
    """Return a result's type and values."""
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, [described(item) for item in value]]
    kind = f"{type(value).__module__}.{type(value).__name__}"
    return [kind, str(getattr(value, "dtype", "")), np.asarray(value).tolist()]


def outcome(function: Callable[[Any], Any], value: Any) -> Any:
    """Return what a function gives, or the error it raises."""
    try:
        return described(function(value))
    except Exception as error:
        return [type(error).__name__, str(error)]


def main(arguments: list[str]) -> None:
    import tensorflow as tf

    numpy_behaviour = tf.experimental.numpy.experimental_enable_numpy_behavior
    if "before" in arguments:
        numpy_behaviour()
    if "mixtrain" in arguments:
        import mixtrain

        assert "mixtrain" in mixtrain.__name__
    if "before" not in arguments:
        print("FOUND " + json.dumps(found_now(tf)))
        numpy_behaviour()
    print("FOUND " + json.dumps(found_now(tf)))


def found_now(tf: Any) -> dict[str, Any]:
    """Return what every function gives."""
    tensor = tf.constant([[0.5, -1.5, 2.5], [3.0, 1.0, -2.0]])
    found = {name: outcome(function, tensor) for name, function in FUNCTIONS.items()}
    # As TensorFlow's and Keras's own code asks: from a module of theirs.
    asking = {"__name__": "tensorflow.python.some_module"}
    for name in NAMES:
        ask = eval(f"lambda tensor: hasattr(tensor, {name!r}) and str(type(tensor.{name}))", asking)
        found[f"asked {name}"] = outcome(ask, tensor)
        missing = eval(f"lambda tensor: str(type(tensor.{name}))", asking)
        found[f"missing {name}"] = outcome(missing, tensor)
        found[f"class {name}"] = outcome(eval(f"lambda tensor: str(type(type(tensor).{name}))", asking), tensor)
    for name, function in {
        "half and float": lambda t: tf.cast(t, tf.float16) + t,
        "int and float": lambda t: tf.cast(t, tf.int32) * t,
        "int quotient": lambda t: tf.cast(t, tf.int32) / tf.constant(2),
        "bool product": lambda t: (t > 0) * t,
        "math": lambda t: tf.reduce_mean(t * 2 + 1),
        "own numpy": lambda t: tf.experimental.numpy.mean(t),
    }.items():
        found[name] = outcome(function, tensor)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
