"""Channels-last twins: remembered while compiling only, and never at the cost of a gradient."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import engine
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import float16
from mixtrain.engine.facts import JitChoice

X = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
PLAIN = JitChoice(False, "test")


def traced(function: Any, *arguments: Any) -> Any:
    return engine.compile_function(function, choice=PLAIN)(*arguments)


def view(x: Any) -> Any:
    """Return `x` as a cell would: a view with a twin."""
    return engine.from_channels_last(engine.to_channels_last(x))


def test_there_and_back_is_the_same_tensor() -> None:
    x = Tensor(X)
    assert tuple(engine.to_channels_last(x).shape) == (1, 3, 4, 2)
    assert (engine.to_numpy(view(x)) == X).all()
    assert (engine.to_numpy(traced(view, x)) == X).all()


def test_eager_tensors_have_no_twin() -> None:
    assert engine.twin_of(view(Tensor(X))) is None


def test_the_next_reader_gets_the_twin_itself() -> None:
    def check(x: Any) -> Any:
        y = view(x)
        assert engine.to_channels_last(y) is engine.twin_of(y)
        return y

    traced(check, Tensor(X))


def test_elementwise_functions_casts_and_operators_hand_the_twin_on() -> None:
    scale = np.array([3.0, 5.0], np.float32).reshape(1, 2, 1, 1)

    def check(x: Any) -> Any:
        one, other, channels = view(x), view(x * 2), Tensor(scale)
        with engine.promoting():
            results = [
                engine.elementwise(keras.ops.exp, one), engine.cast_keeping_layout(one, float16),
                one + other, one * 2.0, 1.0 - one, engine.cast_keeping_layout(one, float16) + other, one > other,
                one * Tensor(2.0), Tensor(2.0) - one, one * channels, channels - one, engine.elementwise(
                    keras.ops.maximum, one, channels),
            ]
            without = [one + x, one @ keras.ops.transpose(other, (0, 1, 3, 2)), one * x[:, :, :1]]
        assert all(engine.twin_of(result) is not None for result in results)
        assert all(engine.twin_of(result) is None for result in without)
        return results, without

    eager = [
        np.exp(X), X, 3 * X, 2 * X, 1 - X, 3 * X, X > 2 * X, 2 * X, 2 - X, X * scale, scale - X, np.maximum(X, scale),
    ]
    results, without = traced(check, Tensor(X))
    for result, expected in zip(results, eager, strict=True):
        assert np.allclose(engine.to_numpy(result), expected)
    for result, expected in zip(without, [2 * X, X @ (2 * X).transpose(0, 1, 3, 2), X * X[:, :, :1]], strict=True):
        assert np.allclose(engine.to_numpy(result), expected)


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axes", [(1,), (2, 3), (2,), (0, 1, 2, 3), (1, 3), (0,)])
def test_reductions_read_the_twin_where_the_result_is_in_the_same_order(axes: tuple[int, ...], keepdims: bool) -> None:
    read = []

    def check(x: Any) -> Any:
        y = view(x)

        def sums(values: Any, **options: Any) -> Any:
            read.append(values is engine.twin_of(y))
            return keras.ops.sum(values, **options)

        result = engine.reduce_axes(sums, y, axes, keepdims)
        assert (engine.twin_of(result) is not None) == keepdims
        return result

    assert (engine.to_numpy(traced(check, Tensor(X))) == X.sum(axes, keepdims=keepdims)).all()
    # Without the reduced axes, (N, C, W) and (C, H, W) lie otherwise in a twin.
    assert read == [keepdims or axes not in ((2,), (0,))]


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_tensors_are_joined_on_their_twins(axis: int) -> None:
    def check(x: Any) -> Any:
        joined = engine.join_along(keras.ops.concatenate, [view(x), view(x + 1.0)], axis)
        assert engine.twin_of(joined) is not None
        assert engine.twin_of(engine.join_along(keras.ops.concatenate, [view(x), x], axis)) is None
        return joined

    assert (engine.to_numpy(traced(check, Tensor(X))) == np.concatenate([X, X + 1.0], axis)).all()


def test_a_gradient_with_respect_to_a_view_sees_those_who_read_its_twin() -> None:
    def run(x: Any) -> Any:
        y = view(x * 1.0)
        _, _, (gradient,) = engine.value_and_gradient(
            lambda y: (keras.ops.sum(keras.ops.square(engine.to_channels_last(y))), None), [], [y]
        )
        return gradient

    assert (engine.to_numpy(traced(run, Tensor(X))) == 2 * X).all()


def test_twins_survive_a_branch_that_reads_them() -> None:
    total = keras.Variable(0.0)

    def run(x: Any) -> Any:
        y = view(x)
        engine.cond(
            keras.ops.convert_to_tensor(True),
            lambda: total.assign(keras.ops.sum(engine.to_channels_last(y))),
            lambda: total.assign(0.0),
            writes=[total],
        )
        return y + 0.0

    traced(run, Tensor(X))
    assert float(total) == pytest.approx(X.sum())
