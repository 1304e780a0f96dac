"""Cells that keep the settings of one operation: a row each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain.cell.cell import Cell
from mixtrain.ops.ctc import ctc_loss
from mixtrain.ops.fractional_pool import fractional_max_pool2d, fractional_max_pool3d
from mixtrain.ops.inputs import rank_of, tensor
from mixtrain.ops.margin_loss import (
    gaussian_nll_loss, multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss, poisson_nll_loss,
    triplet_margin_loss,
)
from mixtrain.ops.patches import lrn
from mixtrain.ops.primitive import REQUIRED, reader_of
from mixtrain.ops.sparse import SparseTensorDenseMatmul as _SparseProduct
from mixtrain.ops.volumes import (
    AvgPool3D, MaxPool3D, adaptive_avg_pool3d, adaptive_max_pool2d, adaptive_max_pool3d, lp_pool1d, lp_pool2d,
    max_pool3d, max_unpool1d, max_unpool2d, max_unpool3d, window_parts,
)
from mixtrain.ops.windows import same_sides


def operation_cell(name: str, function: Callable[..., Any], says: str, **settings: Any) -> type[Cell]:
    """Return the class of Cells that keep `settings` and compute ``function(*inputs, **settings)``.

    Args:
        name: The class's name, MindSpore's.
        function: Takes the inputs by position and the settings by name.
        says: What it computes.
        settings: The arguments of the class in order, each with its default; `REQUIRED` for none.
    """
    given = reader_of(settings)

    def __init__(self: Cell, *args: Any, **kwargs: Any) -> None:
        Cell.__init__(self)
        for key, value in given(*args, **kwargs).items():
            setattr(self, key, value)

    def construct(self: Cell, *inputs: Any, **named: Any) -> Any:
        """Compute the operation."""
        return function(*inputs, **{key: getattr(self, key) for key in settings}, **named)

    text = (
        f"{says} Settings: {', '.join(f'`{key}`' for key in settings)}. Example: ``nn.{name}(...)(x)``. "
        f"Source: MindSpore, `mindspore.nn.{name}`."
    )
    body = {"__init__": __init__, "construct": construct, "__doc__": text, "__module__": __name__}
    return type(name, (Cell,), body)


def _max_pool3d(x: Any, *, pad_mode: str, **settings: Any) -> Any:
    if rank_of(x) == 4:
        return keras.tree.map_structure(
            lambda y: y[0], _max_pool3d(keras.ops.expand_dims(x, 0), pad_mode=pad_mode, **settings)
        )
    if pad_mode.lower() == "same":
        return MaxPool3D(settings["kernel_size"], settings["stride"], "same")(x)
    return max_pool3d(x, **settings)


def _avg_pool3d(x: Any, **settings: Any) -> Any:
    if rank_of(x) == 4:
        return _avg_pool3d(keras.ops.expand_dims(x, 0), **settings)[0]
    return AvgPool3D(
        settings["kernel_size"], settings["stride"], settings["pad_mode"], settings["padding"], settings["ceil_mode"],
        settings["count_include_pad"], settings["divisor_override"] or 0,
    )(x)


def _patches(x: Any, *, ksizes: Any, strides: Any, rates: Any, padding: str) -> Any:
    value = tensor("Unfold", x)
    size, step, gap = (tuple(one[1:3]) for one in (ksizes, strides, rates))
    if padding.lower() == "same":
        reach = tuple((one - 1) * apart + 1 for one, apart in zip(size, gap, strict=True))
        value = keras.ops.pad(value, ((0, 0), (0, 0), *same_sides(value.shape[2:], reach, step)))
    return keras.ops.concatenate(window_parts(value, size, step, gap), axis=1)


def _central(image: Any, *, central_fraction: float) -> Any:
    value, cut = tensor("CentralCrop", image), []
    for length in value.shape[-2:]:
        start = int((length - length * central_fraction) / 2)
        cut.append(slice(start, length - start))
    return value[(..., *cut)]


def _image_gradients(images: Any) -> tuple[Any, Any]:
    value = tensor("ImageGradients", images)
    down = keras.ops.pad(value[:, :, 1:] - value[:, :, :-1], ((0, 0), (0, 0), (0, 1), (0, 0)))
    across = keras.ops.pad(value[..., 1:] - value[..., :-1], ((0, 0), (0, 0), (0, 0), (0, 1)))
    return down, across


def _multi_margin(x: Any, target: Any, *, p: int, margin: float, reduction: str, weight: Any) -> Any:
    return multi_margin_loss(x, target, p, margin, weight, reduction)


_POOL: Final = {"kernel_size": 1, "stride": 1, "pad_mode": "valid", "padding": 0}
_UNPOOL: Final = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
_LP: Final = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}

MaxPool3d: Final = operation_cell(
    "MaxPool3d", _max_pool3d, "The largest number of each window of volumes.", **_POOL, dilation=1,
    return_indices=False, ceil_mode=False,
)
AvgPool3d: Final = operation_cell(
    "AvgPool3d", _avg_pool3d, "The mean of each window of volumes.", **_POOL, ceil_mode=False, count_include_pad=True,
    divisor_override=None,
)
AdaptiveAvgPool3d: Final = operation_cell(
    "AdaptiveAvgPool3d", adaptive_avg_pool3d, "The means of as many windows as the output has places.",
    output_size=REQUIRED,
)
AdaptiveMaxPool2d: Final = operation_cell(
    "AdaptiveMaxPool2d", adaptive_max_pool2d, "The largest numbers of as many windows as the output has places.",
    output_size=REQUIRED, return_indices=False,
)
AdaptiveMaxPool3d: Final = operation_cell(
    "AdaptiveMaxPool3d", adaptive_max_pool3d, "The largest numbers of as many windows as the output has places.",
    output_size=REQUIRED, return_indices=False,
)
MaxUnpool1d: Final = operation_cell("MaxUnpool1d", max_unpool1d, "The inverse of max pooling.", **_UNPOOL)
MaxUnpool2d: Final = operation_cell("MaxUnpool2d", max_unpool2d, "The inverse of max pooling.", **_UNPOOL)
MaxUnpool3d: Final = operation_cell("MaxUnpool3d", max_unpool3d, "The inverse of max pooling.", **_UNPOOL)
LPPool1d: Final = operation_cell("LPPool1d", lp_pool1d, "The root of the sum of powers over each window.", **_LP)
LPPool2d: Final = operation_cell("LPPool2d", lp_pool2d, "The root of the sum of powers over each window.", **_LP)
LRN: Final = operation_cell(
    "LRN", lrn, "Each element divided by a power of the sum of squares of the channels around it.", depth_radius=5,
    bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS",
)
Unfold: Final = operation_cell(
    "Unfold", _patches, "The windows of images as channels.", ksizes=REQUIRED, strides=REQUIRED, rates=REQUIRED,
    padding="valid",
)
CentralCrop: Final = operation_cell("CentralCrop", _central, "The middle of images.", central_fraction=REQUIRED)
ImageGradients: Final = operation_cell(
    "ImageGradients", _image_gradients, "The differences of neighbors, down and across."
)
CTCLoss: Final = operation_cell(
    "CTCLoss", lambda *inputs, **settings: ctc_loss(*inputs, **settings)[0],
    "The loss of connectionist temporal classification.", blank=0, reduction="mean", zero_infinity=False,
)
GaussianNLLLoss: Final = operation_cell(
    "GaussianNLLLoss", gaussian_nll_loss, "Minus the log-likelihood of normal distributions.", full=False, eps=1e-6,
    reduction="mean",
)
PoissonNLLLoss: Final = operation_cell(
    "PoissonNLLLoss", poisson_nll_loss, "Minus the log-likelihood of Poisson distributions.", log_input=True,
    full=False, eps=1e-8, reduction="mean",
)
MultiMarginLoss: Final = operation_cell(
    "MultiMarginLoss", _multi_margin, "How far the right class is not ahead of the others.", p=1, margin=1.0,
    reduction="mean", weight=None,
)
SparseToDense: Final = operation_cell(
    "SparseToDense", lambda input: input.to_dense(), "A COOTensor or CSRTensor with its zeros."
)
SparseTensorDenseMatmul: Final = operation_cell(
    "SparseTensorDenseMatmul", lambda *inputs, **settings: _SparseProduct(**settings)(*inputs),
    "The product of a sparse matrix, given as indices, values and shape, and a dense one.",
    adjoint_st=False, adjoint_dt=False,
)
MultiLabelSoftMarginLoss: Final = operation_cell(
    "MultiLabelSoftMarginLoss", multilabel_soft_margin_loss, "The cross entropy of several labels a sample.",
    weight=None, reduction="mean",
)
MultilabelMarginLoss: Final = operation_cell(
    "MultilabelMarginLoss", multilabel_margin_loss, "How far right classes are not ahead of wrong ones.",
    reduction="mean",
)
_FRACTIONAL: Final = {
    "kernel_size": REQUIRED, "output_size": None, "output_ratio": None, "return_indices": False,
    "_random_samples": None,
}
FractionalMaxPool2d: Final = operation_cell(
    "FractionalMaxPool2d", fractional_max_pool2d, "The largest elements of windows of images at random places.",
    **_FRACTIONAL,
)
FractionalMaxPool3d: Final = operation_cell(
    "FractionalMaxPool3d", fractional_max_pool3d, "The largest elements of windows of volumes at random places.",
    **_FRACTIONAL,
)
TripletMarginLoss: Final = operation_cell(
    "TripletMarginLoss", lambda anchor, positive, negative, margin=1.0, **settings: triplet_margin_loss(
        anchor, positive, negative, margin=margin, **settings
    ), "How far a positive example is not nearer than a negative one.", p=2, swap=False, eps=1e-6, reduction="mean",
)
