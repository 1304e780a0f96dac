"""Normalisation over axes: the numbers of the plain formula, its gradients twice over, and little held for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from mixtrain import engine

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((4, 3, 2, 5)).astype(np.float32)


def plain(x: Any, gamma: Any, beta: Any, axes: tuple[int, ...]) -> Any:
    centred = x - tf.reduce_mean(x, axes, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), axes, keepdims=True)
    return centred / tf.sqrt(variance + 1e-3) * gamma + beta


def ours(x: Any, gamma: Any, beta: Any, axes: tuple[int, ...]) -> Any:
    return engine.normalise_axes(x, gamma, beta, axes=axes, epsilon=1e-3)[0]


def values_and_gradients(function: Callable[..., Any], axes: tuple[int, ...], *arguments: Any) -> list[Any]:
    """Return the output, the gradients of a loss, and the gradients of these gradients' squares."""
    with tf.GradientTape() as outer:
        outer.watch(arguments)
        with tf.GradientTape() as inner:
            inner.watch(arguments)
            y = function(*arguments, axes)
            loss = tf.reduce_sum(tf.sin(3 * y))
        first = inner.gradient(loss, arguments)
        squares = tf.add_n([tf.reduce_sum(tf.square(gradient)) for gradient in first])
    return [y, *first, *outer.gradient(squares, arguments)]


@pytest.mark.parametrize(("axes", "shape"), [((3,), (5,)), ((2, 3), (2, 5)), ((1, 3), (2, 5)), ((2, 3), (3, 1, 1))])
@pytest.mark.parametrize("compiled", [False, True])
def test_values_and_two_orders_of_gradients_are_those_of_the_formula(axes: Any, shape: Any, compiled: bool) -> None:
    gamma, beta = (tf.constant(RANDOM.standard_normal(shape).astype(np.float32)) for _ in range(2))

    def run(function: Any) -> Any:
        return values_and_gradients(function, axes, tf.constant(X), gamma, beta)

    expected = run(plain)
    found = tf.function(run, autograph=False)(ours) if compiled else run(ours)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() < 1e-5 * max(1.0, np.abs(other).max())


@pytest.mark.parametrize("half", [tf.float16, tf.bfloat16])
def test_half_is_normalised_in_float32_and_its_gradient_is_half(half: tf.DType) -> None:
    x, gamma, beta = tf.cast(400 * X, half), tf.ones(5), tf.zeros(5)
    with tf.GradientTape() as tape:
        tape.watch([x, gamma])
        y, mean, variance = engine.normalise_axes(x, gamma, beta, axes=(3,), epsilon=1e-3)
        loss = tf.reduce_sum(tf.cast(tf.square(y), tf.float32))
    of_x, of_gamma = tape.gradient(loss, [x, gamma])
    assert [y.dtype, of_x.dtype] == [half, half]
    assert [mean.dtype, variance.dtype, of_gamma.dtype] == [tf.float32] * 3
    # Squares of 400 do not fit into float16; the mean of y^2 is 1.
    assert np.isfinite(variance).all() and variance.numpy().max() > 65504
    assert float(tf.reduce_sum(of_gamma)) == pytest.approx(2 * X.size, rel=1e-2)


def test_statistics_are_the_formulas_and_have_no_gradient() -> None:
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, mean, variance = engine.normalise_axes(x, tf.ones(5), tf.zeros(5), axes=(0, 2), epsilon=1e-3)
        total = tf.reduce_sum(mean + variance)
    assert np.abs(mean - X.mean((0, 2), keepdims=True)).max() < 1e-6
    assert np.abs(variance - X.var((0, 2), keepdims=True)).max() < 1e-6
    assert tape.gradient(total, x) is None
