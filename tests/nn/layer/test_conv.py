"""Conv2d gives the reference's numbers, and refuses what does not fit."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16, float32
from mixtrain.nn.layer import Conv2d, SequentialCell
from mixtrain.seed import set_seed
from tests.backends import quick_every
from tests.nn.reference import case

OPTIONS: dict[str, dict[str, Any]] = {
    "same": {},
    "same_k2": {"kernel_size": 2},
    "same_s2": {"stride": 2},
    "same_s2_k4": {"stride": 2, "kernel_size": 4},
    "same_d2": {"dilation": 2},
    "valid": {"pad_mode": "valid"},
    "valid_s2_d2": {"pad_mode": "valid", "stride": 2, "dilation": 2},
    "pad_1": {"pad_mode": "pad", "padding": 1},
    "pad_tblr": {"pad_mode": "pad", "padding": (1, 0, 2, 3)},
    "pad_s2_d2": {"pad_mode": "pad", "padding": 2, "stride": 2, "dilation": 2},
    "group2": {"group": 2},
    "rect": {"kernel_size": (2, 3), "stride": (1, 2)},
    "nobias": {"has_bias": False},
}


def make(name: str) -> tuple[Conv2d, dict[str, Any]]:
    expected = case(f"conv2d_{name}")
    conv = Conv2d(4, 6, **{"kernel_size": 3, "has_bias": True, **OPTIONS[name]})
    conv.weight.set_data(expected["weight"])
    if conv.has_bias:
        conv.bias.set_data(expected["bias"])
    return conv, expected


@quick_every(4)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("compiled", [False, True])
def test_output_is_the_references(name: str, compiled: bool) -> None:
    conv, expected = make(name)
    run = backend.compile_function(conv, choice=JitChoice(False, "test")) if compiled else conv
    assert np.abs(backend.to_numpy(run(Tensor(expected["x"]))) - expected["y"]).max() < 1e-5


@quick_every(2)
@pytest.mark.parametrize("name", ["same_s2", "same_d2", "valid_s2_d2", "pad_tblr", "group2"])
def test_gradient_is_that_of_the_formula(name: str) -> None:
    conv, expected = make(name)
    x = Tensor(expected["x"])
    _, _, (by_weight, by_x) = backend.value_and_gradient(
        lambda x: (keras.ops.sum(conv(x)), None), [conv.weight], [x]
    )
    # The sum of the output is linear in each: its value is the gradient times the argument, the bias apart.
    count = np.prod(expected["y"].shape) // 6
    total = expected["y"].sum() - expected["bias"].sum() * count
    assert math.isclose((backend.to_numpy(by_weight) * expected["weight"]).sum(), total, rel_tol=1e-3, abs_tol=1e-3)
    assert math.isclose((backend.to_numpy(by_x) * expected["x"]).sum(), total, rel_tol=1e-3, abs_tol=1e-3)


@pytest.mark.parametrize("stride", [1, 2, (1, 2)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_depthwise_convolution_is_one_filter_for_each_channel(stride: Any, dilation: int) -> None:
    set_seed(0)
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((2, 3, 7, 6)).astype(np.float32))
    conv = Conv2d(3, 6, 3, stride, group=3, dilation=dilation)
    whole = backend.to_numpy(conv(x))
    for channel in range(3):
        alone = Conv2d(1, 2, 3, stride, dilation=dilation)
        alone.weight.set_data(conv.weight.asnumpy()[2 * channel : 2 * channel + 2])
        part = backend.to_numpy(alone(x[:, channel : channel + 1]))
        assert np.abs(whole[:, 2 * channel : 2 * channel + 2] - part).max() < 1e-5


def test_parameters_have_the_references_names_shapes_and_bounds() -> None:
    set_seed(1)
    conv = Conv2d(8, 64, (3, 5), group=2, has_bias=True)
    assert [(p.name, tuple(p.shape)) for p in conv.get_parameters()] == [("weight", (64, 4, 3, 5)), ("bias", (64,))]
    bound = 1 / math.sqrt(4 * 3 * 5)
    for parameter in conv.get_parameters():
        largest = np.abs(parameter.asnumpy()).max()
        assert 0.9 * bound < largest <= bound


def test_bias_is_left_out_by_default() -> None:
    conv = Conv2d(1, 2, 3)
    assert conv.bias is None
    assert [p.name for p in conv.get_parameters()] == ["weight"]


def test_representation_is_the_references() -> None:
    assert repr(Conv2d(1, 2, 3)) == (
        "Conv2d(input_channels=1, output_channels=2, kernel_size=(3, 3), stride=(1, 1), pad_mode=same, padding=0, "
        "dilation=(1, 1), group=1, has_bias=False, weight_init=None, bias_init=None, format=NCHW)"
    )


@pytest.mark.parametrize("half", [float16, bfloat16])
def test_half_input_meets_float32_weights_in_float32(half: Any) -> None:
    y = Conv2d(2, 3, 3, has_bias=True)(Tensor(np.ones((1, 2, 4, 4)), half))
    assert y.dtype == float32


@pytest.mark.parametrize("half", [float16, bfloat16])
def test_to_float_computes_in_half_and_keeps_float32_parameters(half: Any) -> None:
    conv = Conv2d(2, 3, 3, has_bias=True).to_float(half)
    assert conv(Tensor(np.ones((1, 2, 4, 4)), float32)).dtype == half
    assert {p.stored_dtype for p in conv.get_parameters()} == {float32}


def test_wrong_channel_count_names_the_cell_the_axis_and_the_cure() -> None:
    net = SequentialCell(Conv2d(3, 6, 5))
    message = r"^Conv2d 0: expected 3 channels on axis 1; got 1 \(input shape \(32, 1, 28, 28\)\). Write Conv2d\(in_ch"
    with pytest.raises(ValueError, match=message):
        net(Tensor(np.ones((32, 1, 28, 28), np.float32)))
    with pytest.raises(ValueError, match="channels come first"):
        net(Tensor(np.ones((2, 28, 28, 3), np.float32)))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((2, 4), np.float32), r"expected 4 axes \(N, C, H, W\); got input shape \(2, 4\)"),
        (np.ones((2, 3, 4, 4), np.float32), "expected at least 5 rows"),
        (np.ones((2, 3, 5, 4), np.float32), "expected at least 5 columns"),
    ],
)
def test_input_that_does_not_fit_is_a_value_error(x: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Conv2d(3, 6, 5, pad_mode="valid")(Tensor(x))


def test_input_that_is_no_float_tensor_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="expected a floating-point input; got uint8"):
        Conv2d(3, 6, 5)(np.ones((2, 3, 8, 8), np.uint8))
    with pytest.raises(TypeError, match="the input must be a Tensor; got list"):
        Conv2d(3, 6, 5)([[1.0]])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"pad_mode": "SAME"}, ValueError, 'must be one of same, valid, pad; got .SAME.. Write pad_mode="same"'),
        ({"padding": 1}, ValueError, 'padding must be 0 with pad_mode="same"; got 1. Write pad_mode="pad", padding=1'),
        ({"pad_mode": "pad", "padding": (1, 2)}, ValueError, r"an int or \(top, bottom, left, right\)"),
        ({"pad_mode": "pad", "padding": -1}, ValueError, "padding must be at least 0"),
        ({"pad_mode": "pad", "padding": "1"}, TypeError, "padding must be an int"),
        ({"kernel_size": 0}, ValueError, "kernel_size must be at least 1"),
        ({"kernel_size": (1, 2, 3)}, ValueError, "kernel_size must be an int or two of them"),
        ({"stride": 1.5}, TypeError, "stride must be an int"),
        ({"group": 2}, ValueError, "in_channels must be a multiple of group=2; got 3"),
        ({"has_bias": 1}, TypeError, "has_bias must be True or False"),
        ({"data_format": "NHWC"}, ValueError, "data_format must be one of NCHW"),
        ({"in_channels": 0}, ValueError, "in_channels must be at least 1"),
    ],
)
def test_bad_argument_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Conv2d(**{"in_channels": 3, "out_channels": 6, "kernel_size": 3, **arguments})
