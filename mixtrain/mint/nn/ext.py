"""The Cells of `mint.nn` by the names that MindSpore has in `nn`: ``nn.LayerNormExt``, ``nn.Linear``."""

from typing import Final

from mixtrain.mint import nn

_NAMES: Final = (
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "Dropout", "Dropout2d", "Embedding", "L1Loss", "LayerNorm", "LogSoftmax",
    "MaxPool2d", "PReLU", "Softmax", "Unfold", "Upsample",
)
_CELLS: Final = {f"{name}Ext": getattr(nn, name) for name in _NAMES} | {
    name: getattr(nn, name) for name in ("Fold", "Linear")
}
globals().update(_CELLS)

__all__ = sorted(_CELLS)
