"""Prints what NumPy and the array library make of its tensors, as JSON; `mixtrain` as an argument imports it first.

The library is Keras's backend. With TensorFlow it prints twice: as it is, and once more with TensorFlow's own NumPy
behaviour switched on. With the argument `before` that is switched on before the import, and it prints once.
"""

from __future__ import annotations

import json
import os
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
VALUES = np.array([[0.5, -1.5, 2.5], [3.0, 1.0, -2.0]], np.float32)
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
    if os.environ.get("KERAS_BACKEND") == "jax":
        _print_found(arguments, found_in_jax)
        return
    import tensorflow as tf

    numpy_behaviour = tf.experimental.numpy.experimental_enable_numpy_behavior
    if "before" in arguments:
        numpy_behaviour()
    _print_found(arguments, found_in_tensorflow)
    if "before" not in arguments:
        numpy_behaviour()
        _print_found([], found_in_tensorflow)


def _print_found(arguments: list[str], found: Callable[[], dict[str, Any]]) -> None:
    if "mixtrain" in arguments:
        import mixtrain

        assert "mixtrain" in mixtrain.__name__
    print("FOUND " + json.dumps(found()))


def found_in_tensorflow() -> dict[str, Any]:
    """Return what every function gives for a tensor of TensorFlow."""
    import tensorflow as tf

    return found_for(tf.constant(VALUES), "tensorflow.python.some_module", {
        "half and float": lambda t: tf.cast(t, tf.float16) + t,
        "int and float": lambda t: tf.cast(t, tf.int32) * t,
        "int quotient": lambda t: tf.cast(t, tf.int32) / tf.constant(2),
        "bool product": lambda t: (t > 0) * t,
        "math": lambda t: tf.reduce_mean(t * 2 + 1),
        "own numpy": lambda t: tf.experimental.numpy.mean(t),
    })


def found_in_jax() -> dict[str, Any]:
    """Return what every function, and every method that JAX has too, gives for an array of JAX."""
    import jax
    import jax.numpy as jnp

    methods: dict[str, Callable[[Any], Any]] = {
        "method sort": lambda t: t.sort(),
        "method max": lambda t: t.max(1),
        "method nonzero": lambda t: t.nonzero(size=6),
        "method repeat": lambda t: t.repeat(2),
        "method std": lambda t: t.std(),
        "method mean": lambda t: t.mean(axis=0, keepdims=True),
        "method view": lambda t: t.view("int32"),
        "method flatten": lambda t: t.flatten("C"),
        "method argsort": lambda t: t.argsort(stable=False),
        "method of the class": lambda t: type(t).sort(t),
    }
    compiled = {f"compiled {name}": jax.jit(method) for name, method in methods.items()}
    functions = {"half and float": lambda t: t.astype(jnp.float16) + t, "own numpy": lambda t: jnp.sort(t).mean()}
    return found_for(jnp.asarray(VALUES), "jax._src.some_module", methods | compiled | functions)


def found_for(tensor: Any, module: str, functions: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Return what NumPy's functions, others, and questions of a module of the library's give."""
    found = {name: outcome(function, tensor) for name, function in (FUNCTIONS | functions).items()}
    asking = {"__name__": module}
    for name in NAMES:
        ask = eval(f"lambda tensor: hasattr(tensor, {name!r}) and str(type(tensor.{name}))", asking)
        found[f"asked {name}"] = outcome(ask, tensor)
        missing = eval(f"lambda tensor: str(type(tensor.{name}))", asking)
        found[f"missing {name}"] = outcome(missing, tensor)
        found[f"class {name}"] = outcome(eval(f"lambda tensor: str(type(type(tensor).{name}))", asking), tensor)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
