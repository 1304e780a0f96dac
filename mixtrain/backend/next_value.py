"""Variables whose "gradient" is their next value: the scales and amax histories of Keras's float8 layers.

Keras marks them `overwrite_with_gradient`. Such a value is not a derivative of the loss: it is not unscaled, clipped,
decayed, summed or counted in a norm, but stored. Where several are computed for one update (batches of a window,
replicas), the largest is stored: a history of magnitudes then covers all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixtrain.typing import Tensor


def takes_next_value(variable: Any) -> bool:
    """Whether the "gradient" of a variable is its next value.

    Example:
        >>> import keras
        >>> takes_next_value(keras.Variable(1.0))
        False
    """
    return bool(getattr(variable, "overwrite_with_gradient", False))


def without_next_values(gradients: Sequence[Tensor | None], variables: Sequence[Any]) -> list[Tensor | None]:
    """Return gradients with None in place of next values.

    Args:
        gradients: The gradients, in the order of the variables.
        variables: The variables.
    """
    pairs = zip(gradients, variables, strict=True)
    return [None if takes_next_value(variable) else gradient for gradient, variable in pairs]


def next_values(gradients: Sequence[Tensor | None], variables: Sequence[Any]) -> list[tuple[Any, Tensor]]:
    """Return the variables that take a next value, each with that value.

    Args:
        gradients: The gradients, in the order of the variables.
        variables: The variables.
    """
    pairs = zip(variables, gradients, strict=True)
    return [(variable, value) for variable, value in pairs if value is not None and takes_next_value(variable)]
