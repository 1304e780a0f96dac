"""Views of tensors: a write to a view also changes the tensors that it was taken from.

Backend tensors do not share memory, so a view holds weak references to its base tensors and the operations that lead
from each base to it. A view does not see later writes to its base. Which operators return views was recorded on
MindSpore 2.10 in PyNative mode; in compiled functions a write changes no other tensor, there and here.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.boundary import UserTensor, shares_memory, to_backend_tensors
from mixtrain.ops import indexing
from mixtrain.typing import BackendTensor, Tensor

_Operation = Callable[[BackendTensor], BackendTensor]
# The operators that return views of their first argument: functions, methods and primitives of these names.
VIEWS: Final = frozenset({
    "BroadcastTo", "ExpandDims", "Reshape", "Slice", "Split", "Squeeze", "StopGradient", "StridedSlice", "Transpose",
    "Unstack", "broadcast_to", "chunk", "diagonal", "dsplit", "expand", "expand_as", "expand_dims", "hsplit",
    "moveaxis", "movedim", "narrow", "permute", "ravel", "reshape", "reshape_as", "slice", "split", "squeeze",
    "stop_gradient", "strided_slice", "swapaxes", "swapdims", "t", "tensor_split", "transpose", "unbind", "unsqueeze",
    "unstack", "view", "view_as", "vsplit",
})
# Methods that return views, where the function of the same name is another or copies.
METHOD_VIEWS: Final = VIEWS | {"flatten", "select"}
# A base tensor of a view, and the operations that lead from it to the view.
Origin = tuple[weakref.ref[Any], tuple[_Operation, ...]]


def record(view: Tensor, base: Tensor, operation: _Operation) -> Tensor:
    """Record that an operation on backend tensors made a view of a base tensor; return the view."""
    if not shares_memory():
        return view
    origin = getattr(base, "origin", ())
    inherited = tuple(
        (reference, (*operations, operation)) for reference, operations in origin if reference() is not None
    ) if origin else ()
    view.origin = ((weakref.ref(base), (operation,)), *inherited)
    return view


def record_index(view: Tensor, base: Tensor, index: Any) -> Tensor:
    """Record that a view is ``base[index]``; return the view."""
    return record(view, base, lambda x: indexing.get_item(x, to_backend_tensors(index)))


def write_back(view: Tensor) -> None:
    """Write the values of a view to its base tensors."""
    for reference, operations in getattr(view, "origin", ()):
        base = reference()
        if base is None:
            continue
        value = backend.backend_value(base.content)
        # The operations, applied to the positions of the base's elements, tell which of them the view shows.
        positions = indexing.flat_positions(value)
        for operation in operations:
            positions = operation(positions)
        base.store(indexing.scatter_flat(value, positions, view.backend_tensor()))


def recorded(function: Callable[..., Any], result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record the result of a call, or each result of a tuple, as a view of its first tensor; return it."""
    if args and isinstance(args[0], UserTensor):
        base, operation = args[0], lambda x: function(x, *args[1:], **kwargs)
    else:
        name = next((name for name, value in kwargs.items() if isinstance(value, UserTensor)), None)
        if name is None:
            return result
        base, operation = kwargs[name], lambda x: function(*args, **{**kwargs, name: x})
    if isinstance(result, tuple):
        for number, item in enumerate(result):
            _record_result(item, base, functools.partial(_nth, number, operation))
    else:
        _record_result(result, base, operation)
    return result


def _nth(number: int, operation: _Operation, x: BackendTensor) -> BackendTensor:
    return operation(x)[number]


def _record_result(result: Any, base: Tensor, operation: _Operation) -> None:
    # A method that changes nothing returns the tensor itself, and in library code results are backend tensors.
    if result is not base and isinstance(result, UserTensor) and not isinstance(result, keras.Variable):
        record(result, base, operation)
