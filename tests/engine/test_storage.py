"""A variable's storage is exchanged under those who hold it, and Keras's names for it are where they were."""

from __future__ import annotations

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import engine


@pytest.mark.parametrize("kind", [keras.Variable, mixtrain.Parameter])
def test_a_variable_keeps_its_value_in_half_and_goes_back(kind: type) -> None:
    variable = kind(np.array([1.0, 1.0001], np.float32))
    full = engine.exchange_storage(variable, engine.storage_in(variable, mixtrain.float16))
    assert keras.backend.standardize_dtype(variable.dtype) == "float16"
    assert engine.to_numpy(variable).dtype == np.float16 and engine.to_numpy(variable).tolist() == [1.0, 1.0]
    variable.assign(np.array([3.0, 4.0], np.float32))
    variable.assign_add([1.0, 1.0])
    half = engine.exchange_storage(variable, full)
    assert engine.to_numpy(variable).tolist() == [1.0, np.float32(1.0001)]
    assert keras.backend.standardize_dtype(variable.dtype) == "float32"
    assert engine.read_storage(half).numpy().tolist() == [4.0, 5.0]


def test_what_a_compiled_call_traced_is_the_storage_of_then() -> None:
    variable = keras.Variable(np.ones(2, np.float32))
    read = engine.compile_once(lambda x: x + keras.ops.cast(variable, "float32"))
    assert read(np.zeros(2, np.float32)).numpy().tolist() == [1.0, 1.0]
    full = engine.exchange_storage(variable, engine.storage_in(variable, mixtrain.bfloat16))
    variable.assign([5.0, 5.0])
    assert read(np.zeros(2, np.float32)).numpy().tolist() == [1.0, 1.0]
    assert engine.read_storage(full).numpy().tolist() == [1.0, 1.0]
