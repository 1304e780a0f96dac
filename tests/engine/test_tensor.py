"""The engine's tensors: what they are, what reads them, and the hooks that their classes were given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import engine
from mixtrain.engine import JitChoice
from tests.engines import ON_TENSORFLOW


def values(tensor: Any) -> Any:
    return engine.to_numpy(tensor).tolist()


def test_what_users_compute_with_is_of_the_classes_that_were_given_operators_and_methods() -> None:
    # On JAX the class of arrays has no public name: this fails where it is another than the one that was changed.
    kinds = []

    def function(x: Any) -> Any:
        kinds.append(type(x))
        return x.abs()

    eager = keras.ops.add(keras.ops.ones(2), -3.0)
    assert values(engine.compile_function(function, choice=JitChoice(False, "test"))(eager)) == [2.0, 2.0]
    assert values(eager.abs()) == [2.0, 2.0]
    for kind in (type(eager), *kinds):
        assert kind.__add__.__code__.co_filename.startswith(engine.__path__[0])


@pytest.fixture
def asked() -> Iterator[list[tuple[str, Any]]]:
    """Let a rule double the other operand of sums, and note what it is asked."""
    found: list[tuple[str, Any]] = []

    def rule(name: str, tensor: Any, other: Any) -> tuple[Any, Any] | None:
        found.append((name, other))
        return (tensor, 2 * other) if name in ("__add__", "__radd__") and isinstance(other, float) else None

    engine.set_operator_rule(rule)
    yield found
    engine.set_operator_rule(None)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_rule_is_asked_for_each_operator_and_changes_its_operands(
    compiled: bool, asked: list[tuple[str, Any]]
) -> None:
    def function(x: Any) -> Any:
        return (3.0 + (x + 1.0)) * 2.0

    run = engine.compile_function(function, choice=JitChoice(False, "test")) if compiled else function
    assert values(run(engine.to_tensor([1.0, -1.0]))) == [(1 + 2 + 6) * 2, (-1 + 2 + 6) * 2]
    assert [name for name, _ in asked] == ["__add__", "__radd__", "__mul__"]
    engine.set_operator_rule(None)
    assert values(engine.to_tensor([1.0]) + 1.0) == [2.0]
    assert len(asked) == 3


def test_tensors_are_told_from_arrays_variables_and_numbers() -> None:
    tensor = engine.to_tensor(np.ones((2, 3), np.float16))
    assert engine.is_tensor(tensor) and engine.is_tensor(keras.KerasTensor((2,)))
    assert not any(map(engine.is_tensor, (np.ones(2), 1.0, keras.Variable([1.0]), None)))
    assert engine.byte_count(tensor) == 12
    assert [engine.bytes_of(dtype) for dtype in ("float16", "bfloat16", "float32", "int8", "bool")] == [2, 2, 4, 1, 1]


def test_a_value_is_known_outside_of_compiled_functions_only() -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        seen.extend([engine.is_symbolic(x), engine.known_value(x)])
        return x

    x = engine.to_tensor([1.0, 2.0])
    engine.compile_function(function, choice=JitChoice(False, "test"))(x)
    assert seen[:2] == [True, None]
    known = engine.known_value(x)
    assert not engine.is_symbolic(x) and known is not None and known.tolist() == [1.0, 2.0]
    assert engine.is_symbolic(keras.KerasTensor((2,)))


def test_bfloat16_is_read_as_float32_for_numpy_lacks_it() -> None:
    array = engine.to_numpy(engine.to_tensor([1.0, 1.00390625], "bfloat16"))
    assert array.dtype == np.float32 and array.tolist() == [1.0, 1.0]


def test_a_snapshot_keeps_the_value_that_later_assignments_replace() -> None:
    variable = keras.Variable([1.0, 2.0])
    before = engine.snapshot(variable)
    variable.assign([3.0, 4.0])
    add = engine.compile_function(lambda: variable.assign_add([1.0, 1.0]), choice=JitChoice(False, "test"))
    add()
    assert values(before) == [1.0, 2.0] and values(variable) == [4.0, 5.0]


def test_float64_is_float64_where_it_is_asked_for() -> None:
    with engine.double_precision():
        third = keras.ops.divide(keras.ops.cast(engine.to_tensor(np.float32(1)), "float64"), 3.0)
        assert keras.backend.standardize_dtype(third.dtype) == "float64"
        assert float(third) == 1 / 3
    assert keras.backend.standardize_dtype(engine.to_tensor(np.float64(1)).dtype) == (
        "float64" if ON_TENSORFLOW else "float32"
    )
