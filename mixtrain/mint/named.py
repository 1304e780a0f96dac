"""`named`: public functions from rows, each a name and the expression that computes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from mixtrain.common.tensor import Tensor as UserTensor
from mixtrain.typing import TensorLike

_Function = Callable[..., Any]
_Sizes: Final = "int | Sequence[int]"
# The types of arguments by name, where it is not a tensor.
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys((
        "kernel_size", "stride", "dilation", "output_size", "size", "shape", "dims", "normalized_shape",
        "output_padding", "shifts", "pad", "split_size_or_sections",
    ), _Sizes),
    **dict.fromkeys(("dim", "padding"), f"{_Sizes} | str | None"),
    **dict.fromkeys((
        "keepdim", "largest", "sorted", "descending", "stable", "training", "inplace", "ceil_mode", "return_indices",
        "count_include_pad", "equal_nan", "log_target", "upper", "transpose", "unitriangular", "replacement",
        "scale_grad_by_freq", "return_inverse", "return_counts", "pin_memory", "as_tuple",
    ), "bool"),
    **dict.fromkeys((
        "dim0", "dim1", "axis0", "axis1", "start_dim", "end_dim", "length", "groups", "num_groups", "num_classes",
        "num_samples", "k", "chunks", "steps", "bins", "minlength", "diagonal", "upscale_factor", "n",
        "ignore_index", "correction", "decimals", "num_embeddings",
    ), "int"),
    **dict.fromkeys((
        "eps", "momentum", "beta", "lambd", "negative_slope", "label_smoothing", "rtol", "atol", "norm_type", "p",
        "min_val", "max_val", "threshold", "margin",
    ), "float"),
    **dict.fromkeys(("mode", "reduction", "padding_mode", "equation", "approximate", "compute_mode"), "str"),
    **dict.fromkeys(("indexing", "device", "rounding_mode"), "str | None"),
    **dict.fromkeys(("align_corners", "recompute_scale_factor"), "bool | None"),
    **dict.fromkeys(("m", "padding_idx", "divisor_override"), "int | None"), "max_norm": "float | None",
    "scale_factor": "float | Sequence[float] | None", "dtype": "DTypeLike | None", "generator": "Generator | None",
    "tensors": "Sequence[TensorLike]",
}


def named(owner: str, functions: Mapping[str, _Function]) -> dict[str, _Function]:
    """Return functions with names, types and docstrings.

    `owner`: The module that shows them. `functions`: The expressions by name; each calls public functions and methods,
    which are the operators that autocast and errors name.

    Example:
        >>> twice = named("mint", {"twice": lambda input: 2 * input})["twice"]
        >>> twice(3), twice.__doc__
        (6, '`twice` of `input`, as in PyTorch. Example: ``mint.twice(input)``.')
    """
    for name, function in functions.items():
        parameters = inspect.signature(function).parameters
        arguments = ", ".join(f"`{one}`" for one in parameters)
        required = ", ".join(one.name for one in parameters.values() if one.default is one.empty)
        function.__name__ = function.__qualname__ = name
        function.__module__ = f"mixtrain.{owner}"
        function.__doc__ = f"`{name}` of {arguments}, as in PyTorch. Example: ``{owner}.{name}({required})``."
        function.__annotations__ = {one: _TYPES.get(one, "TensorLike") for one in parameters} | {"return": "Tree"}
    return dict(functions)


def written(input: TensorLike, result: TensorLike) -> TensorLike:
    """Return `input` after `result` is written to it; `result` where `input` is not a Tensor of mixtrain."""
    return input.copy_(result) if isinstance(input, UserTensor) else result
