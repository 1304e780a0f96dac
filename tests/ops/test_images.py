"""Operations on images: layouts, formats, half-pixel grids, and bad arguments; the reference's values are elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import backend, nn, ops
from mixtrain.backend import nhwc_of
from tests.backends import quick_every

RNG = np.random.default_rng(5)
IMAGE = RNG.standard_normal((2, 4, 6, 8)).astype(np.float32)
WEIGHT = RNG.standard_normal((4, 4, 3, 3)).astype(np.float32)

CHAIN: dict[str, Callable[[Any], Any]] = {
    "conv2d": lambda x: ops.conv2d(x, WEIGHT, pad_mode="same"), "bias_add": lambda x: ops.bias_add(x, np.ones(4, "f")),
    "relu": ops.relu, "hardswish": ops.HSwish(), "MaxPool": ops.MaxPool(2, 2), "AvgPool": ops.AvgPool(2, 2, "same"),
    "max_pool2d": lambda x: ops.max_pool2d(x, 3, 2, 1), "resize": ops.ResizeBilinear((5, 5)),
    "nearest": ops.ResizeNearestNeighbor((5, 5)), "adaptive": lambda x: ops.adaptive_avg_pool2d(x, 2),
    "interpolate": lambda x: ops.interpolate(x, scale_factor=2.0, mode="bilinear"),
}


@quick_every(2)
@pytest.mark.parametrize("name", CHAIN)
def test_channels_last_is_kept_between_operations_with_the_same_numbers(name: str) -> None:
    kept = []

    def run(x: Any) -> Any:
        y = CHAIN[name](ops.MaxPool(1, 1)(x))
        kept.append(nhwc_of(y) is not None)
        return y

    compiled = backend.to_numpy(mixtrain.jit(run)(IMAGE))
    np.testing.assert_allclose(compiled, backend.to_numpy(run(mixtrain.Tensor(IMAGE))), rtol=1e-5, atol=1e-5)
    assert kept == [True, False]


def test_half_and_float32_meet_in_the_wider_format() -> None:
    half = ops.cast(mixtrain.Tensor(IMAGE), mixtrain.float16)
    assert ops.conv2d(half, WEIGHT).dtype.name == "float32"
    assert ops.conv2d(half, ops.cast(WEIGHT, mixtrain.float16)).dtype.name == "float16"
    assert ops.bias_add(half, np.ones(4, np.float32)).dtype.name == "float32"
    assert ops.MaxPool(2)(half).dtype.name == ops.ResizeBilinear((2, 2))(half).dtype.name == "float16"


def test_a_dilated_grouped_strided_convolution_is_that_of_the_cell() -> None:
    cell = nn.Conv2d(4, 6, 3, stride=2, pad_mode="pad", padding=(1, 2, 0, 1), dilation=2, group=2)
    x = mixtrain.Tensor(IMAGE)
    y = ops.Conv2D(6, 3, 1, "pad", (1, 2, 0, 1), 2, 2, 2)(x, cell.weight)
    np.testing.assert_allclose(backend.to_numpy(y), backend.to_numpy(cell(x)), rtol=1e-5, atol=1e-5)


def test_windows_are_read_as_the_reference_writes_them() -> None:
    x = mixtrain.Tensor(IMAGE)
    assert tuple(ops.MaxPool((1, 1, 2, 2), (1, 1, 3, 2), "VALID")(x).shape) == (2, 4, 2, 4)
    assert ops.AvgPool(kernel_size=(2, 3), strides=2, pad_mode="SAME").pad_mode == "SAME"


def test_nearest_on_a_half_pixel_grid_takes_the_pixel_under_each_middle() -> None:
    x = mixtrain.Tensor(np.arange(4, dtype=np.int32).reshape(1, 1, 1, 4))
    resized = ops.ResizeNearestNeighbor((1, 3), half_pixel_centers=True)(x)
    assert (resized.dtype.name, backend.to_numpy(resized).ravel().tolist()) == ("int32", [0, 2, 3])


def test_scales_and_sequences_are_interpolated() -> None:
    x = mixtrain.Tensor([[[0.0, 1.0, 2.0]]])
    assert backend.to_numpy(ops.interpolate(x, scale_factor=2.0)).tolist() == [[[0, 0, 1, 1, 2, 2]]]
    line = ops.interpolate(x, 5, mode="linear", align_corners=True)
    assert backend.to_numpy(line).tolist() == [[[0.0, 0.5, 1.0, 1.5, 2.0]]]


BAD: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: ops.conv2d(x, WEIGHT[:, :2]), ValueError, "ops.conv2d: weight must be for 4 channels in 1 groups"),
    (lambda x: ops.conv2d(x, WEIGHT[0]), ValueError, "weight must have axes (out, in, height, width)"),
    (lambda x: ops.conv2d(x, WEIGHT, np.ones(3, "f")), ValueError, "bias must have shape (4,)"),
    (lambda x: ops.conv2d(x, WEIGHT, padding=1), ValueError, 'padding must be 0 with pad_mode="valid"'),
    (lambda x: ops.conv2d(x, WEIGHT, pad_mode="full"), ValueError, "pad_mode must be one of valid, same, pad"),
    (lambda x: ops.conv2d(x[:, :, :2], WEIGHT), ValueError, "the input must be at least 3 high or wide"),
    (lambda x: ops.conv2d(ops.cast(x, mixtrain.int32), WEIGHT), TypeError, "the input must hold floats"),
    (lambda x: ops.conv2d(x[0], WEIGHT), ValueError, "the input must have axes (N, C, H, W)"),
    (lambda x: ops.Conv2D(4, 5)(x, WEIGHT), ValueError, "weight must have 4 outputs and a window (5, 5)"),
    (lambda x: ops.Conv2D(4, 3, mode=2), ValueError, "Conv2D: mode must be one of 1"),
    (lambda x: ops.MaxPool(2, data_format="NHWC"), ValueError, "MaxPool: data_format must be one of NCHW"),
    (lambda x: ops.MaxPool(9)(x), ValueError, "MaxPool: the input must be at least 9"),
    (lambda x: ops.MaxPool((1, 2, 3)), ValueError, "MaxPool: kernel_size must be an int or (height, width)"),
    (lambda x: ops.AvgPool(2, pad_mode="pad"), ValueError, "AvgPool: pad_mode must be one of valid, same"),
    (lambda x: ops.max_pool2d(x, 2, padding=2), ValueError, "padding must be at most half of kernel_size"),
    (lambda x: ops.max_pool2d(x, 2, ceil_mode=True), ValueError, "ops.max_pool2d: dilation must be 1 and ceil_mode"),
    (lambda x: ops.avg_pool2d(x, 2, ceil_mode=True), ValueError, "ops.avg_pool2d: ceil_mode must be False"),
    (lambda x: ops.adaptive_avg_pool2d(x, "a"), TypeError, "output_size must be an int"),
    (lambda x: ops.bias_add(mixtrain.Tensor([1.0]), [1.0]), ValueError, "input_x must have at least 2 axes"),
    (lambda x: ops.ResizeBilinear(3), TypeError, "ResizeBilinear: size must be (height, width)"),
    (lambda x: ops.ResizeBilinear((3, 3), True, True), ValueError, "half_pixel_centers must be False"),
    (lambda x: ops.ResizeNearestNeighbor((3, 3))(x[0]), ValueError, "the input must have axes (N, C, H, W)"),
    (lambda x: ops.interpolate(x), ValueError, "give one of size and scale_factor"),
    (lambda x: ops.interpolate(x, 3, mode="linear"), ValueError, 'must have 3 axes for mode="linear"'),
    (lambda x: ops.interpolate(x, 3, mode="cubic"), ValueError, "mode must be one of nearest"),
    (lambda x: ops.interpolate(x, (3,)), ValueError, "size or scale_factor must have 2 entries"),
]


@quick_every(3)
@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_arguments_are_refused(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call(mixtrain.Tensor(IMAGE))
    assert message in str(caught.value)


@pytest.mark.parametrize("mode", ["VALID", "SAME"])
def test_volumes_of_float64_are_max_pooled_as_those_of_float32(mode: str) -> None:
    x = np.random.RandomState(0).randint(0, 9, (2, 3, 5, 6, 7)).astype(np.float64)
    pool = ops.MaxPool3D((2, 3, 2), (1, 2, 2), mode)
    wide, narrow = (pool(mixtrain.Tensor(x.astype(dtype))).asnumpy() for dtype in (np.float64, np.float32))
    np.testing.assert_array_equal(wide, narrow)
