"""Formats meet as in MindSpore: the wider wins, a float beats an integer, Python numbers do not widen."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain as ms
from mixtrain import Parameter, Tensor, backend, boundary, nn, ops
from mixtrain.ops import nhwc
from mixtrain.ops.promotion import promoted
from tests.backends import compiled_for_users, held_as

# The formats of ops.mul of two tensors, measured on MindSpore 2.10 (its row and column order).
FORMATS = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
MEETING = """
bool int8 uint8 int16 int32 int64 float16 bfloat16 float32 float64
int8 int8 int16 int16 int32 int64 float16 bfloat16 float32 float64
uint8 int16 uint8 int16 int32 int64 float16 bfloat16 float32 float64
int16 int16 int16 int16 int32 int64 float16 bfloat16 float32 float64
int32 int32 int32 int32 int32 int64 float16 bfloat16 float32 float64
int64 int64 int64 int64 int64 int64 float16 bfloat16 float32 float64
float16 float16 float16 float16 float16 float16 float16 float32 float32 float64
bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32 bfloat16 float32 float64
float32 float32 float32 float32 float32 float32 float32 float32 float32 float64
float64 float64 float64 float64 float64 float64 float64 float64 float64 float64
""".split()


class Apply(nn.Cell):
    """Runs a function as `construct`."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def construct(self, *args: Any) -> Any:
        return self.function(*args)


def test_formats_meet_as_measured() -> None:
    assert [promoted(item, other) for item in FORMATS for other in FORMATS] == MEETING
    assert promoted("uint32", "int32") == promoted("uint64", "int8") == "int64"


@pytest.mark.parametrize(("one", "other"), [("float16", "float32"), ("int32", "float16"), ("bool", "float32"),
                                            ("int32", "int64"), ("float16", "bfloat16"), ("uint8", "int8")])
def test_operations_and_operators_in_construct_promote_alike(one: str, other: str) -> None:
    x, y = Tensor([1, 1], one), Tensor([1, 1], other)
    meeting = promoted(one, other)
    assert ops.maximum(x, y).dtype == ops.add(y, x).dtype == held_as(meeting)
    assert Apply(lambda a, b: a + b)(x, y).dtype == Apply(lambda a, b: a * b)(y, x).dtype == held_as(meeting)
    assert Apply(lambda a, b: a < b)(x, y).dtype == "bool"


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [("float16", 1.5, "float16"), ("bfloat16", 2, "bfloat16"), ("int32", 2, "int32"), ("int32", 1.5, "float32"),
     ("bool", 1, "int64"), ("bool", 1.5, "float32"), ("int8", True, "int8"), ("float64", 1, "float64"),
     ("float16", np.float64(1.5), "float16"), ("float16", np.float32(1.5), "float16")],
)
def test_numbers_do_not_widen_a_tensor(dtype: str, number: Any, expected: str) -> None:
    x = Tensor([1, 0], dtype)
    assert ops.mul(x, number).dtype == ops.mul(number, x).dtype == held_as(expected)


@pytest.mark.parametrize(("dtype", "expected"), [("int32", "float32"), ("bool", "float32"), ("float16", "float16")])
def test_operators_in_construct_treat_numbers_alike(dtype: str, expected: str) -> None:
    x = Tensor([1, 0], dtype)
    assert Apply(lambda a: a * 1.5)(x).dtype == Apply(lambda a: 1.5 + a)(x).dtype == expected


@pytest.mark.parametrize(("dtype", "number"), [("int32", np.float32(1.5)), ("float32", np.float64(1.5))])
def test_numpy_numbers_meet_operators_in_construct_as_python_ones(dtype: str, number: Any) -> None:
    x = Tensor([1, 2], dtype)
    for result in (Apply(lambda a: a * number)(x), Apply(lambda a: number * a)(x)):
        assert result.dtype == "float32" and result.asnumpy().tolist() == [1.5, 3.0]


def test_integer_quotients_in_construct_are_float32() -> None:
    assert Apply(lambda a, b: a / b)(Tensor([1], "int32"), Tensor([2], "int32")).dtype == "float32"
    assert Apply(lambda a: a / 2)(Tensor([1], "int64")).asnumpy().tolist() == [0.5]
    assert Apply(lambda a: a // 2)(Tensor([3], "int32")).dtype == "int32"


@pytest.mark.tensorflow
def test_strings_and_other_values_meet_operators_untouched() -> None:
    tf = pytest.importorskip("tensorflow")
    words = tf.constant(["a", "b"])
    assert Apply(lambda a: a == words)(words).numpy().tolist() == [True, True]


def test_a_parameter_and_an_array_are_tensors_to_an_operation() -> None:
    weight = Parameter(np.ones(2, np.float32))
    assert ops.add(weight, Tensor([1, 2], "float16")).dtype == "float32"
    assert ops.add(np.ones(2, np.float32), weight).asnumpy().tolist() == [2.0, 2.0]
    assert ops.matmul(Tensor([[1, 1]], "int32"), Tensor([[0.5], [1]], "float16")).dtype == "float16"


def test_a_parameter_is_read_in_the_format_of_the_running_cell() -> None:
    class Scale(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Parameter(np.ones(2, np.float32))

        def construct(self, x: Any) -> Any:
            return ops.mul(x, self.scale)

    assert Scale().to_float(ms.float16)(Tensor([1.0, 2.0])).dtype == "float16"


def test_elementwise_operations_keep_channels_last_views_while_compiling() -> None:
    def check(x: Any) -> Any:
        x = x.backend_tensor()
        view = boundary.to_tensors(nhwc.from_channels_last(nhwc.to_channels_last(x)))
        kept = [
            ops.exp(view), ops.add(view, view), ops.mul(view, 2.0), ops.cast(view, ms.float16), ops.greater(view, 0),
            ops.add(view, ops.cast(view, ms.float16)), ops.clip_by_value(view, 0.0, 1.0), view.astype("float16"),
            view.add(1), ops.Sqrt()(view), ops.round(view),
        ]
        assert all(backend.nhwc_of(result) is not None for result in kept)
        assert backend.nhwc_of(ops.add(view, x)) is None and backend.nhwc_of(ops.reshape(view, (-1,))) is None
        return kept[1]

    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    assert (backend.to_numpy(compiled_for_users(check)(Tensor(x))) == 2 * x).all()


@pytest.mark.parametrize(
    ("function", "gradient"),
    [
        (lambda x: ops.sum(ops.square(x)), [2.0, -4.0, 6.0]),
        (lambda x: ops.sum(ops.mul(ops.stop_gradient(x), x)), [1.0, -2.0, 3.0]),
        (lambda x: ops.max(x, 0)[0], [0.0, 0.0, 1.0]),
        (lambda x: ops.sum(ops.gather(x, Tensor([0, 0]), 0)), [2.0, 0.0, 0.0]),
        (lambda x: ops.norm(x), [1 / 14**0.5, -2 / 14**0.5, 3 / 14**0.5]),
        (lambda x: x.std(), [0.05407, -0.43259, 0.37852]),
        (lambda x: ops.sum(ops.topk(x, 2)[0] * Tensor([1.0, 10.0])), [10.0, 0.0, 1.0]),
        (lambda x: x.reshape(3, 1).matmul(x.reshape(1, 3)).sum(), [4.0, 4.0, 4.0]),
        (lambda x: ops.sum(ops.concat((x, x * 2))), [3.0, 3.0, 3.0]),
    ],
)
def test_gradients_flow_through_operations(function: Any, gradient: list[float]) -> None:
    x = keras.Variable([1.0, -2.0, 3.0])
    result = backend.value_and_gradient(lambda: (function(Tensor(x)), None), [x])[2][0]
    assert backend.to_numpy(result) == pytest.approx(gradient, abs=1e-4)


def test_hypot_of_halves_does_not_overflow() -> None:
    result = ops.hypot(Tensor([300.0, 3.0], ms.float16), Tensor([400.0, 4.0], ms.float16))
    assert result.dtype == ms.float16 and result.asnumpy().tolist() == [500.0, 5.0]
    assert ops.hypot(Tensor([300.0], ms.float16), 400).asnumpy().tolist() == [500.0]
