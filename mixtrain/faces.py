"""What MindSpore's surface makes of the engine's objects; the surface registers it, the engine never imports it.

A script that was written for MindSpore expects cells and Parameters where the engine has plain objects and Keras
variables. Each kind of face has a maker, which the surface registers when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import keras
import numpy as np

Kind = Literal["fixed_update_cell", "dynamic_update_cell", "scale_of_cell", "train_cell", "loss_cell", "eval_cell"]

_makers: dict[Kind, Callable[..., Any]] = {}
# Imports the surface; the front door sets it.
_loaders: Final[list[Callable[[], Any]]] = []
_variable_classes: Final[list[type[keras.Variable]]] = []


def register(kind: Kind, maker: Callable[..., Any]) -> None:
    """Set the maker of a kind of face."""
    _makers[kind] = maker


def load_with(loader: Callable[[], Any]) -> None:
    """Set the function that imports the surface when a face is requested before anything else did."""
    _loaders[:] = [loader]


def face(kind: Kind, *args: Any, **kwargs: Any) -> Any:
    """Return a new face of a kind; what it takes is the maker's."""
    if kind not in _makers:
        _loaders[0]()
    return _makers[kind](*args, **kwargs)


def use_variables_of(kind: type[keras.Variable]) -> None:
    """Make the variables that scripts may see of a class with MindSpore's methods, from now on."""
    _variable_classes[:] = [kind]


def visible_variable(value: np.ndarray | np.generic, name: str) -> keras.Variable:
    """Return a new variable, not trained, that a script may read and set, such as the loss scale of a train cell.

    `value`: Its first value, which determines its dtype. `name`: Its name.
    """
    if _variable_classes:
        return _variable_classes[0](value, name=name, requires_grad=False)
    return keras.Variable(value, trainable=False, dtype=value.dtype.name, autocast=False, name=name)
