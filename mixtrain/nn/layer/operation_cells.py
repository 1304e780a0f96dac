"""Cells that wrap one operation and its settings, created from a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.cell.cell import Cell
from mixtrain.nn.layer.windows import check_unpadded
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
from mixtrain.ops.volumes import AvgPool3D, MaxPool3D
from mixtrain.ops.windows import same_pads, window_elements
from mixtrain.typing import Tensor, Tree


def operation_cell(
    name: str, function: Callable[..., Any], summary: str, *, rows: str | None = None,
    check: Callable[[str, dict[str, Any]], None] | None = None, **settings: Any,
) -> type[Cell]:
    """Create a Cell class that stores `settings` and computes ``function(*inputs, **settings)``.

    `name`: Name of the class, as in MindSpore. `function`: Function of the inputs by position and the settings by name.
    `summary`: First sentence of the docstring. `rows`: The class in the table of settings, by default `name`.
    `check`: A check of several settings. `settings`: Arguments in order, each with its default, or `REQUIRED`.
    """
    bind = argument_reader(settings)

    def __init__(self: Cell, *args: Any, **kwargs: Any) -> None:
        Cell.__init__(self)
        given = bind(*args, **kwargs)
        given |= check_attributes(rows or name, {key: x for key, x in given.items() if x is not settings[key]})
        if check is not None:
            check(name, given)
        for key, value in given.items():
            setattr(self, key, value)

    def construct(self: Cell, *inputs: Any, **kwargs: Any) -> Tree:
        """Compute the operation."""
        return function(*inputs, **{key: getattr(self, key) for key in settings} | kwargs)

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


def _pads_alone(where: str, settings: dict[str, Any]) -> None:
    """Refuse settings that only `pad_mode="pad"` has."""
    pad_mode, dilation = settings["pad_mode"].lower(), settings.get("dilation", 1)
    check_unpadded(where, pad_mode, settings["padding"], settings["padding"] not in (0, (0, 0, 0)))
    if pad_mode != "pad" and where == "MaxPool3d" and (
        dilation not in (1, (1, 1, 1)) or settings["return_indices"] or settings["ceil_mode"]
    ):
        raise checks.fail_value(
            where, 'dilation, return_indices and ceil_mode need pad_mode="pad"', pad_mode, 'pad_mode="pad"'
        )


_POOL: Final[dict[str, Any]] = {"kernel_size": 1, "stride": 1, "pad_mode": "valid", "padding": 0}
_UNPOOL: Final[dict[str, Any]] = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
_LP: Final[dict[str, Any]] = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}

MaxPool3d: Final = operation_cell(
    "MaxPool3d", _max_pool3d, "Max pooling of volumes.", **_POOL, dilation=1, return_indices=False, ceil_mode=False,
    check=_pads_alone,
)
AvgPool3d: Final = operation_cell(
    "AvgPool3d", _avg_pool3d, "Average pooling of volumes.", **_POOL, ceil_mode=False, count_include_pad=True,
    divisor_override=None, check=_pads_alone,
)
AdaptiveAvgPool3d: Final = operation_cell(
    "AdaptiveAvgPool3d", adaptive_avg_pool3d, "Average pooling of volumes to `output_size`.", output_size=REQUIRED,
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
    "GaussianNLLLoss", gaussian_nll_loss, "Gaussian negative log-likelihood.", full=False, eps=1e-6, reduction="mean",
)
PoissonNLLLoss: Final = operation_cell(
    "PoissonNLLLoss", poisson_nll_loss, "Poisson negative log-likelihood loss.", log_input=True, full=False, eps=1e-8,
    reduction="mean",
)
MultiMarginLoss: Final = operation_cell(
    "MultiMarginLoss", multi_margin_loss, "Multi-class hinge loss.", p=1, margin=1.0, reduction="mean", weight=None,
)
SparseToDense: Final = operation_cell(
    "SparseToDense", lambda input: input.to_dense(), "Convert a COOTensor or CSRTensor to a dense tensor."
)
SparseTensorDenseMatmul: Final = operation_cell(
    "SparseTensorDenseMatmul", lambda *inputs, **settings: _SparseProduct(**settings)(*inputs),
    "The product of a sparse matrix (indices, values, shape) and a dense one.", adjoint_st=False, adjoint_dt=False,
)
MultiLabelSoftMarginLoss: Final = operation_cell(
    "MultiLabelSoftMarginLoss", multilabel_soft_margin_loss, "Multilabel cross-entropy.", weight=None, reduction="mean",
)
MultilabelMarginLoss: Final = operation_cell(
    "MultilabelMarginLoss", multilabel_margin_loss, "Multi-label margin loss.", reduction="mean",
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
    # A margin of the call is read where the cell has the default.
    "TripletMarginLoss", lambda x, positive, negative, late=1.0, *, margin, **settings: triplet_margin_loss(
        x, positive, negative, margin=late if margin == 1.0 else margin, **settings
    ), "Triplet margin loss.", p=2, swap=False, eps=1e-6, reduction="mean", margin=1.0,
)
Tril: Final = operation_cell("Tril", lambda x, k=0: tril(x, k), "The lower triangle of matrices, up to diagonal `k`.")
Triu: Final = operation_cell("Triu", lambda x, k=0: triu(x, k), "The upper triangle of matrices, from diagonal `k` on.")
