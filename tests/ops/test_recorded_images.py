"""Crops, cumulative extremes and sizes that are Tensors: the values of mindspore 2.10.0 on a CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, nn, ops

IMAGES = Tensor(np.arange(2 * 32 * 18 * 2).reshape(2, 32, 18, 2).astype(np.int16))
BOXES = Tensor([[0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.75, 1.75], [0.1, 0.9, 0.8, 0.1], [0.9, 0.1, 0.1, 0.8]])
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("method", "rows"),
    [
        ("nearest", [[1170, 1160, 1152], [0, 30, 0.5], [1290, 1278, 1264], [1012, 1024, 1036]]),
        ("bilinear", [[1169, 1160.5, 1152], [0, 29.75, 0.5], [1294.2, 1280.6, 1267], [1007.8, 1019.7, 1031.6]]),
        ("bilinear_v2", [
            [1213.2, 1213.2, 1213.2], [81.66666, 103, 106], [1356.8, 1356.8, 1356.8], [1013.66663, 1023, 1032.33325],
        ]),
    ],
)
def test_crops_of_boxes_that_are_flipped_or_leave_the_image(method: str, rows: Any) -> None:
    crops = ops.CropAndResize(method, 0.5)(IMAGES, BOXES, Tensor([1, 0, 1, 0], mixtrain.int32), (5, 3))
    assert crops.shape == (4, 5, 3, 2)
    np.testing.assert_allclose(crops.asnumpy()[:, 0, :, 0], rows, rtol=1e-5)


@pytest.mark.parametrize(
    ("x", "smallest", "largest"),
    [
        ([4, INF, 1.5, -INF, 0, NAN, 1], [0, 0, 2, 3, 3, 5, 5], [0, 1, 1, 1, 1, 5, 5]),
        ([NAN, 1, NAN], [0, 0, 2], [0, 0, 2]), ([2, 1, NAN, 3, NAN], [0, 1, 2, 2, 4], [0, 0, 2, 2, 4]),
    ],
)
def test_the_index_of_a_cumulative_extreme_after_a_nan_is_that_of_the_last_nan(
    x: list[float], smallest: list[int], largest: list[int]
) -> None:
    assert ops.cummin(Tensor(x, mixtrain.float32), 0)[1].asnumpy().tolist() == smallest
    assert ops.cummax(Tensor(x, mixtrain.float32), 0)[1].asnumpy().tolist() == largest


def test_sizes_may_be_tensors_of_one_number() -> None:
    for k in (Tensor(2, mixtrain.int32), Tensor([2], mixtrain.int32)):
        values, indices = ops.topk(Tensor([[1.0, 3.0, 2.0]]), k)
        assert (values.asnumpy().tolist(), indices.asnumpy().tolist()) == ([[3.0, 2.0]], [[1, 2]])
    assert sorted(ops.randperm(Tensor([4]), dtype=mixtrain.float16).asnumpy().tolist()) == [0, 1, 2, 3]


def test_a_pool_chooses_the_dtype_of_its_indices() -> None:
    x = Tensor(np.arange(12).reshape(1, 1, 3, 4), mixtrain.float32)
    values, indices = ops.MaxPoolWithArgmaxV2((2, 2), (1, 1), 0, 1, False, mixtrain.int32)(x)
    assert indices.dtype == mixtrain.int32 and indices.asnumpy().tolist() == values.asnumpy().tolist()
    with pytest.raises(TypeError, match="argmax_type must be one of"):
        ops.MaxPoolWithArgmaxV2((2, 2), argmax_type=mixtrain.float32)(x)


def test_normal_numbers_like_a_tensor_are_float32() -> None:
    assert ops.randn_like(Tensor([1.0], mixtrain.float16)).dtype == mixtrain.float32
    assert ops.rand_like(Tensor([1.0], mixtrain.float16)).dtype == mixtrain.float16


@pytest.mark.parametrize("layer", [False, True])
@pytest.mark.parametrize(
    ("mode", "size", "axes", "first"),
    [
        ("bicubic", (3, 3), 4, [0.75648487, 2.5154085, 4.274332, 7.7410765]),
        ("area", (2, 4, 3), 5, [0.5, 2.0, 3.5, 5.5]), ("trilinear", (2, 2, 2), 5, [3.25, 5.75, 13.25, 15.75]),
        ("area", (2, 3), 4, [3.0, 4.5, 6.0, 13.0]), ("nearest-exact", (3, 3), 4, [0.0, 2.0, 4.0, 10.0]),
        ("linear", (3,), 3, [0.33333334, 2.0, 3.6666667, 5.3333335]), ("area", (2,), 3, [1.0, 3.0, 6.0, 8.0]),
    ],
)
def test_images_sequences_and_volumes_are_resized_in_each_mode(
    mode: str, size: tuple[int, ...], axes: int, first: list[float], layer: bool
) -> None:
    x = np.arange(20, dtype=np.float32).reshape(1, 1, 4, 5)
    images = Tensor({3: x[0], 4: x, 5: x[None]}[axes])
    resized = nn.Upsample(size=size, mode=mode)(images) if layer else ops.interpolate(images, size=size, mode=mode)
    assert resized.shape[2:] == size
    np.testing.assert_allclose(resized.asnumpy().ravel()[:4], first, rtol=1e-5)
    half = ops.interpolate(images.astype(mixtrain.float16), size=size, mode=mode)
    assert half.dtype == mixtrain.float16
    np.testing.assert_allclose(half.asnumpy().ravel()[:4], first, rtol=2e-3)


def test_a_mode_for_other_axes_is_refused_with_those_that_fit() -> None:
    with pytest.raises(ValueError, match='must have 4 axes for mode="bicubic"; got .* Write "nearest" or .* "linear"'):
        ops.interpolate(Tensor(np.ones((1, 2, 3), np.float32)), size=6, mode="bicubic")
