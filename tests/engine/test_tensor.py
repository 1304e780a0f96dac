"""The backend's tensors: what they are, what is known of them and what is remembered with them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from mixtrain import engine
from mixtrain.engine import JitChoice
from tests.engines import ON_TENSORFLOW


def values(tensor: Any) -> Any:
    return engine.to_numpy(tensor).tolist()


def test_a_mask_that_keras_layers_read_stays_with_a_tensor_while_compiling() -> None:
    found: list[Any] = []

    def function(x: Any) -> Any:
        mask = keras.ops.greater(x, 0.0)
        assert engine.mask_of(x) is None
        engine.give_mask(x, mask)
        found.append(engine.mask_of(x) is mask)
        return x

    engine.compile_function(function, choice=JitChoice(False, "test"))(engine.to_tensor([[1.0, -1.0]]))
    assert found[-1]


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
