"""Initial values: bounds and deviations of MindSpore's distributions, its names, and users' own initializers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mixtrain.common.initializer import (
    Constant,
    Dirac,
    HeNormal,
    HeUniform,
    Identity,
    Initializer,
    Normal,
    Orthogonal,
    Sparse,
    TruncatedNormal,
    Uniform,
    VarianceScaling,
    XavierNormal,
    XavierUniform,
    fans,
    initializer,
)
from mixtrain.seed import set_seed

SHAPE = (64, 32, 3, 3)  # fan_in 288, fan_out 576


def test_fans_count_the_receptive_field() -> None:
    assert fans(SHAPE) == (288, 576) and fans((10, 7)) == (7, 10)
    with pytest.raises(ValueError, match=r"fans need a weight of at least 2 axes; got \(3,\)"):
        fans((3,))


@pytest.mark.parametrize(
    ("init", "bound"),
    [
        (Uniform(), 0.07),
        (Uniform(0.5), 0.5),
        (XavierUniform(), math.sqrt(6 / 864)),
        (XavierUniform(2), 2 * math.sqrt(6 / 864)),
        (HeUniform(math.sqrt(5)), 1 / math.sqrt(288)),
        (HeUniform(mode="fan_out", nonlinearity="relu"), math.sqrt(2) * math.sqrt(3 / 576)),
        (HeUniform(nonlinearity="tanh"), 5 / 3 * math.sqrt(3 / 288)),
    ],
    ids=repr,
)
def test_uniform_distributions_fill_their_interval(init: Initializer, bound: float) -> None:
    values = init.make(SHAPE)
    assert values.dtype == np.float32
    assert np.abs(values).max() <= bound
    assert np.abs(values).max() > 0.99 * bound
    assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize(
    ("init", "mean", "deviation"),
    [
        (Normal(), 0.0, 0.01),
        (Normal(0.5, 2.0), 2.0, 0.5),
        (XavierNormal(), 0.0, math.sqrt(2 / 864)),
        (HeNormal(), 0.0, math.sqrt(2 / 288)),
        (HeNormal(negative_slope=1), 0.0, math.sqrt(1 / 288)),
        (TruncatedNormal(0.02), 0.0, 0.02),
    ],
    ids=repr,
)
def test_normal_distributions_have_their_mean_and_deviation(init: Initializer, mean: float, deviation: float) -> None:
    values = init.make(SHAPE)
    assert values.mean() == pytest.approx(mean, abs=4 * deviation / math.sqrt(values.size))
    assert values.std() == pytest.approx(deviation, rel=0.02)


def test_the_bounds_of_a_truncated_normal_are_values_not_deviations() -> None:
    values = TruncatedNormal(sigma=1.0, a=-0.5, b=0.25).make((1000,))
    assert -0.5 <= values.min() < -0.45 and 0.2 < values.max() <= 0.25
    with pytest.raises(ValueError, match="a must be less than b"):
        TruncatedNormal(a=1.0, b=1.0)


@pytest.mark.parametrize(
    "name",
    ["zeros", "Zero", "ones", "ONE", "normal", "Uniform", "xavier_uniform", "XavierUniform", "he_normal", "HeUniform"],
)
def test_names_are_understood_in_any_case_with_and_without_underscores(name: str) -> None:
    assert tuple(initializer(name, (3, 2)).shape) == (3, 2)


def test_numbers_tensors_and_initializers_are_understood() -> None:
    assert initializer(0.5, 3).asnumpy().tolist() == [0.5] * 3
    assert initializer(Constant(2), [2], "int32").asnumpy().tolist() == [2, 2]
    assert initializer(Identity(), (2, 2)).asnumpy().tolist() == [[1, 0], [0, 1]]
    assert initializer(np.ones((2,), np.float32), (2,)).asnumpy().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("norml", (2, 2)), ValueError, "init must be one of .*normal"),
        (("zeros", (0,)), ValueError, "shape must be positive ints"),
        (("zeros",), ValueError, "shape must be positive ints"),
        ((None, (2,)), TypeError, "init must be a Initializer"),
        ((np.ones(3), (2,)), ValueError, r"init must have shape \(2,\); got \(3,\)"),
    ],
)
def test_what_cannot_be_made_is_an_error(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        initializer(*arguments)


def test_a_user_s_initializer_fills_the_array_and_must_define_how() -> None:
    class Ramp(Initializer):
        def _initialize(self, arr: np.ndarray) -> None:
            arr[:] = np.arange(arr.size)

    assert initializer(Ramp(), (3,)).asnumpy().tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError, match=r"must define _initialize\(self, arr\)"):
        initializer(Initializer(), (3,))


def test_the_seed_repeats_values_and_two_draws_differ() -> None:
    set_seed(3)
    first, second = Normal().make((4,)), Normal().make((4,))
    set_seed(3)
    np.testing.assert_array_equal(Normal().make((4,)), first)
    assert not np.array_equal(first, second)


def test_dirac_passes_each_channel_on() -> None:
    weight = initializer("dirac", (4, 2, 3)).asnumpy()
    assert np.argwhere(weight).tolist() == [[0, 0, 1], [1, 1, 1]] and weight.sum() == 2
    grouped = Dirac(groups=2).make((4, 2, 3))
    assert np.argwhere(grouped).tolist() == [[0, 0, 1], [1, 1, 1], [2, 0, 1], [3, 1, 1]]


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
def test_orthogonal_vectors_have_the_length_of_the_gain(shape: tuple[int, ...]) -> None:
    matrix = Orthogonal(2.0).make(shape).reshape(shape[0], -1)
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4.0 * np.eye(len(product)), atol=1e-5)


def test_sparse_columns_have_their_share_of_zeros() -> None:
    matrix = Sparse(0.25, sigma=1.0).make((8, 5))
    assert (matrix == 0).sum(axis=0).tolist() == [2] * 5


@pytest.mark.parametrize("distribution", ["uniform", "truncated_normal", "untruncated_normal"])
@pytest.mark.parametrize(("mode", "fan"), [("fan_in", 100), ("fan_out", 400), ("fan_avg", 250)])
def test_variance_scaling_has_the_variance_of_its_fan(distribution: str, mode: str, fan: int) -> None:
    values = VarianceScaling(3.0, mode, distribution).make((400, 100))
    assert abs(values.var() * fan / 3.0 - 1) < 0.05


def test_scripts_find_the_fans_under_the_references_name() -> None:
    from mixtrain.common.initializer import _calculate_fan_in_and_fan_out

    assert _calculate_fan_in_and_fan_out((3, 4, 5, 5)) == (100, 75)
