"""What is being compiled around some code, and code that a user's tf.function leaves as it is written."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from mixtrain import engine


def test_nothing_is_being_compiled_outside() -> None:
    assert engine.traces() == ()


def test_traces_are_those_of_a_branch_and_of_the_functions_around_it_innermost_first() -> None:
    seen: dict[str, tuple[Any, ...]] = {}

    @tf.function(autograph=False)
    def inner(x: Any) -> Any:
        seen["inner"] = engine.traces()

        def branch() -> Any:
            seen["branch"] = engine.traces()
            return x

        return tf.cond(x > 0, branch, lambda: -x)

    @tf.function(autograph=False)
    def outer(x: Any) -> Any:
        seen["outer"] = engine.traces()
        result = inner(x)
        assert engine.has_results(seen["inner"][0]) and not engine.has_results(seen["outer"][0])
        return result

    outer(tf.constant(1.0))
    assert [len(seen[name]) for name in ("outer", "inner", "branch")] == [1, 2, 3]
    assert seen["branch"][1:] == seen["inner"] and seen["inner"][1:] == seen["outer"]
    assert engine.has_results(seen["outer"][0])


def test_a_function_that_failed_has_no_results() -> None:
    seen: list[Any] = []

    @tf.function(autograph=False)
    def fails(x: Any) -> Any:
        seen.extend(engine.traces())
        raise KeyError(x)

    with pytest.raises(KeyError):
        fails(tf.constant(1.0))
    assert not engine.has_results(seen[0])


def test_code_is_compiled_as_it_is_written_inside_a_function_that_tensorflow_rewrites() -> None:
    def rewritten(x: Any) -> Any:
        return 1 if x > 0 else 2

    assert int(tf.function(rewritten)(tf.constant(1.0))) == 1
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(engine.as_written(rewritten))(tf.constant(1.0))
