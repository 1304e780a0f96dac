"""Operations with MindSpore's names: functions, and primitives, which are functions made from their settings."""

from mixtrain.ops.activation import (
    Elu, FastGeLU, GeLU, Gelu, HSigmoid, HSwish, LogSigmoid, Mish, PReLU, ReLU, ReLU6, SeLU, Sigmoid, Softplus,
    Softsign, Tanh, celu, elu, fast_gelu, gelu, hardshrink, hardsigmoid, hardswish, hardtanh, leaky_relu,
    logsigmoid, mish, prelu, relu, relu6, selu, sigmoid, silu, softplus, softshrink, softsign, tanh, tanhshrink,
    threshold,
)
from mixtrain.ops.arithmetic import (
    Add, AddN, Atan2, Div, DivNoNan, FloorDiv, FloorMod, Maximum, Minimum, Mod, Mul, Pow, RealDiv,
    SquaredDifference, Sub, TensorAdd, TruncateDiv, Xdivy, add, addcdiv, addcmul, addn, arctan2, atan2, div, divide,
    floor_div, floor_divide, floor_mod, fmod, hypot, lerp, logaddexp, maximum, minimum, mul, multiply, pow,
    remainder, squared_difference, sub, subtract, tensor_add, true_divide,
)
from mixtrain.ops.array import (
    ExpandDims, Flatten, Reshape, ReverseV2, Squeeze, Transpose, expand_dims, flatten, flip, moveaxis, movedim,
    permute, ravel, reshape, reverse, roll, squeeze, swapaxes, swapdims, t, transpose, unsqueeze,
)
from mixtrain.ops.boxes import IOU, BoundingBoxDecode, BoundingBoxEncode, CheckValid, iou
from mixtrain.ops.clip import clip_by_global_norm
from mixtrain.ops.collective import AllGather, AllReduce, Broadcast, ReduceOp, ReduceScatter
from mixtrain.ops.comparison import (
    ApproximateEqual, Equal, EqualCount, Greater, GreaterEqual, Less, LessEqual, LogicalAnd, LogicalOr, LogicalXor,
    NotEqual, approximate_equal, bitwise_and, bitwise_or, bitwise_xor, eq, equal, ge, greater, greater_equal, gt,
    isclose, le, less, less_equal, logical_and, logical_or, logical_xor, lt, ne, not_equal,
)
from mixtrain.ops.control import Depend, Partial, Print, depend, partial, print_
from mixtrain.ops.conv import BiasAdd, Conv2D, bias_add, conv2d
from mixtrain.ops.creation import (
    Eye, Fill, FillV2, LinSpace, Ones, OnesLike, Range, Zeros, ZerosLike, arange, eye, fill, full, full_like,
    linspace, ones, ones_like, range, zeros, zeros_like,
)
from mixtrain.ops.cross_entropy import (
    SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits, cross_entropy, nll_loss,
)
from mixtrain.ops.dropout import Dropout, dropout, dropout2d
from mixtrain.ops.extremes import (
    ArgMaxWithValue, ArgMinWithValue, Argmax, Argmin, CumSum, amax, amin, argmax, argmin, cumprod, cumsum, max,
    median, min,
)
from mixtrain.ops.facts import (
    Cast, DType, DynamicShape, Rank, ScalarCast, ScalarToArray, ScalarToTensor, Shape, Size, TensorShape,
    TupleToArray, cast, dtype, dyn_shape, is_tensor, make_range, numel, rank, scalar_cast, scalar_to_array,
    scalar_to_tensor, shape, size, tuple_to_array,
)
from mixtrain.ops.gradient import GradOperation
from mixtrain.ops.hook_backward import HookBackward
from mixtrain.ops.hyper_map import HyperMap, Map
from mixtrain.ops.joining import (
    Concat, Split, Stack, Unstack, cat, chunk, concat, hstack, split, stack, unbind, unstack, vstack,
)
from mixtrain.ops.limits import clamp, clip, clip_by_value
from mixtrain.ops.loss import (
    SigmoidCrossEntropyWithLogits, SmoothL1Loss, binary_cross_entropy, binary_cross_entropy_with_logits, huber_loss,
    kl_div, l1_loss, mse_loss, smooth_l1_loss,
)
from mixtrain.ops.loss_primitives import BCEWithLogitsLoss, BinaryCrossEntropy, KLDivLoss, L2Loss, NLLLoss
from mixtrain.ops.multitype import MultitypeFuncGraph
from mixtrain.ops.normalize import L2Normalize
from mixtrain.ops.ordering import (
    Diag, OneHot, ScatterNd, Sort, TopK, Tril, Triu, Unique, argsort, diag, one_hot, scatter_nd, sort, topk, tril,
    triu, unique,
)
from mixtrain.ops.pooling import AvgPool, MaxPool, MaxPoolWithArgmax, adaptive_avg_pool2d, avg_pool2d, max_pool2d
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.products import (
    BatchMatMul, MatMul, addmm, baddbmm, bmm, dot, einsum, matmul, mm, mv, outer, tensor_dot,
)
from mixtrain.ops.random import (
    StandardNormal, UniformInt, UniformReal, bernoulli, normal, rand, rand_like, randint, randn, randn_like,
    randperm, standard_normal, uniform,
)
from mixtrain.ops.reduction import (
    ReduceAll, ReduceAny, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum, all, any, count_nonzero,
    logsumexp, mean, norm, prod, reduce_max, reduce_mean, reduce_min, reduce_sum, std, std_mean, sum, var, var_mean,
)
from mixtrain.ops.regions import NMSWithMask, ROIAlign
from mixtrain.ops.repetition import (
    BroadcastTo, Meshgrid, MirrorPad, Pad, Tile, broadcast_to, expand, meshgrid, pad, repeat_elements,
    repeat_interleave, tile,
)
from mixtrain.ops.resize import ResizeBilinear, ResizeNearestNeighbor, interpolate
from mixtrain.ops.selection import (
    Gather, GatherD, GatherNd, MaskedFill, MaskedSelect, Select, Slice, StridedSlice, gather, gather_d,
    gather_elements, gather_nd, index_select, masked_fill, masked_select, nonzero, select, slice, strided_slice,
    where,
)
from mixtrain.ops.softmax import LogSoftmax, Softmax, glu, log_softmax, softmax, softmin
from mixtrain.ops.state import Assign, AssignAdd, AssignSub, assign, assign_add, assign_sub
from mixtrain.ops.summary import HistogramSummary, ImageSummary, ScalarSummary, TensorSummary
from mixtrain.ops.unary import (
    ACos, Abs, Acosh, Asin, Asinh, Atan, Atanh, Ceil, Cos, Cosh, Erf, Erfc, Exp, Expm1, Floor, Identity, Inv,
    IsFinite, IsInf, IsNan, Log, Log1p, LogicalNot, Neg, Reciprocal, Rint, Round, Rsqrt, Sign, Sin, Sinh, Sqrt,
    Square, Tan, Trunc, abs, absolute, acos, acosh, arccos, arcsin, arctan, asin, asinh, atan, atanh, ceil, cos,
    cosh, erf, erfc, exp, exp2, expm1, floor, identity, isfinite, isinf, isnan, log, log10, log1p, log2,
    logical_not, nan_to_num, neg, negative, reciprocal, round, rsqrt, sign, sin, sinc, sinh, sqrt, square, tan,
    trunc,
)
from mixtrain.ops.operator import make_operators as _make_operators
from mixtrain.ops.value_and_grad import grad, stop_gradient, value_and_grad

__all__ = [
    "IOU", "ACos", "Abs", "Acosh", "Add", "AddN", "AllGather", "AllReduce", "ApproximateEqual", "ArgMaxWithValue",
    "ArgMinWithValue", "Argmax", "Argmin", "Asin", "Asinh", "Assign", "AssignAdd", "AssignSub", "Atan", "Atan2",
    "Atanh", "AvgPool", "BCEWithLogitsLoss", "BatchMatMul", "BiasAdd", "BinaryCrossEntropy", "BoundingBoxDecode",
    "BoundingBoxEncode", "Broadcast", "BroadcastTo", "Cast", "Ceil", "CheckValid", "Concat", "Conv2D", "Cos",
    "Cosh", "CumSum", "DType", "Depend", "Diag", "Div", "DivNoNan", "Dropout", "DynamicShape", "Elu", "Equal",
    "EqualCount", "Erf", "Erfc", "Exp", "ExpandDims", "Expm1", "Eye", "FastGeLU", "Fill", "FillV2", "Flatten",
    "Floor", "FloorDiv", "FloorMod", "Gather", "GatherD", "GatherNd", "GeLU", "Gelu", "GradOperation", "Greater",
    "GreaterEqual", "HSigmoid", "HSwish", "HistogramSummary", "HookBackward", "HyperMap", "Identity", "ImageSummary",
    "Inv", "IsFinite", "IsInf", "IsNan", "KLDivLoss", "L2Loss", "L2Normalize", "Less", "LessEqual", "LinSpace", "Log",
    "Log1p", "LogSigmoid", "LogSoftmax", "LogicalAnd", "LogicalNot", "LogicalOr", "LogicalXor", "Map", "MaskedFill",
    "MaskedSelect", "MatMul", "MaxPool", "MaxPoolWithArgmax", "Maximum", "Meshgrid", "Minimum", "MirrorPad", "Mish",
    "Mod", "Mul", "MultitypeFuncGraph", "NLLLoss", "NMSWithMask", "Neg", "NotEqual", "OneHot", "Ones", "OnesLike",
    "PReLU", "Pad", "Partial", "Pow", "Primitive", "Print", "ROIAlign", "Range", "Rank", "ReLU", "ReLU6", "RealDiv",
    "Reciprocal", "ReduceAll", "ReduceAny", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceOp", "ReduceProd",
    "ReduceScatter", "ReduceSum", "Reshape", "ResizeBilinear", "ResizeNearestNeighbor", "ReverseV2", "Rint",
    "Round", "Rsqrt", "ScalarCast", "ScalarSummary", "ScalarToArray", "ScalarToTensor", "ScatterNd", "SeLU",
    "Select", "Shape", "Sigmoid", "SigmoidCrossEntropyWithLogits", "Sign", "Sin", "Sinh", "Size", "Slice",
    "SmoothL1Loss", "Softmax", "SoftmaxCrossEntropyWithLogits", "Softplus", "Softsign", "Sort",
    "SparseSoftmaxCrossEntropyWithLogits", "Split", "Sqrt", "Square", "SquaredDifference", "Squeeze", "Stack",
    "StandardNormal", "StridedSlice", "Sub", "Tan", "Tanh", "TensorAdd", "TensorShape", "TensorSummary", "Tile",
    "TopK", "Transpose", "Tril", "Triu", "Trunc", "TruncateDiv", "TupleToArray", "UniformInt", "UniformReal",
    "Unique", "Unstack", "Xdivy", "Zeros", "ZerosLike", "abs", "absolute", "acos", "acosh", "adaptive_avg_pool2d",
    "add", "addcdiv", "addcmul", "addmm", "addn", "all", "amax", "amin", "any", "approximate_equal", "arange",
    "arccos", "arcsin", "arctan", "arctan2", "argmax", "argmin", "argsort", "asin", "asinh", "assign", "assign_add",
    "assign_sub", "atan", "atan2", "atanh", "avg_pool2d", "baddbmm", "bernoulli", "bias_add",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "bitwise_and", "bitwise_or", "bitwise_xor", "bmm",
    "broadcast_to",
    "cast", "cat", "ceil", "celu", "chunk", "clamp", "clip", "clip_by_global_norm", "clip_by_value", "concat",
    "conv2d", "cos", "cosh", "count_nonzero", "cross_entropy", "cumprod", "cumsum", "depend", "diag", "div",
    "divide", "dot", "dropout", "dropout2d", "dtype", "dyn_shape", "einsum", "elu", "eq", "equal", "erf", "erfc",
    "exp", "exp2", "expand", "expand_dims", "expm1", "eye", "fast_gelu", "fill", "flatten", "flip", "floor",
    "floor_div", "floor_divide", "floor_mod", "fmod", "full", "full_like", "gather", "gather_d", "gather_elements",
    "gather_nd", "ge", "gelu", "glu", "grad", "greater", "greater_equal", "gt", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hstack", "huber_loss", "hypot", "identity", "index_select", "interpolate", "iou",
    "is_tensor", "isclose", "isfinite", "isinf", "isnan", "kl_div", "l1_loss", "le", "leaky_relu", "lerp", "less",
    "less_equal", "linspace", "log", "log10", "log1p", "log2", "log_softmax", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logsigmoid", "logsumexp", "lt", "make_range", "masked_fill",
    "masked_select", "matmul", "max", "max_pool2d", "maximum", "mean", "median", "meshgrid", "min", "minimum",
    "mish", "mm", "moveaxis", "movedim", "mse_loss", "mul", "multiply", "mv", "nan_to_num", "ne", "neg", "negative",
    "nll_loss", "nonzero", "norm", "normal", "not_equal", "numel", "one_hot", "ones", "ones_like", "outer", "pad",
    "partial", "permute", "pow", "prelu", "print_", "prod", "rand", "rand_like", "randint", "randn", "randn_like",
    "randperm", "range", "rank", "ravel", "reciprocal", "reduce_max", "reduce_mean", "reduce_min", "reduce_sum",
    "relu", "relu6", "remainder", "repeat_elements", "repeat_interleave", "reshape", "reverse", "roll", "round",
    "rsqrt", "scalar_cast", "scalar_to_array", "scalar_to_tensor", "scatter_nd", "select", "selu", "shape",
    "sigmoid", "sign", "silu", "sin", "sinc", "sinh", "size", "slice", "smooth_l1_loss", "softmax", "softmin",
    "softplus", "softshrink", "softsign", "sort", "split", "sqrt", "square", "squared_difference", "squeeze",
    "stack", "standard_normal", "std", "std_mean", "stop_gradient", "strided_slice", "sub", "subtract", "sum",
    "swapaxes", "swapdims", "t", "tan", "tanh", "tanhshrink", "tensor_add", "tensor_dot", "threshold", "tile",
    "topk", "transpose", "tril", "triu", "true_divide", "trunc", "tuple_to_array", "unbind", "uniform", "unique",
    "unsqueeze", "unstack", "value_and_grad", "var", "var_mean", "vstack", "where", "zeros", "zeros_like",
]

_make_operators(__all__)
