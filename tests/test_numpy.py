"""`mixtrain.numpy`: NumPy's values in MindSpore's dtypes."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain as ms
import mixtrain.numpy as mnp
from tests.backends import quick_every

A, B = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, 4.0]], np.float32), np.array([[2.0, 1.0, 2.0]], np.float32)
ONE = [
    "abs", "amax", "arctan", "argmax", "argmin", "ceil", "cumsum", "deg2rad", "diff", "exp", "fix", "fliplr", "isnan",
    "mean", "median", "nanmean", "negative", "prod", "ptp", "ravel", "rint", "sign", "sin", "sqrt", "square", "std",
    "sum", "tanh", "trace", "transpose", "tril", "var", "zeros_like", "average", "unique", "indices",
]
TWO = [
    "add", "arctan2", "divide", "equal", "floor_divide", "greater", "hypot", "inner", "logaddexp", "maximum", "mod",
    "multiply", "power", "subtract", "remainder", "copysign", "setdiff1d",
]


@quick_every(2)
@pytest.mark.parametrize("name", [name for name in ONE if name != "indices"])
def test_a_function_of_one_array_has_numpys_values(name: str) -> None:
    with np.errstate(invalid="ignore"):
        expected = getattr(np, "trunc" if name == "fix" else name)(A)  # NumPy gives `fix` up.
    np.testing.assert_allclose(np.asarray(getattr(mnp, name)(ms.Tensor(A))), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", TWO)
def test_a_function_of_two_arrays_has_numpys_values(name: str) -> None:
    result = getattr(mnp, name)(ms.Tensor(A), ms.Tensor(B))
    np.testing.assert_allclose(np.asarray(result), getattr(np, name)(A, B), rtol=2e-6, atol=1e-6)


@quick_every(3)
@pytest.mark.parametrize(
    ("compute", "expected", "dtype"),
    [
        (lambda: mnp.array([1, 2, 3]), [1, 2, 3], ms.int32),
        (lambda: mnp.array([1.5], ndmin=2), [[1.5]], ms.float32),
        (lambda: mnp.arange(0, 1, 0.25), [0, 0.25, 0.5, 0.75], ms.float32),
        (lambda: mnp.arange(3), [0, 1, 2], ms.int32),
        (lambda: mnp.ones((2, 1)), [[1], [1]], ms.float32),
        (lambda: mnp.zeros(2, ms.int32), [0, 0], ms.int32),
        (lambda: mnp.full((1, 2), [3, 4]), [[3, 4]], ms.int32),
        (lambda: mnp.eye(2), [[1, 0], [0, 1]], ms.float32),
        (lambda: mnp.tri(2, 2, -1), [[0, 0], [1, 0]], ms.float32),
        (lambda: mnp.linspace(0, 1, 3), [0, 0.5, 1], ms.float32),
        (lambda: mnp.mean(mnp.array([1, 2])), 1.5, ms.float32),
        (lambda: mnp.sum(mnp.array([1, 2])), 3, ms.int32),
        (lambda: mnp.where(mnp.array([True, False]), 1.0, 2.0), [1, 2], ms.float32),
        (lambda: mnp.concatenate([mnp.ones(1), mnp.zeros(1)]), [1, 0], ms.float32),
        (lambda: mnp.vstack([[1, 2], [3, 4]]), [[1, 2], [3, 4]], ms.int32),
        (lambda: mnp.searchsorted([1, 2, 3], 2), 1, ms.int32),
        (lambda: mnp.tile(mnp.array([1]), 2), [1, 1], ms.int32),
        (lambda: mnp.norm(mnp.array([3.0, 4.0])), 5, ms.float32),
        (lambda: mnp.multi_dot([mnp.eye(2), mnp.eye(2)]), [[1, 0], [0, 1]], ms.float32),
        (lambda: mnp.mgrid[0:2, 0:1], [[[0], [1]], [[0], [0]]], ms.int32),
    ],
)
def test_values_and_dtypes_are_those_of_mindspore(compute: Any, expected: Any, dtype: Any) -> None:
    result = compute()
    assert isinstance(result, ms.Tensor) and result.dtype == dtype and result.asnumpy().tolist() == expected


def test_splits_are_tuples_and_the_dtype_that_two_meet_in_is_named() -> None:
    parts = mnp.split(mnp.arange(4), 2)
    assert isinstance(parts, tuple) and [part.asnumpy().tolist() for part in parts] == [[0, 1], [2, 3]]
    assert mnp.result_type("i2", np.float32, True) == ms.float32
    assert mnp.promote_types(ms.int32, ms.float16) == ms.float16
    assert mnp.rand(2, 3).shape == mnp.randn(2, 3).shape == mnp.randint(0, 5, (2, 3)).shape == (2, 3)


def test_gradients_go_through_and_a_compiled_function_may_use_it() -> None:
    assert float(ms.grad(lambda x: mnp.sum(mnp.square(x)))(ms.Tensor(3.0))) == 6.0
    assert float(ms.jit(lambda x: mnp.max(x) + mnp.ones(1)[0])(ms.Tensor([3.0, 1.0]))) == 4.0


def test_counts_of_repetitions_may_be_a_list() -> None:
    x = mnp.array([[1, 2], [3, 4]])
    assert mnp.repeat(x, [1, 2], axis=0).asnumpy().tolist() == [[1, 2], [3, 4], [3, 4]]
    assert mnp.repeat(x, 2).asnumpy().tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


# What MindSpore 2.10.0 returned for calls by position and by name, with its own names and order of arguments.
CALLS = json.loads((pathlib.Path(__file__).parent / "data" / "numpy_calls.json").read_text())
GRADIENTS = json.loads((pathlib.Path(__file__).parent / "data" / "numpy_gradients.json").read_text())
NAMES = {
    "mnp": mnp, "w": ms.Tensor([0.5, -1.0, 2.0, 4.0]), "idx": ms.Tensor([0, 1, 0], ms.int32),
    "near": ms.Tensor([0.0, 3.0, 7.0, 13.0, 14.0]), "x": ms.Tensor([[1.0, -2.0, 3.5], [0.5, 4.0, -1.0]]),
    "y": ms.Tensor([[2.0, 1.0, -3.0], [0.5, 2.0, 4.0]]),
    "i": ms.Tensor([[1, 2, 3], [4, 5, 6]], ms.int32), "v": ms.Tensor([3.0, 1.0, 2.0]),
    "b": ms.Tensor([[True, False, True], [False, True, True]]), "sq": ms.Tensor([[2.0, 1.0], [1.0, 3.0]]),
    "nanx": ms.Tensor([[1.0, np.nan, 3.5], [0.5, 4.0, -1.0]]), "f32": ms.float32, "f16": ms.float16, "i32": ms.int32,
}


def assert_like(result: Any, known: Any, call: str) -> None:
    if isinstance(known, list):
        assert len(result) == len(known), call
        for one, other in zip(result, known, strict=True):
            assert_like(one, other, call)
    elif isinstance(known, dict):
        assert (result.dtype.name, result.shape) == (known["dtype"], np.shape(known["value"])), call
        np.testing.assert_allclose(result.asnumpy(), known["value"], 1e-3, 1e-5, err_msg=call)
    else:
        assert result == known, call


def test_arguments_have_mindspore_s_names_and_order() -> None:
    for call, known in CALLS.items():
        assert_like(eval(call, dict(NAMES)), known, call)


def _weighted_sum(results: Any) -> Any:
    """Return the sum of all numbers, those of the second result twice, and so on."""
    flat = list(results) if isinstance(results, (tuple, list)) else [results]
    return sum(result.sum() * (index + 1) for index, result in enumerate(flat))


@pytest.mark.parametrize("call", GRADIENTS)
def test_values_and_gradients_are_mindspore_s(call: str) -> None:
    value, *gradient = GRADIENTS[call]
    expression, by = call.rsplit("|", 1)
    assert_like(eval(expression, dict(NAMES)), value, call)
    if by:
        found = ms.grad(lambda at: _weighted_sum(eval(expression, {**NAMES, by: at})))(NAMES[by])
        np.testing.assert_allclose(found.asnumpy(), gradient[0], 1e-3, 1e-5)


def test_gradients_that_mindspore_loses_are_here() -> None:
    v, w = NAMES["v"], NAMES["w"]
    assert ms.grad(lambda at: mnp.convolve(at, w).sum())(v).asnumpy().tolist() == [5.5, 5.5, 5.5]
    picked = ms.grad(lambda at: mnp.select([at > 2.5, at < 1.5], [at, at * at], 0.5).sum())(v)
    assert picked.asnumpy().tolist() == [1.0, 2.0, 0.0]
    assert ms.grad(lambda at: mnp.interp(at, [2.0, 2.5], [1.0, 3.0]).sum())(v).asnumpy().tolist() == [0.0, 0.0, 4.0]
    ratio = ms.grad(lambda at: mnp.geomspace(at, -2.0, 3).sum())(ms.Tensor(-8.0))
    assert float(ratio) == pytest.approx(1.25)
    whole = ms.grad(lambda at: mnp.polyint(at, 2, [3, 5]).sum())(w)
    np.testing.assert_allclose(whole.asnumpy(), [0.05, 1 / 12, 1 / 6, 0.5], 1e-6)


def test_composed_functions_compile() -> None:
    @ms.jit
    def compute(x: Any, w: Any) -> Any:
        rows = mnp.apply_along_axis(lambda row: row * row, 1, x)
        return mnp.polyval(w, rows) + mnp.cov(x)[0, 0] + mnp.pad(rows, ((0, 0), (0, 0)), "mean") + mnp.unwrap(x)

    eager = compute.__wrapped__(NAMES["x"], NAMES["w"])
    np.testing.assert_allclose(compute(NAMES["x"], NAMES["w"]).asnumpy(), eager.asnumpy(), 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("shape", [(5,), (3, 4)])
@pytest.mark.parametrize(
    ("mode", "options"), [
        ("mean", {}), ("maximum", {}), ("minimum", {"stat_length": 2}), ("median", {}), ("linear_ramp", {}),
        ("linear_ramp", {"end_values": (1, 2)}), ("mean", {"stat_length": (2, 1)}),
    ],
)
def test_padding_by_statistics_is_numpy_s(mode: Any, options: Any, shape: tuple[int, ...], dtype: Any) -> None:
    array = (np.random.default_rng(0).normal(size=shape) * 10).astype(dtype)
    for width in (1, (2, 3), 0):
        padded = mnp.pad(mnp.array(array), width, mode, **options).asnumpy()
        assert padded.dtype == dtype
        np.testing.assert_allclose(padded, np.pad(array, width, mode, **options), 1e-5, 1e-5)


def test_an_argument_too_many_or_twice_is_refused() -> None:
    with pytest.raises(TypeError, match="2 arguments are given: the arguments are M"):
        mnp.hamming(3, 4)
    with pytest.raises(TypeError, match="x is given twice: the arguments are x, axis, ddof, keepdims"):
        mnp.std([1.0, 2.0], x=[1.0])
    with pytest.raises(IndexError, match="an index is not between -2 and 1"):
        mnp.take(mnp.ones(2), mnp.array([2]), mode="raise")


@pytest.mark.parametrize(
    "call",
    [
        lambda: mnp.zeros((1.2, 2)), lambda: mnp.ones(2.0), lambda: mnp.full((1.5,), 2), lambda: mnp.rand(1, 1.2),
        lambda: mnp.randn({1}), lambda: mnp.empty(True), lambda: mnp.asarray({1, 2}), lambda: mnp.array("abc"),
    ],
)
def test_what_is_no_shape_and_no_array_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="^numpy.*Write"):
        call()


@pytest.mark.parametrize("call", [lambda: mnp.zeros((-1,)), lambda: mnp.arange(10, 1), lambda: mnp.arange(5, 5)])
def test_negative_sizes_and_empty_ranges_are_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="^numpy.*Write"):
        call()


def test_a_tensor_that_is_an_array_already_is_not_copied_unless_asked() -> None:
    x = mnp.array([1, 2])
    assert mnp.asarray(x) is mnp.array(x, copy=False) is mnp.asarray(x, "int32") is x
    assert mnp.array(x) is not x
    assert mnp.asarray(x, ms.float32).dtype == ms.float32
    assert mnp.array(x, copy=False, ndmin=2).shape == (1, 2)
