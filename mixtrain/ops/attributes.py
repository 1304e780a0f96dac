"""What MindSpore's primitives and cells take as settings when they are made: a table of checks, by setting and class.

The rules were recorded from MindSpore 2.10, which refuses with a TypeError what is of another kind, and with a
ValueError what is out of range.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from mixtrain import checks
from mixtrain.dtype import DType, as_dtype, int32, int64
from mixtrain.ops.inputs import an_int, sizes_of

# Returns what is stored, or None for the value as it is.
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


def _patches(where: str, name: str, value: Any) -> None:
    write = f"{name}=(1, 2, 2, 1)"
    checks.instance(where, name, value, (tuple, list), write)
    if len(value) != 4 or value[0] != 1 or value[3] != 1 or not all(type(size) is int and size > 0 for size in value):
        raise checks.fail_value(where, f"{name} must be (1, height, width, 1)", value, write)


def _weights(where: str, name: str, value: Any) -> None:
    if isinstance(value, (int, float)) or isinstance(value, (tuple, list)) and not value:
        raise checks.fail_type(where, f"{name} must be a Tensor", value, f"{name}=Tensor([0.5, 1.0])")


def _period(where: str, name: str, value: Any) -> None:
    if checks.number(where, name, value, at_least=1) != value or isinstance(value, float):
        raise checks.fail_value(where, f"{name} must be an int", value, f"{name}={int(value)}")


def _milestones(where: str, name: str, value: Any) -> None:
    if not isinstance(value, (tuple, list)) or not all(isinstance(item, int) for item in value):
        raise checks.fail_type(where, f"{name} must be a list of ints", value, f"{name}=[30, 80]")


_NUMBER: Final = partial(checks.number, example=0.5)
_NEAREST, _REDUCTION = ("bilinear", "nearest"), ("none", "mean", "sum")
_PADDED: Final = ("SAME", "VALID", "PAD", "Pad", "same", "valid", "pad")

# A check, and the settings that it is of: of the classes named, or of all primitives that have the setting.
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
        **dict.fromkeys(("exclusive", "reverse"), "CumSum CumulativeLogsumexp"),
        "keep_dims": "ArgMaxWithValue ArgMinWithValue LpNorm Median MedianGrad ReduceAll ReduceAny ReduceMax ReduceMean"
                     " ReduceMin ReduceProd ReduceSum",
        "descending": "Sort", "is_grad": "SparseSoftmaxCrossEntropyWithLogits", "skip_mode": "ReduceSum",
        "sorted": "TopK", "fast": "MatrixSolveLs", "keepdim": "NuclearNorm", "modulated": "",
        "is_training": "InstanceNormV2 InstanceNormV2Grad",
        "overlapping": "FractionalAvgPoolGrad FractionalMaxPoolGrad",
        "count_include_pad": "AvgPool3D AvgPool3d", "full": "GaussianNLLLoss", "upper": "CholeskySolve",
        "zero_infinity": "CTCLossV2", "add_cast_fp32": "WithEvalCell",
        **dict.fromkeys(("scale_grad_by_freq", "sparse"), "Embedding"),
        "use_locking": "Adam ApplyAdagradDA ApplyAdamWithAmsgrad ApplyAdamWithAmsgradV2 ApplyCenteredRMSProp ApplyFtrl "
                       "ApplyMomentum ApplyProximalAdagrad ApplyRMSProp FusedSparseAdam FusedSparseLazyAdam "
                       "FusedSparseProximalAdagrad ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterNdAdd "
                       "ScatterNdDiv ScatterNdMax ScatterNdMin ScatterNdMul ScatterNdSub ScatterNdUpdate ScatterSub "
                       "ScatterUpdate SparseApplyAdagrad SparseApplyAdagradDA SparseApplyAdagradV2 "
                       "SparseApplyCenteredRMSProp SparseApplyMomentum SparseApplyProximalGradientDescent "
                       "SparseApplyRMSProp",
    }),
    (_integer(), {
        **dict.fromkeys(("accumulate", "batch_dim", "k", "n", "pooled_height", "pooled_width", "sample_num"), ""),
        "axis": "IndexAdd InplaceIndexAdd Median MedianGrad ScatterAddWithAxis Sort Unflatten", "blank": "CTCLossV2",
        "T_max": "CosineAnnealingLR", "time_axis": "TimeDistributed", "total_iters": "ConstantLR LinearLR PolynomialLR",
        "diagonal": "Tril", "dim": "Renorm", "offset": "TrilIndices TriuIndices", "p": "MvlgammaGrad TripletMarginLoss",
        "depth_radius": "LRNGrad", "pad": "Randperm", "seq_dim": "",
        **dict.fromkeys(
            ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), "StridedSliceGrad"
        ),
        **dict.fromkeys(("seed", "seed2"), "RandomChoiceWithMask RandomPoisson TruncatedNormal"),
    }),
    (an_int, {"axis": "Concat Stack Unstack"}),
    (partial(an_int, example=-1), {"axis": "LogSoftmax OneHot"}),
    (partial(checks.integer, at_least=-(2**31), example=-100), {"ignore_index": "NLLLoss"}),
    (partial(checks.integer, at_least=0), {
        **dict.fromkeys(("Seed0", "Seed1"), "Dropout"), "batch_dims": "Gather",
        **dict.fromkeys(("seed", "seed2"), "StandardNormal UniformInt UniformReal"),
    }),
    (partial(checks.integer, at_least=1), {"output_num": "Split"}),
    (partial(checks.integer, at_least=1, example=1000000), {"maxlen": "Range"}),
    (partial(checks.integer, at_least=2), {"block_size": "DepthToSpace SpaceToDepth"}),
    (_integer(-1), {"seed": "Bernoulli"}),
    (_integer(0), {
        **dict.fromkeys(("base", "col", "divisor_override", "numsamples", "row", "steps"), ""), "depth_radius": "LRN",
        "p": "LpNorm", "seed": "LogUniformCandidateSampler Multinomial RandomGamma RandomShuffle StandardLaplace"
                              " UniformCandidateSampler",
        "seed2": "Multinomial RandomGamma RandomShuffle StandardLaplace",
    }),
    (_integer(1), {
        **dict.fromkeys(("bins", "count", "group_size", "in_channel", "max_length", "ngram_size", "num_true"), ""),
        **dict.fromkeys(("channel_multiplier", "deformable_groups", "output_dim", "pad_dim_size"), ""),
        "out_channel": "Conv2DBackpropInput Conv2DTranspose Conv3D Conv3DBackpropFilter Conv3DBackpropInput"
                       " Conv3DTranspose", "p": "Mvlgamma Renorm",
        "range_max": "UniformCandidateSampler", "num_sampled": "LogUniformCandidateSampler UniformCandidateSampler",
        "group": "Conv3D Conv3DBackpropFilter Conv3DBackpropInput Conv3DTranspose DepthwiseConv2dNative",
        "divisor_override": "AvgPool3d",
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
            "sigma", "wh_ratio_clip",
        ), ""),
        **dict.fromkeys(("alpha", "beta"), "HammingWindow LRN LRNGrad"), **dict.fromkeys(("min", "max"), "Histogram"),
        **dict.fromkeys(("beta1", "beta2"), "ApplyAdamWithAmsgrad"), "eps": "TripletMarginLoss",
        "fill_value": "FillDiagonal", "tolerance": "ApproximateEqual",
        "epsilon": "ApplyAdagradV2 ApplyAdamWithAmsgrad SparseApplyAdagradV2", "spatial_scale": "ROIAlign ROIAlignGrad",
    }),
    (_float(lambda value: 0 <= value <= 1, "from 0 to 1"), {
        "keep_prob": "Dropout2D Dropout3D DropoutGrad", "rho": "SparseApplyRMSProp",
        "epsilon": "InstanceNormV2 InstanceNormV2Grad",
    }),
    (_float(lambda value: value >= 0, "at least 0", 1.0), {
        "epsilon": "LpNorm SparseApplyRMSProp", "momentum": "SparseApplyRMSProp", "p": "Pdist PdistGrad",
    }),
    (_float(lambda value: value > 0, "above 0"),
     {"eps": "GaussianNLLLoss", "spatial_scale": "PSROIPooling PSROIPoolingGrad"}),
    # Of cells and schedulers; an int is a number, too, which MindSpore refuses.
    (_NUMBER, {
        **dict.fromkeys(("k1", "k2"), "SSIM MSSSIM"), "gamma": "ExponentialLR MultiStepLR StepLR",
        "eta_min": "CosineAnnealingLR CosineAnnealingWarmRestarts", "norm_type": "Embedding",
        "margin": "TripletMarginLoss",
    }),
    (partial(_NUMBER, above=0, at_most=1), {"central_fraction": "CentralCrop", "start_factor": "LinearLR"}),
    (partial(_NUMBER, at_least=0, at_most=1), {"end_factor": "LinearLR", "factor": "ConstantLR"}),
    (partial(_NUMBER, at_least=0), {"power": "PolynomialLR"}),
    (partial(_NUMBER, above=0), {"filter_sigma": "SSIM MSSSIM", "max_val": "PSNR SSIM MSSSIM"}),
    (partial(checks.integer, at_least=1, example=11), {"filter_size": "SSIM MSSSIM"}),
    (partial(checks.integer, at_least=-sys.maxsize, example=-1), {
        **dict.fromkeys(("start_dim", "end_dim"), "Flatten"), "axis": "OneHot",
        **dict.fromkeys(("begin_norm_axis", "begin_params_axis"), "LayerNorm"),
        "ignore_index": "CrossEntropyLoss NLLLoss",
    }),
    (_period, dict.fromkeys(("T_0", "T_mult"), "CosineAnnealingWarmRestarts")),
    (_milestones, {"milestones": "MultiStepLR"}),
    (_kind(int, float, type(None), word="a number", example="1.0"),
     {"max_norm": "Embedding", "step_size_down": "CyclicLR"}),
    (_kind(bool, int, float, word="a number", example="0.5"), {"value": "ConstantPad1d ConstantPad2d ConstantPad3d"}),
    (_weights, {"weight": "CrossEntropyLoss FocalLoss NLLLoss", "weights": "MultiClassDiceLoss"}),
    (_patches, dict.fromkeys(("ksizes", "strides", "rates"), "Unfold")),
    (_kind(tuple, list, word="a tuple of numbers", example="(1, 1)"),
     {"power_factors": "MSSSIM", "unflattened_size": "Unflatten"}),
    (_kind(int, tuple, list, word="an int or a tuple of ints", example="1"), {"axis": "ReduceLogSumExp"}),
    (_kind(bool, int, float, type(None), word="a number", example="0.5"), {
        **dict.fromkeys(("atol", "lambd", "nan", "neginf", "posinf", "rtol"), ""), "beta": "SmoothL1LossGrad",
    }),
    (checks.number, {"alpha": "Elu", "tolerance": "ApproximateEqual"}),
    (partial(checks.number, at_least=0, example=1e-4), {"epsilon": "L2Normalize"}),
    (partial(checks.number, above=0, example=1.0), {"beta": "SmoothL1Loss"}),
    (partial(checks.number, above=0, at_most=1, example=0.5), {"keep_prob": "Dropout"}),
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
    (_sizes(0, holes=True), {"output_size": "AdaptiveAvgPool3d"}),
    (_sizes(-math.inf), {"indices": "InplaceAdd InplaceSub InplaceUpdate"}),
    (_sizes(-math.inf, none=True), {"axis": "Moments"}),
    (_sizes(1, 5, lists=True), dict.fromkeys(("kernel_size", "strides"), "ExtractVolumePatches")),
    (_sizes(-math.inf, lists=True), {"axis": "LpNorm"}),
    (_kind(tuple, list, type(None), word="a tuple of ints", example="(1, 1)"),
     {"output_size": "AdaptiveMaxPool2D", "axis": "ReverseV2", "dim": "NuclearNorm"}),
    (_kind(tuple, word="a tuple of ints", example="()"), {"output_shape": "MaxUnpool2D MaxUnpool3D"}),
    (_kind(tuple, word="a tuple of ints", example="(1, 1, 1, 1)"),
     dict.fromkeys(("dilations", "ksize", "pads", "strides"), "DeformableOffsets")),
    (_kind(list, word="a list of ints", example="[1]"), {"size": "Cauchy"}),
    (_kind(int, type(None), word="an int", example="1"), {"num": "Unstack", "reshape_with_axis": "TimeDistributed"}),
    (_kind(int, tuple, word="an int or a tuple of ints", example="1"), {"output_size": "AdaptiveAvgPool3D"}),
    (_kind(bool, int, tuple, list, type(None), word="an int or a tuple of ints", example="0"),
     {"axis": "L2Normalize L2NormalizeGrad ReduceStd"}),
    (_kind(bool, int, tuple, list, word="an int or a tuple of ints", example="0"), {"axis": "Squeeze"}),
    (_kind(bool, int, type(None), word="an int", example="0"), {"diagonal": "Triu"}),
    (_sizes(0), {
        "pad": "AvgPool3D Conv3D Conv3DTranspose", "pad_list": "MaxPool3D MaxPool3DGrad",
        "padding": "AvgPool3d MaxPool3d",
    }),
    (_kind(int, float, word="a float", example="1e-4"), {"epsilon": "L2NormalizeGrad"}),
    (_kind(str, word="a str", example='"hccl_world_group"'), {
        "group": "AllGather AllReduce Broadcast ReduceScatter DistributedGradReducer",
    }),
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
                       " FractionalMaxPool3DWithFixedKsize MaxPool3D MaxPool3DGrad MaxPool3DGradGrad",
    }),
    (_text("NCHW", any_kind=True), {
        "data_format": "BiasAdd Conv2DBackpropFilter FractionalMaxPoolGradWithFixedKsize MaxPoolGradWithArgmax"
                       " FractionalMaxPoolWithFixedKsize MaxPoolGrad",
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
     {"reduction": "BCEWithLogitsLoss BinaryCrossEntropy GaussianNLLLoss L1LossExt MultiLabelSoftMarginLoss"
                   " MultiMarginLoss MultiMarginLossGrad MultilabelMarginLoss MultilabelMarginLossGrad NLLLoss"
                   " PoissonNLLLoss SmoothL1Loss TripletMarginLoss"}),
    (_text("mean", "sum", "none", "batchmean", any_kind=True), {"reduction": "KLDivLoss"}),
    (_text(*_REDUCTION, "batchmean", any_kind=True), {"reduction": "KLDivLossGrad"}),
    (_text("iou", "iof", any_kind=True), {"mode": "IOU"}),
    (_text("REFLECT", "SYMMETRIC", any_kind=True), {"mode": "MirrorPad"}),
    (_text("xy", "ij", any_kind=True), {"indexing": "Meshgrid"}),
    (lambda where, name, value: sizes_of(where, value), {"shape": "BroadcastTo"}),
    (_text("none"), {"reduction": "CTCLossV2"}),
    (_text("same", "valid", "SAME", "VALID"), {"padding": "Unfold"}),
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
    (lambda where, name, value: checks.one_of(where, name, as_dtype(value), (int32, int64)),
     {"output_type": "Argmax Argmin"}),
)

# The checks of each setting of a class, and of a setting of all primitives, which those of a class replace.
_CHECKS: Final[dict[tuple[str, str], list[Check]]] = {}
for _check, _settings in _ROWS:
    for _setting, _names in _settings.items():
        for _name in _names.split() or [""]:
            _CHECKS.setdefault((_name, _setting), []).append(_check)
_CLASSES: Final = frozenset(name for name, _ in _CHECKS)


def check_attributes(name: str, settings: Mapping[str, Any], *, own: bool = False) -> dict[str, Any]:
    """Return the settings of a class as they are stored; `own`: by rows of the class alone.

    Raises: TypeError or ValueError if one is not what MindSpore takes.
    """
    stored = dict(settings)
    for setting, value in settings.items():
        for check in _CHECKS.get((name, setting)) or ([] if own else _CHECKS.get(("", setting), [])):
            checked = check(name, setting, value)
            stored[setting] = stored[setting] if checked is None else checked
    return stored


def check_settings_of(cls: type) -> None:
    """Let the `__init__` of a class of this package check what it is given, if the table has rows of the class."""
    if cls.__name__ in _CLASSES and cls.__module__.startswith("mixtrain."):
        cls.__init__ = checked(cls.__init__, own=True)  # type: ignore[misc]


def checked(init: Callable[..., None], *, own: bool = False) -> Callable[..., None]:
    """Return the `__init__` of a class with checks of the settings that it is given."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        ours = next(cls for cls in type(self).__mro__ if cls.__module__.startswith("mixtrain."))
        if getattr(ours, "__init__") is __init__:  # noqa: B009  Not that of a base, which ours calls.
            try:
                given = signature.bind(self, *args, **kwargs)
            except TypeError:  # Arguments that it does not have, which the call refuses.
                pass
            else:
                given.arguments.update(check_attributes(ours.__name__, given.arguments, own=own))
                args, kwargs = given.args[1:], given.kwargs
        init(self, *args, **kwargs)

    return __init__
