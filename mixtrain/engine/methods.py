"""Methods given to the array library's tensors, seen by the people who use mixtrain and by no other library.

NumPy's functions ask whatever they are given for a method of their own name (``np.mean(t)`` looks for ``t.mean``), and
so do others. So each method is a descriptor that looks at who asks: to NumPy, TensorFlow, JAX, Keras and their like it
answers as the library's class without it would.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_OTHERS: Final = frozenset({
    "PIL", "albumentations", "cupy", "cv2", "dask", "h5py", "imageio", "jax", "jaxlib", "keras", "keras_cv",
    "keras_hub", "keras_nlp", "keras_tuner", "matplotlib", "ml_dtypes", "numba", "numpy", "onnx", "onnxruntime",
    "optree", "orbax", "pandas", "safetensors", "scipy", "seaborn", "skimage", "sklearn", "statsmodels",
    "tensorboard", "tensorflow", "tensorflow_addons", "tensorflow_datasets", "tensorflow_probability",
    "tf2onnx", "tf_keras", "torch", "torchvision", "transformers", "tree", "xarray",
})
_NOBODY: Final = "_mixtrain_missing"
_METHODS: dict[str, _Method] = {}


def _asks_for_itself(frame: types.FrameType) -> bool:
    """Say whether the code of a frame belongs to a library that must not see the methods."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _OTHERS


class _Method:
    """One method or property of every tensor."""

    def __init__(self, name: str, function: Callable[..., Any], *, is_property: bool) -> None:
        self.name = name
        self.function = function
        self.is_property = is_property

    def bound(self, instance: Any) -> Any:
        """Return what reading the attribute of a tensor gives."""
        return self.function(instance) if self.is_property else types.MethodType(self.function, instance)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if _asks_for_itself(sys._getframe(1)):
            raise self._missing(instance, owner)
        return self.function if instance is None else self.bound(instance)

    def _missing(self, instance: Any, owner: Any) -> AttributeError:
        """Return the error that Python raises where the attribute does not exist; the library may add its hint."""
        try:
            if instance is None:
                type.__getattribute__(owner, _NOBODY)
            object.__getattribute__(instance, _NOBODY)
        except AttributeError as error:
            text = str(error).replace(_NOBODY, self.name)
            return AttributeError(text, name=self.name, obj=owner if instance is None else instance)
        return AttributeError(self.name, name=self.name, obj=instance)


def install_methods(
    kinds: Sequence[type], methods: Mapping[str, Callable[..., Any]], properties: Mapping[str, Callable[[Any], Any]]
) -> None:
    """Give every tensor methods and properties; attributes that the first class has of its own are left as they are.

    Args:
        kinds: The classes of tensors; the first has all attributes that the library gives to tensors.
        methods: Functions by name; their first argument is the tensor.
        properties: Functions of the tensor by name.
    """
    for table, is_property in ((methods, False), (properties, True)):
        for name, function in table.items():
            method = _METHODS[name] = _Method(name, function, is_property=is_property)
            present = next((vars(kind)[name] for kind in kinds[0].__mro__ if name in vars(kind)), None)
            if present is None or isinstance(present, _Method):
                for kind in kinds:
                    setattr(kind, name, method)


def tensor_method(instance: Any, name: str) -> Any:
    """Return a tensor's method or property for something else that holds a value; call it from `__getattr__`.

    Raises:
        AttributeError: There is no such method, or a library asks that must not see it.
    """
    if name not in _METHODS or _asks_for_itself(sys._getframe(2)):
        raise AttributeError(f"'{type(instance).__name__}' object has no attribute '{name}'", name=name, obj=instance)
    return _METHODS[name].bound(instance)
