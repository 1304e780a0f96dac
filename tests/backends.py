"""What tests for every backend share: ways to run a user's function, a gradient, fewer cases on JAX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import keras
import pytest

import mixtrain
from mixtrain import backend, boundary

ON_TENSORFLOW: Final = keras.backend.backend() == "tensorflow"
ON_KERAS_3_10: Final = keras.__version__.startswith("3.10.")  # The oldest that is declared, with JAX 0.8.


def on_gpu() -> bool:
    """Whether the backend computes on a GPU; asking starts it, before which processes join."""
    return backend.describe_device().kind == "GPU"


def _modes() -> dict[str, Callable[[Any], Any]]:
    """Return the ways to run a function of tensors that writes variables, by name.

    "compiled" is what users of the backend write: `tf.function`, or `mixtrain.jit` where variables need it.
    """
    eager = {"eager": lambda function: function}
    if not ON_TENSORFLOW:
        return eager | {"compiled": mixtrain.jit}
    import tensorflow as tf

    compiled, xla = tf.function(autograph=False), tf.function(autograph=False, jit_compile=True)
    return eager | {"compiled": compiled, "xla": xla, "jit": mixtrain.jit}


MODES: Final = _modes()
compiled: Final = MODES["compiled"]


def compiled_for_users(function: Callable[..., Any], *, xla: bool = False) -> Callable[..., Any]:
    """Return a user's function of Tensors as one compiled call of the backend's."""

    def run(*tensors: Any) -> Any:
        with boundary.in_mode("tensors"):
            return boundary.to_backend_tensors(function(*boundary.to_tensors(tensors)))

    compiled = backend.compile_function(run, choice=backend.JitChoice(xla, "test"))
    return lambda *tensors: boundary.to_tensors(compiled(*boundary.to_backend_tensors(tensors)))


# What TensorFlow's C++ libraries log, some of it before any level is read.
_LOGGED: Final = re.compile(
    r"[IWE]\d{4} .*|WARNING: All log messages before absl.*|To enable the following instructions.*"
)


def without_logs(text: str) -> list[str]:
    """Return the lines of a standard error that TensorFlow's C++ libraries did not log."""
    return [line for line in text.splitlines() if line.strip() and not _LOGGED.fullmatch(line)]


def on_jax_only_some(cases: Iterable[Any], some: Sequence[int] = (0,)) -> list[Any]:
    """Return all cases of a parametrised test, or on JAX, where each is compiled by XLA, those at a few places.

    Example:
        >>> len(on_jax_only_some(["a", "b", "c"])) in (1, 3)
        True
    """
    result = list(cases)
    return result if ON_TENSORFLOW else [result[place] for place in some]


def quick_only_some(cases: Iterable[Any], some: Sequence[int] = (0,)) -> list[Any]:
    """Return all cases of a parametrised test, all but those at a few places slow.

    Example:
        >>> [case.marks[0].name for case in quick_only_some(["a", "b"])[1:]]
        ['slow']
    """
    result = []
    for place, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        result.append(case if place in some else pytest.param(*values, marks=pytest.mark.slow))
    return result


def quick_every(count: int, first: int = 0) -> pytest.MarkDecorator:
    """Mark a parametrised test: of its rows, in their order, every `count`-th is quick, and the others are slow.

    With a count that shares no divisor with the numbers of values of the parameters, and enough rows, all values of
    each are among the quick rows. Where one row must do, `first` says which: of two feeds not always the first.

    Example:
        >>> quick_every(3).args
        (3, 0)
    """
    return pytest.mark.quick_every(count, first)


def held_as(dtype: str) -> str:
    """Return the format in which tensors of a format are held: JAX has 64 bits only in a mode of its own."""
    return mixtrain.Tensor(0, dtype).dtype.name


def gradient_of(loss: Callable[[], Any], *variables: Any) -> list[Any]:
    """Return the gradients of a loss with respect to variables."""
    return list(mixtrain.value_and_grad(loss, None, variables)()[1])
