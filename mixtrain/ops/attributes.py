"""What MindSpore's primitives take as settings when they are made: a table of checks, by setting and primitive.

The rules were recorded from MindSpore 2.10, which refuses with a TypeError what is of another kind, and with a
ValueError what is out of range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from mixtrain import checks
from mixtrain.dtype import DType, as_dtype

Check = Callable[[str, str, Any], object]


def _integer(least: int | None = None, most: int | None = None) -> Check:
    """Return the check of an int within bounds; a bool is none."""

    def check(where: str, name: str, value: Any) -> None:
        write = f"{name}={max(least or 0, 1)}"
        if type(value) is not int:
            raise checks.fail_type(where, f"{name} must be an int", value, write)
        if most is not None:
            checks.one_of(where, name, value, range(least or 0, most + 1))
        elif least is not None and value < least:
            raise checks.fail_value(where, f"{name} must be at least {least}", value, write)

    return check


def _float(accepts: Callable[[float], bool] = lambda _: True, rule: str = "", example: float = 0.5) -> Check:
    """Return the check of a float; an int is none."""

    def check(where: str, name: str, value: Any) -> None:
        if not isinstance(value, float):
            raise checks.fail_type(where, f"{name} must be a float", value, f"{name}={example}")
        if not accepts(value):
            raise checks.fail_value(where, f"{name} must be {rule}", value, f"{name}={example}")

    return check


def _sizes(least: float, *lengths: int, lists: bool = False, none: bool = False, holes: bool = False) -> Check:
    """Return the check of an int, or of a tuple of ints of one of some lengths (none: any), each at least `least`.

    `lists`: a list will do. `none`: None will. `holes`: an entry may be None.
    """
    kinds = (int, tuple, list) if lists else (int, tuple)

    def check(where: str, name: str, value: Any) -> None:
        if none and value is None:
            return
        size = max(int(least), 1) if least > -math.inf else 1
        write = f"{name}={(size,) * lengths[0] if lengths else size}"
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise checks.fail_type(where, f"{name} must be an int or a tuple of ints", value, write)
        sizes = (value,) if isinstance(value, int) else value
        if lengths and not isinstance(value, int) and len(sizes) not in lengths:
            counts = " or ".join(map(str, lengths))
            raise checks.fail_value(where, f"{name} must have {counts} entries", value, write)
        if not all(type(size) is int and size >= least or holes and size is None for size in sizes):
            raise checks.fail_value(where, f"{name} must be ints of at least {least}", value, write)

    return check


def _text(*allowed: str, none: bool = False, any_kind: bool = False) -> Check:
    """Return the check of one of some texts; `any_kind`: what is no text is a ValueError, too."""

    def check(where: str, name: str, value: Any) -> None:
        if none and value is None:
            return
        if type(value) is not str and not any_kind:  # A dtype of ours is a str, too.
            raise checks.fail_type(where, f"{name} must be a str", value, f'{name}="{allowed[0]}"')
        checks.one_of(where, name, value, allowed)

    return check


def _dtype(*allowed: str, none: bool = False) -> Check:
    """Return the check of a dtype of some names (none: of any)."""

    def check(where: str, name: str, value: Any) -> None:
        if none and value is None:
            return
        try:
            known = as_dtype(value).name
        except (TypeError, ValueError):
            known = ""
        if not known or allowed and known not in allowed:
            wanted = f"{name} must be one of {', '.join(allowed)}" if allowed else f"{name} must be a dtype"
            raise checks.fail_type(where, wanted, value, f"{name}=mixtrain.{(*allowed, 'float32')[0]}")

    return check


def _kind(*kinds: type, word: str, example: str) -> Check:
    """Return the check of the types of a value."""

    def check(where: str, name: str, value: Any) -> None:
        if not isinstance(value, kinds) or isinstance(value, bool) and bool not in kinds or isinstance(value, DType):
            raise checks.fail_type(where, f"{name} must be {word}", value, f"{name}={example}")

    return check


def _four_floats(where: str, name: str, value: Any) -> None:
    write = f"{name}=(0.0, 0.0, 0.0, 0.0)"
    if not isinstance(value, tuple) or not all(isinstance(entry, float) for entry in value):
        raise checks.fail_type(where, f"{name} must be a tuple of floats", value, write)
    if len(value) != 4:
        raise checks.fail_value(where, f"{name} must have 4 entries", value, write)


_NEAREST, _REDUCTION = ("bilinear", "nearest"), ("none", "mean", "sum")
_PADDED: Final = ("SAME", "VALID", "PAD", "Pad", "same", "valid", "pad")

# A check, and the settings that it is of: of the primitives named, or of all that have the setting.
_ROWS: Final[tuple[tuple[Check, Mapping[str, str]], ...]] = (
    (checks.boolean, {
        **dict.fromkeys((
            "adjoint", "adjoint_dt", "adjoint_st", "antialias", "clip_boxes", "ctc_merge_repeated",
            "enable_first_moment", "enable_scale_parameter", "enable_weight_decay", "global_median", "ignore_nan",
            "lower", "merge_repeated", "nesterov", "normalize", "pad_per_class", "paddings_contiguous", "periodic",
            "preprocess_collapse_repeated", "remove_accidental_hits", "replacement", "swap", "unique", "unpack_data",
            "unpack_pivots", "update_slots", "use_nesterov", "wrap",
        ), ""),
        "align_corners": "AffineGrid ResizeArea AffineGridGrad",
        "ceil_mode": "AvgPool3D AvgPool3d MaxPool3DWithArgmax MaxPoolWithArgmaxV2 MaxPool3DGradWithArgmax"
                     " MaxPoolGradWithArgmaxV2",
        "exclusive": "CumulativeLogsumexp", "reverse": "CumulativeLogsumexp NthElement", "fast": "MatrixSolveLs",
        "keepdim": "NuclearNorm", "keep_dims": "LpNorm Median MedianGrad",
        "is_training": "InstanceNormV2 InstanceNormV2Grad", "modulated": "",
        "overlapping": "FractionalAvgPoolGrad FractionalMaxPoolGrad",
        "count_include_pad": "AvgPool3D AvgPool3d", "full": "GaussianNLLLoss", "upper": "CholeskySolve",
        "zero_infinity": "CTCLossV2",
        "use_locking": "Adam ApplyAdagradDA ApplyAdamWithAmsgrad ApplyAdamWithAmsgradV2 ApplyCenteredRMSProp ApplyFtrl "
                       "ApplyMomentum ApplyProximalAdagrad ApplyRMSProp FusedSparseAdam FusedSparseLazyAdam "
                       "FusedSparseProximalAdagrad ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd "
                       "ScatterNdDiv ScatterNdMax ScatterNdMin ScatterNdMul ScatterNdSub ScatterNdUpdate ScatterSub "
                       "ScatterUpdate SparseApplyAdagrad SparseApplyAdagradDA SparseApplyAdagradV2 "
                       "SparseApplyCenteredRMSProp SparseApplyMomentum SparseApplyProximalGradientDescent "
                       "SparseApplyRMSProp",
    }),
    (_integer(), {
        **dict.fromkeys((
            "accumulate", "batch_dim", "k", "n", "pooled_height", "pooled_width", "sample_num", "seq_dim",
        ), ""),
        "axis": "IndexAdd InplaceIndexAdd Median MedianGrad ScatterAddWithAxis Sort", "blank": "CTCLossV2",
        "depth_radius": "LRNGrad",
        "diagonal": "Tril", "dim": "Renorm", "offset": "TrilIndices TriuIndices", "p": "MvlgammaGrad TripletMarginLoss",
        "pad": "Randperm",
        **dict.fromkeys(
            ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), "StridedSliceGrad"
        ),
        **dict.fromkeys(("seed", "seed2"), "RandomChoiceWithMask RandomPoisson TruncatedNormal"),
    }),
    (_integer(-1), {"seed": "Bernoulli"}),
    (_integer(0), {
        **dict.fromkeys(("base", "col", "divisor_override", "numsamples", "row", "steps"), ""), "depth_radius": "LRN",
        "p": "LpNorm", "seed": "LogUniformCandidateSampler Multinomial RandomGamma RandomShuffle StandardLaplace"
                              " UniformCandidateSampler",
        "seed2": "Multinomial RandomGamma RandomShuffle StandardLaplace",
    }),
    (_integer(1), {
        **dict.fromkeys((
            "bins", "channel_multiplier", "count", "deformable_groups", "group_size", "in_channel", "max_length",
            "ngram_size", "num_true", "output_dim", "pad_dim_size",
        ), ""),
        "out_channel": "Conv2DBackpropInput Conv2DTranspose Conv3D Conv3DBackpropFilter Conv3DBackpropInput"
                       " Conv3DTranspose", "p": "Mvlgamma Renorm",
        "range_max": "UniformCandidateSampler", "num_sampled": "LogUniformCandidateSampler UniformCandidateSampler",
        "group": "Conv3D Conv3DBackpropFilter Conv3DBackpropInput Conv3DTranspose DepthwiseConv2dNative",
    }),
    (_integer(2), {"range_max": "LogUniformCandidateSampler"}),
    (_integer(0, 1), {"roi_end_mode": ""}),
    (_integer(1, 2), {"p": "MultiMarginLoss MultiMarginLossGrad"}),
    (_integer(1, 1), {
        "mode": "Conv2D Conv2DBackpropInput Conv2DTranspose Conv3D Conv3DBackpropFilter Conv3DBackpropInput"
                " Conv3DTranspose",
    }),
    (_integer(3, 3), {"mode": "DepthwiseConv2dNative"}),
    (_float(), {
        **dict.fromkeys((
            "bias", "extrapolation_value", "gradient_scale", "iou_threshold", "lr", "margin", "maxnorm", "median",
            "sigma", "tolerance", "wh_ratio_clip",
        ), ""),
        **dict.fromkeys(("alpha", "beta"), "HammingWindow LRN LRNGrad"),
        **dict.fromkeys(("min", "max"), "Histogram"),
        **dict.fromkeys(("beta1", "beta2"), "ApplyAdamWithAmsgrad"), "eps": "TripletMarginLoss",
        "fill_value": "FillDiagonal",
        "epsilon": "ApplyAdagradV2 ApplyAdamWithAmsgrad SparseApplyAdagradV2", "spatial_scale": "ROIAlign ROIAlignGrad",
    }),
    (_float(lambda value: 0 <= value <= 1, "from 0 to 1"), {
        "keep_prob": "Dropout2D Dropout3D DropoutGrad", "rho": "SparseApplyRMSProp",
        "epsilon": "InstanceNormV2 InstanceNormV2Grad",
    }),
    (_float(lambda value: value >= 0, "at least 0", 1.0), {
        "epsilon": "LpNorm SparseApplyRMSProp", "momentum": "SparseApplyRMSProp", "p": "Pdist PdistGrad",
    }),
    (_float(lambda value: value > 0, "above 0"), {
        "eps": "GaussianNLLLoss", "spatial_scale": "PSROIPooling PSROIPoolingGrad",
    }),
    (_kind(bool, int, float, type(None), word="a number", example="0.5"), {
        **dict.fromkeys(("atol", "lambd", "nan", "neginf", "posinf", "rtol"), ""), "beta": "SmoothL1LossGrad",
    }),
    (_sizes(1, 3), {
        "kernel_size": "AvgPool3D AvgPool3d Conv3D Conv3DBackpropFilter Conv3DBackpropInput MaxPool3D MaxPool3d"
                       " Conv3DTranspose",
        "ksize": "FractionalMaxPool3DWithFixedKsize MaxPool3DWithArgmax MaxUnpool3D MaxPool3DGradWithArgmax",
        "dilation": "Conv3D Conv3DTranspose", "stride": "AvgPool3d Conv3D Conv3DTranspose MaxPool3d",
        "strides": "AvgPool3D MaxPool3D MaxPool3DWithArgmax MaxPool3DGradWithArgmax",
        "output_shape": "FractionalMaxPool3DWithFixedKsize",
    }),
    (_sizes(1, 3, 5), {
        "stride": "Conv3DBackpropFilter Conv3DBackpropInput",
        "dilation": "Conv3DBackpropFilter Conv3DBackpropInput MaxPool3DWithArgmax MaxPool3DGradWithArgmax",
        **dict.fromkeys(("kernel_size", "strides"), "MaxPool3DGrad MaxPool3DGradGrad"),
    }),
    (_sizes(1, 2, 4), {
        "dilation": "Conv2DBackpropInput Conv2DTranspose Conv2DBackpropFilter MaxPoolGradWithArgmaxV2",
        "kernel_size": "MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradWithArgmax MaxPoolGradWithArgmax"
                       " MaxPoolGradWithArgmaxV2",
        "stride": "Conv2DBackpropInput Conv2DTranspose Conv2DBackpropFilter",
        "strides": "MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradWithArgmax MaxPoolGradWithArgmax",
    }),
    (_sizes(1, 2), {
        "dilation": "DepthwiseConv2dNative MaxPoolWithArgmaxV2", "stride": "DepthwiseConv2dNative",
        "kernel_size": "Conv2DBackpropInput Conv2DTranspose DepthwiseConv2dNative MaxPoolWithArgmaxV2",
        "ksize": "FractionalMaxPoolWithFixedKsize MaxUnpool2D", "output_shape": "FractionalMaxPoolWithFixedKsize",
    }),
    (_sizes(1, 2, 4), dict.fromkeys(("dilations", "strides"), "DeformableOffsetsGrad")),
    (_sizes(1, 2), {"kernel_size": "DeformableOffsetsGrad"}),
    (_sizes(1, 2, lists=True), {
        "block_shape": "BatchToSpaceND SpaceToBatchND",
        **dict.fromkeys(("dilation", "kernel_size", "stride"), "Col2Im"),
    }),
    (_sizes(1, 1, 2, lists=True), {"dilations": "Im2Col", "ksizes": "Im2Col", "strides": "Im2Col"}),
    (_sizes(1, 2, none=True), {"strides": "MaxPoolWithArgmaxV2"}),
    (_sizes(1, 2, 4, none=True), {"strides": "MaxPoolGradWithArgmaxV2"}),
    (_sizes(1), {"input_size": "PSROIPoolingGrad"}),
    (_sizes(0, 2, holes=True), {"output_size": "AdaptiveAvgPool2D"}),
    (_sizes(0, 2), {"pads": "MaxPoolWithArgmaxV2 MaxUnpool2D", "strides": "MaxUnpool2D"}),
    (_sizes(0, 2, 4), {"pads": "MaxPoolGradWithArgmaxV2"}),
    (_sizes(0, 2, lists=True), {"padding": "Col2Im"}),
    (_sizes(0, 1, 2, lists=True), {"pads": "Im2Col"}),
    (_sizes(0, 3), {
        "pads": "MaxPool3DWithArgmax MaxUnpool3D MaxPool3DGradWithArgmax", "strides": "MaxUnpool3D",
    }),
    (_sizes(-math.inf), {"indices": "InplaceAdd InplaceSub InplaceUpdate"}),
    (_sizes(1, 5, lists=True), dict.fromkeys(("kernel_size", "strides"), "ExtractVolumePatches")),
    (_sizes(-math.inf, lists=True), {"axis": "LpNorm"}),
    (_kind(tuple, list, type(None), word="a tuple of ints", example="(1, 1)"),
     {"output_size": "AdaptiveMaxPool2D", "axis": "ReverseV2", "dim": "NuclearNorm"}),
    (_kind(tuple, word="a tuple of ints", example="()"), {"output_shape": "MaxUnpool2D MaxUnpool3D"}),
    (_kind(tuple, word="a tuple of ints", example="(1, 1, 1, 1)"),
     dict.fromkeys(("dilations", "ksize", "pads", "strides"), "DeformableOffsets")),
    (_kind(list, word="a list of ints", example="[1]"), {"size": "Cauchy"}),
    (_kind(int, type(None), word="an int", example="1"), {"num": "Unstack"}),
    (_kind(int, tuple, word="an int or a tuple of ints", example="1"), {"output_size": "AdaptiveAvgPool3D"}),
    (_kind(bool, int, tuple, list, type(None), word="an int or a tuple of ints", example="0"),
     {"axis": "L2Normalize L2NormalizeGrad ReduceStd Squeeze"}),
    (_kind(bool, int, type(None), word="an int", example="0"), {"diagonal": "Triu"}),
    (_sizes(0), {
        "pad": "AvgPool3D Conv3D Conv3DTranspose", "pad_list": "MaxPool3D MaxPool3DGrad",
        "padding": "AvgPool3d MaxPool3d",
    }),
    (_kind(int, float, word="a float", example="1e-4"), {"epsilon": "L2NormalizeGrad"}),
    (_kind(str, word="a str", example='"hccl_world_group"'), {"group": "AllGather AllReduce Broadcast ReduceScatter"}),
    (_kind(str, word="a str", example='"sum"'), {"op": "AllReduce ReduceScatter"}),
    (_kind(str, word="a str", example='"valid"'), {
        "pad_mode": "Conv2D Conv2DBackpropInput Conv2DTranspose Conv3DTranspose MaxPool MaxPoolWithArgmax",
    }),
    (_kind(str, type(None), word="a str", example='"mean"'), {
        "reduction": "BCEWithLogitsLoss BinaryCrossEntropy NLLLoss SmoothL1Loss",
        **dict.fromkeys(("data_format", "pad_mode"), "AvgPool BiasAdd"), "indexing": "Meshgrid",
    }),
    (_kind(str, word="a str", example='"ij->ji"'), {"equation": "Einsum"}),
    (_four_floats, {"means": "", "stds": ""}),
    (_text("NCHW", "NHWC", any_kind=True), {
        "data_format": "DeformableOffsets DeformableOffsetsGrad MaxUnpool2D", "src_format": "", "dst_format": "",
    }),
    (_text("NCDHW", any_kind=True), {
        "data_format": "AvgPool3D Conv3D Conv3DBackpropFilter Conv3DBackpropInput FractionalMaxPool3DGradWithFixedKsize"
                       " MaxPool3D MaxPool3DGrad MaxPool3DGradGrad",
    }),
    (_text("NCHW", any_kind=True), {
        "data_format": "Conv2DBackpropFilter FractionalMaxPoolGradWithFixedKsize MaxPoolGrad MaxPoolGradWithArgmax",
    }),
    (_text("NCDHW", "NDHWC", any_kind=True), {"data_format": "MaxUnpool3D"}),
    (_text("NCDHW"), {"data_format": "MaxPool3DGradWithArgmax"}),
    (_text("NCHW", "NHWC", "NCDHW", none=True), {
        "data_format": "BatchNorm BatchNormGrad BatchNormGradGrad AvgPoolGrad BiasAddGrad",
    }),
    (_text(*_PADDED), {
        "pad_mode": "AvgPool3D AvgPool3d Conv3D Conv3DBackpropFilter Conv3DBackpropInput DepthwiseConv2dNative"
                    " MaxPool3D MaxPool3d",
    }),
    (_text(*_PADDED, "CALCULATED"), {"pad_mode": "MaxPool3DGrad"}),
    (_text("SAME", "VALID", "same", "valid"), {
        "pad_mode": "MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradWithArgmax MaxPoolGradWithArgmax",
    }),
    (_text(*_PADDED, none=True), {"pad_mode": "AvgPoolGrad"}),
    (_text("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"), {"align": ""}),
    (_text("SAME", "VALID"), {"padding": "ExtractVolumePatches"}),
    (_text("ACROSS_CHANNELS"), {"norm_region": ""}),
    (_text("a-b", "b-a", "intersection", "union"), {"set_operation": ""}),
    (_text(*_NEAREST, "bilinear_v2"), {"method": "CropAndResize"}),
    (_text("box", "triangle", "gaussian", "keyscubic", "mitchellcubic", "lanczos1", "lanczos3", "lanczos5"),
     {"kernel_type": ""}),
    (_text("reflect", "constant", "edge", "circular", any_kind=True), {"mode": "PadV3"}),
    (_text("align_corners", "half_pixel", none=True), {"coordinate_transformation_mode": ""}),
    (_text(*_NEAREST, none=True), {"interpolation_mode": ""}),
    (_text("zeros", "border", "reflection", none=True), {"padding_mode": ""}),
    (_text("backward", "forward", "ortho", none=True), {"norm": "FFTWithSize"}),
    (_text(*_REDUCTION, none=True),
     {"reduction": "BinaryCrossEntropyGrad NLLLossGrad SmoothL1LossGrad SoftMarginLossGrad"}),
    (_text(*_REDUCTION, any_kind=True),
     {"reduction": "GaussianNLLLoss MultiLabelSoftMarginLoss MultiMarginLoss MultiMarginLossGrad MultilabelMarginLoss"
                   " MultilabelMarginLossGrad PoissonNLLLoss TripletMarginLoss"}),
    (_text(*_REDUCTION, "batchmean", any_kind=True), {"reduction": "KLDivLossGrad"}),
    (_text("none"), {"reduction": "CTCLossV2"}),
    (_text("none", "add", "mul", "update", "multiply", none=True), {"reduction": "TensorScatterElements"}),
    (_dtype("int32", "int64"), {
        "argmax_type": "MaxPoolWithArgmaxV2", "dtype": "Multinomial TrilIndices TriuIndices", "out_idx": "",
        "out_type": "LowerBound UpperBound",
    }),
    (_dtype("float16", "float32", "float64"), {
        "dtype": "BartlettWindow BlackmanWindow HammingWindow LogSpace TruncatedNormal",
    }),
    (_dtype("int16", "int32", "int64"), {"dtype": "RandomCategorical"}),
    (_dtype("int32", "int64", "float16", "float32", "float64"), {"dtype": "RandomPoisson"}),
    (_dtype("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"),
     {"dtype": "Randperm"}),
    (_dtype(none=True), {"dtype": "SearchSorted"}),
)

_FOR_ALL: Final = {setting: check for check, settings in _ROWS for setting, names in settings.items() if not names}
_FOR_ONE: Final = {
    (name, setting): check
    for check, settings in _ROWS for setting, names in settings.items() for name in names.split()
}


def check_attributes(primitive: str, settings: Mapping[str, Any]) -> None:
    """Raise a TypeError or a ValueError if a setting of a primitive is not what MindSpore takes."""
    for name, value in settings.items():
        check = _FOR_ONE.get((primitive, name)) or _FOR_ALL.get(name)
        if check is not None:
            check(primitive, name, value)
