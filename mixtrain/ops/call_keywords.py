"""MindSpore's names of the arguments of primitives' calls, where the function behind one has other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_PAIR: Final = {"x": "input", "y": "other"}
# By class: the name in a call, and the function's; "" for one that is passed by its position.
_KEYWORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "AdaptiveMaxPool2D": {"input": "x"}, "Argmin": {"x": "input_x"}, "BatchNorm": {"input_x": "x"},
    "Cast": {"input_x": "input"},
    "Concat": {"tensors": ""}, "FloorMod": _PAIR, "GeLU": {"input": "x"}, "GridSampler2D": {"input_x": "x"},
    "GridSampler3D": {"input_x": "x"}, "LeftShift": {"x1": "input", "x2": "other"},
    "LinSpace": {"stop": "end", "num": "steps"}, "LogicalAnd": _PAIR, "LogicalOr": _PAIR, "OnesLike": {"x": "input"},
    "Rank": {"x": "input_x"}, "RealDiv": _PAIR, "ReduceAll": {"input": "x"}, "ResizeBicubic": {"image": "images"},
    "ResizeBilinearV2": {"image": "x"}, "ResizeNearestNeighborV2": {"image": "x"},
    "RightShift": {"input_x": "input", "input_y": "other"}, "ScalarToTensor": {"x": "input_x"},
    "Shape": {"x": "input_x"}, "Slice": {"input": "input_x"}, "Softmax": {"input": "logits"},
    "UniqueConsecutive": {"input": "x"}, "UnsortedSegmentSum": {"input_x": "x"}, "ZerosLike": {"x": "input"},
}


def renamed(
    primitive: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call of a primitive, by the name of its class, with the function's names."""
    names = _KEYWORDS.get(primitive, {})
    by_position = tuple(value for name, value in kwargs.items() if names.get(name) == "")
    return (*args, *by_position), {
        names.get(name, name): value for name, value in kwargs.items() if names.get(name) != ""
    }
