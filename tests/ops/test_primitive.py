"""Primitives: objects that compute, show their settings, and can be attributes and activations of cells."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import nn, ops
from mixtrain.ops.primitive import Primitive, primitive

EXPORTED = [getattr(ops, name) for name in ops.__all__]
CLASSES = [value for value in EXPORTED if isinstance(value, type) and issubclass(value, Primitive)]


def test_a_primitive_computes_its_function() -> None:
    assert ops.Add()(ms.Tensor([1.0]), 2).asnumpy().tolist() == [3.0]


def test_a_primitive_shows_its_name_and_settings() -> None:
    assert repr(ops.Add()) == "Prim[Add]"
    assert repr(ops.ReduceMean(keep_dims=True)) == "Prim[ReduceMean]<keep_dims=True>"
    assert repr(ops.Add().add_prim_attr("primitive_target", "CPU")) == "Prim[Add]<primitive_target=CPU>"
    assert (ops.Add().name, Primitive("Own").name) == ("Add", "Own")


def test_a_primitive_without_settings_is_a_class_of_its_own() -> None:
    assert ops.Add is not ops.Mul and isinstance(ops.Add(), ops.Primitive) and not isinstance(ops.Add(), ops.Mul)
    assert ops.Add.__name__ == "Add" and "ops.add" in (ops.Add.__doc__ or "")


def test_every_primitive_has_a_docstring_and_the_name_it_is_exported_under() -> None:
    assert len(CLASSES) > 130
    for value in CLASSES:
        assert value.__doc__, value
        assert getattr(ops, value.__name__) is value or value.__name__ in ("GeLU",), value


def test_every_primitive_is_found_in_its_module_as_pickle_looks_for_it() -> None:
    for value in CLASSES:
        assert getattr(sys.modules[value.__module__], value.__name__, None) is value, value


def test_a_base_without_computation_says_what_to_write() -> None:
    with pytest.raises(NotImplementedError, match=r"Primitive: .* Write def __call__"):
        Primitive()(1)
    with pytest.raises(TypeError, match="Primitive: name must be a str"):
        Primitive(3)  # type: ignore[arg-type]


def test_a_subclass_of_primitive_computes() -> None:
    class Twice(Primitive):
        def __call__(self, x: Any) -> Any:
            return x * 2

    assert float(Twice()(ms.Tensor(1.5))) == 3.0 and repr(Twice()) == "Prim[Twice]"
    assert primitive("Half", lambda x: x / 2)()(3) == 1.5


def test_primitives_are_attributes_of_a_cell_and_activations() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.mean = ops.ReduceMean(keep_dims=True)
            self.add = ops.Add()

        def construct(self, x: Any) -> Any:
            return self.add(self.mean(x, 1), x)

    net = Net()
    assert net(ms.Tensor([[1.0, 3.0]])).asnumpy().tolist() == [[3.0, 5.0]]
    assert not list(net.get_parameters()) and repr(net) == "Net()"
    dense = nn.Dense(2, 2, weight_init="ones", has_bias=False, activation=ops.Neg())
    assert dense(ms.Tensor([[1.0, 2.0]])).asnumpy().tolist() == [[-3.0, -3.0]]


def test_a_quotient_is_zero_only_where_the_dividend_is() -> None:
    x, y = ms.Tensor([0.0, 0.0, 3.0, -3.0, 3.0]), ms.Tensor([0.0, 2.0, 0.0, 0.0, 2.0])
    assert ops.xdivy(x, y).asnumpy().tolist() == [0.0, 0.0, np.inf, -np.inf, 1.5]
    assert ms.grad(ops.xdivy, 1)(x[:2], y[:2]).asnumpy().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_set_bits_of_every_width_are_counted(dtype: str) -> None:
    limits, bits = np.iinfo(dtype), np.dtype(dtype).itemsize * 8
    x = np.array([0, 1, limits.max, limits.min, -1 if limits.min else 2], dtype)
    expected = [np.binary_repr(int(value), bits).count("1") for value in x]
    assert ops.population_count(ms.Tensor(x)).asnumpy().tolist() == expected


def test_shard_and_attributes_change_nothing() -> None:
    add = ops.Add().shard(((1, 1), (1, 1))).add_prim_attr("keep", 1)
    assert add.attrs == {"keep": 1} and float(add(np.float32(1), ms.Tensor(1.0))) == 2.0


def test_a_decorated_init_makes_its_arguments_attributes() -> None:
    class MatMul(ops.PrimitiveWithInfer):
        @ops.prim_attr_register
        def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
            self.init_prim_io_names(inputs=["x1", "x2"], outputs=["output"])

        def __call__(self, x: Any, y: Any) -> Any:
            return ops.matmul(x.T if self.transpose_a else x, y)

    product = MatMul(True)
    assert product.attrs["input_names"] == ["x1", "x2"] and product.transpose_b is False
    x = ms.Tensor([[1.0, 2.0]])
    assert product(x, x).asnumpy().tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_gradients_go_through_morph_and_inserted_functions() -> None:
    weight = ms.Parameter(ms.Tensor([2.0, 3.0]), name="weight")
    morph = ops.Morph(lambda x: 100 * x * weight, None, None)
    clip = ops.InsertGradientOf(lambda gradient: ops.clamp(gradient, 0.0, 250.0))

    def loss(x: Any) -> Any:
        return morph(clip(x)).sum()

    x = ms.Tensor([1.0, 1.0])
    assert ms.grad(loss)(x).asnumpy().tolist() == [200.0, 250.0]
    assert ms.jit(ms.grad(loss))(x).asnumpy().tolist() == [200.0, 250.0]
    with pytest.raises(TypeError, match="must be a function"):
        ops.InsertGradientOf(3)
    with pytest.raises(TypeError, match="must be a function"):
        ops.Morph(3, None, None)


def test_ctc_gradient_of_sequences_of_unequal_length() -> None:
    scores = ms.Tensor(np.random.default_rng(0).standard_normal((4, 2, 3)).astype(np.float32))
    places, labels = ms.Tensor([[0, 0], [0, 1], [1, 0]], ms.int64), ms.Tensor([0, 1, 1], ms.int32)
    losses, gradient = ops.CTCLoss()(scores, places, labels, ms.Tensor([4, 2], ms.int32))
    expected = ops.ctc_loss(ops.log_softmax(scores, -1), ms.Tensor([[0, 1], [1, 0]], ms.int32),
                            ms.Tensor([4, 2], ms.int32), ms.Tensor([2, 1], ms.int32), 2, "none")[0]
    np.testing.assert_allclose(losses.asnumpy(), expected.asnumpy(), rtol=1e-6)
    assert not gradient.asnumpy()[2:, 1].any()
    np.testing.assert_allclose(gradient.asnumpy().sum(-1), 0, atol=1e-6)


@pytest.mark.parametrize(("call", "message"), [
    (lambda x: ops.Conv2DTranspose(3, 2)(x, ops.ones((2, 1, 2, 2)), (1, 1, 5, 5)), "first axis"),
    (lambda x: ops.LSTM(2, 2, 1, True, False, 0.0)(x[0], x[0], x[0], x), "input must be"),
    (lambda x: ops.LSTM(2, 2, 1, True, False, 0.5), "dropout must be 0"),
    (lambda x: ops.ScaleAndTranslate()(x, (2, 2), (0, 1), (0, 0)), "above 0"),
    (lambda x: ops.deformable_conv2d(x, x, x, 2, (1, 1, 1, 1), (0, 0, 0, 0)), "offsets must have shape"),
])
def test_shapes_that_do_not_fit_are_errors(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(ops.ones((1, 3, 4, 4)))


def test_float_status_tells_of_what_is_not_finite() -> None:
    status = ops.FloatStatus()
    result = [status(ms.Tensor(values)) for values in ([[1.0, 2.0]], [[1.0, float("inf")]], [float("nan")])]
    values = [(value.shape, value.asnumpy().tolist()) for value in result]
    assert values == [((1,), [0.0]), ((1,), [1.0]), ((1,), [1.0])]


def test_xdivy_is_0_where_x_is_0_and_there_only() -> None:
    x, y = ms.Tensor([1.0, 0.0, -1.0, 6.0]), ms.Tensor([0.0, 0.0, 0.0, 3.0])
    assert ops.Xdivy()(x, y).asnumpy().tolist() == [np.inf, 0.0, -np.inf, 2.0]
    assert ops.Xdivy()(x, 0.0).asnumpy().tolist() == [np.inf, 0.0, -np.inf, np.inf]


def test_an_exclusive_sum_loses_no_digits_to_later_elements() -> None:
    x = ms.Tensor([1.0, 1e8, np.inf, 2.0])
    np.testing.assert_array_equal(ops.CumSum(exclusive=True)(x, 0).asnumpy(), np.float32([0, 1, 1e8, np.inf]))
    np.testing.assert_array_equal(ops.CumSum(True, True)(x[:2], 0).asnumpy(), np.float32([1e8, 0]))
