"""Tests that primitives refuse settings as MindSpore does; recorded by `tests/conformance/primitive_settings.py`."""

from __future__ import annotations

import importlib
import json
import pathlib
from typing import Any, Final

import numpy as np
import pytest

from mixtrain import Tensor, mint, nn, ops
from mixtrain.ops.primitive import Primitive
from tests.backends import quick_every
from tests.conformance.primitive_settings import GIVEN, outcomes

RECORDED: Final[dict[str, Any]] = json.loads(
    (pathlib.Path(__file__).parents[1] / "data" / "primitive_settings.json").read_text()
)
# Settings that are checked with others, by the call, or that take more here: a tensor's dtype, lists of sizes.
LEFT: Final = frozenset("""
    AdaptiveAvgPool3D.output_size Argmax.output_type Argmin.output_type AvgPool.kernel_size AvgPool.strides
    AvgPool3D.pad AvgPoolGrad.kernel_size AvgPoolGrad.strides BartlettWindow.dtype BatchToSpaceND.block_shape
    BatchToSpaceND.crops BlackmanWindow.dtype BoundingBoxDecode.max_shape BroadcastTo.shape ChannelShuffle.group
    Conv2D.dilation Conv2D.kernel_size Conv2D.pad Conv2D.stride Conv2DBackpropFilter.pad
    Conv2DBackpropFilter.pad_list Conv2DBackpropInput.pad Conv2DBackpropInput.pad_list Conv2DTranspose.pad
    Conv2DTranspose.pad_list Conv3D.group Conv3D.pad Conv3DBackpropFilter.pad Conv3DTranspose.dilation
    Conv3DTranspose.group Conv3DTranspose.kernel_size Conv3DTranspose.output_padding Conv3DTranspose.pad
    DepthwiseConv2dNative.pad
    DeformableOffsets.dilations DeformableOffsets.ksize DeformableOffsets.pads DeformableOffsets.strides
    HammingWindow.dtype
    Histogram.max Histogram.min IOU.mode Im2Col.dilations Im2Col.ksizes Im2Col.pads Im2Col.strides
    InplaceAdd.indices InplaceSub.indices InplaceUpdate.indices L2Normalize.axis L2NormalizeGrad.axis
    LogSpace.dtype NuclearNorm.dim
    LogUniformCandidateSampler.num_sampled LogUniformCandidateSampler.range_max LpNorm.axis Lstsq.fast
    Lstsq.l2_regularizer MaxPool.kernel_size MaxPool.strides MaxPool3D.ceil_mode MaxPool3D.pad_list
    MaxPool3DGrad.pad_list MaxPool3DWithArgmax.data_format MaxPoolWithArgmax.kernel_size
    MaxPoolWithArgmax.strides PSROIPoolingGrad.input_size Pad.paddings RandomPoisson.dtype Randperm.dtype
    Renorm.p SearchSorted.dtype Softmax.axis SpaceToBatchND.block_shape SpaceToBatchND.paddings
    TensorScatterElements.axis TruncatedNormal.dtype UniformCandidateSampler.num_sampled
""".split())
HERE: Final = [
    name for name, facts in RECORDED.items()
    if hasattr(importlib.import_module(f"mixtrain.{facts['module']}"), name) and not name.startswith("Primitive")
]


@quick_every(29)
@pytest.mark.parametrize("name", HERE)
def test_what_mindspore_refuses_is_refused_by_the_same_error(name: str) -> None:
    facts = RECORDED[name]
    primitive = getattr(importlib.import_module(f"mixtrain.{facts['module']}"), name)
    got = outcomes(primitive, facts["base"], list(facts["outcomes"]), "mixtrain")
    different = {
        (f"{name}.{setting}", value): there + here
        for setting, recorded in facts["outcomes"].items()
        for value, there, here in zip(GIVEN, recorded, got[setting], strict=True)
        # N: a primitive that says what to write instead.
        if there in "TV" and here not in (there, "N")
    }
    assert {key: kinds for key, kinds in different.items() if key[0] not in LEFT} == {}


def test_the_error_says_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"MaxPool3D: kernel_size must have 3 entries; .* Write kernel_size=\(1, 1, 1"):
        ops.MaxPool3D((2, 2))
    with pytest.raises(TypeError, match="ReverseSequence: seq_dim must be an int; got float 1.5. Write seq_dim=1"):
        ops.ReverseSequence(1.5)


def test_an_axis_of_a_pool_may_keep_its_size() -> None:
    assert ops.AdaptiveAvgPool2D((None, 2))(Tensor(np.ones((1, 1, 3, 4), np.float32))).shape == (1, 1, 3, 2)


def test_primitives_of_scripts_take_what_they_like() -> None:
    class LRN(Primitive):
        def __init__(self, depth_radius: str) -> None:
            super().__init__("LRN")
            self.depth_radius = depth_radius

    assert LRN("wide").depth_radius == "wide"


def test_cells_of_one_operation_refuse_what_their_primitives_do() -> None:
    with pytest.raises(ValueError, match="MaxPool3d: kernel_size must have 3 entries"):
        nn.MaxPool3d((2, 2))
    with pytest.raises(ValueError, match="PoissonNLLLoss: reduction must be one of none, mean, sum"):
        nn.PoissonNLLLoss(reduction="all")
    assert nn.AvgPool3d(2, divisor_override=None)(Tensor(np.ones((1, 1, 4, 4, 4), np.float32))).shape == (1, 1, 3, 3, 3)
    mint.nn.AvgPool3d([2, 2, 2])
