"""`TensorBase`: a Python object that stands for a backend tensor, and the protocols by which libraries read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np


class TensorBase:
    """An object that stands for a tensor of the backend.

    TensorFlow, JAX and NumPy read it by protocols of their own, so it goes into `keras.ops`, Keras layers, losses and
    metrics, `tf.*`, `jnp.*` and NumPy functions as a backend tensor does.
    """

    __slots__ = ()
    # NumPy's arrays leave an operator beside a tensor to the tensor.
    __array_priority__ = 1000

    def backend_tensor(self) -> Any:
        """Return the backend tensor that this object stands for."""
        raise NotImplementedError

    # Hooks of its gradient, a function of the tuple of it alone; None for none.
    gradient_hooks: Any = None

    @property
    def nhwc(self) -> Any:
        """The channels-last backend tensor that this one is a view of; None where there is none."""
        return None

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        value = self.backend_tensor()
        return value if dtype is None or dtype == value.dtype else keras.ops.cast(value, dtype.name)

    def __tf_tracing_type__(self, context: Any) -> Any:
        # To a `tf.function` it is the tensor that it stands for.
        return self.backend_tensor().__tf_tracing_type__(context)

    def __jax_array__(self) -> Any:
        return self.backend_tensor()

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        # NumPy, and JAX by it, take no `dtype` that is not NumPy's own.
        return np.dtype(keras.backend.standardize_dtype(self.backend_tensor().dtype))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = np.asarray(self.backend_tensor())
        return array if dtype is None or array.dtype == dtype else array.astype(dtype)


class _Public:
    """What users see backend tensors as."""

    make: Callable[[Any], Any] = staticmethod(lambda value: value)


def wrap_with(make: Callable[[Any], Any]) -> None:
    """Show backend tensors to users by a function from here on; `mixtrain.Tensor` says this of itself."""
    _Public.make = staticmethod(make)


def public_tensor(value: Any) -> Any:
    """Return a backend tensor, or a view of one, as users see it."""
    return _Public.make(value)


def backend_value(value: Any) -> Any:
    """Return the backend tensor that `value` stands for; `value` itself where it is not a `TensorBase`."""
    return value.backend_tensor() if isinstance(value, TensorBase) else value
