"""Channels-last views: remembered while compiling only, and never at the cost of a gradient."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.backend.info import JitChoice
from mixtrain.dtype import float16
from mixtrain.ops import nhwc

X = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
PLAIN = JitChoice(False, "test")


def traced(function: Any, *arguments: Any) -> Any:
    return backend.compile_function(function, choice=PLAIN)(*arguments)


def view(x: Any) -> Any:
    """Return `x` as a cell would: a view."""
    return nhwc.from_channels_last(nhwc.to_channels_last(x))


def test_there_and_back_is_the_same_tensor() -> None:
    x = backend.to_tensor(X)
    assert tuple(nhwc.to_channels_last(x).shape) == (1, 3, 4, 2)
    assert (backend.to_numpy(view(x)) == X).all()
    assert (backend.to_numpy(traced(view, x)) == X).all()


def test_eager_tensors_have_no_view() -> None:
    assert backend.nhwc_of(view(backend.to_tensor(X))) is None


def test_the_next_reader_gets_the_channels_last_tensor_itself() -> None:
    def check(x: Any) -> Any:
        y = view(x)
        assert nhwc.to_channels_last(y) is backend.nhwc_of(y)
        return y

    traced(check, backend.to_tensor(X))


def test_elementwise_functions_casts_and_operators_keep_the_layout() -> None:
    scale = np.array([3.0, 5.0], np.float32).reshape(1, 2, 1, 1)

    def check(x: Any) -> Any:
        one, other, channels = view(x), view(x * 2), backend.to_tensor(scale)
        results = [
            nhwc.elementwise(keras.ops.exp, one), backend.cast_keeping_layout(one, float16), one + other, one * 2.0,
            1.0 - one, one > other, one * backend.to_tensor(2.0), one * channels,
            nhwc.elementwise(keras.ops.maximum, one, channels),
        ]
        without = [one + x, one @ keras.ops.transpose(other, (0, 1, 3, 2)), one * x[:, :, :1]]
        assert all(backend.nhwc_of(result) is not None for result in results)
        assert all(backend.nhwc_of(result) is None for result in without)
        return results, without

    eager = [
        np.exp(X), X, 3 * X, 2 * X, 1 - X, X > 2 * X, 2 * X, X * scale, np.maximum(X, scale),
    ]
    results, without = traced(check, backend.to_tensor(X))
    for result, expected in zip(results, eager, strict=True):
        assert np.allclose(backend.to_numpy(result), expected)
    for result, expected in zip(without, [2 * X, X @ (2 * X).transpose(0, 1, 3, 2), X * X[:, :, :1]], strict=True):
        assert np.allclose(backend.to_numpy(result), expected)


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axes", [(1,), (2, 3), (2,), (0, 1, 2, 3), (1, 3), (0,)])
def test_reductions_read_channels_last_where_the_order_is_the_same(axes: tuple[int, ...], keepdims: bool) -> None:
    read = []

    def check(x: Any) -> Any:
        y = view(x)

        def sums(values: Any, **options: Any) -> Any:
            read.append(values is backend.nhwc_of(y))
            return keras.ops.sum(values, **options)

        result = nhwc.reduce_axes(sums, y, axes, keepdims)
        assert (backend.nhwc_of(result) is not None) == keepdims
        return result

    assert (backend.to_numpy(traced(check, backend.to_tensor(X))) == X.sum(axes, keepdims=keepdims)).all()
    # Without the reduced axes, (N, C, W) and (C, H, W) are in another order in a channels-last tensor.
    assert read == [keepdims or axes not in ((2,), (0,))]


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_tensors_are_joined_channels_last(axis: int) -> None:
    def check(x: Any) -> Any:
        joined = nhwc.join_along(keras.ops.concatenate, [view(x), view(x + 1.0)], axis)
        assert backend.nhwc_of(joined) is not None
        assert backend.nhwc_of(nhwc.join_along(keras.ops.concatenate, [view(x), x], axis)) is None
        return joined

    assert (backend.to_numpy(traced(check, backend.to_tensor(X))) == np.concatenate([X, X + 1.0], axis)).all()


def test_a_gradient_with_respect_to_a_view_sees_those_who_read_it_channels_last() -> None:
    def run(x: Any) -> Any:
        y = view(x * 1.0)
        _, _, (gradient,) = backend.value_and_gradient(
            lambda y: (keras.ops.sum(keras.ops.square(nhwc.to_channels_last(y))), None), [], [y]
        )
        return gradient

    assert (backend.to_numpy(traced(run, backend.to_tensor(X))) == 2 * X).all()


def test_views_survive_a_branch_that_reads_them() -> None:
    total = keras.Variable(0.0)

    def run(x: Any) -> Any:
        y = view(x)
        backend.cond(
            keras.ops.convert_to_tensor(True),
            lambda: total.assign(keras.ops.sum(nhwc.to_channels_last(y))),
            lambda: total.assign(0.0),
            writes=[total],
        )
        return y + 0.0

    traced(run, backend.to_tensor(X))
    assert float(total) == pytest.approx(X.sum())
