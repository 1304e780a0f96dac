"""A variable's storage is exchanged under those who hold it, and Keras's names for it are where they were."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend
from mixtrain.backend import JitChoice
from tests.backends import ON_TENSORFLOW


@pytest.mark.parametrize("kind", [keras.Variable, mixtrain.Parameter])
def test_a_variable_keeps_its_value_in_half_and_goes_back(kind: type) -> None:
    variable = kind(np.array([1.0, 1.0001], np.float32))
    full = backend.exchange_storage(variable, backend.storage_in(variable, mixtrain.float16))
    assert keras.backend.standardize_dtype(variable.dtype) == "float16"
    assert backend.to_numpy(variable).dtype == np.float16 and backend.to_numpy(variable).tolist() == [1.0, 1.0]
    variable.assign(np.array([3.0, 4.0], np.float32))
    variable.assign_add([1.0, 1.0])
    half = backend.exchange_storage(variable, full)
    assert backend.to_numpy(variable).tolist() == [1.0, np.float32(1.0001)]
    assert keras.backend.standardize_dtype(variable.dtype) == "float32"
    assert backend.to_numpy(backend.read_storage(half)).tolist() == [4.0, 5.0]


def test_the_storage_that_is_put_aside_keeps_its_value_whatever_a_compiled_call_reads() -> None:
    variable = keras.Variable(np.ones(2, np.float32))
    read = backend.compile_once(lambda x: x + keras.ops.cast(variable, "float32"))
    zeros = backend.to_tensor(np.zeros(2, np.float32))
    assert backend.to_numpy(read(zeros)).tolist() == [1.0, 1.0]
    full = backend.exchange_storage(variable, backend.storage_in(variable, mixtrain.bfloat16))
    variable.assign([5.0, 5.0])
    # TensorFlow's compiled call holds the storage it was traced with; JAX's is handed what the variable holds.
    assert backend.to_numpy(read(zeros)).tolist() == ([1.0, 1.0] if ON_TENSORFLOW else [5.0, 5.0])
    assert backend.to_numpy(backend.read_storage(full)).tolist() == [1.0, 1.0]


def test_storage_is_exchanged_in_the_middle_of_a_compiled_call() -> None:
    """As an update of float32 copies does: shown, written, and put back in half."""
    variable = keras.Variable(np.array([1.0, 2.0], np.float32))
    full = backend.exchange_storage(variable, backend.storage_in(variable, mixtrain.float16))

    def update(x: Any) -> Any:
        half = backend.exchange_storage(variable, full)
        variable.assign_add(x)
        value = backend.snapshot(variable)
        again = backend.exchange_storage(variable, half)
        assert again is full
        variable.assign(keras.ops.cast(value, "float16"))
        return value

    compiled = backend.compile_function(update, choice=JitChoice(False, "a test"))
    for step in (1, 2):
        value = compiled(backend.to_tensor(np.full(2, 2.0**-13, np.float32)))
        assert backend.to_numpy(value).tolist() == [1 + step * 2.0**-13, 2 + step * 2.0**-13]
    assert backend.to_numpy(variable).tolist() == [1.0, 2.0]
    assert backend.to_numpy(backend.read_storage(full)).tolist() == [1 + 2.0**-12, 2 + 2.0**-12]


def test_a_value_is_stored_as_it_is() -> None:
    variable = keras.Variable(np.array([1.0, 2.0], np.float32))
    backend.store(variable, backend.to_tensor(np.array([3.0, 4.0], np.float32)))
    assert backend.to_numpy(variable).tolist() == [3.0, 4.0]


def test_an_optimizer_of_keras_knows_a_variable_by_its_storage_in_another_dtype() -> None:
    variable = keras.Variable(np.array([1.0, 2.0], np.float32))
    optimizer = keras.optimizers.SGD(0.5)
    optimizer.build([variable])
    full = backend.exchange_storage(variable, backend.storage_in(variable, mixtrain.bfloat16))
    optimizer.apply([backend.to_tensor(np.ones(2, np.float32))], [variable])
    assert backend.to_numpy(variable).astype(np.float32).tolist() == [0.5, 1.5]
    backend.exchange_storage(variable, full)
    assert backend.to_numpy(variable).tolist() == [1.0, 2.0]
