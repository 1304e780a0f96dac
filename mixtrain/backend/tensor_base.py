"""`TensorBase`, a Python object that stands for a backend tensor, with the protocols of NumPy, TensorFlow and JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

# JAX's tracers do not accept attributes, so Keras keeps their masks in a table, which has no public name;
# tests/backend/test_tensor.py fails if the name changes.
from keras.src.backend.common.masking import get_keras_mask, set_keras_mask

from mixtrain.typing import BackendTensor


class TensorBase:
    """An object that stands for a tensor of the backend.

    It supports the protocols of TensorFlow, JAX and NumPy, so `keras.ops`, Keras layers, losses and metrics, `tf.*`,
    `jnp.*` and NumPy functions accept it like a backend tensor.
    """

    __slots__ = ()
    # Operators of a NumPy array and a tensor are those of the tensor.
    __array_priority__ = 1000

    def backend_tensor(self) -> BackendTensor:
        """Return the backend tensor that this object stands for."""
        raise NotImplementedError

    # Hooks of its gradient, a function of the tuple of the gradient; None without hooks.
    gradient_hooks: Any = None

    @property
    def nhwc(self) -> BackendTensor | None:
        """The channels-last backend tensor that this one is a view of; None if it is not a view."""
        return None

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> BackendTensor:
        value = self.backend_tensor()
        return value if dtype is None or dtype == value.dtype else keras.ops.cast(value, dtype.name)

    def __tf_tracing_type__(self, context: Any) -> Any:
        # A `tf.function` treats it as the tensor that it stands for.
        return self.backend_tensor().__tf_tracing_type__(context)

    def __jax_array__(self) -> BackendTensor:
        return self.backend_tensor()

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        # NumPy, and JAX through it, accept only NumPy dtypes.
        return np.dtype(keras.backend.standardize_dtype(self.backend_tensor().dtype))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = np.asarray(self.backend_tensor())
        return array if dtype is None or array.dtype == dtype else array.astype(dtype)


class LayoutView(TensorBase):
    """Base of channels-first tensors that also have the channels-last backend tensor that they were made of."""

    __slots__ = ()


class _Public:
    """The conversion of backend tensors to public ones, and of channels-last ones to views."""

    load: Callable[[], Any] = staticmethod(lambda: None)
    make: Callable[[BackendTensor], Any] | None = None
    view: Callable[[BackendTensor], LayoutView]


def load_public_with(load: Callable[[], Any]) -> None:
    """Set the function that imports the class of public tensors when the first is made; the front door does."""
    _Public.load = staticmethod(load)


def wrap_with(make: Callable[[BackendTensor], Any]) -> None:
    """Set the function that converts backend tensors to public ones; `mixtrain.Tensor` sets itself."""
    _Public.make = staticmethod(make)


def public_tensor(value: BackendTensor) -> Any:
    """Convert a backend tensor, or a view of one, to a public tensor."""
    if _Public.make is None:
        _Public.load()
    return value if _Public.make is None else _Public.make(value)


def backend_value(value: Any) -> Any:
    """Return the backend tensor of a `TensorBase`, and any other value unchanged."""
    return value.backend_tensor() if isinstance(value, TensorBase) else value


def mask_of(tensor: Any) -> Any:
    """Return the Keras mask of a tensor; None without one."""
    return get_keras_mask(backend_value(tensor))


def set_mask(tensor: Any, mask: Any) -> None:
    """Set the Keras mask of a tensor."""
    set_keras_mask(backend_value(tensor), mask)


def make_views_with(make: Callable[[BackendTensor], LayoutView]) -> None:
    """Set the function that makes a channels-first view of a channels-last tensor; `ops` sets its class."""
    _Public.view = staticmethod(make)


def nhwc_of(tensor: Any) -> Any:
    """Return the channels-last tensor that a channels-first tensor is a view of; None if it is not a view."""
    return tensor.nhwc if isinstance(tensor, TensorBase) else None


def cast_keeping_layout(tensor: Any, dtype: str) -> Any:
    """Cast a tensor, for a view the channels-last tensor."""
    return tensor if tensor.dtype == dtype else on_layout(lambda x: keras.ops.cast(x, dtype), tensor)


def on_layout(function: Callable[[BackendTensor], BackendTensor], tensor: Any) -> Any:
    """Apply an elementwise function to a tensor, for a view to the channels-last tensor, which gives a view."""
    nhwc = nhwc_of(tensor)
    return function(backend_value(tensor)) if nhwc is None else _Public.view(function(nhwc))
