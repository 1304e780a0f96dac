"""MaxPool2d and AvgPool2d give the reference's numbers, and refuse what does not fit."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16
from mixtrain.nn.layer import AvgPool2d, MaxPool2d
from tests.backends import quick_every
from tests.nn.reference import case

COMMON: dict[str, dict[str, Any]] = {
    "valid": {},
    "same": {"pad_mode": "same"},
    "same_k2_s1": {"kernel_size": 2, "stride": 1, "pad_mode": "same"},
    "same_k2_s2": {"kernel_size": 2, "pad_mode": "same"},
    "pad": {"pad_mode": "pad", "padding": 1},
    "pad_ceil": {"kernel_size": 2, "pad_mode": "pad", "padding": 1, "ceil_mode": True},
}
AVERAGE: dict[str, dict[str, Any]] = {
    "pad_exclude": {"pad_mode": "pad", "padding": 1, "count_include_pad": False},
    "valid_ceil": {"kernel_size": 2, "pad_mode": "valid", "ceil_mode": True},
    "divisor": {"pad_mode": "pad", "padding": 1, "divisor_override": 2},
}
ALL = [(MaxPool2d, name, options) for name, options in COMMON.items()]
ALL += [(AvgPool2d, name, options) for name, options in {**COMMON, **AVERAGE}.items()]


def numpy_of(value: Any) -> np.ndarray:
    return backend.to_numpy(value)


@quick_every(13)
@pytest.mark.parametrize(("kind", "name", "options"), ALL)
@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
def test_output_is_the_references(kind: Any, name: str, options: dict[str, Any], mode: str) -> None:
    expected = case(f"{kind.__name__.lower()}_{name}")
    pool = kind(**{"kernel_size": 3, "stride": 2, **options})
    run = pool if mode == "eager" else backend.compile_function(pool, choice=JitChoice(mode == "xla", "test"))
    assert np.abs(numpy_of(run(Tensor(expected["x"]))) - expected["y"]).max() < 1e-5


@quick_every(2)
@pytest.mark.parametrize(("kind", "name", "options"), ALL)
@pytest.mark.parametrize("half", [float16, bfloat16])
def test_half_stays_half(kind: Any, name: str, options: dict[str, Any], half: Any) -> None:
    expected = case(f"{kind.__name__.lower()}_{name}")
    y = kind(**{"kernel_size": 3, "stride": 2, **options})(Tensor(expected["x"], half))
    assert y.dtype == half
    assert np.abs(numpy_of(y) - expected["y"]).max() < 0.1


@quick_every(4)
@pytest.mark.parametrize(("kind", "name", "options"), ALL)
def test_gradients_of_the_sum_are_finite(kind: Any, name: str, options: dict[str, Any]) -> None:
    x = Tensor(case(f"{kind.__name__.lower()}_{name}")["x"])
    pool = kind(**{"kernel_size": 3, "stride": 2, **options})
    _, _, (gradient,) = backend.value_and_gradient(lambda x: (keras.ops.sum(pool(x)), None), [], [x])
    # The output is homogeneous of degree one in the input.
    assert (numpy_of(gradient) * numpy_of(x)).sum() == pytest.approx(numpy_of(pool(x)).sum(), rel=1e-4)


def windows(x: np.ndarray, options: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return maxima and their flat indices, computed window by window."""
    size, stride, padding, dilation = 2, options.get("stride", 1), options["padding"], options.get("dilation", 1)
    height, width = x.shape
    window = (size - 1) * dilation + 1
    rows, columns = ((n + 2 * padding - window) // stride + 1 for n in (height, width))
    maxima, indices = np.empty((rows, columns), np.float32), np.empty((rows, columns), np.int64)
    for row in range(rows):
        for column in range(columns):
            top, left = row * stride - padding, column * stride - padding
            inside = [(r, c) for r in range(top, top + window, dilation) for c in range(left, left + window, dilation)
                      if 0 <= r < height and 0 <= c < width]
            best = max(inside, key=lambda index: x[index])
            maxima[row, column], indices[row, column] = x[best], best[0] * width + best[1]
    return maxima, indices


@quick_every(5)
@pytest.mark.parametrize("options", [{"padding": 1}, {"padding": 1, "stride": 2}, {"padding": 0, "dilation": 2},
                                     {"padding": 1, "dilation": 2, "stride": 2}])
@pytest.mark.parametrize("compiled", [False, True])
def test_maxima_of_dilated_windows_and_their_indices(options: dict[str, Any], compiled: bool) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 5)).astype(np.float32)
    pool = MaxPool2d(2, pad_mode="pad", return_indices=True, **options)
    run = backend.compile_function(pool, choice=JitChoice(False, "test")) if compiled else pool
    maxima, indices = map(numpy_of, run(Tensor(x)))
    for image in range(2):
        for channel in range(3):
            expected = windows(x[image, channel], options)
            assert (maxima[image, channel] == expected[0]).all()
            assert (indices[image, channel] == expected[1]).all()
    alone = MaxPool2d(2, pad_mode="pad", **options)
    assert (numpy_of(alone(Tensor(x))) == maxima).all()


@pytest.mark.parametrize("kind", [MaxPool2d, AvgPool2d])
def test_batch_axis_may_be_missing(kind: Any) -> None:
    x = np.arange(32, dtype=np.float32).reshape(2, 4, 4)
    pool = kind(2, 2)
    assert (numpy_of(pool(Tensor(x))) == numpy_of(pool(Tensor(x[None])))[0]).all()


def test_step_is_one_by_default() -> None:
    assert tuple(MaxPool2d(2)(Tensor(np.ones((1, 1, 4, 4), np.float32))).shape) == (1, 1, 3, 3)
    assert tuple(AvgPool2d(2)(Tensor(np.ones((1, 1, 4, 4), np.float32))).shape) == (1, 1, 3, 3)


def test_divisor_divides_the_sums_of_same_too() -> None:
    y = AvgPool2d(2, 2, "same", divisor_override=1)(Tensor(np.ones((1, 1, 3, 3), np.float32)))
    assert numpy_of(y)[0, 0].tolist() == [[4.0, 2.0], [2.0, 1.0]]


def test_representation_is_the_references() -> None:
    assert repr(MaxPool2d(2, 2)) == "MaxPool2d(kernel_size=2, stride=2, pad_mode=VALID)"
    assert repr(AvgPool2d((2, 3), pad_mode="Same")) == "AvgPool2d(kernel_size=(2, 3), stride=1, pad_mode=SAME)"


def test_window_that_does_not_fit_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"MaxPool2d: expected at least 3 rows, .*; got input shape \(1, 1, 2, 4\)"):
        MaxPool2d(3)(Tensor(np.ones((1, 1, 2, 4), np.float32)))
    with pytest.raises(ValueError, match=r"AvgPool2d: expected 3 or 4 axes"):
        AvgPool2d(3)(Tensor(np.ones((2, 4), np.float32)))


@pytest.mark.parametrize(
    ("kind", "arguments", "error", "message"),
    [
        (MaxPool2d, {"pad_mode": "full"}, ValueError, "pad_mode must be one of valid, same, pad"),
        (MaxPool2d, {"padding": 1}, ValueError, 'padding must be 0 with pad_mode="valid"'),
        (MaxPool2d, {"pad_mode": "pad", "padding": 2}, ValueError, "padding must be at most half of kernel_size"),
        (MaxPool2d, {"ceil_mode": True}, ValueError, 'ceil_mode need pad_mode="pad"'),
        (MaxPool2d, {"stride": 0}, ValueError, "stride must be at least 1"),
        (AvgPool2d, {"kernel_size": "2"}, TypeError, "kernel_size must be an int"),
        (AvgPool2d, {"divisor_override": 0}, ValueError, "divisor_override must be at least 1"),
        (AvgPool2d, {"count_include_pad": 1}, TypeError, "count_include_pad must be True or False"),
        (AvgPool2d, {"pad_mode": "pad", "padding": (1, 1, 1)}, ValueError, "padding must be an int or"),
    ],
)
def test_bad_argument_is_refused(kind: Any, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kind(**{"kernel_size": 3, **arguments})
