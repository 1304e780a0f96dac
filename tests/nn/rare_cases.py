"""Rarely used cells: the expression that creates the cell, and the names of its inputs in `arrays`."""

from __future__ import annotations

from typing import Any

import numpy as np


def arrays() -> dict[str, np.ndarray]:
    """Return the inputs by name."""
    rng = np.random.default_rng(12)

    def floats(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "seq": floats(5, 2, 8), "mem": floats(4, 2, 8), "vol": floats(2, 2, 4, 5, 6), "img": floats(2, 4, 6, 5),
        "mask": np.triu(np.full((5, 5), -np.inf, np.float32), 1), "row": floats(2, 3, 8), "m": floats(3, 4),
        "n": floats(3, 4), "r": np.abs(floats(3, 4)) + 0.2, "c": np.array([1, 0, 3], np.int64),
        "b": np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]], np.float32), "t": floats(1),
        "f": np.log(np.full((5, 2, 4), 0.25, np.float32)) + 0.1 * floats(5, 2, 4),
        "y": np.array([[1, 2, 3], [3, 3, 1]], np.int32), "five": np.array([5, 4], np.int32),
        "three": np.array([3, 2], np.int32), "y3": np.arange(24, dtype=np.int32).reshape(2, 3, 4),
        "even": np.arange(96, dtype=np.int32).reshape(1, 2, 3, 4, 4),
    }


_LAYER = "8, 2, 16, 0.0"
CASES: list[tuple[str, tuple[str, ...]]] = [
    (f"nn.TransformerEncoderLayer({_LAYER})", ("seq",)),
    (f"nn.TransformerEncoderLayer({_LAYER}, 'gelu', norm_first=True)", ("seq", "mask")),
    (f"nn.TransformerEncoderLayer({_LAYER}, batch_first=True)", ("seq",)),
    (f"nn.TransformerDecoderLayer({_LAYER})", ("seq", "mem", "mask")),
    (f"nn.TransformerDecoderLayer({_LAYER}, norm_first=True)", ("seq", "mem")),
    (f"nn.TransformerEncoder(nn.TransformerEncoderLayer({_LAYER}), 2)", ("seq",)),
    (f"nn.TransformerDecoder(nn.TransformerDecoderLayer({_LAYER}), 2, nn.LayerNorm((8,)))", ("seq", "mem")),
    ("nn.Transformer(8, 2, 1, 2, 16, 0.0)", ("mem", "seq")),
    ("nn.MaxPool3d(2, 2)", ("vol",)), ("nn.MaxPool3d(3, 2, 'pad', 1)", ("vol",)),
    ("nn.MaxPool3d(2, 2, 'same')", ("vol",)), ("nn.AvgPool3d(2, 2)", ("vol",)),
    ("nn.AvgPool3d(2, 2, 'same')", ("vol",)), ("nn.AvgPool3d(3, 2, 'pad', 1, False, False)", ("vol",)),
    ("nn.AdaptiveAvgPool3d((2, None, 3))", ("vol",)), ("nn.AdaptiveMaxPool2d((3, 2))", ("img",)),
    ("nn.AdaptiveMaxPool3d(2)", ("vol",)), ("nn.LPPool1d(1.0, 3, 2)", ("row",)), ("nn.LPPool2d(1.0, 2)", ("img",)),
    ("nn.LRN(2)", ("img",)), ("nn.CentralCrop(0.5)", ("img",)), ("nn.ImageGradients()", ("img",)),
    ("nn.CTCLoss()", ("f", "y", "five", "three")), ("nn.CTCLoss(0, 'none')", ("f", "y", "five", "three")),
    ("nn.GaussianNLLLoss(full=True)", ("m", "n", "r")), ("nn.PoissonNLLLoss()", ("m", "r")),
    ("nn.PoissonNLLLoss(False, True)", ("r", "r")), ("nn.MultiMarginLoss(2, 1.0, 'sum')", ("m", "c")),
    ("nn.MultiLabelSoftMarginLoss()", ("m", "b")),
    ("nn.TripletMarginWithDistanceLoss()", ("m", "n", "r")),
    ("nn.TripletMarginWithDistanceLoss(lambda x, y: ((x - y) ** 2).sum(1), True, 'none', 5.0)", ("m", "n", "r")),
    ("nn.TimeDistributed(nn.Dense(8, 3), 0)", ("seq",)), ("nn.TimeDistributed(nn.Dense(8, 3), 1, 0)", ("seq",)),
    ("nn.TimeDistributed(nn.ReLU(), 3, 1)", ("img",)), ("nn.TimeDistributed(nn.ReLU(), 0, 2)", ("img",)),
    ("nn.PixelShuffle(2)", ("vol",)), ("nn.PixelShuffle(2)", ("img",)), ("nn.PixelShuffle(1)", ("y3",)),
    ("nn.PixelUnshuffle(2)", ("even",)), ("nn.ParameterUpdate(nn.Dense(4, 3, has_bias=False).weight)", ("m",)),
]


def settle(cell: Any, tensor: Any) -> Any:
    """Set the parameters of a Cell to values that depend only on their order; return the Cell in evaluation mode."""
    for number, parameter in enumerate(cell.get_parameters()):
        size = int(np.prod(parameter.shape))
        values = 0.3 * np.sin(np.arange(size) * 0.7 + number).reshape(parameter.shape)
        parameter.set_data(tensor(values.astype(np.float32)))
    return cell.set_train(False)
