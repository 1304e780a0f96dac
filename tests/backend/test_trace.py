"""What is being compiled around some code, and code that a user's tf.function leaves as it is written."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend

ONE = backend.to_tensor(np.float32(1.0))


def test_nothing_is_being_compiled_outside() -> None:
    assert backend.traces() == ()
    assert not backend.is_tracing()


def test_traces_are_those_of_the_functions_around_it_innermost_first() -> None:
    seen: dict[str, tuple[Any, ...]] = {}

    def inner(x: Any) -> Any:
        assert backend.is_tracing()
        seen["inner"] = backend.traces()
        return -x

    called = backend.compile_once(inner, jit=False)

    def outer(x: Any) -> Any:
        seen["outer"] = backend.traces()
        result = called(x)
        assert backend.has_results(seen["inner"][0]) and not backend.has_results(seen["outer"][0])
        return result

    assert float(backend.compile_once(outer, jit=False)(ONE)) == -1.0
    assert [len(seen[name]) for name in ("outer", "inner")] == [1, 2]
    assert seen["inner"][1:] == seen["outer"]
    assert backend.has_results(seen["outer"][0])
    assert not backend.is_tracing() and backend.traces() == ()


def test_a_function_that_failed_has_no_results() -> None:
    seen: list[Any] = []

    def fails(x: Any) -> Any:
        seen.extend(backend.traces())
        raise KeyError("it fails")

    with pytest.raises(KeyError, match="it fails"):
        backend.compile_once(fails, jit=False)(ONE)
    assert not backend.has_results(seen[0])
    assert backend.traces() == ()


def test_what_is_outside_of_the_graph_has_values_and_no_traces() -> None:
    seen = []

    def run(x: Any) -> Any:
        with backend.eager_scope():
            seen.append((float(keras.ops.exp(backend.to_tensor(np.float32(0)))), backend.is_symbolic(ONE * 2.0)))
        return x

    backend.compile_once(run, jit=False)(ONE)
    assert set(seen) == {(1.0, False)}


@pytest.mark.tensorflow
def test_a_branch_is_a_trace_of_its_own() -> None:
    tf = pytest.importorskip("tensorflow")
    seen: dict[str, tuple[Any, ...]] = {}

    @tf.function(autograph=False)
    def function(x: Any) -> Any:
        seen["function"] = backend.traces()

        def branch() -> Any:
            seen["branch"] = backend.traces()
            return x

        return tf.cond(x > 0, branch, lambda: -x)

    function(tf.constant(1.0))
    assert [len(seen[name]) for name in ("function", "branch")] == [1, 2]
    assert seen["branch"][1:] == seen["function"]


@pytest.mark.tensorflow
def test_code_is_compiled_as_it_is_written_inside_a_function_that_tensorflow_rewrites() -> None:
    tf = pytest.importorskip("tensorflow")

    def rewritten(x: Any) -> Any:
        return 1 if x > 0 else 2

    assert int(tf.function(rewritten)(tf.constant(1.0))) == 1
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(backend.without_autograph(rewritten))(tf.constant(1.0))
