"""Convolutions of sequences and volumes, and the transposed ones: parameters, representations, and what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mixtrain import backend, nn
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import float32
from mixtrain.seed import set_seed
from tests.backends import quick_every


def ones(*shape: int) -> Any:
    return Tensor(np.ones(shape, np.float32))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.Conv1d(8, 64, 5, group=2, has_bias=True), (64, 4, 1, 5)),
        (lambda: nn.Conv3d(8, 64, (2, 3, 4), has_bias=True), (64, 8, 2, 3, 4)),
        (lambda: nn.Conv1dTranspose(64, 8, 5, group=2, has_bias=True), (64, 4, 1, 5)),
        (lambda: nn.Conv2dTranspose(64, 8, (3, 5), group=2, has_bias=True), (64, 4, 3, 5)),
        (lambda: nn.Conv3dTranspose(64, 8, 3, has_bias=True), (64, 8, 3, 3, 3)),
    ],
)
def test_parameters_have_the_references_names_shapes_and_bounds(make: Any, shape: tuple[int, ...]) -> None:
    set_seed(1)
    conv = make()
    weight, bias = conv.get_parameters()
    assert (weight.name, tuple(weight.shape)) == ("weight", shape)
    assert (bias.name, tuple(bias.shape)) == ("bias", (conv.out_channels,))
    bound = 1 / math.sqrt(math.prod(shape[1:]))
    assert 0.95 * bound < np.abs(conv.weight.asnumpy()).max() <= bound
    assert np.abs(conv.bias.asnumpy()).max() <= bound


def test_representations_are_the_references() -> None:
    tail = "group=1, has_bias=False, weight_init=None, bias_init=None, format="
    assert repr(nn.Conv1d(1, 2, 3)) == (
        "Conv1d(input_channels=1, output_channels=2, kernel_size=(1, 3), stride=(1, 1), pad_mode=same, "
        f"padding=(0, 0, 0, 0), dilation=(1, 1), {tail}NCHW)"
    )
    assert repr(nn.Conv3dTranspose(1, 2, 3)) == (
        "Conv3dTranspose(input_channels=1, output_channels=2, kernel_size=(3, 3, 3), stride=(1, 1, 1), "
        f"pad_mode=same, padding=0, dilation=(1, 1, 1), {tail}NCDHW)"
    )


def test_a_weight_of_three_axes_serves_a_sequence() -> None:
    weight = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    conv = nn.Conv1d(2, 1, 3, weight_init=Tensor(weight), pad_mode="valid")
    assert backend.to_numpy(conv(ones(1, 2, 3))).tolist() == [[[15.0]]]


@quick_every(3)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("make", [nn.Conv2dTranspose, nn.Conv3dTranspose])
def test_a_transposed_convolution_is_the_gradient_of_the_convolution(make: Any, group: int) -> None:
    rank = 2 if make is nn.Conv2dTranspose else 3
    forward = (nn.Conv2d if rank == 2 else nn.Conv3d)(4, 6, 3, 2, "pad", 1, dilation=2, group=group)
    back = make(6, 4, 3, 2, "pad", 1, dilation=2, group=group)
    back.weight.set_data(forward.weight)
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((1, 4, *(7,) * rank)).astype(np.float32))
    y = forward(x)
    direction = rng.standard_normal(tuple(y.shape)).astype(np.float32)
    _, _, (gradient,) = backend.value_and_gradient(lambda x: (Tensor(direction).__mul__(forward(x)), None), [], [x])
    assert np.abs(backend.to_numpy(back(Tensor(direction))) - backend.to_numpy(gradient)).max() < 1e-5


def test_volumes_may_have_groups_and_dilation() -> None:
    conv = nn.Conv3d(4, 6, 2, group=2, dilation=2, pad_mode="valid")
    x = np.random.default_rng(0).standard_normal((1, 4, 4, 4, 4)).astype(np.float32)
    weight, y = conv.weight.asnumpy(), backend.to_numpy(conv(Tensor(x)))
    for channel in range(6):
        own = x[0, 2 * (channel // 3) : 2 * (channel // 3) + 2]
        expected = sum(
            (own[:, d : d + 2, h : h + 2, w : w + 2] * weight[channel, :, d // 2, h // 2, w // 2][:, None, None, None])
            .sum(0)
            for d in (0, 2) for h in (0, 2) for w in (0, 2)
        )
        assert np.abs(y[0, channel] - expected).max() < 1e-5


@pytest.mark.parametrize("make", [nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Conv1dTranspose, nn.Conv2dTranspose])
def test_wrong_input_is_one_sentence(make: Any) -> None:
    conv = make(3, 6, 3)
    rank = conv._rank
    sizes = (5,) * rank
    name = make.__name__
    message = rf"^{name}: expected 3 channels on axis 1; got 2 \(input .*\). Write {name}\(in_channels=2, ...\)\.\n"
    with pytest.raises(ValueError, match=message):
        conv(ones(1, 2, *sizes))
    with pytest.raises(ValueError, match=rf"^{name}: expected {rank + 2} axes \(N, C, .*\); got input shape \(3, 3\)"):
        conv(ones(3, 3))
    with pytest.raises(TypeError, match=f"^{name}: expected a floating-point input; got int32"):
        conv(Tensor(np.ones((1, 3, *sizes), np.int32)))


@pytest.mark.parametrize(
    ("make", "arguments", "error", "message"),
    [
        (nn.Conv1d, {"kernel_size": (3,)}, TypeError, "kernel_size must be an int"),
        (nn.Conv1d, {"padding": (1, 1), "pad_mode": "pad"}, TypeError, "padding must be an int"),
        (nn.Conv1d, {"pad_mode": "full"}, ValueError, "pad_mode must be one of same, valid, pad"),
        (nn.Conv3d, {"kernel_size": (3, 3)}, ValueError, r"kernel_size must be an int or three of them; got \(3, 3\)"),
        (nn.Conv3d, {"padding": 1}, ValueError, 'padding must be 0 with pad_mode="same"'),
        (nn.Conv3d, {"padding": (1, 1), "pad_mode": "pad"}, ValueError, r"an int or \(head, tail, top"),
        (nn.Conv3d, {"data_format": "NDHWC"}, ValueError, "data_format must be one of NCDHW"),
        (nn.Conv2dTranspose, {"output_padding": 1}, ValueError, 'output_padding must be 0 with pad_mode="same"'),
        (nn.Conv2dTranspose, {"output_padding": 1, "pad_mode": "pad"}, ValueError, "must be less than 1"),
        (nn.Conv2dTranspose, {"group": 2}, ValueError, "in_channels must be a multiple of group=2; got 3"),
        (nn.Conv3dTranspose, {"output_padding": 2, "pad_mode": "pad", "stride": 2}, ValueError, "must be less than 2"),
    ],
)
def test_bad_argument_is_refused(make: Any, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"{make.__name__}: .*{message}"):
        make(**{"in_channels": 3, "out_channels": 6, "kernel_size": 3, **arguments})


def test_a_window_that_does_not_fit_says_what_is_short() -> None:
    with pytest.raises(ValueError, match=r"Conv1d: expected at least 3 elements, .*; got input shape \(1, 3, 2\)"):
        nn.Conv1d(3, 6, 3, pad_mode="valid")(ones(1, 3, 2))
    with pytest.raises(ValueError, match="Conv3d: expected at least 3 planes"):
        nn.Conv3d(3, 6, 3, pad_mode="valid")(ones(1, 3, 2, 4, 4))
    with pytest.raises(ValueError, match="Conv2dTranspose: expected padding that leaves some output; got padding 4"):
        nn.Conv2dTranspose(3, 6, 3, pad_mode="pad", padding=4)(ones(1, 3, 2, 2))


def test_half_input_meets_float32_weights_in_float32() -> None:
    for make, shape in ((nn.Conv1d, (1, 2, 5)), (nn.Conv2dTranspose, (1, 2, 4, 4)), (nn.Conv3d, (1, 2, 3, 3, 3))):
        assert make(2, 3, 3, has_bias=True)(Tensor(np.ones(shape), "float16")).dtype == float32


# Printed by MindSpore 2.10 for these weights: shapes and sums weighted by fixed numbers.
@pytest.mark.parametrize(("settings", "shape", "total"), [
    ({"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1}, (1, 3, 6, 8, 6), -95.08),
    ({"kernel_size": (3, 2, 3), "stride": (2, 1, 3), "padding": (1, 0, 0, 1, 2, 0), "output_padding": (1, 0, 2)},
     (1, 3, 7, 4, 9), 39.893),
    ({"kernel_size": 2, "stride": 2, "output_padding": 1}, (1, 3, 7, 9, 7), -68.199),
])
def test_transposed_convolutions_of_volumes_compute_what_output_padding_adds(
    settings: dict[str, Any], shape: tuple[int, ...], total: float
) -> None:
    layer = nn.Conv3dTranspose(2, 3, pad_mode="pad", **settings)
    layer.weight.set_data(Tensor(np.random.RandomState(1).randn(*layer.weight.shape).astype(np.float32)))
    output = layer(Tensor(np.random.RandomState(0).randn(1, 2, 3, 4, 3).astype(np.float32))).asnumpy()
    assert output.shape == shape
    assert round(float((output * np.random.RandomState(2).randn(*shape)).sum()), 2) == round(total, 2)
