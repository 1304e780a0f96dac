"""The operator table: which operators compute in half, which in float32, and which in the widest dtype of their inputs.

The lists are those of NVIDIA apex's O1 and of PyTorch's autocast, under the names of Keras and MindSpore. A row covers
every spelling of a name: ``log_softmax`` also means the primitive `ops.LogSoftmax` and the layer `nn.LogSoftmax`;
``conv2d`` means `ops.conv2d`, `nn.Conv2d` and `keras.layers.Conv2D`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, get_args

OperatorClass = Literal["half", "float32", "promote", "inputs"]
OPERATOR_CLASSES: Final[tuple[OperatorClass, ...]] = get_args(OperatorClass)

# Recurrent layers compute entirely in half, including everything inside: their states keep one dtype over the steps.
RECURRENT: Final = (
    "RNN", "LSTM", "GRU", "SimpleRNN", "RNNCell", "LSTMCell", "GRUCell", "SimpleRNNCell", "StackedRNNCells",
    "Bidirectional", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D",
)

LISTS: Final[dict[OperatorClass, tuple[str, ...]]] = {
    # Matrix products and convolutions: fast in half, and the hardware accumulates their sums in float32.
    "half": (
        "matmul", "bmm", "batch_mat_mul", "mm", "mv", "dot", "vdot", "inner", "outer", "einsum", "tensordot", "addmm",
        "baddbmm", "dense", "einsum_dense", "conv", "conv1d", "conv2d", "conv3d", "conv_transpose", "conv1d_transpose",
        "conv2d_transpose", "conv3d_transpose", "depthwise_conv", "depthwise_conv1d", "depthwise_conv2d",
        "separable_conv", "separable_conv1d", "separable_conv2d", "bias_add", "prelu", "dot_product_attention",
        "multi_head_attention", "grouped_query_attention", "attention", *RECURRENT,
    ),
    # Functions whose results leave the range of half precision, and sums of many numbers.
    "float32": (
        "exp", "exp2", "expm1", "exponential", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logsumexp",
        "pow", "power", "rsqrt", "reciprocal", "inv", "acos", "arccos", "asin", "arcsin", "acosh", "arccosh", "asinh",
        "arcsinh", "atanh", "arctanh", "cosh", "sinh", "tan", "erfinv", "softmax", "softmax2d", "log_softmax",
        "softmin", "softplus", "sparsemax",
        "sum", "reduce_sum", "mean", "reduce_mean", "average", "prod", "reduce_prod", "cumsum", "cumprod", "std", "var",
        "std_mean", "var_mean", "moments", "trace", "trapezoid", "cdist", "segment_sum", "segment_prod", "nansum",
        "nanmean", "nanprod", "nancumsum", "nancumprod", "nanstd", "nanvar",
        "norm", "normalize", "l2_normalize", "clip_by_norm", "clip_by_global_norm", "layer_norm",
        "layer_normalization", "group_norm", "group_normalization", "instance_norm1d", "instance_norm2d",
        "instance_norm3d", "rms_normalization", "unit_normalization", "cosine_similarity",
        "loss_base", "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
        "bce_with_logits_loss", "softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits",
        "sigmoid_cross_entropy_with_logits", "kl_div", "kl_div_loss", "l1_loss", "l2_loss", "mse_loss",
        "smooth_l1_loss", "huber_loss", "binary_crossentropy", "binary_focal_crossentropy",
        "categorical_crossentropy", "categorical_focal_crossentropy", "categorical_generalized_cross_entropy",
        "sparse_categorical_crossentropy", "categorical_hinge", "hinge", "squared_hinge", "huber", "log_cosh",
        "kl_divergence", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_error",
        "mean_squared_logarithmic_error", "poisson", "circle", "dice", "tversky", "ctc", "ctc_loss",
        "cholesky", "cholesky_inverse", "det", "slogdet", "logdet", "solve", "solve_triangular", "svd", "qr", "eig",
        "eigh", "lstsq", "pinv", "lu_factor", "matrix_rank", "fft", "fft2", "ifft2", "rfft", "irfft", "stft", "istft",
    ),
    # Operators of several tensors, which need one dtype.
    "promote": (
        "add", "tensor_add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "real_div",
        "maximum", "minimum", "squared_difference", "addn", "addcdiv", "addcmul", "lerp", "atan2", "arctan2", "cross",
        "concat", "concatenate", "cat", "append", "stack", "hstack", "vstack", "dstack", "where", "select",
        "slice_update",
    ),
    # Listed for documentation: operators without a row compute in the dtype of their inputs too.
    "inputs": (
        "relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "mish", "sigmoid", "tanh", "abs", "neg", "sqrt",
        "square", "erf", "max", "min", "clip", "dropout", "max_pool", "avg_pool", "average_pool", "max_pool2d",
        "avg_pool2d", "adaptive_avg_pool2d", "batch_norm1d", "batch_norm2d", "batch_norm3d", "batch_normalization",
        "embedding", "gather", "take", "reshape", "transpose", "pad", "cast",
    ),
}


def normal(name: str) -> str:
    """Normalize the spelling of an operator's name.

    Example:
        >>> normal("log_softmax") == normal("LogSoftmax")
        True
    """
    return name.replace("_", "").lower()


TABLE: Final[dict[str, OperatorClass]] = {
    normal(name): kind for kind, names in LISTS.items() for name in names
}
RECURRENT_ROWS: Final = frozenset(map(normal, RECURRENT))


def rows() -> Iterator[tuple[str, OperatorClass]]:
    """Yield the rows of the table as written: a name and its class."""
    for kind, names in LISTS.items():
        for name in names:
            yield name, kind
