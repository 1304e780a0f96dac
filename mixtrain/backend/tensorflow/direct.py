"""A compiled function called at once: what TensorFlow looks up in each call is looked up once for each signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

# The quickest call of a traced function, and the function, which knows what it takes behind its arguments.
_Call = tuple[Callable[..., Any], Any]


class DirectCall:
    """A `tf.function` of tensors that returns a tuple of tensors, without most of its cost in Python.

    TensorFlow binds arguments to a signature, hashes types and searches its functions in each call, which takes longer
    than a small step. Calls that it must see, such as those inside another function, go its way.

    Args:
        compiled: The `tf.function`.

    Example:
        >>> double = DirectCall(tf.function(lambda x: (2 * x,), autograph=False))
        >>> [double(tf.constant(x))[0].numpy().item() for x in (1.0, 2.0, 3.0)]
        [2.0, 4.0, 6.0]
    """

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        # By signature; None where TensorFlow's own call is the quickest.
        self._calls: dict[Any, _Call | None] = {}

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        if not tf.executing_eagerly():
            return self.compiled(*args)
        try:
            signature = tuple([(value.dtype, value.shape) for value in args])
        except AttributeError:  # a column of several parts
            return self.compiled(*args)
        return self._called(signature, args, args)

    def of_iterator(self, iterator: Any, *args: Any) -> Any:
        """Call the function, which takes an iterator first."""
        held = tf.nest.flatten(iterator, expand_composites=True)
        return self._called(str(iterator.element_spec), (iterator, *args), (*held, *args))

    def experimental_get_tracing_count(self) -> int:
        """Return how often the function was traced, as a `tf.function` does."""
        return int(self.compiled.experimental_get_tracing_count())

    def _called(self, signature: Any, args: tuple[Any, ...], flat: tuple[Any, ...]) -> Any:
        """Call the function with arguments of a signature, which are given as they are and as tensors."""
        if signature not in self._calls:
            result = self.compiled(*args)
            self._calls[signature] = self._quickest(args, flat)
            return result
        found = self._calls[signature]
        if found is None:
            return self.compiled(*args)
        call, traced = found
        return tuple(call(*flat, *traced.captured_inputs))

    def _quickest(self, args: tuple[Any, ...], flat: tuple[Any, ...]) -> _Call | None:
        """Return the quickest call for arguments like some that the function was called with."""
        if not all(isinstance(value, tf.Tensor) for value in flat):
            return None
        traced = self.compiled.get_concrete_function(*args)
        results = traced.structured_outputs
        run = getattr(traced.inference_fn, "call_flat", None)
        plain = isinstance(results, tuple) and all(isinstance(value, tf.Tensor) for value in results)
        if run is None or not plain or len(results) != len(traced.outputs):
            return None
        return run, traced
