"""Operations with MindSpore's names, as functions and as primitives, which are classes that hold settings."""

from mixtrain.lazy_names import serve_names
from mixtrain.ops.activation import (
    Elu, FastGeLU, GeLU, Gelu, HSigmoid, HSwish, LogSigmoid, Mish, PReLU, ReLU, ReLU6, SeLU, Sigmoid, Softplus,
    Softsign, Tanh, celu, elu, fast_gelu, gelu, hardshrink, hardsigmoid, hardswish, hardtanh, leaky_relu, logsigmoid,
    mish, prelu, relu, relu6, selu, sigmoid, silu, softplus, softshrink, softsign, tanh, tanhshrink, threshold,
)
from mixtrain.ops.arithmetic import (
    Add, AddN, Atan2, Div, DivNoNan, FloorDiv, FloorMod, Maximum, Minimum, Mod, Mul, Pow, RealDiv,
    SquaredDifference, Sub, TensorAdd, TruncateDiv, Xdivy, add, addcdiv, addcmul, addn, arctan2, atan2, div, divide,
    floor_div, floor_divide, floor_mod, fmod, hypot, lerp, logaddexp, logaddexp2, maximum, minimum, mul, multiply, pow,
    remainder, squared_difference, sub, subtract, tensor_add, true_divide, xdivy,
)
from mixtrain.ops.array import (
    ExpandDims, Flatten, Reshape, ReverseV2, Squeeze, Transpose, expand_dims, flatten, flip, moveaxis, movedim,
    permute, ravel, reshape, reverse, roll, squeeze, swapaxes, swapdims, t, transpose, unsqueeze,
)
from mixtrain.ops.boxes import IOU, BoundingBoxDecode, BoundingBoxEncode, CheckValid, iou
from mixtrain.ops.clip import clip_by_global_norm, clip_by_norm
from mixtrain.ops.collective import AllGather, AllReduce, Broadcast, ReduceOp, ReduceScatter
from mixtrain.ops.comparison import (
    ApproximateEqual, Equal, EqualCount, Greater, GreaterEqual, Less, LessEqual, LogicalAnd, LogicalOr, LogicalXor,
    NotEqual, approximate_equal, bitwise_and, bitwise_or, bitwise_xor, eq, equal, ge, greater, greater_equal, gt,
    isclose, le, less, less_equal, logical_and, logical_or, logical_xor, lt, ne, not_equal,
)
from mixtrain.ops.conv import BiasAdd, Conv2D, bias_add, conv2d
from mixtrain.ops.creation import (
    Eye, Fill, FillV2, LinSpace, Ones, OnesLike, Range, Zeros, ZerosLike, arange, eye, fill, full, full_like,
    linspace, ones, ones_like, range, zeros, zeros_like,
)
from mixtrain.ops.cross_entropy import (
    SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits, cross_entropy, nll_loss,
)
from mixtrain.ops.extremes import (
    ArgMaxWithValue, ArgMinWithValue, Argmax, Argmin, CumSum, Median, amax, amin, argmax, argmin, cumprod, cumsum,
    max, median, min, nanmedian,
)
from mixtrain.ops.gradient import GradOperation
from mixtrain.ops.hook_backward import HookBackward, InsertGradientOf
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
from mixtrain.ops.ordering import (
    Diag, OneHot, ScatterNd, Sort, TopK, Tril, Triu, Unique, argsort, diag, one_hot, scatter_nd, sort, topk, tril,
    triu, unique,
)
from mixtrain.ops.pooling import AvgPool, MaxPool, MaxPoolWithArgmax, adaptive_avg_pool2d, avg_pool2d, max_pool2d
from mixtrain.ops.primitive import (
    Primitive, PrimitiveWithCheck, PrimitiveWithInfer, prim_arg_register, prim_attr_register,
)
from mixtrain.ops.products import (
    BatchMatMul, MatMul, addmm, baddbmm, bmm, dot, einsum, matmul, mm, mv, outer, tensor_dot,
)
from mixtrain.ops.random import (
    StandardNormal, UniformInt, UniformReal, normal, rand, rand_like, randint, randn, randn_like,
    randperm, standard_normal, uniform,
)
from mixtrain.ops.reduction import (
    ReduceAll, ReduceAny, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum, all, any, count_nonzero,
    logsumexp, mean, prod, reduce_max, reduce_mean, reduce_min, reduce_sum, std, std_mean, sum, var, var_mean,
)
from mixtrain.ops.regions import NMSWithMask, PSROIPooling, ROIAlign
from mixtrain.ops.repetition import (
    BroadcastTo, Meshgrid, MirrorPad, Pad, Tile, broadcast_to, expand, meshgrid, pad, repeat_elements,
    repeat_interleave, tile,
)
from mixtrain.ops.resize import ResizeBilinear, ResizeNearestNeighbor, interpolate
from mixtrain.ops.selection import (
    Gather, GatherD, GatherNd, MaskedFill, MaskedSelect, Select, Slice, StridedSlice, gather, gather_d, gather_elements,
    gather_nd, index_select, masked_fill, masked_select, nonzero, select, slice, strided_slice, where,
)
from mixtrain.ops.softmax import LogSoftmax, Softmax, glu, log_softmax, softmax, softmin
from mixtrain.ops.state import Assign, AssignAdd, AssignSub, assign, assign_add, assign_sub
from mixtrain.ops.summary import HistogramSummary, ImageSummary, ScalarSummary, TensorSummary
from mixtrain.ops.tensor_info import (
    Cast, DType, DynamicShape, Rank, ScalarCast, ScalarToArray, ScalarToTensor, Shape, Size, TensorShape,
    TupleToArray, cast, dtype, dyn_shape, is_tensor, make_range, mixed_precision_cast, numel, rank, scalar_cast,
    scalar_to_array, scalar_to_tensor, shape, size, tuple_to_array,
)
from mixtrain.ops.unary import (
    Abs, ACos, Acosh, Asin, Asinh, Atan, Atanh, Ceil, Cos, Cosh, Erf, Erfc, Exp, Expm1, FloatStatus, Floor, Identity,
    Inv, IsFinite, IsInf, IsNan, Log, Log1p, LogicalNot, Neg, Reciprocal, Rint, Round, Rsqrt, Sign, Sin, Sinh, Sqrt,
    Square, Tan, Trunc, abs, absolute, acos, acosh, arccos, arcsin, arctan, asin, asinh, atan, atanh, ceil, cos, cosh,
    deepcopy, erf, erfc, exp, exp2, expm1, floor, identity, inv, isfinite, isinf, isnan, isnan_ext, log, log10, log1p,
    log2, logical_not, nan_to_num, neg, negative, reciprocal, round, rsqrt, sign, sin, sinc, sinh, sqrt, square, tan,
    trunc,
)
from mixtrain.ops.fractional_pool import (
    FractionalAvgPool, FractionalMaxPool, FractionalMaxPool3DWithFixedKsize, fractional_max_pool2d,
    fractional_max_pool3d,
)
from mixtrain.ops.loops import ForiLoop, Scan, WhileLoop
from mixtrain.ops.sparse_updates import (
    FusedSparseAdam, FusedSparseFtrl, FusedSparseLazyAdam, FusedSparseProximalAdagrad, SparseApplyAdagradV2,
    SparseApplyFtrl,
)
from mixtrain.ops.updates import (
    Adam, AdamWeightDecay, ApplyAdaMax, ApplyAdadelta, ApplyAdagrad, ApplyAdagradDA, ApplyAdagradV2,
    ApplyAdamWithAmsgradV2, ApplyAddSign, ApplyCenteredRMSProp, ApplyFtrl, ApplyGradientDescent, ApplyMomentum,
    ApplyPowerSign, ApplyProximalAdagrad, ApplyProximalGradientDescent, ApplyRMSProp, SGD,
)
from mixtrain.ops.dropout import Dropout, Dropout2D, Dropout3D, dropout, dropout1d, dropout2d, dropout3d
from mixtrain.ops.normalize import L2Normalize, LayerNorm, batch_norm, group_norm, layer_norm
from mixtrain.ops.numeric import (
    BitwiseAnd, BitwiseOr, BitwiseXor, Digamma, Eps, Erfinv, Fmax, Fmin, Gcd, Heaviside, Invert, Lcm, LeftShift, Lgamma,
    Logit, Mvlgamma, NextAfter, RightShift, TruncateMod, Xlogy, bitwise_left_shift, bitwise_right_shift, copysign,
    deg2rad, digamma, eps, erfinv, float_power, float_power_ext, fmax, fmin, frac, gcd, heaviside, invert, is_nonzero,
    isneginf, isposinf, lcm, ldexp, lgamma, logit, mvlgamma, nextafter, positive, rad2deg, scalar_add, scalar_div,
    scalar_eq, scalar_floordiv, scalar_ge, scalar_gt, scalar_le, scalar_lt, scalar_mod, scalar_mul, scalar_pow,
    scalar_sub, signbit, truncate_div, truncate_mod, xlogy,
)
from mixtrain.ops.linear_algebra import (
    Cholesky, Cross, Ger, LogMatrixDeterminant, MatrixBandPart, MatrixDeterminant, MatrixInverse, MatrixPower,
    MatrixSolve, Qr, addbmm, addmv, addr, adjoint, batch_dot, bidense, block_diag, cholesky, cholesky_inverse,
    cholesky_solve, cond, cross, dense, det, ger, inner, inverse, kron, logdet, lstsq, matrix_band_part,
    matrix_power, matrix_solve, pinv, qr, slogdet, svd, trace, vecdot,
)
from mixtrain.ops.norms import (
    LpNorm, Pdist, cdist, cosine_similarity, dist, matrix_norm, norm, pdist, vector_norm,
)
from mixtrain.ops.statistics import (
    Cummax, Cummin, InTopK, SearchSorted, aminmax, argwhere, bincount, bucketize, cov, cummax, cummin, histc,
    intopk, logcumsumexp, msort, nanmean, nanquantile, nansum, quantile, renorm, searchsorted, trapz,
)
from mixtrain.ops.slicing import (
    ScatterAdd, ScatterDiv, ScatterMax, ScatterMin, ScatterMul, ScatterNdAdd, ScatterNdDiv, ScatterNdMax, ScatterNdMin,
    ScatterNdMul, ScatterNdSub, ScatterNdUpdate, ScatterSub, ScatterUpdate, TensorScatterAdd, TensorScatterDiv,
    TensorScatterMax, TensorScatterMin, TensorScatterMul, TensorScatterSub, TensorScatterUpdate, UniqueWithPad,
    UnsortedSegmentMax, UnsortedSegmentMin, UnsortedSegmentProd, UnsortedSegmentSum, diag_embed, diagflat, diagonal,
    diagonal_scatter, diff, diff_ext, dsplit, fliplr, flipud, hsplit, index_add, index_fill, inplace_add, inplace_sub,
    inplace_update, narrow, reverse_sequence, rot90, scatter, scatter_add, scatter_div, scatter_max, scatter_min,
    scatter_mul, scatter_nd_add, scatter_nd_div, scatter_nd_max, scatter_nd_min, scatter_nd_mul, scatter_nd_sub,
    scatter_nd_update, scatter_sub, scatter_update, select_scatter, slice_scatter, sparse_segment_mean,
    tensor_scatter_add, tensor_scatter_div, tensor_scatter_elements, tensor_scatter_max, tensor_scatter_min,
    tensor_scatter_mul, tensor_scatter_sub, tensor_scatter_update, tensor_split, unique_consecutive, unique_with_pad,
    unsorted_segment_max, unsorted_segment_min, unsorted_segment_prod, unsorted_segment_sum, vsplit,
)
from mixtrain.ops.layouts import (
    DepthToSpace, SpaceToDepth, atleast_1d, atleast_2d, atleast_3d, bartlett_window, blackman_window, cartesian_prod,
    channel_shuffle, column_stack, combinations, dstack, hamming_window, hann_window, kaiser_window, logspace,
    pixel_shuffle, pixel_unshuffle, sequence_mask, tril_indices, triu_indices, vander, view_as,
)
from mixtrain.ops.conv_transpose import Conv2DTranspose, Conv3DTranspose
from mixtrain.ops.deformable import deformable_conv2d
from mixtrain.ops.lstm import LSTM
from mixtrain.ops.scale_and_translate import ScaleAndTranslate
from mixtrain.ops.control import Depend, Morph, Partial, Print, constexpr, depend, get_grad, partial, print_
from mixtrain.ops.special import (
    BesselI0, BesselI0e, BesselI1, BesselI1e, BesselJ0, BesselJ1, BesselK0, BesselK0e, BesselK1, BesselK1e, BesselY0,
    BesselY1, Betainc, Igamma, Igammac, Polygamma, Zeta, bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_j0,
    bessel_j1, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e, bessel_y0, bessel_y1, i0, igamma, igammac, polygamma, zeta,
)
from mixtrain.ops.margin_loss import (
    MultiMarginLoss, cosine_embedding_loss, gaussian_nll_loss, hinge_embedding_loss,
    margin_ranking_loss, multi_margin_loss, multilabel_margin_loss, multilabel_soft_margin_loss,
    poisson_nll_loss, soft_margin_loss, triplet_margin_loss,
)
from mixtrain.ops.volumes import (
    AdaptiveAvgPool2D, AdaptiveAvgPool3D, AvgPool3D, Conv3D, MaxPool3D, MaxPool3DWithArgmax, MaxPoolWithArgmaxV2,
    MaxUnpool2D, MaxUnpool3D, adaptive_avg_pool1d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d,
    adaptive_max_pool3d, avg_pool1d, avg_pool3d, conv1d, conv3d, lp_pool1d, lp_pool2d, max_pool3d, max_unpool1d,
    max_unpool2d, max_unpool3d,
)
from mixtrain.ops.patches import (
    AffineGrid, BatchToSpaceND, Col2Im, CropAndResize, GridSampler2D, GridSampler3D, Im2Col, LRN, Padding,
    SpaceToBatchND, affine_grid, batch_to_space_nd, col2im, crop_and_resize, fold, grid_sample, lrn, mirror_pad,
    padding, space_to_batch_nd, unfold,
)
from mixtrain.ops.diagonals import (
    MatrixDiagPartV3, MatrixDiagV3, MatrixSetDiagV3, matrix_diag, matrix_diag_part, matrix_set_diag,
)
from mixtrain.ops.custom import Custom
from mixtrain.ops.ctc import CTCLoss, CTCLossV2, ctc_loss
from mixtrain.ops.settings import (
    AdaptiveMaxPool2D, AdaptiveMaxPool3D, Addcdiv, Addcmul, BartlettWindow, BatchNorm, Bincount, BlackmanWindow,
    Bucketize, ChannelShuffle, CheckNumerics, CompareAndBitpack, CumProd, CumulativeLogsumexp, DataFormatDimMap,
    DataFormatVecPermute, DiagPart, EmbeddingLookup, GLU, HammingWindow, Histogram, Hypot, IndexAdd, IndexFill,
    IndexPut, InplaceAdd, InplaceIndexAdd, InplaceSub, InplaceUpdateV2, InvertPermutation, IsClose, LogSpace,
    LowerBound, MulNoNan, NonZero, PadV3, ParallelConcat, PopulationCount, ReduceStd, Renorm, ResizeBilinearV2,
    ResizeNearestNeighborV2, ReverseSequence, ScatterAddWithAxis, SquareSumAll, StopGradient,
    TensorScatterElements, TrilIndices, TriuIndices, UniqueConsecutive, UnravelIndex, UpperBound,
    bounding_box_decode, bounding_box_encode, check_valid, inplace_index_add, population_count, MapUniform,
)
from mixtrain.ops.derivatives import derivative, jacfwd, jacrev, jet, jvp, linearize, vjp
from mixtrain.ops.sparse import (
    SparseTensorDenseAdd, SparseTensorDenseMatmul, SparseToDense, coo_abs, coo_acos, coo_acosh, coo_add, coo_asin,
    coo_asinh, coo_atan, coo_atanh, coo_ceil, coo_concat, coo_cos, coo_cosh, coo_exp, coo_expm1, coo_floor, coo_inv,
    coo_isfinite, coo_isinf, coo_isnan, coo_log, coo_log1p, coo_neg, coo_relu, coo_relu6, coo_round, coo_sigmoid,
    coo_sin, coo_sinh, coo_softsign, coo_sqrt, coo_square, coo_tan, coo_tanh, csr_abs, csr_acos, csr_acosh, csr_add,
    csr_asin, csr_asinh, csr_atan, csr_atanh, csr_ceil, csr_cos, csr_cosh, csr_exp, csr_expm1, csr_floor, csr_inv,
    csr_isfinite, csr_isinf, csr_isnan, csr_log, csr_log1p, csr_neg, csr_relu, csr_relu6, csr_round, csr_sigmoid,
    csr_sin, csr_sinh, csr_softmax, csr_softsign, csr_sqrt, csr_square, csr_tan, csr_tanh, csr_to_coo, csr_to_dense,
    dense_to_sparse_coo, dense_to_sparse_csr, SparseSlice,
)
from mixtrain.ops.complex_numbers import (
    Angle, Complex, ComplexAbs, Conj, ConjugateTranspose, Eig, Imag, MatrixLogarithm, Polar, Real, angle, conj,
    eig, eigvals, imag, is_complex, is_floating_point, isreal, polar, real, sgn, view_as_real,
)
from mixtrain.ops.spectral import (
    FFTWithSize, STFT, fft, fft2, fftfreq, fftn, fftshift, hfft, hfft2, hfftn, ifft, ifft2, ifftn, ifftshift,
    ihfft, ihfft2, ihfftn, irfft, irfft2, irfftn, rfft, rfft2, rfftfreq, rfftn, stft,
)
from mixtrain.ops.factorizations import (
    CholeskySolve, Lstsq, LuSolve, LuUnpack, MatrixTriangularSolve, Orgqr, TridiagonalMatMul, geqrf, lu_solve,
    lu_unpack, orgqr,
)
from mixtrain.ops.colors import AdjustHue, AdjustSaturation, HSVToRGB, RGBToHSV
from mixtrain.ops.resampling import ResizeArea, ResizeBicubic, ResizeLinear1D, UpsampleNearest3D, UpsampleTrilinear3D
from mixtrain.ops.sequences import (
    CTCGreedyDecoder, EditDistance, ListDiff, NoRepeatNGram, SubAndFilter, ctc_greedy_decoder,
)
from mixtrain.ops.distributions import (
    Bernoulli, Cauchy, LogUniformCandidateSampler, Multinomial, MultinomialWithReplacement, RandomCategorical,
    RandomChoiceWithMask, RandomGamma, RandomPoisson, RandomShuffle, StandardLaplace, UniformCandidateSampler,
    bernoulli, choice_with_mask, gumbel_softmax, laplace, log_uniform_candidate_sampler, multinomial,
    multinomial_with_replacement, randint_like, random_categorical, random_gamma, random_poisson, rrelu, shuffle,
    standard_laplace, uniform_candidate_sampler,
)
from mixtrain.ops.operator import operators as _operators
from mixtrain.ops.value_and_grad import grad, stop_gradient, value_and_grad
from mixtrain.ops.vectorize import vmap

__all__ = [
    "ACos", "Abs", "Acosh", "Adam", "AdamWeightDecay", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D", "Add", "AddN", "Addcdiv", "Addcmul", "AdjustHue", "AdjustSaturation", "AffineGrid",
    "AllGather", "AllReduce", "Angle", "ApplyAdaMax", "ApplyAdadelta", "ApplyAdagrad", "ApplyAdagradDA",
    "ApplyAdagradV2", "ApplyAdamWithAmsgradV2", "ApplyAddSign", "ApplyCenteredRMSProp", "ApplyFtrl",
    "ApplyGradientDescent", "ApplyMomentum", "ApplyPowerSign", "ApplyProximalAdagrad", "ApplyProximalGradientDescent",
    "ApplyRMSProp", "ApproximateEqual", "ArgMaxWithValue", "ArgMinWithValue", "Argmax", "Argmin", "Asin", "Asinh",
    "Assign", "AssignAdd", "AssignSub", "Atan", "Atan2", "Atanh", "AvgPool", "AvgPool3D", "BCEWithLogitsLoss",
    "BartlettWindow", "BatchMatMul", "BatchNorm", "BatchToSpaceND", "Bernoulli", "BesselI0", "BesselI0e", "BesselI1",
    "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1",
    "Betainc", "BiasAdd", "BinaryCrossEntropy", "Bincount", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BlackmanWindow",
    "BoundingBoxDecode", "BoundingBoxEncode", "Broadcast", "BroadcastTo", "Bucketize", "CTCGreedyDecoder", "CTCLoss",
    "CTCLossV2", "Cast", "Cauchy", "Ceil", "ChannelShuffle", "CheckNumerics", "CheckValid", "Cholesky", "CholeskySolve",
    "Col2Im", "CompareAndBitpack", "Complex", "ComplexAbs", "Concat", "Conj", "ConjugateTranspose", "Conv2D",
    "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Cos", "Cosh", "CropAndResize", "Cross", "CumProd", "CumSum",
    "Cummax", "Cummin", "CumulativeLogsumexp", "Custom", "DType", "DataFormatDimMap", "DataFormatVecPermute", "Depend",
    "DepthToSpace", "Diag", "DiagPart", "Digamma", "Div", "DivNoNan", "Dropout", "Dropout2D", "Dropout3D",
    "DynamicShape", "EditDistance", "Eig", "Elu", "EmbeddingLookup", "Eps", "Equal", "EqualCount", "Erf", "Erfc",
    "Erfinv", "Exp", "ExpandDims", "Expm1", "Eye", "FFTWithSize", "FastGeLU", "Fill", "FillV2", "Flatten",
    "FloatStatus", "Floor", "FloorDiv", "FloorMod", "Fmax", "Fmin", "ForiLoop", "FractionalAvgPool",
    "FractionalMaxPool", "FractionalMaxPool3DWithFixedKsize", "FusedSparseAdam", "FusedSparseFtrl",
    "FusedSparseLazyAdam", "FusedSparseProximalAdagrad", "GLU", "Gather", "GatherD", "GatherNd", "Gcd", "GeLU", "Gelu",
    "Ger", "GradOperation", "Greater", "GreaterEqual", "GridSampler2D", "GridSampler3D", "HSVToRGB", "HSigmoid",
    "HSwish", "HammingWindow", "Heaviside", "Histogram", "HistogramSummary", "HookBackward", "HyperMap", "Hypot", "IOU",
    "Identity", "Igamma", "Igammac", "Im2Col", "Imag", "ImageSummary", "InTopK", "IndexAdd", "IndexFill", "IndexPut",
    "InplaceAdd", "InplaceIndexAdd", "InplaceSub", "InplaceUpdateV2", "InsertGradientOf", "Inv", "Invert",
    "InvertPermutation", "IsClose", "IsFinite", "IsInf", "IsNan", "KLDivLoss", "L2Loss", "L2Normalize", "LRN", "LSTM",
    "LayerNorm", "Lcm", "LeftShift", "Less", "LessEqual", "Lgamma", "LinSpace", "ListDiff", "Log", "Log1p",
    "LogMatrixDeterminant", "LogSigmoid", "LogSoftmax", "LogSpace", "LogUniformCandidateSampler", "LogicalAnd",
    "LogicalNot", "LogicalOr", "LogicalXor", "Logit", "LowerBound", "LpNorm", "Lstsq", "LuSolve", "LuUnpack", "Map",
    "MapUniform", "MaskedFill", "MaskedSelect", "MatMul", "MatrixBandPart", "MatrixDeterminant", "MatrixDiagPartV3",
    "MatrixDiagV3", "MatrixInverse", "MatrixLogarithm", "MatrixPower", "MatrixSetDiagV3", "MatrixSolve",
    "MatrixTriangularSolve", "MaxPool", "MaxPool3D", "MaxPool3DWithArgmax", "MaxPoolWithArgmax", "MaxPoolWithArgmaxV2",
    "MaxUnpool2D", "MaxUnpool3D", "Maximum", "Median", "Meshgrid", "Minimum", "MirrorPad", "Mish", "Mod", "Morph",
    "Mul", "MulNoNan", "MultiMarginLoss", "Multinomial", "MultinomialWithReplacement", "MultitypeFuncGraph", "Mvlgamma",
    "NLLLoss", "NMSWithMask", "Neg", "NextAfter", "NoRepeatNGram", "NonZero", "NotEqual", "OneHot", "Ones", "OnesLike",
    "Orgqr", "PReLU", "PSROIPooling", "Pad", "PadV3", "Padding", "ParallelConcat", "Partial", "Pdist", "Polar",
    "Polygamma", "PopulationCount", "Pow", "Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "Print", "Qr",
    "RGBToHSV", "ROIAlign", "RandomCategorical", "RandomChoiceWithMask", "RandomGamma", "RandomPoisson",
    "RandomShuffle", "Range", "Rank", "ReLU", "ReLU6", "Real", "RealDiv", "Reciprocal", "ReduceAll", "ReduceAny",
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceOp", "ReduceProd", "ReduceScatter", "ReduceStd", "ReduceSum",
    "Renorm", "Reshape", "ResizeArea", "ResizeBicubic", "ResizeBilinear", "ResizeBilinearV2", "ResizeLinear1D",
    "ResizeNearestNeighbor", "ResizeNearestNeighborV2", "ReverseSequence", "ReverseV2", "RightShift", "Rint", "Round",
    "Rsqrt", "SGD", "STFT", "ScalarCast", "ScalarSummary", "ScalarToArray", "ScalarToTensor", "ScaleAndTranslate",
    "Scan", "ScatterAdd", "ScatterAddWithAxis", "ScatterDiv", "ScatterMax", "ScatterMin", "ScatterMul", "ScatterNd",
    "ScatterNdAdd", "ScatterNdDiv", "ScatterNdMax", "ScatterNdMin", "ScatterNdMul", "ScatterNdSub", "ScatterNdUpdate",
    "ScatterSub", "ScatterUpdate", "SeLU", "SearchSorted", "Select", "Shape", "Sigmoid",
    "SigmoidCrossEntropyWithLogits", "Sign", "Sin", "Sinh", "Size", "Slice", "SmoothL1Loss", "Softmax",
    "SoftmaxCrossEntropyWithLogits", "Softplus", "Softsign", "Sort", "SpaceToBatchND", "SpaceToDepth",
    "SparseApplyAdagradV2", "SparseApplyFtrl", "SparseSlice", "SparseSoftmaxCrossEntropyWithLogits",
    "SparseTensorDenseAdd", "SparseTensorDenseMatmul", "SparseToDense", "Split", "Sqrt", "Square", "SquareSumAll",
    "SquaredDifference", "Squeeze", "Stack", "StandardLaplace", "StandardNormal", "StopGradient", "StridedSlice", "Sub",
    "SubAndFilter", "Tan", "Tanh", "TensorAdd", "TensorScatterAdd", "TensorScatterDiv", "TensorScatterElements",
    "TensorScatterMax", "TensorScatterMin", "TensorScatterMul", "TensorScatterSub", "TensorScatterUpdate",
    "TensorShape", "TensorSummary", "Tile", "TopK", "Transpose", "TridiagonalMatMul", "Tril", "TrilIndices", "Triu",
    "TriuIndices", "Trunc", "TruncateDiv", "TruncateMod", "TupleToArray", "UniformCandidateSampler", "UniformInt",
    "UniformReal", "Unique", "UniqueConsecutive", "UniqueWithPad", "UnravelIndex", "UnsortedSegmentMax",
    "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum", "Unstack", "UpperBound", "UpsampleNearest3D",
    "UpsampleTrilinear3D", "WhileLoop", "Xdivy", "Xlogy", "Zeros", "ZerosLike", "Zeta", "abs", "absolute", "acos",
    "acosh", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "add", "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addn",
    "addr", "adjoint", "affine_grid", "all", "amax", "amin", "aminmax", "angle", "any", "approximate_equal", "arange",
    "arccos", "arcsin", "arctan", "arctan2", "argmax", "argmin", "argsort", "argwhere", "asin", "asinh", "assign",
    "assign_add", "assign_sub", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "baddbmm", "bartlett_window", "batch_dot", "batch_norm", "batch_to_space_nd",
    "bernoulli", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", "bessel_k0",
    "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", "bias_add", "bidense", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "bincount", "bitwise_and", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "blackman_window", "block_diag", "bmm", "bounding_box_decode",
    "bounding_box_encode", "broadcast_to", "bucketize", "cartesian_prod", "cast", "cat", "cdist", "ceil", "celu",
    "channel_shuffle", "check_valid", "choice_with_mask", "cholesky", "cholesky_inverse", "cholesky_solve", "chunk",
    "clamp", "clip", "clip_by_global_norm", "clip_by_norm", "clip_by_value", "col2im", "column_stack", "combinations",
    "concat", "cond", "conj", "constexpr", "conv1d", "conv2d", "conv3d", "coo_abs", "coo_acos", "coo_acosh", "coo_add",
    "coo_asin", "coo_asinh", "coo_atan", "coo_atanh", "coo_ceil", "coo_concat", "coo_cos", "coo_cosh", "coo_exp",
    "coo_expm1", "coo_floor", "coo_inv", "coo_isfinite", "coo_isinf", "coo_isnan", "coo_log", "coo_log1p", "coo_neg",
    "coo_relu", "coo_relu6", "coo_round", "coo_sigmoid", "coo_sin", "coo_sinh", "coo_softsign", "coo_sqrt",
    "coo_square", "coo_tan", "coo_tanh", "copysign", "cos", "cosh", "cosine_embedding_loss", "cosine_similarity",
    "count_nonzero", "cov", "crop_and_resize", "cross", "cross_entropy", "csr_abs", "csr_acos", "csr_acosh", "csr_add",
    "csr_asin", "csr_asinh", "csr_atan", "csr_atanh", "csr_ceil", "csr_cos", "csr_cosh", "csr_exp", "csr_expm1",
    "csr_floor", "csr_inv", "csr_isfinite", "csr_isinf", "csr_isnan", "csr_log", "csr_log1p", "csr_neg", "csr_relu",
    "csr_relu6", "csr_round", "csr_sigmoid", "csr_sin", "csr_sinh", "csr_softmax", "csr_softsign", "csr_sqrt",
    "csr_square", "csr_tan", "csr_tanh", "csr_to_coo", "csr_to_dense", "ctc_greedy_decoder", "ctc_loss", "cummax",
    "cummin", "cumprod", "cumsum", "deepcopy", "deformable_conv2d", "deg2rad", "dense", "dense_to_sparse_coo",
    "dense_to_sparse_csr", "depend", "derivative", "det", "diag", "diag_embed", "diagflat", "diagonal",
    "diagonal_scatter", "diff", "diff_ext", "digamma", "dist", "div", "divide", "dot", "dropout", "dropout1d",
    "dropout2d", "dropout3d", "dsplit", "dstack", "dtype", "dyn_shape", "eig", "eigvals", "einsum", "elu", "eps", "eq",
    "equal", "erf", "erfc", "erfinv", "exp", "exp2", "expand", "expand_dims", "expm1", "eye", "fast_gelu", "fft",
    "fft2", "fftfreq", "fftn", "fftshift", "fill", "flatten", "flip", "fliplr", "flipud", "float_power",
    "float_power_ext", "floor", "floor_div", "floor_divide", "floor_mod", "fmax", "fmin", "fmod", "fold", "frac",
    "fractional_max_pool2d", "fractional_max_pool3d", "full", "full_like", "gather", "gather_d", "gather_elements",
    "gather_nd", "gaussian_nll_loss", "gcd", "ge", "gelu", "geqrf", "ger", "get_grad", "glu", "grad", "greater",
    "greater_equal", "grid_sample", "group_norm", "gt", "gumbel_softmax", "hamming_window", "hann_window", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "heaviside", "hfft", "hfft2", "hfftn", "hinge_embedding_loss", "histc",
    "hsplit", "hstack", "huber_loss", "hypot", "i0", "identity", "ifft", "ifft2", "ifftn", "ifftshift", "igamma",
    "igammac", "ihfft", "ihfft2", "ihfftn", "imag", "index_add", "index_fill", "index_select", "inner", "inplace_add",
    "inplace_index_add", "inplace_sub", "inplace_update", "interpolate", "intopk", "inv", "inverse", "invert", "iou",
    "irfft", "irfft2", "irfftn", "is_complex", "is_floating_point", "is_nonzero", "is_tensor", "isclose", "isfinite",
    "isinf", "isnan", "isnan_ext", "isneginf", "isposinf", "isreal", "jacfwd", "jacrev", "jet", "jvp", "kaiser_window",
    "kl_div", "kron", "l1_loss", "laplace", "layer_norm", "lcm", "ldexp", "le", "leaky_relu", "lerp", "less",
    "less_equal", "lgamma", "linearize", "linspace", "log", "log10", "log1p", "log2", "log_softmax",
    "log_uniform_candidate_sampler", "logaddexp", "logaddexp2", "logcumsumexp", "logdet", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logit", "logsigmoid", "logspace", "logsumexp", "lp_pool1d", "lp_pool2d", "lrn",
    "lstsq", "lt", "lu_solve", "lu_unpack", "make_range", "margin_ranking_loss", "masked_fill", "masked_select",
    "matmul", "matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_norm", "matrix_power", "matrix_set_diag",
    "matrix_solve", "max", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "maximum",
    "mean", "median", "meshgrid", "min", "minimum", "mirror_pad", "mish", "mixed_precision_cast", "mm", "moveaxis",
    "movedim", "mse_loss", "msort", "mul", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "multinomial", "multinomial_with_replacement", "multiply", "mv", "mvlgamma", "nan_to_num", "nanmean", "nanmedian",
    "nanquantile", "nansum", "narrow", "ne", "neg", "negative", "nextafter", "nll_loss", "nonzero", "norm", "normal",
    "not_equal", "numel", "one_hot", "ones", "ones_like", "orgqr", "outer", "pad", "padding", "partial", "pdist",
    "permute", "pinv", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "polar", "polygamma", "population_count",
    "positive", "pow", "prelu", "prim_arg_register", "prim_attr_register", "print_", "prod", "qr", "quantile",
    "rad2deg", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random_categorical",
    "random_gamma", "random_poisson", "randperm", "range", "rank", "ravel", "real", "reciprocal", "reduce_max",
    "reduce_mean", "reduce_min", "reduce_sum", "relu", "relu6", "remainder", "renorm", "repeat_elements",
    "repeat_interleave", "reshape", "reverse", "reverse_sequence", "rfft", "rfft2", "rfftfreq", "rfftn", "roll",
    "rot90", "round", "rrelu", "rsqrt", "scalar_add", "scalar_cast", "scalar_div", "scalar_eq", "scalar_floordiv",
    "scalar_ge", "scalar_gt", "scalar_le", "scalar_lt", "scalar_mod", "scalar_mul", "scalar_pow", "scalar_sub",
    "scalar_to_array", "scalar_to_tensor", "scatter", "scatter_add", "scatter_div", "scatter_max", "scatter_min",
    "scatter_mul", "scatter_nd", "scatter_nd_add", "scatter_nd_div", "scatter_nd_max", "scatter_nd_min",
    "scatter_nd_mul", "scatter_nd_sub", "scatter_nd_update", "scatter_sub", "scatter_update", "searchsorted", "select",
    "select_scatter", "selu", "sequence_mask", "sgn", "shape", "shuffle", "sigmoid", "sign", "signbit", "silu", "sin",
    "sinc", "sinh", "size", "slice", "slice_scatter", "slogdet", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "sort", "space_to_batch_nd", "sparse_segment_mean", "split",
    "sqrt", "square", "squared_difference", "squeeze", "stack", "standard_laplace", "standard_normal", "std",
    "std_mean", "stft", "stop_gradient", "strided_slice", "sub", "subtract", "sum", "svd", "swapaxes", "swapdims", "t",
    "tan", "tanh", "tanhshrink", "tensor_add", "tensor_dot", "tensor_scatter_add", "tensor_scatter_div",
    "tensor_scatter_elements", "tensor_scatter_max", "tensor_scatter_min", "tensor_scatter_mul", "tensor_scatter_sub",
    "tensor_scatter_update", "tensor_split", "threshold", "tile", "topk", "trace", "transpose", "trapz", "tril",
    "tril_indices", "triplet_margin_loss", "triu", "triu_indices", "true_divide", "trunc", "truncate_div",
    "truncate_mod", "tuple_to_array", "unbind", "unfold", "uniform", "uniform_candidate_sampler", "unique",
    "unique_consecutive", "unique_with_pad", "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sum", "unsqueeze", "unstack", "value_and_grad", "vander", "var", "var_mean", "vecdot",
    "vector_norm", "view_as", "view_as_real", "vjp", "vmap", "vsplit", "vstack", "where", "xdivy", "xlogy", "zeros",
    "zeros_like", "zeta",
]

globals().update(_operators(globals(), __all__))


serve_names(__name__)
