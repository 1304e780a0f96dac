"""Layers that wrap one operation: exact outputs and error messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain import backend, nn
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16, int32
from tests.backends import quick_every


def numpy_of(value: Any) -> np.ndarray:
    return backend.to_numpy(value)


def ones(*shape: int) -> Any:
    return Tensor(np.ones(shape, np.float32))


NAMES = [
    "relu", "relu6", "rrelu", "leakyrelu", "prelu", "elu", "silu", "gelu", "fast_gelu", "mish", "hswish", "sigmoid",
    "hsigmoid", "logsigmoid", "tanh", "tanhshrink", "hardtanh", "softsign", "softshrink", "hshrink", "softmax",
    "logsoftmax", "softmin",
]


@quick_every(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("half", [float16, bfloat16])
def test_activations_by_name_keep_shape_and_run_in_half(name: str, half: Any) -> None:
    cell = nn.get_activation(name)
    x = Tensor([[-3.0, -0.25, 0.0, 0.25, 3.0]], half)
    y = cell.to_float(half)(x)
    assert y.dtype == half and tuple(y.shape) == (1, 5)
    assert np.isfinite(numpy_of(y).astype(np.float32)).all()


def test_an_unknown_activation_offers_the_nearest() -> None:
    assert nn.get_activation(None) is None
    assert isinstance(nn.get_activation("softmax2d"), nn.Softmax2d)
    with pytest.raises(ValueError, match='^Mine: name must be one of relu, .*; got .hardswish.. Write name="hswish".$'):
        nn.get_activation("hardswish", "Mine")


def test_activations_with_numbers_use_and_check_them() -> None:
    x = Tensor([-2.0, -0.3, 0.3, 2.0])
    assert numpy_of(nn.ELU(2.0)(x))[0] == pytest.approx(2 * (np.exp(-2) - 1))
    assert numpy_of(nn.Hardtanh(-0.5, 1.0)(x)) == pytest.approx([-0.5, -0.3, 0.3, 1.0])
    assert numpy_of(nn.Threshold(0.0, 9.0)(x)) == pytest.approx([9.0, 9.0, 0.3, 2.0])
    assert numpy_of(nn.SoftShrink(0.5)(x)) == pytest.approx([-1.5, 0, 0, 1.5])
    assert numpy_of(nn.HShrink(0.5)(x)) == pytest.approx([-2, 0, 0, 2])
    with pytest.raises(ValueError, match="Hardtanh: max_val must be greater than 1"):
        nn.Hardtanh(1.0, 1.0)
    with pytest.raises(TypeError, match="ELU: alpha must be a number"):
        nn.ELU("1")


def test_gradient_of_selu_is_that_of_the_formula() -> None:
    x = Tensor([-1.0, 2.0])
    _, _, (gradient,) = backend.value_and_gradient(lambda x: (nn.SeLU()(x), None), [], [x])
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    assert numpy_of(gradient) == pytest.approx([scale * alpha * np.exp(-1), scale], rel=1e-6)


def test_random_slopes_lie_between_the_bounds() -> None:
    y = numpy_of(nn.RReLU(0.25, 0.5)(Tensor(np.concatenate([-np.ones(500), np.ones(3)]), "float32")))
    assert (y[500:] == 1).all()
    assert -0.5 <= y[:500].min() < -0.45 and -0.3 < y[:500].max() <= -0.25


def test_prelu_learns_one_slope_for_each_channel() -> None:
    cell = nn.PReLU(2, [0.5, 0.25])
    assert [p.name for p in cell.trainable_params()] == ["a"]
    assert numpy_of(cell(-ones(1, 2, 1, 2)))[0, :, 0].tolist() == [[-0.5, -0.5], [-0.25, -0.25]]
    with pytest.raises(ValueError, match=r"PReLU: w must have shape \(2,\), .*; got \(1,\)"):
        nn.PReLU(2, [0.5])
    with pytest.raises(ValueError, match="PReLU: expected 2 channels on axis 1; got 3"):
        cell(ones(1, 3, 2, 2))


def test_padding_refuses_what_it_cannot_do() -> None:
    assert numpy_of(nn.Pad(((0, 0), (1, 0)))(Tensor([[7]], int32))).tolist() == [[0, 7]]
    with pytest.raises(ValueError, match='mode must be one of CONSTANT, REFLECT, .*; got .constant.. Write mode="CON'):
        nn.Pad(((0, 0),), "constant")
    with pytest.raises(ValueError, match="paddings must be pairs"):
        nn.Pad(((0, 0, 0),))
    with pytest.raises(ValueError, match="each padding must be at least 0"):
        nn.Pad(((0, -1),))
    with pytest.raises(TypeError, match="paddings must be a tuple or list"):
        nn.Pad(1)
    with pytest.raises(ValueError, match=r"Pad: expected an input of 2 axes, .*; got input shape \(3,\)"):
        nn.Pad(((0, 0), (1, 0)))(ones(3))


def test_clipping_leaves_short_tensors_and_zeros_alone() -> None:
    clip = nn.ClipByNorm()
    assert numpy_of(clip(Tensor([0.3, 0.4]), 1.0)) == pytest.approx([0.3, 0.4])
    x = Tensor([0.0, 0.0])
    _, _, (gradient,) = backend.value_and_gradient(lambda x: (clip(x, 1.0), None), [], [x])
    assert numpy_of(gradient).tolist() == [1.0, 1.0]
    assert numpy_of(nn.ClipByNorm(1)(Tensor([[3.0, 4.0], [0.0, 0.5]]), Tensor(1.0))) == pytest.approx(
        np.array([[0.6, 0.8], [0.0, 0.5]])
    )
    with pytest.raises(TypeError, match="ClipByNorm: axis must be an int, a tuple of them or None"):
        nn.ClipByNorm("0")


def test_ranges_and_one_hot_rows_have_the_references_formats() -> None:
    assert nn.Range(3)().dtype == int32 and numpy_of(nn.Range(3)()).tolist() == [0, 1, 2]
    assert numpy_of(nn.Range(0.0, 1.0, 0.5)()).tolist() == [0.0, 0.5]
    assert numpy_of(nn.OneHot(0, 2, dtype=int32)(Tensor([1, 0, 5]))).tolist() == [[0, 1, 0], [1, 0, 0]]
    with pytest.raises(ValueError, match="Range: delta must not be 0"):
        nn.Range(0, 3, 0)


def test_sequences_are_pooled_with_places_and_without_a_batch() -> None:
    x = Tensor([[[1.0, 5.0, 2.0, 0.0, 3.0]]])
    values, indices = nn.MaxPool1d(2, 2, "pad", 1, return_indices=True)(x)
    assert numpy_of(values).tolist() == [[[1.0, 5.0, 3.0]]] and numpy_of(indices).tolist() == [[[0, 1, 4]]]
    assert numpy_of(nn.AvgPool1d(2, 2)(x[0])).tolist() == [[3.0, 1.0]]
    assert repr(nn.MaxPool1d(2, 2)) == "MaxPool1d(kernel_size=(1, 2), stride=(1, 2), pad_mode=VALID)"
    with pytest.raises(ValueError, match=r"AvgPool1d: expected 2 or 3 axes \(N, C, L\) or \(C, L\)"):
        nn.AvgPool1d(2)(ones(2))
    with pytest.raises(TypeError, match="MaxPool1d: kernel_size must be an int"):
        nn.MaxPool1d((2,))


def test_adaptive_pooling_says_what_it_needs() -> None:
    assert tuple(nn.AdaptiveAvgPool2d(1)(ones(3, 5, 4)).shape) == (3, 1, 1)
    with pytest.raises(ValueError, match="AdaptiveAvgPool2d: output_size must be an int or two of them"):
        nn.AdaptiveAvgPool2d((1, 2, 3))
    with pytest.raises(ValueError, match="AdaptiveAvgPool2d: expected 3 or 4 axes"):
        nn.AdaptiveAvgPool2d(2)(ones(3))


@pytest.mark.parametrize(("make", "shape"), [(nn.Dropout1d, (8, 64, 3)), (nn.Dropout2d, (8, 64, 2, 2)),
                                             (nn.Dropout3d, (8, 64, 2, 2, 1))])
def test_whole_channels_are_dropped_in_training_only(make: Any, shape: tuple[int, ...]) -> None:
    drop, x = make(0.25), ones(*shape)
    assert drop(x) is x
    y = numpy_of(drop.set_train()(x)).reshape(8, 64, -1)
    assert ((y == y[:, :, :1]).all())
    assert sorted({round(float(value), 4) for value in y.ravel()}) == [0.0, 1.3333]
    assert 0.2 < (y == 0).mean() < 0.3
    assert (numpy_of(make(1.0).set_train()(x)) == 0).all()
    with pytest.raises(ValueError, match="p must be at most 1"):
        make(1.5)


def test_pixels_and_channels_change_places_and_back() -> None:
    x = Tensor(np.arange(32, dtype=np.float32).reshape(1, 8, 2, 2))
    assert (numpy_of(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x))) == numpy_of(x)).all()
    with pytest.raises(ValueError, match="PixelShuffle: the channels must be a multiple of 9; got 8"):
        nn.PixelShuffle(3)(x)


def test_resizing_needs_one_of_size_and_factor() -> None:
    x = Tensor([[[[1.0, 3.0]]]])
    assert numpy_of(nn.ResizeBilinear()(x, scale_factor=2)).tolist() == [[[[1.0, 2.0, 3.0, 3.0]] * 2]]
    assert numpy_of(nn.Upsample(scale_factor=2)(x))[0, 0, 0].tolist() == [1.0, 1.0, 3.0, 3.0]
    with pytest.raises(ValueError, match="ResizeBilinear: give one of size and scale_factor"):
        nn.ResizeBilinear()(x)
    with pytest.raises(ValueError, match="align_corners must be False with half_pixel_centers"):
        nn.ResizeBilinear(True)(x, (2, 2), align_corners=True)
    with pytest.raises(ValueError, match="Upsample: mode must be one of nearest, nearest-exact, area, linear"):
        nn.Upsample(2, mode="cubic")


def test_blocks_name_their_parts_as_the_reference_does() -> None:
    block = nn.Conv2dBnAct(1, 2, 3, has_bn=True, activation="relu")
    assert list(block.name_cells()) == ["conv", "batchnorm", "activation"]
    assert block.batchnorm.momentum == pytest.approx(1 - 0.997)
    dense = nn.DenseBnAct(3, 2, activation="leakyrelu", alpha=0.5)
    assert dense.activation.alpha == 0.5 and [p.name for p in dense.get_parameters()] == ["dense.weight", "dense.bias"]
    with pytest.raises(ValueError, match="Conv2dBnAct: activation must be one of"):
        nn.Conv2dBnAct(1, 2, 3, activation="swoosh")


def test_matrix_products_promote_and_refuse_ints() -> None:
    product = nn.MatMul(transpose_x1=True)
    assert product(Tensor(np.ones((3, 2)), float16), ones(3, 4)).dtype == "float32"
    with pytest.raises(TypeError, match="MatMul: expected a floating-point input; got int32"):
        product(Tensor([[1]], int32), ones(1, 1))
