"""Derivatives where a function bends, as at 0: those of MindSpore 2.10.0 on a CPU, on both backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain.numpy
from mixtrain import Tensor, nn, ops

ZERO, LABEL = Tensor([0.0]), Tensor([0.0, 1.0])
# The function, the input, and the derivative that MindSpore has there.
CASES: dict[str, tuple[Callable[[Any], Any], list[Any], list[Any]]] = {
    "maximum": (lambda x: ops.maximum(x, ZERO), [0.0], [0.5]),
    "maximum of a number": (lambda x: ops.maximum(x, 0), [0.0], [0.5]),
    "its second": (lambda x: ops.maximum(ZERO, x), [0.0], [0.5]),
    "minimum": (lambda x: ops.Minimum()(x, Tensor([1.0, 2.0])), [1.0, 1.0], [0.5, 1.0]),
    "clip_by_value": (lambda x: ops.clip_by_value(x, 0.0, 1.0), [0.0, 1.0, 0.5, 2.0], [0.5, 0.5, 1.0, 0.0]),
    "clamp": (lambda x: ops.clamp(x, 0.0, 1.0), [0.0, 1.0, 2.0], [1.0, 1.0, 0.0]),
    "Tensor.clip": (lambda x: x.clip(0.0, 1.0), [0.0, 1.0], [1.0, 1.0]),
    "abs": (ops.abs, [0.0, -1.0], [0.0, -1.0]),
    "leaky_relu": (lambda x: ops.leaky_relu(x, 0.2), [0.0, -1.0, 1.0], [0.6, 0.2, 1.0]),
    "LeakyReLU": (nn.LeakyReLU(0.2), [0.0], [0.6]),
    "CELU": (nn.CELU(), [0.0, 1.0], [1.0, 1.0]),
    "celu": (ops.celu, [0.0, 100.0], [1.0, 1.0]),
    "SeLU": (nn.SeLU(), [0.0], [1.0507]),
    "L1Loss": (lambda x: nn.L1Loss()(x, LABEL), [0.0, 2.0], [0.0, 0.5]),
    "MAELoss": (lambda x: nn.MAELoss()(x, LABEL), [0.0, 2.0], [0.0, 0.5]),
    "l1_loss": (lambda x: ops.l1_loss(x, LABEL), [0.0, 2.0], [0.0, 0.5]),
    "hinge": (lambda x: nn.HingeEmbeddingLoss()(x, Tensor([-1.0, 1.0])), [1.0, 2.0], [-0.25, 0.5]),
    "cosine": (
        lambda x: nn.CosineEmbeddingLoss()(x, Tensor([[1.0, 0.0]]), Tensor(np.int32([-1]))), [[0.0, 1.0]], [[0.5, 0.0]]
    ),
    "relu6": (ops.relu6, [6.0, 0.0, 7.0], [1.0, 0.0, 0.0]),
    "HSwish": (nn.HSwish(), [-3.0, 3.0, 0.0, -4.0], [-0.5, 1.5, 0.5, 0.0]),
    "hardtanh": (lambda x: ops.hardtanh(x, -3.0, 3.0), [3.0, -3.0, 0.0], [0.5, 0.5, 1.0]),
    "ReLU6": (nn.ReLU6(), [6.0, 0.0, 7.0], [1.0, 0.0, 0.0]),
    "Hardtanh": (nn.Hardtanh(), [1.0, -1.0, 0.0, 2.0], [0.5, 0.5, 1.0, 0.0]),
    "max": (lambda x: ops.max(x, 0)[0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]),
    "max of NaN": (lambda x: ops.max(x, 0)[0], [np.nan, 1.0, np.nan], [1.0, 0.0, 0.0]),
    "min": (lambda x: ops.min(x, 1)[0], [[1.0, 1.0, 3.0]], [[1.0, 0.0, 0.0]]),
    "Tensor.max": (lambda x: x.max(axis=0, return_indices=True)[0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]),
    "ArgMaxWithValue": (lambda x: ops.ArgMaxWithValue(0)(x)[1], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]),
    "max of all": (lambda x: x.max(), [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
    "amax": (lambda x: ops.amax(x, 0), [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
    "fmax": (lambda x: ops.fmax(x, Tensor([1.0, 1.0, 1.0])), [1.0, 2.0, 0.0], [1.0, 1.0, 0.0]),
    "fmax, second": (lambda x: ops.fmax(Tensor([1.0, 1.0, 1.0]), x), [1.0, 2.0, 0.0], [0.0, 1.0, 0.0]),
    "fmod": (lambda x: ops.fmod(x, 1.0), [0.0, 0.5], [1.0, 1.0]),
    "copysign": (lambda x: ops.copysign(x, Tensor([-1.0, 1.0])), [0.0, 2.0], [0.0, 1.0]),
    "norm 1": (lambda x: ops.norm(x, 1), [3.0, 0.0, -3.0], [1.0, 0.0, -1.0]),
    "norm 2": (lambda x: ops.norm(x, 2, 1), [[3.0, 0.0, -3.0], [0.0, 0.0, 0.0]], [[0.7071, 0.0, -0.7071], [0.0] * 3]),
    "norm 3": (lambda x: ops.norm(x, 3), [0.0, 0.0], [0.0, 0.0]),
    "norm inf": (lambda x: ops.norm(x, float("inf")), [3.0, 0.0, -3.0], [1.0, 0.0, 0.0]),
    "norm -inf": (lambda x: ops.norm(x, -float("inf")), [3.0, 0.0, -3.0], [0.0, 0.0, 0.0]),
    "LpNorm": (lambda x: ops.LpNorm(0, 1)(x), [3.0, 0.0, -3.0], [1.0, 0.0, -1.0]),
    "dist": (lambda x: ops.dist(x, Tensor([0.0, 0.0])), [0.0, 0.0], [0.0, 0.0]),
    "dist 1": (lambda x: ops.dist(x, Tensor([0.0, 0.0]), 1.0), [3.0, 0.0], [1.0, 0.0]),
    "dist 3": (lambda x: ops.dist(x, Tensor([0.0, 0.0]), 3.0), [0.0, 0.0], [0.0, 0.0]),
    "cosine_similarity": (lambda x: ops.cosine_similarity(x, Tensor([[1.0, 0.0]])), [[0.0, 0.0]], [[1e8, 0.0]]),
    "numpy.abs": (mixtrain.numpy.abs, [0.0, -1.0], [0.0, -1.0]),
    "ranking at its margin": (
        lambda x: ops.margin_ranking_loss(x, LABEL, Tensor([1.0, 1.0]), 1.0, "none"), [1.0, 3.0], [-1.0, 0.0]
    ),
    "ranking": (
        lambda x: nn.MarginRankingLoss()(x, LABEL, Tensor([1.0, 1.0])), [0.0, 2.0], [-0.5, 0.0]
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_derivative_where_a_function_bends_is_mindspore_s(name: str) -> None:
    function, at, expected = CASES[name]
    np.testing.assert_allclose(ops.grad(function)(Tensor(np.float32(at))).asnumpy(), expected, 1e-4)


def test_the_values_of_a_maximum_stay_to_the_bit() -> None:
    x = np.float32([0.0, np.inf, np.nan, 1.0, -0.0, 3e38, -np.inf])
    np.testing.assert_array_equal(ops.maximum(Tensor(x), Tensor(x)).asnumpy(), x)
    np.testing.assert_array_equal(ops.maximum(Tensor(x), Tensor(x[::-1].copy())).asnumpy(), np.maximum(x, x[::-1]))
    assert ops.maximum(Tensor([1, 2]), Tensor([2, 2])).asnumpy().tolist() == [2, 2]


def test_maxima_and_norms_along_an_axis_of_unknown_size_are_taken_in_a_keras_model() -> None:
    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, [*ops.max(inputs, 1), ops.norm(inputs, 0, 1), ops.norm(inputs, 2, 1)])
    x = np.random.RandomState(0).randint(0, 3, (2, 5, 3)).astype(np.float32)
    values, indices, nonzero, norms = model.predict(x, verbose=0)
    np.testing.assert_array_equal(values, x.max(1))
    np.testing.assert_array_equal(indices, x.argmax(1))
    np.testing.assert_array_equal(nonzero, (x != 0).sum(1))
    np.testing.assert_allclose(norms, np.linalg.norm(x, axis=1), rtol=1e-6)


def test_the_maximum_of_a_number_counts_what_it_is_bounded_by() -> None:
    assert float(ops.max(Tensor(1.0), 0, initial=5.0)[0]) == 5.0
