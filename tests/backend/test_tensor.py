"""The backend's tensors: what they are, what is known of them and what is remembered with them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.backend import JitChoice
from tests.backends import ON_TENSORFLOW


def values(tensor: Any) -> Any:
    return backend.to_numpy(tensor).tolist()


def test_a_mask_that_keras_layers_read_stays_with_a_tensor_while_compiling() -> None:
    results: list[Any] = []

    def function(x: Any) -> Any:
        mask = keras.ops.greater(x, 0.0)
        assert backend.mask_of(x) is None
        backend.set_mask(x, mask)
        results.append(backend.mask_of(x) is mask)
        return x

    backend.compile_function(function, choice=JitChoice(False, "test"))(backend.to_tensor([[1.0, -1.0]]))
    assert results[-1]


def test_tensors_are_told_from_arrays_variables_and_numbers() -> None:
    tensor = backend.to_tensor(np.ones((2, 3), np.float16))
    assert backend.is_tensor(tensor) and backend.is_tensor(keras.KerasTensor((2,)))
    assert not any(map(backend.is_tensor, (np.ones(2), 1.0, keras.Variable([1.0]), None)))
    assert backend.byte_count(tensor) == 12
    assert [backend.bytes_of(dtype) for dtype in ("float16", "bfloat16", "float32", "int8", "bool")] == [2, 2, 4, 1, 1]


def test_a_value_is_known_outside_of_compiled_functions_only() -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        seen.extend([backend.is_symbolic(x), backend.known_value(x)])
        return x

    x = backend.to_tensor([1.0, 2.0])
    backend.compile_function(function, choice=JitChoice(False, "test"))(x)
    assert seen[:2] == [True, None]
    known = backend.known_value(x)
    assert not backend.is_symbolic(x) and known is not None and known.tolist() == [1.0, 2.0]
    assert backend.is_symbolic(keras.KerasTensor((2,)))


def test_bfloat16_is_read_as_float32_for_numpy_lacks_it() -> None:
    array = backend.to_numpy(backend.to_tensor([1.0, 1.00390625], "bfloat16"))
    assert array.dtype == np.float32 and array.tolist() == [1.0, 1.0]


def test_a_snapshot_keeps_the_value_that_later_assignments_replace() -> None:
    variable = keras.Variable([1.0, 2.0])
    before = backend.snapshot(variable)
    variable.assign([3.0, 4.0])
    add = backend.compile_function(lambda: variable.assign_add([1.0, 1.0]), choice=JitChoice(False, "test"))
    add()
    assert values(before) == [1.0, 2.0] and values(variable) == [4.0, 5.0]


def test_float64_is_float64_where_it_is_asked_for() -> None:
    with backend.double_precision():
        third = keras.ops.divide(keras.ops.cast(backend.to_tensor(np.float32(1)), "float64"), 3.0)
        assert keras.backend.standardize_dtype(third.dtype) == "float64"
        assert float(third) == 1 / 3
    assert keras.backend.standardize_dtype(backend.to_tensor(np.float64(1)).dtype) == (
        "float64" if ON_TENSORFLOW else "float32"
    )
