"""Operators that MindSpore's layers have as attributes, which subclasses of scripts call, or shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from mixtrain import ops
from mixtrain.common.tensor import Tensor


def _conv2d(layer: Any) -> ops.Conv2D:
    """Return the convolution of a layer; that of a sequence has a height of 1."""
    pads = [width for pair in layer._pads for width in pair]
    kernel, stride, dilation = layer.kernel_size, layer.stride, layer.dilation
    if len(pads) == 2:
        pads = [0, 0, *pads]
        kernel, stride, dilation = ((1, *_as_tuple(size)) for size in (kernel, stride, dilation))
    return ops.Conv2D(layer.out_channels, kernel, 1, layer.pad_mode, tuple(pads), stride, dilation, layer.group)


def _as_tuple(size: Any) -> tuple[Any, ...]:
    return (size,) if isinstance(size, int) else tuple(size)


def _batch_norm(is_training: bool) -> Callable[[Any], Any]:
    return lambda layer: ops.BatchNorm(is_training, layer.eps, layer.momentum)


def _pool(kind: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda layer: kind(layer.kernel_size, layer.stride, layer.pad_mode.lower())


def _plain(kind: Callable[[], Any]) -> Callable[[Any], Any]:
    return lambda layer: kind()


# Not `shape`, which MindSpore's convolutions have too: other code takes what has a shape for a tensor.
_BIAS: Final = {"bias_add": _plain(ops.BiasAdd)}
_BASE: Final = {"cast_base": _plain(ops.Cast), "dtype_base": _plain(ops.DType), "shape_base": _plain(ops.Shape)}

# By the class's name, then by the attribute's: what makes the operator with the layer's settings.
INNER_OPERATORS: Final[Mapping[str, Mapping[str, Callable[[Any], Any]]]] = MappingProxyType({
    "Dense": {
        **_BIAS, "matmul": lambda layer: ops.MatMul(False, True), "reshape": _plain(ops.Reshape),
        "shape_op": _plain(ops.Shape),
    },
    "Conv1d": {
        **_BIAS, "conv2d": _conv2d, "expand_dims": _plain(ops.ExpandDims), "squeeze": lambda layer: ops.Squeeze(2),
    },
    "Conv2d": {**_BIAS, "conv2d": _conv2d},
    "Conv2dTranspose": _BIAS,
    "BatchNorm": {"bn_train": _batch_norm(True), "bn_infer": _batch_norm(False)},
    "Embedding": {
        "gather": _plain(ops.Gather), "expand": _plain(ops.ExpandDims), "reshape": _plain(ops.Reshape),
        "reshape_flat": _plain(ops.Reshape), "get_shp": _plain(ops.Shape),
    },
    "Distribution": {
        **_BASE, "exp_base": _plain(ops.Exp), "log_base": _plain(ops.Log), "sq_base": _plain(ops.Square),
        "sqrt_base": _plain(ops.Sqrt),
    },
    "Bijector": _BASE,
    "LossBase": {
        "cast": _plain(ops.Cast), "mul": _plain(ops.Mul), "reduce_mean": _plain(ops.ReduceMean),
        "reduce_sum": _plain(ops.ReduceSum),
    },
    "MaxPool2d": {"max_pool": _pool(ops.MaxPool)},
    "AvgPool2d": {"avg_pool": _pool(ops.AvgPool)},
    "SoftmaxCrossEntropyWithLogits": {
        "softmax_cross_entropy": _plain(ops.SoftmaxCrossEntropyWithLogits),
        "sparse_softmax_cross_entropy": _plain(ops.SparseSoftmaxCrossEntropyWithLogits),
        "one_hot": _plain(ops.OneHot),
    },
    "TrainOneStepWithLossScaleCell": {
        "base": lambda cell: Tensor(1.0), "less_equal": _plain(ops.LessEqual), "reduce_sum": _plain(ops.ReduceSum),
        "allreduce": _plain(ops.AllReduce),
    },
})


def inner_operator(cell: Any, name: str) -> Any:
    """Return the operator that a layer has as an attribute, or None.

    `cell`: The layer, of a class in the table or of a subclass. `name`: The attribute.
    """
    for cls in type(cell).__mro__:
        make = INNER_OPERATORS.get(cls.__name__, {}).get(name)
        if make is not None and cls.__module__.startswith("mixtrain."):
            return make(cell)
    return None
