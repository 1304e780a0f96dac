"""Cells with PyTorch's arguments, defaults and initial values: `mint.nn`."""

from __future__ import annotations

import inspect
from typing import Any, Final

from mixtrain import nn
from mixtrain.cell.cell import Cell
from mixtrain.lazy_names import serve_names
from mixtrain.mint.nn import functional, parametrized
from mixtrain.nn.layer.operation_cells import operation_cell
from mixtrain.ops.primitive import REQUIRED

# Those that are a Cell of `mixtrain.nn`, by its name there.
_SAME: Final = {name: name for name in (
    "AdaptiveMaxPool2d", "Cell", "Dropout2d", "Identity", "LogSigmoid", "Mish", "ReLU", "Sigmoid", "SoftMarginLoss",
    "Tanh",
)} | {"Hardshrink": "HShrink", "Hardsigmoid": "HSigmoid", "Hardswish": "HSwish", "SELU": "SeLU",
      "Softshrink": "SoftShrink"}
# Cells of a function: its name, its settings in order, and the values that differ from its defaults.
_ROWS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "AdaptiveAvgPool1d": ("adaptive_avg_pool1d", "output_size", {}),
    "AdaptiveAvgPool2d": ("adaptive_avg_pool2d", "output_size", {}),
    "AdaptiveAvgPool3d": ("adaptive_avg_pool3d", "output_size", {}),
    "AdaptiveMaxPool1d": ("adaptive_max_pool1d", "output_size return_indices", {}),
    "AvgPool1d": ("avg_pool1d", "kernel_size stride padding ceil_mode count_include_pad", {}),
    "AvgPool2d": ("avg_pool2d", "kernel_size stride padding ceil_mode count_include_pad divisor_override", {}),
    "AvgPool3d": ("avg_pool3d", "kernel_size stride padding ceil_mode count_include_pad divisor_override", {}),
    "BCELoss": ("binary_cross_entropy", "weight reduction", {}),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", "weight reduction pos_weight", {}),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", "margin reduction", {}),
    "CrossEntropyLoss": ("cross_entropy", "weight ignore_index reduction label_smoothing", {}),
    "ELU": ("elu", "alpha inplace", {}),
    "Flatten": ("flatten", "start_dim end_dim", {"start_dim": 1}),
    "Fold": ("fold", "output_size kernel_size dilation padding stride", {}),
    "GELU": ("gelu", "approximate", {}),
    "GLU": ("glu", "dim", {}),
    "Hardtanh": ("hardtanh", "min_val max_val inplace", {}),
    "KLDivLoss": ("kl_div", "reduction log_target", {}),
    "L1Loss": ("l1_loss", "reduction", {}),
    "LogSoftmax": ("log_softmax", "dim", {}),
    "MSELoss": ("mse_loss", "reduction", {}),
    "MaxPool2d": ("max_pool2d", "kernel_size stride padding dilation return_indices ceil_mode", {}),
    "MaxUnpool2d": ("max_unpool2d", "kernel_size stride padding", {}),
    "NLLLoss": ("nll_loss", "weight ignore_index reduction", {}),
    "PixelShuffle": ("pixel_shuffle", "upscale_factor", {}),
    "ReLU6": ("relu6", "inplace", {}),
    "SiLU": ("silu", "inplace", {}),
    "SmoothL1Loss": ("smooth_l1_loss", "reduction beta", {}),
    "Softmax": ("softmax", "dim", {}),
    "Threshold": ("threshold", "threshold value inplace", {}),
    "Unfold": ("unfold", "kernel_size dilation padding stride", {}),
    "Upsample": ("interpolate", "size scale_factor mode align_corners recompute_scale_factor", {}),
    "UpsamplingBilinear2d": ("interpolate", "size scale_factor", {"mode": "bilinear", "align_corners": True}),
    "UpsamplingNearest2d": ("interpolate", "size scale_factor", {"mode": "nearest"}),
}


def _cell(name: str, function_name: str, settings: str, values: dict[str, Any]) -> type[Cell]:
    """Return the class of Cells `name`, which hold the settings of a function of `functional`."""
    function = getattr(functional, function_name)
    parameters = inspect.signature(function).parameters
    defaults: dict[str, Any] = {
        key: REQUIRED if parameters[key].default is inspect.Parameter.empty else parameters[key].default
        for key in settings.split()
    }
    fixed = {key: value for key, value in values.items() if key not in defaults}
    cell = operation_cell(
        name, lambda *inputs, **given: function(*inputs, **given, **fixed), f"`mint.nn.functional.{function_name}`.",
        rows=f"{name}Ext", **defaults | {key: value for key, value in values.items() if key in defaults},
    )
    cell.__module__ = __name__
    return cell


class _Padding(Cell):
    """Base class of paddings of `_axes` axes by `_mode`."""

    _axes, _mode = 1, "constant"

    def __init__(self, padding: int | tuple[int, ...] | list[int], value: float | None = None) -> None:
        super().__init__()
        sides = (padding,) * (2 * self._axes) if isinstance(padding, int) else padding
        if not isinstance(sides, (tuple, list)) or len(sides) != 2 * self._axes:
            raise ValueError(f"{self.cls_name}: padding must be an int or {2 * self._axes}; got {padding}. Write 1.")
        self.padding, self.value = tuple(sides), value

    def construct(self, input: Any) -> Any:
        """Pad `input`."""
        return functional.FUNCTIONS["pad"](input, self.padding, self._mode, self.value)


def _padding(name: str, axes: int, mode: str) -> type[Cell]:
    what = " with `value`" if name.startswith("Constant") else ""
    doc = f"Pad the last {axes} axes{what}, by `padding` on each side. Example: ``mint.nn.{name}(1)(x)``."
    body: dict[str, Any] = {"_axes": axes, "_mode": mode, "__doc__": doc, "__module__": __name__}
    if not name.startswith("Constant"):
        body["__init__"] = lambda self, padding: _Padding.__init__(self, padding, None if mode != "constant" else 0.0)
    return type(name, (_Padding,), body)


_MADE: Final = {
    **{name: _cell(name, *row) for name, row in _ROWS.items()},
    **{f"{kind}Pad{axes}d": _padding(f"{kind}Pad{axes}d", axes, mode) for axes in (1, 2, 3) for kind, mode in (
        ("Constant", "constant"), ("Zero", "constant"), ("Reflection", "reflect"), ("Replication", "replicate"),
    )},
    **{name: getattr(nn, source) for name, source in _SAME.items()},
    **{name: getattr(parametrized, name) for name in parametrized.__all__},
}
globals().update(_MADE)

__all__ = sorted([*_MADE, "functional"])

serve_names(__name__)
