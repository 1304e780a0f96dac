"""The learning rate of an optimizer of mixtrain or Keras."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.train.run_context import CallbackArguments
from mixtrain.typing import Variable


def settable_rate(arguments: CallbackArguments) -> float | None:
    """Return the learning rate of a run if it is one number that can be set; otherwise None."""
    rate = rate_of(arguments)
    return read_rate(rate) if isinstance(rate, keras.Variable) else None


def rate_of(arguments: CallbackArguments) -> Any:
    """Return the learning rate of a run's optimizer: a variable, a schedule, a tuple by group, or None."""
    optimizer = arguments.get("optimizer")
    if optimizer is None:
        optimizer = getattr(arguments.get("train_network"), "optimizer", None)
    return getattr(optimizer, "learning_rate", None)


def read_rate(variable: Variable) -> float:
    """Return a learning rate as the float of its shortest decimal form: 0.1 for the float32 nearest to 0.1."""
    return float(str(np.float32(backend.to_numpy(variable))))
