"""Operators that write their arguments: `write`, for Parameters, and for Tensors, which MindSpore writes as well."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from typing import Any

import keras

from mixtrain.boundary import UserTensor, note_in_place
from mixtrain.ops.inputs import tensor
from mixtrain.ops.views import write_back
from mixtrain.typing import Tensor, TensorLike, Variable


class _State(threading.local):
    # What is written to tensors in the running call, by the identity of their contents.
    written: dict[int, Tensor] | None = None


_state = _State()
_WRITES = re.compile(
    "[aA]ssign|(inplace_)?index_add|(Inplace)?IndexAdd|scatter_|Scatter|Apply|Sparse|Fused|Adam|SGD"
)


@functools.cache
def writes(name: str) -> bool:
    """Whether the function or primitive of this name may write its arguments."""
    return _WRITES.match(name) is not None


def write(variable: Variable | Tensor, value: TensorLike) -> Tensor:
    """Write `value` to a Parameter, or to the Tensor of the running call that has this content; return it.

    The result has the gradients of the value.
    """
    if isinstance(variable, keras.Variable):
        # A Parameter is stored in its own dtype, even where the running cell reads it in another one.
        new = keras.ops.cast(value, getattr(variable, "stored_dtype", variable.dtype))
        variable.assign(new)
        return new
    new = keras.ops.cast(value, tensor("ops", variable).dtype)
    if _state.written is not None:
        _state.written[id(variable)] = new
    return new


def writing(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``call(*args, **kwargs)``, after writing to the Tensors among the arguments what it wrote."""
    tensors: dict[int, Any] = {
        id(value.content): value for value in (*args, *kwargs.values())
        if isinstance(value, UserTensor) and not isinstance(value, keras.Variable)
    }
    previous, _state.written = _state.written, {}
    try:
        result = call(*args, **kwargs)
        written = _state.written
    finally:
        _state.written = previous
    for key, value in written.items():
        if key in tensors:
            tensors[key].store(value)
            note_in_place(tensors[key])
            write_back(tensors[key])
    return result
