"""Methods given to the array library's tensors, seen by the people who use mixtrain and by no other library.

NumPy's functions ask whatever they are given for a method of their own name (``np.mean(t)`` looks for ``t.mean``), and
so do others. So each method is a descriptor that looks at who asks: to NumPy, TensorFlow, JAX, Keras and their like it
answers as the library's class without it would. A method that this class has too is ours only where mixtrain's names
are in use: to a module that has none of them it stays what it was.
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
_US: Final = __name__.partition(".")[0]
_METHODS: dict[str, _Method] = {}
# By a module's name: its names, how many they were, and whether any was ours.
_asked: dict[str, tuple[dict[str, Any], int, bool]] = {}


def is_of_library(frame: types.FrameType) -> bool:
    """Say whether the code of a frame belongs to a library that must not see what users of mixtrain see."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _OTHERS


def _uses_our_names(frame: types.FrameType) -> bool:
    """Say whether the code of a frame belongs to a module, not one of ours, that has imported something of ours."""
    names = frame.f_globals
    name = str(names.get("__name__", ""))
    if name.partition(".")[0] == _US:
        return False
    known, count, found = _asked.get(name, (None, 0, False))
    if known is not names or count != len(names):
        found = any(_origin(value).partition(".")[0] == _US for value in list(names.values()))
        _asked[name] = names, len(names), found
    return found


def _origin(value: Any) -> str:
    """Return the name of the module that a value is, or that defines it or its class."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    return str((value if isinstance(value, (type, types.FunctionType)) else type(value)).__module__)


class _Method:
    """One method or property of every tensor.

    Args:
        name: Its name.
        function: What it does, with the tensor first.
        is_property: Whether reading it calls the function.
        own: What the library's class has under this name; None where it has nothing.
    """

    def __init__(self, name: str, function: Callable[..., Any], *, is_property: bool, own: Any = None) -> None:
        self.name = name
        self.function = function
        self.is_property = is_property
        self.own = own

    def bound(self, instance: Any) -> Any:
        """Return what reading the attribute of a tensor gives."""
        return self.function(instance) if self.is_property else types.MethodType(self.function, instance)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        frame = sys._getframe(1)
        if self.own is not None:
            if is_of_library(frame) or not _uses_our_names(frame):
                return self.own.__get__(instance, owner)
        elif is_of_library(frame):
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
    """Give every tensor methods and properties; properties that the library gives to tensors are left as they are.

    Args:
        kinds: The classes of tensors.
        methods: Functions by name; their first argument is the tensor.
        properties: Functions of the tensor by name.
    """
    for table, is_property in ((methods, False), (properties, True)):
        for name, function in table.items():
            _METHODS[name] = _Method(name, function, is_property=is_property)
            for kind in kinds:
                own = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
                own = own.own if isinstance(own, _Method) else own
                if own is None or not is_property:
                    setattr(kind, name, _Method(name, function, is_property=is_property, own=own))


def tensor_method(instance: Any, name: str) -> Any:
    """Return a tensor's method or property for something else that holds a value; call it from `__getattr__`.

    Raises:
        AttributeError: There is no such method, or a library asks that must not see it.
    """
    if name not in _METHODS or is_of_library(sys._getframe(2)):
        raise AttributeError(f"'{type(instance).__name__}' object has no attribute '{name}'", name=name, obj=instance)
    return _METHODS[name].bound(instance)
