"""What a library could change in a process: classes and functions of other libraries, global settings, streams."""

from __future__ import annotations

import builtins
import inspect
import logging
import os
import random
import signal
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

# A recording: what was looked at by name, and whether two values are compared by identity.
State = dict[str, Any]
_MISSING = object()


class Same:
    """A value that is compared by identity, and kept alive so that nothing else can have its place in memory."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        name = getattr(self.value, "__qualname__", type(self.value).__qualname__)
        return f"{getattr(self.value, '__module__', '')}.{name} at {id(self.value):#x}"


def _with_subclasses(*classes: type) -> list[type]:
    found = dict.fromkeys(classes)
    for one in classes:
        found |= dict.fromkeys(_with_subclasses(*type.__subclasses__(one)))
    return list(found)


def tensor_classes() -> list[type]:
    """Return the classes of tensors, arrays, tracers and variables with their bases and subclasses."""
    found = _with_subclasses(keras.Variable, keras.KerasTensor, keras.Operation)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        eager = type(tf.constant(0.0))
        symbols: list[type] = []
        tf.function(lambda x: symbols.append(type(x)), autograph=False)(tf.constant(0.0))
        found += _with_subclasses(tf.Tensor, eager, *symbols, type(tf.Variable(0.0)), tf.Variable)
    else:
        import jax

        tracers: list[type] = []
        jax.jit(lambda x: tracers.append(type(x)))(1.0)
        jax.grad(lambda x: tracers.append(type(x)) or x)(1.0)
        found += _with_subclasses(jax.Array, type(jax.numpy.zeros(())), jax.core.Tracer, *tracers)
    bases = [base for one in found for base in one.__mro__ if base is not object]
    return list(dict.fromkeys([*found, *bases, np.ndarray, np.generic]))


def _library_of(name: str) -> str:
    return name.partition(".")[0]


def _functions_of_modules(modules: dict[str, types.ModuleType]) -> Iterator[tuple[str, Any]]:
    for path, module in modules.items():
        for name, value in list(vars(module).items()):
            if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
                yield f"{path}.{name}", Same(value)


class Recorder:
    """Records the state of a process; what it looks at is fixed when it is made."""

    def __init__(self) -> None:
        self.classes = tensor_classes()
        libraries = ("keras", "tensorflow", "jax", "numpy")
        self.modules = {
            name: module
            for name, module in sys.modules.items()
            if _library_of(name) in libraries and isinstance(module, types.ModuleType)
        }
        self.keras_classes = [
            value
            for name, module in self.modules.items()
            if _library_of(name) == "keras"
            for value in vars(module).values()
            if inspect.isclass(value) and value.__module__.startswith("keras")
        ]
        for one in (*self.classes, *self.keras_classes):
            getattr(one, "__annotations__", None)  # Python stores an empty dict at the first look.

    def state(self) -> State:
        """Return the state of the process, without that of random generators."""
        found: State = {}
        for one in dict.fromkeys([*self.classes, *self.keras_classes]):
            for name, value in vars(one).items():
                found[f"class {one.__module__}.{one.__qualname__}.{name}"] = Same(value)
        found |= {f"function {name}": value for name, value in _functions_of_modules(self.modules)}
        found |= {f"builtins.{name}": Same(value) for name, value in vars(builtins).items() if name != "_"}
        return found | process_settings() | library_settings()


def process_settings() -> State:
    """Return environment, streams, warnings, logging, hooks and signals."""
    found: State = {f"os.environ[{name}]": value for name, value in os.environ.items()}
    found |= {f"sys.{name}": Same(getattr(sys, name)) for name in ("stdin", "stdout", "stderr")}
    found |= {f"file descriptor {number}": _file(number) for number in (1, 2)}
    found |= {
        "warnings.filters": list(warnings.filters),
        "warnings.showwarning": Same(warnings.showwarning),
        "logging.root.handlers": list(logging.root.handlers),
        "logging.root.level": logging.root.level,
        "logging.root.filters": list(logging.root.filters),
        "sys.excepthook": Same(sys.excepthook),
        "sys.displayhook": Same(sys.displayhook),
        "threading.excepthook": Same(threading.excepthook),
        "sys.meta_path": list(sys.meta_path),
        "sys.path": list(sys.path),
        "sys.path_hooks": list(sys.path_hooks),
        "sys.gettrace": sys.gettrace(),
        "sys.getprofile": sys.getprofile(),
        "sys.getrecursionlimit": sys.getrecursionlimit(),
        "np.geterr": np.geterr(),
        "np.get_printoptions": np.get_printoptions(),
        "os.getcwd": os.getcwd(),
    }
    found |= {
        f"signal {number.name}": signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1)
    }
    return found


def _file(number: int) -> tuple[int, int, int]:
    status = os.fstat(number)
    return status.st_dev, status.st_ino, status.st_mode


def library_settings() -> State:
    """Return the global settings of Keras and of its backend."""
    found: State = {
        "keras.config.dtype_policy": keras.config.dtype_policy().name,
        "keras.config.floatx": keras.config.floatx(),
        "keras.config.epsilon": keras.config.epsilon(),
        "keras.config.backend": keras.config.backend(),
        "keras.config.image_data_format": keras.config.image_data_format(),
        "keras.config.is_interactive_logging_enabled": keras.config.is_interactive_logging_enabled(),
        "keras.config.is_traceback_filtering_enabled": keras.config.is_traceback_filtering_enabled(),
        "keras.config.is_flash_attention_enabled": keras.config.is_flash_attention_enabled(),
        "keras.distribution.distribution": keras.distribution.distribution(),
    }
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        found |= {
            "tf.config inter_op_parallelism_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "tf.config intra_op_parallelism_threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "tf.config optimizer_options": tf.config.optimizer.get_experimental_options(),
            "tf.config optimizer_jit": tf.config.optimizer.get_jit(),
            "tf.config soft_device_placement": tf.config.get_soft_device_placement(),
            "tf.config tensor_float_32": tf.config.experimental.tensor_float_32_execution_enabled(),
            "tf.config functions_run_eagerly": tf.config.functions_run_eagerly(),
            "tf.config visible_devices": tf.config.get_visible_devices(),
            "tf log level": tf.get_logger().level,
            "tf log handlers": list(tf.get_logger().handlers),
            "tf executing_eagerly": tf.executing_eagerly(),
        }
    else:
        import jax

        found |= {f"jax.config.{name}": value for name, value in jax.config.values.items()}
    return found


def random_states() -> State:
    """Return the states of Python's and NumPy's global random generators."""
    return {"random.getstate": random.getstate(), "np.random.get_state": str(np.random.get_state())}


def differences(before: State, after: State) -> list[str]:
    """Return what differs, one line for each name."""
    found = []
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name, _MISSING), after.get(name, _MISSING)
        if one is _MISSING:
            found.append(f"{name}: new, {_short(other)}")
        elif other is _MISSING:
            found.append(f"{name}: gone, was {_short(one)}")
        elif one != other:
            found.append(f"{name}: was {_short(one)}, is {_short(other)}")
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
