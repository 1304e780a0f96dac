"""Operations are observed with the line of the user's code that called them, in values and gradients."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend

ops = keras.ops


def inner(function: Callable[[], Any]) -> Any:
    return function()


INSIDE: Final[types.CodeType] = inner.__code__


def compiled(run: Callable[[], Any]) -> Any:
    """Return the results of a function of no tensors; where eager operations are compiled, all are in one program."""
    if not backend.EAGER_COMPILES:
        return run()
    return backend.compile_function(run, choice=backend.JitChoice(True, "test"))()


def test_operations_inside_have_the_line_of_the_user() -> None:
    x = backend.to_tensor(np.array([1.0, 100.0], np.float32))
    seen: list[backend.Operation] = []

    def computed() -> Any:
        large = ops.exp(x)
        return large / ops.sum(large)

    def run() -> Any:
        result, seen[:] = backend.run_operations(lambda: inner(computed) + ops.sqrt(x), INSIDE)
        return result

    assert not np.isfinite(backend.to_numpy(compiled(run))[1])
    names = [(operation.name.lower(), (operation.line or "").partition(" ")[2]) for operation in seen]
    assert names[0] == ("exp", "(large = ops.exp(x))")
    assert names[-1][1] == "(return large / ops.sum(large))"
    assert not any("sqrt" in name for name, _ in names)
    assert seen[0].outputs[0] is seen[-1].inputs[0]


def test_a_variable_that_is_written_inside_has_its_new_value() -> None:
    variable = keras.Variable(1.0)

    def run() -> Any:
        return backend.run_operations(lambda: inner(lambda: variable.assign(variable * 3.0)), INSIDE)[0]

    compiled(run)
    assert float(variable) == 3.0


def test_the_operation_whose_derivative_is_not_finite_is_told_from_those_around_it() -> None:
    x = keras.Variable([0.0, 4.0])
    seen: list[backend.Operation] = []

    def computed() -> Any:
        y = x * 1.0
        root = ops.sqrt(ops.abs(y))
        return ops.sum(root + y)

    def run() -> Any:
        seen[:], flags = backend.finite_gradients(lambda: inner(computed), 1.0, INSIDE)
        return flags

    flags = backend.to_numpy(compiled(run)).tolist()
    lines = [operation.line or "" for operation, flag in zip(seen, flags, strict=True) if flag == [True, False]]
    # TensorFlow counts the sum as well, which has y as an input.
    assert lines[0].partition(" ")[2] == "(root = ops.sqrt(ops.abs(y)))"
