"""Primitives: objects that compute, show their settings, and can be attributes and activations of cells."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import Tensor, nn, ops
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


def test_arguments_of_a_call_have_mindspore_s_names() -> None:
    x, index = Tensor([[1.0, -2.0], [0.5, 4.0]]), Tensor([1, 0])
    for one, other in (
        (ops.Cast()(input_x=x, dtype=ms.int32), x.astype(ms.int32)),
        (ops.Concat(1)(tensors=(x, x)), ops.cat((x, x), 1)),
        (ops.Softmax()(input=x), ops.softmax(x)), (ops.Slice()(input=x, begin=(0, 1), size=(2, 1)), x[:, 1:]),
        (ops.RealDiv()(x=x, y=x), x / x), (ops.LogicalAnd()(x=x > 0, y=x > 1), x > 1),
        (ops.UnsortedSegmentSum()(input_x=x, segment_ids=index, num_segments=2), x[::-1]),
        (ops.ZerosLike()(x=x), x * 0), (ops.Shape()(x=x), (2, 2)), (ops.Argmin()(x=x), ops.argmin(x, -1)),
    ):
        np.testing.assert_array_equal(getattr(one, "asnumpy", lambda one=one: one)(), np.asarray(other))
    with pytest.raises(TypeError, match="ops.Cast: expected arguments that fit"):
        ops.Cast()(other=x, dtype=ms.int32)


def test_a_tensor_s_windows_are_those_of_images() -> None:
    x = Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    assert x.unfold(2, 1, 0, 2).asnumpy()[0, 0].tolist() == [0.0, 2.0, 8.0, 10.0]
    assert x.unfold(kernel_size=2, stride=2).shape == (1, 4, 4)


def test_settings_of_primitives_have_mindspore_s_names() -> None:
    square, images = Tensor([[2.0, 1.0], [1.0, 3.0]]), Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    assert ops.MatrixPower(n=2)(square).asnumpy().tolist() == [[5.0, 5.0], [5.0, 10.0]]
    blocks = ops.SpaceToBatchND(block_shape=[2, 2], paddings=[[0, 0], [0, 0]])(images)
    back = ops.BatchToSpaceND(block_shape=[2, 2], crops=[[0, 0], [0, 0]])(blocks)
    np.testing.assert_array_equal(back.asnumpy(), images.asnumpy())
    assert ops.ReduceSum(False, True)(square, ()).shape == (2, 2) and float(ops.ReduceSum(False, False)(square)) == 7.0
    assert ops.mixed_precision_cast(dst_dtype=ms.float16, x=square).dtype == ms.float16


def test_the_margin_of_triplets_comes_before_their_norm() -> None:
    anchor, other = Tensor([[1.0, -2.0]]), Tensor([[2.0, -4.0]])
    expected = ops.triplet_margin_loss(anchor, other, other * 2, margin=0.5, p=1)
    assert float(ops.triplet_margin_loss(anchor, other, other * 2, 0.5, 1)) == float(expected)
