"""What the expressions of autocast_cases.py are about: their modules, and tensors of each shape in one format."""

from __future__ import annotations

import re
from typing import Any

import keras
import numpy as np

import mixtrain
import mixtrain.nn as nn
import mixtrain.ops as ops
from tests.compat.pytorch.autocast_cases import CASES

SHAPES: dict[str, tuple[int, ...]] = {
    "x": (2, 4), "z": (2, 4), "y": (4, 3), "v": (4,), "s": (2, 5, 4), "b": (2, 2, 4), "c": (2, 4, 3),
    "image": (2, 3, 6, 6), "kernel": (4, 3, 3, 3), "channel": (3,), "pixels": (2, 6, 6, 3),
    "last_kernel": (3, 3, 3, 4), "last_kernel_back": (3, 3, 4, 3), "depth_kernel": (3, 3, 3, 1),
    "point_kernel": (1, 1, 3, 2), "heads": (2, 5, 2, 4), "volume": (2, 2, 4, 4, 4), "last_volume": (2, 4, 4, 4, 2),
    "last_images": (2, 4, 4, 2), "films": (1, 2, 4, 4, 4, 1), "wave": (2, 12),
}


def is_known(expression: str) -> bool:
    """Whether the installed Keras has what an expression speaks of; the oldest supported one lacks some."""
    homes = {"K": keras.ops, "L": keras.layers, "losses": keras.losses, "activations": keras.activations}
    result = re.findall(r"\b(K|L|losses|activations)\.(\w+)", expression)
    return all(hasattr(homes[home], name) for home, name in result)


KNOWN = {kind: list(filter(is_known, expressions)) for kind, expressions in CASES.items()}


def names_for(dtype: str) -> dict[str, Any]:
    """Return what the expressions are about, in one format."""
    values: dict[str, Any] = {
        name: keras.ops.cast(np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape), dtype)
        for name, shape in SHAPES.items()
    }
    values["sq"] = keras.ops.cast(np.eye(4) * 2, dtype)
    values["p"] = keras.ops.cast(np.full((2, 4), 0.25), dtype)
    values["hot"] = keras.ops.cast(np.eye(4)[:2], dtype)
    values["i"] = keras.ops.cast(np.array([0, 1]), "int32")
    values["other"] = keras.ops.cast(np.ones((2, 4)), "float32")
    values = {name: mixtrain.Tensor(value) for name, value in values.items()}
    values["w"] = mixtrain.Parameter(np.ones((2, 4), np.float32), name="w")
    return values


def modules() -> dict[str, Any]:
    """Return the modules that the expressions speak of."""
    return {"ops": ops, "K": keras.ops, "nn": nn, "L": keras.layers, "keras": keras}
