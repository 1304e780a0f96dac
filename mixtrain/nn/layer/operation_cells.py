"""Cells that wrap one operation and its settings, created from a table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.ops import (
    adaptive_avg_pool3d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    ctc_loss,
    fractional_max_pool2d,
    fractional_max_pool3d,
    gaussian_nll_loss,
    lp_pool1d,
    lp_pool2d,
    lrn,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    tril,
    triplet_margin_loss,
    triu,
)
from mixtrain.ops.attributes import check_attributes
from mixtrain.ops.inputs import rank_of, tensor
from mixtrain.ops.primitive import REQUIRED, argument_reader
from mixtrain.ops.sparse import SparseTensorDenseMatmul as _SparseProduct
from mixtrain.ops.volumes import AvgPool3D, MaxPool3D, window_elements
from mixtrain.ops.windows import same_pads
from mixtrain.typing import Tensor, Tree

# How settings of these names are checked, in whichever class has them.
_CHECKS: Final[dict[str, Callable[[str, str, Any], Any]]] = {
    "central_fraction": functools.partial(checks.number, above=0, at_most=1, example=0.5),
    "filter_sigma": functools.partial(checks.number, above=0, example=1.5),
    "filter_size": functools.partial(checks.integer, at_least=1, example=11),
    "k1": functools.partial(checks.number, example=0.01),
    "k2": functools.partial(checks.number, example=0.03),
    "max_val": functools.partial(checks.number, above=0, example=1.0),
    "power_factors": lambda where, name, value: checks.instance(where, name, value, (tuple, list), f"{name}=(1, 1)"),
}


def operation_cell(
    name: str, function: Callable[..., Any], summary: str, *, checked: bool = False, **settings: Any
) -> type[Cell]:
    """Create a Cell class that stores `settings` and computes ``function(*inputs, **settings)``.

    `name`: Name of the class, as in MindSpore. `function`: Function of the inputs by position and the settings by name.
    `summary`: First sentence of the docstring. `checked`: Whether settings are checked as those of primitives are.
    `settings`: Constructor arguments in order, each with its default, or `REQUIRED`.
    """
    bind = argument_reader(settings)

    def __init__(self: Cell, *args: Any, **kwargs: Any) -> None:
        Cell.__init__(self)
        given = bind(*args, **kwargs)
        if checked:
            check_attributes(name, {key: value for key, value in given.items() if value is not settings[key]})
        for key, value in given.items():
            if key in _CHECKS:
                _CHECKS[key](name, key, value)
            setattr(self, key, value)

    def construct(self: Cell, *inputs: Any, **kwargs: Any) -> Tree:
        """Compute the operation."""
        return function(*inputs, **{key: getattr(self, key) for key in settings}, **kwargs)

    doc = (f"{summary} Settings: {', '.join(f'`{key}`' for key in settings)}. Example: ``nn.{name}(...)(x)``.")
    body = {"__init__": __init__, "construct": construct, "__doc__": doc, "__module__": __name__}
    return type(name, (Cell,), body)


def _max_pool3d(x: Tensor, *, pad_mode: str, **settings: Any) -> Tensor:
    if rank_of(x) == 4:
        return keras.tree.map_structure(
            lambda y: y[0], _max_pool3d(keras.ops.expand_dims(x, 0), pad_mode=pad_mode, **settings)
        )
    if pad_mode.lower() == "same":
        return MaxPool3D(settings["kernel_size"], settings["stride"], "same")(x)
    return max_pool3d(x, **settings)


def _avg_pool3d(x: Tensor, **settings: Any) -> Tensor:
    if rank_of(x) == 4:
        return _avg_pool3d(keras.ops.expand_dims(x, 0), **settings)[0]
    return AvgPool3D(
        settings["kernel_size"], settings["stride"], settings["pad_mode"], settings["padding"], settings["ceil_mode"],
        settings["count_include_pad"], settings["divisor_override"] or 0,
    )(x)


def _unfold(x: Tensor, *, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str) -> Tensor:
    x = tensor("Unfold", x)
    # Each setting is (1, height, width, 1).
    kernel_size, stride, dilation = (tuple(setting[1:3]) for setting in (ksizes, strides, rates))
    if padding.lower() == "same":
        effective = tuple((size - 1) * rate + 1 for size, rate in zip(kernel_size, dilation, strict=True))
        x = keras.ops.pad(x, ((0, 0), (0, 0), *same_pads(x.shape[2:], effective, stride)))
    return keras.ops.concatenate(window_elements(x, kernel_size, stride, dilation), axis=1)


def _central_crop(image: Tensor, *, central_fraction: float) -> Tensor:
    image, slices = tensor("CentralCrop", image), []
    if rank_of(image) not in (3, 4):
        raise checks.fail_value(
            "CentralCrop", "an image must have shape (C, H, W) or (N, C, H, W)", tuple(image.shape), "images of those"
        )
    for size in image.shape[-2:]:
        start = int((size - size * central_fraction) / 2)
        slices.append(slice(start, size - start))
    return image[(..., *slices)]


def _image_gradients(images: Tensor) -> tuple[Tensor, Tensor]:
    x = tensor("ImageGradients", images)
    dy = keras.ops.pad(x[:, :, 1:] - x[:, :, :-1], ((0, 0), (0, 0), (0, 1), (0, 0)))
    dx = keras.ops.pad(x[..., 1:] - x[..., :-1], ((0, 0), (0, 0), (0, 0), (0, 1)))
    return dy, dx


def _unpool(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return an unpooling whose inputs end in the size of its output, which may be None."""
    return lambda x, indices, output_size=None, **settings: function(x, indices, output_size=output_size, **settings)


def _multi_margin(x: Tensor, target: Tensor, *, p: int, margin: float, reduction: str, weight: Tensor | None) -> Tensor:
    return multi_margin_loss(x, target, p, margin, weight, reduction)


_POOL: Final[dict[str, Any]] = {"kernel_size": 1, "stride": 1, "pad_mode": "valid", "padding": 0}
_UNPOOL: Final[dict[str, Any]] = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
_LP: Final[dict[str, Any]] = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}

MaxPool3d: Final = operation_cell(
    "MaxPool3d", _max_pool3d, "Max pooling of volumes.", **_POOL, dilation=1,
    return_indices=False, ceil_mode=False,
    checked=True,
)
AvgPool3d: Final = operation_cell(
    "AvgPool3d", _avg_pool3d, "Average pooling of volumes.", **_POOL, ceil_mode=False, count_include_pad=True,
    divisor_override=None,
    checked=True,
)
AdaptiveAvgPool3d: Final = operation_cell(
    "AdaptiveAvgPool3d", adaptive_avg_pool3d, "Average pooling of volumes to `output_size`.",
    output_size=REQUIRED,
)
AdaptiveMaxPool2d: Final = operation_cell(
    "AdaptiveMaxPool2d", adaptive_max_pool2d, "Max pooling of images to `output_size`.",
    output_size=REQUIRED, return_indices=False,
)
AdaptiveMaxPool3d: Final = operation_cell(
    "AdaptiveMaxPool3d", adaptive_max_pool3d, "Max pooling of volumes to `output_size`.",
    output_size=REQUIRED, return_indices=False,
)
MaxUnpool1d: Final = operation_cell("MaxUnpool1d", _unpool(max_unpool1d), "The inverse of max pooling.", **_UNPOOL)
MaxUnpool2d: Final = operation_cell("MaxUnpool2d", _unpool(max_unpool2d), "The inverse of max pooling.", **_UNPOOL)
MaxUnpool3d: Final = operation_cell("MaxUnpool3d", _unpool(max_unpool3d), "The inverse of max pooling.", **_UNPOOL)
LPPool1d: Final = operation_cell("LPPool1d", lp_pool1d, "Power-average (Lp norm) pooling.", **_LP)
LPPool2d: Final = operation_cell("LPPool2d", lp_pool2d, "Power-average (Lp norm) pooling.", **_LP)
LRN: Final = operation_cell(
    "LRN", lrn, "Local response normalization over neighboring channels.", depth_radius=5,
    bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS",
    checked=True,
)
Unfold: Final = operation_cell(
    "Unfold", _unfold, "Sliding windows of images, as channels.", ksizes=REQUIRED, strides=REQUIRED, rates=REQUIRED,
    padding="valid",
)
CentralCrop: Final = operation_cell("CentralCrop", _central_crop, "The center of images.", central_fraction=REQUIRED)
ImageGradients: Final = operation_cell(
    "ImageGradients", _image_gradients, "The differences of neighboring pixels along height and width."
)
CTCLoss: Final = operation_cell(
    "CTCLoss", lambda *inputs, **settings: ctc_loss(*inputs, **settings)[0],
    "Connectionist temporal classification loss.", blank=0, reduction="mean", zero_infinity=False,
)
GaussianNLLLoss: Final = operation_cell(
    "GaussianNLLLoss", gaussian_nll_loss, "Gaussian negative log-likelihood loss.", full=False, eps=1e-6,
    reduction="mean",
    checked=True,
)
PoissonNLLLoss: Final = operation_cell(
    "PoissonNLLLoss", poisson_nll_loss, "Poisson negative log-likelihood loss.", log_input=True,
    full=False, eps=1e-8, reduction="mean",
    checked=True,
)
MultiMarginLoss: Final = operation_cell(
    "MultiMarginLoss", _multi_margin, "Multi-class margin (hinge) loss.", p=1, margin=1.0,
    reduction="mean", weight=None,
    checked=True,
)
SparseToDense: Final = operation_cell(
    "SparseToDense", lambda input: input.to_dense(), "Convert a COOTensor or CSRTensor to a dense tensor."
)
SparseTensorDenseMatmul: Final = operation_cell(
    "SparseTensorDenseMatmul", lambda *inputs, **settings: _SparseProduct(**settings)(*inputs),
    "The product of a sparse matrix (indices, values, shape) and a dense one.",
    adjoint_st=False, adjoint_dt=False,
    checked=True,
)
MultiLabelSoftMarginLoss: Final = operation_cell(
    "MultiLabelSoftMarginLoss", multilabel_soft_margin_loss, "Multi-label cross-entropy loss.",
    weight=None, reduction="mean",
    checked=True,
)
MultilabelMarginLoss: Final = operation_cell(
    "MultilabelMarginLoss", multilabel_margin_loss, "Multi-label margin loss.",
    reduction="mean",
    checked=True,
)
_FRACTIONAL: Final[dict[str, Any]] = {
    "kernel_size": REQUIRED, "output_size": None, "output_ratio": None, "return_indices": False,
    "_random_samples": None,
}
FractionalMaxPool2d: Final = operation_cell(
    "FractionalMaxPool2d", fractional_max_pool2d, "Fractional max pooling of images, with random window positions.",
    **_FRACTIONAL,
)
FractionalMaxPool3d: Final = operation_cell(
    "FractionalMaxPool3d", fractional_max_pool3d, "Fractional max pooling of volumes, with random window positions.",
    **_FRACTIONAL,
)
TripletMarginLoss: Final = operation_cell(
    "TripletMarginLoss", lambda anchor, positive, negative, margin=1.0, **settings: triplet_margin_loss(
        anchor, positive, negative, margin=margin, **settings
    ), "Triplet margin loss.", p=2, swap=False, eps=1e-6, reduction="mean",
)
Tril: Final = operation_cell("Tril", lambda x, k=0: tril(x, k), "The lower triangle of matrices, up to diagonal `k`.")
Triu: Final = operation_cell("Triu", lambda x, k=0: triu(x, k), "The upper triangle of matrices, from diagonal `k` on.")
