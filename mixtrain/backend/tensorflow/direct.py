"""Faster calls of compiled functions: TensorFlow's lookups of each call, cached for each signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

# The fastest call of a traced function, and the function, whose captured inputs follow its arguments.
_Call = tuple[Callable[..., Any], Any]


class DirectCall:
    """A `tf.function` of tensors that returns a tuple of tensors, without most of its overhead in Python.

    TensorFlow binds arguments to a signature, hashes types and searches its functions in each call, which takes longer
    than a small step. Calls inside another function are still made by TensorFlow.

    Args:
        compiled: The `tf.function`.

    Example:
        >>> double = DirectCall(tf.function(lambda x: (2 * x,), autograph=False))
        >>> [double(tf.constant(x))[0].numpy().item() for x in (1.0, 2.0, 3.0)]
        [2.0, 4.0, 6.0]
    """

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        # By signature; None if only TensorFlow's own call is possible.
        self._calls: dict[Any, _Call | None] = {}

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        if not tf.executing_eagerly():
            return self.compiled(*args)
        try:
            signature = tuple([(value.dtype, value.shape) for value in args])
        except AttributeError:  # A column of several parts.
            return self.compiled(*args)
        return self._call(signature, args, args)

    def of_iterator(self, iterator: Any, *args: Any) -> Any:
        """Call the function, which takes an iterator first."""
        resources = tf.nest.flatten(iterator, expand_composites=True)
        return self._call(str(iterator.element_spec), (iterator, *args), (*resources, *args))

    def experimental_get_tracing_count(self) -> int:
        """Return the number of traces, like a `tf.function`."""
        return int(self.compiled.experimental_get_tracing_count())

    def _call(self, signature: Any, args: tuple[Any, ...], flat: tuple[Any, ...]) -> Any:
        """Call the function with arguments of a signature, `flat` being the arguments as tensors."""
        if signature not in self._calls:
            result = self.compiled(*args)
            self._calls[signature] = self._fastest_call(args, flat)
            return result
        cached = self._calls[signature]
        if cached is None:
            return self.compiled(*args)
        call, traced = cached
        return tuple(call(*flat, *traced.captured_inputs))

    def _fastest_call(self, args: tuple[Any, ...], flat: tuple[Any, ...]) -> _Call | None:
        """Return the fastest call for the signature of arguments with which the function was called."""
        if not all(isinstance(value, tf.Tensor) for value in flat):
            return None
        traced = self.compiled.get_concrete_function(*args)
        results = traced.structured_outputs
        call = getattr(traced.inference_fn, "call_flat", None)
        is_flat = isinstance(results, tuple) and all(isinstance(value, tf.Tensor) for value in results)
        if call is None or not is_flat or len(results) != len(traced.outputs):
            return None
        return call, traced
