"""Variables whose "gradient" is their next value: the scales and amax histories of Keras's float8 layers.

Keras marks them `overwrite_with_gradient`. Such a value is not a derivative of the loss: it is not unscaled, clipped,
decayed, summed or counted in a norm, but stored. Where several are computed for one update (batches of a window,
replicas), the largest is stored: a history of magnitudes then covers all of them.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import keras

from mixtrain.backend.signatures import Gradients
from mixtrain.backend.tensor_base import backend_value
from mixtrain.typing import Tensor

# The tensors that `mark_next_value` was called with, by id: tensors of JAX cannot be hashed, nor take an attribute.
_marked: dict[int, weakref.ref[Any]] = {}


def takes_next_value(variable: Any) -> bool:
    """Whether the "gradient" of a variable is its next value.

    Example:
        >>> import keras
        >>> takes_next_value(keras.Variable(1.0))
        False
    """
    return bool(getattr(variable, "overwrite_with_gradient", False))


def mark_next_value(value: Tensor) -> Tensor:
    """Mark a tensor as a next value, for code that gets it without its variable; return it.

    What is computed from it, even by dividing by 1, has no mark.

    Example:
        >>> import keras
        >>> value = mark_next_value(keras.ops.ones(2))
        >>> is_next_value(value), is_next_value(value / 1)
        (True, False)
    """
    tensor = _subject(value)
    _marked[id(tensor)] = weakref.ref(tensor, functools.partial(_forget, id(tensor)))
    return value


def _subject(value: Any) -> Any:
    """Return what a mark is on: a variable itself, of a Tensor its backend tensor."""
    return value if isinstance(value, keras.Variable) else backend_value(value)


def _forget(key: int, reference: weakref.ref[Any]) -> None:
    if _marked.get(key) is reference:
        del _marked[key]


def is_next_value(value: Any) -> bool:
    """Whether a tensor was marked as a next value."""
    if not _marked:
        return False
    tensor = _subject(value)
    reference = _marked.get(id(tensor))
    return reference is not None and reference() is tensor


def without_next_values(gradients: Gradients, variables: Sequence[Any]) -> list[Tensor | None]:
    """Return gradients, in the order of the variables, with None in place of next values."""
    pairs = zip(gradients, variables, strict=True)
    return [None if takes_next_value(variable) else gradient for gradient, variable in pairs]


def next_values(gradients: Gradients, variables: Sequence[Any]) -> list[tuple[Any, Tensor]]:
    """Return the variables that take a next value, each with that value."""
    pairs = zip(variables, gradients, strict=True)
    return [(variable, value) for variable, value in pairs if value is not None and takes_next_value(variable)]
