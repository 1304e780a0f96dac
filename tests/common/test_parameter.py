"""Parameters and tensors: MindSpore's names on the backend's own objects, read in the dtype of the running cell."""

from __future__ import annotations

import copy
import threading
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Parameter, ParameterTuple, Tensor, backend
from mixtrain.ops.parameter_reads import parameters_read_as
from tests.backends import held_as


def weight(**options: Any) -> Parameter:
    return Parameter(np.arange(6, dtype=np.float32).reshape(2, 3), name="fc.weight", **options)


def test_a_parameter_has_mindspore_s_names() -> None:
    parameter = weight()
    assert (parameter.name, tuple(parameter.shape), parameter.dtype) == ("fc.weight", (2, 3), mixtrain.float32)
    assert parameter.requires_grad and parameter.data is parameter
    assert parameter.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert repr(parameter) == "Parameter (name=fc.weight, shape=(2, 3), dtype=Float32, requires_grad=True)"
    assert isinstance(parameter, Tensor) and isinstance(parameter, keras.Variable)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1.0, "float32"), ([1.0, 2.0], "float32"), (np.ones(2, np.float64), "float64"), (np.ones(2, np.int8), "int8"),
     (3, "int32"), (np.ones(2, np.float16), "float16")],
)
def test_the_format_is_that_of_the_value(value: Any, dtype: str) -> None:
    assert Parameter(value).dtype == held_as(dtype)


def test_requires_grad_can_be_changed_and_decides_what_is_trained() -> None:
    parameter = weight(requires_grad=False)
    assert not parameter.trainable
    parameter.requires_grad = True
    assert parameter.trainable
    with pytest.raises(TypeError, match="requires_grad must be True or False"):
        parameter.requires_grad = 1  # type: ignore[assignment]


def test_set_data_replaces_the_value_and_keeps_the_format() -> None:
    parameter = weight()
    assert parameter.set_data(np.ones((2, 3), np.float16)) is parameter
    assert parameter.dtype == mixtrain.float32 and parameter.asnumpy().sum() == 6


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (np.ones((3, 2), np.float32), ValueError, r"fc.weight: set_data: data must have shape \(2, 3\); got \(3, 2\)"),
        (1.0, ValueError, r"data must have shape \(2, 3\); got \(\)"),
    ],
)
def test_set_data_of_another_shape_is_refused_and_leaves_the_value(
    data: Any, error: type[Exception], message: str
) -> None:
    parameter = weight()
    with pytest.raises(error, match=message):
        parameter.set_data(data)
    assert parameter.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_floats_do_not_go_into_an_int_parameter() -> None:
    with pytest.raises(TypeError, match="data must be int32"):
        Parameter(np.zeros(2, np.int32), name="step").set_data(np.ones(2, np.float32))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_inside_a_casting_scope_a_parameter_is_read_in_its_format_and_stays_stored_in_its_own(dtype: str) -> None:
    parameter, count = weight(), Parameter(np.int32(3))
    with parameters_read_as(mixtrain.dtype.as_dtype(dtype)):
        assert parameter.dtype == dtype and parameter.stored_dtype == mixtrain.float32
        assert keras.ops.matmul(keras.ops.ones((1, 2), dtype), parameter).dtype == dtype
        assert count.dtype == mixtrain.int32
        with parameters_read_as(None):
            assert parameter.dtype == mixtrain.float32
    assert parameter.dtype == mixtrain.float32


def test_a_casting_scope_is_that_of_its_own_thread() -> None:
    parameter, seen = weight(), []
    with parameters_read_as(mixtrain.float16):
        thread = threading.Thread(target=lambda: seen.append(parameter.dtype))
        thread.start()
        thread.join()
    assert seen == [mixtrain.float32]


def test_the_gradient_of_a_parameter_read_in_half_is_float32() -> None:
    parameter = weight()

    def loss() -> tuple[Any, None]:
        with parameters_read_as(mixtrain.float16):
            return keras.ops.sum(parameter * 2), None

    gradient = backend.value_and_gradient(loss, [parameter])[2][0]
    assert gradient.dtype == mixtrain.float32 and backend.to_numpy(gradient).tolist() == [[2, 2, 2], [2, 2, 2]]


def test_clones_and_deep_copies_are_independent() -> None:
    parameter = weight()
    same, zeros, copied = parameter.clone(), parameter.clone("zeros"), copy.deepcopy(parameter)
    parameter.set_data(np.full((2, 3), 9, np.float32))
    assert same.asnumpy()[1, 2] == copied.asnumpy()[1, 2] == 5
    assert zeros.asnumpy().sum() == 0 and zeros.name == copied.name == "fc.weight"


def test_a_tuple_of_parameters_clones_with_a_prefix() -> None:
    slots = ParameterTuple([weight(), Parameter(1.0, name="b")]).clone("moments", "zeros")
    assert [slot.name for slot in slots] == ["moments.fc.weight", "moments.b"]
    assert all(slot.asnumpy().sum() == 0 for slot in slots)
    with pytest.raises(TypeError, match="each item must be a Variable"):
        ParameterTuple([1.0])


@pytest.mark.parametrize(
    ("arguments", "dtype"),
    [((1.5,), "float32"), (([1, 2],), "int64"), ((np.ones(2), "float16"), "float16"), ((True,), "bool"),
     ((np.float64(1),), "float64")],
)
def test_a_tensor_holds_the_backend_s(arguments: Any, dtype: str) -> None:
    tensor = Tensor(*arguments)
    assert type(tensor) is Tensor and type(tensor.backend_tensor()) is type(keras.ops.ones(1))
    assert tensor.dtype == held_as(dtype)
    assert not isinstance(np.ones(2), Tensor) and not isinstance(keras.ops.ones(2), Tensor)


def test_a_tensor_made_by_an_initializer_needs_a_shape() -> None:
    ones = mixtrain.common.initializer.One()
    assert Tensor(shape=(2,), init=ones, dtype="int32").asnumpy().tolist() == [1, 1]
    with pytest.raises(ValueError, match="init needs a shape"):
        Tensor(init=ones)
    with pytest.raises(TypeError, match="input_data must be given"):
        Tensor()
    with pytest.raises(TypeError, match="init must be a Initializer"):
        Tensor(shape=(2,), init="ones")  # type: ignore[arg-type]


def test_a_compiled_function_may_return_a_tuple_of_parameters() -> None:
    pair = ParameterTuple([Parameter(np.ones(2, np.float32), name="a"), Parameter(np.zeros(1, np.float32), name="b")])

    class Net(mixtrain.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.pair = pair

        def construct(self, x: Any) -> Any:
            return x, self.pair

    _, values = mixtrain.jit(Net())(Tensor(1.0))
    assert [value.asnumpy().tolist() for value in values] == [[1.0, 1.0], [0.0]]


def test_value_is_called_as_in_mindspore_and_read_as_in_keras() -> None:
    weight = mixtrain.Parameter(np.array([1.0, 2.0], np.float32), name="weight")
    assert isinstance(weight.value(), mixtrain.Tensor) and weight.value().asnumpy().tolist() == [1.0, 2.0]
    assert (weight.value() * 2).asnumpy().tolist() == (weight.value * 2).asnumpy().tolist() == [2.0, 4.0]
    assert backend.is_tensor(keras.ops.add(weight, 1.0)) and keras.ops.add(weight, 1.0).shape == (2,)


def test_value_is_called_inside_construct_and_has_a_gradient() -> None:
    class Scale(mixtrain.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.factor = mixtrain.Parameter(np.array([2.0], np.float32), name="factor")

        def construct(self, x: mixtrain.Tensor) -> mixtrain.Tensor:
            return x * self.factor.value() + self.factor.value

    net, x = Scale(), mixtrain.Tensor([3.0])
    value, (gradient,) = mixtrain.value_and_grad(net, None, net.trainable_params())(x)
    assert value.asnumpy().tolist() == mixtrain.jit(net)(x).asnumpy().tolist() == [8.0]
    assert gradient.asnumpy().tolist() == [4.0]
