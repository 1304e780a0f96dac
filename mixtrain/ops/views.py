"""Views of tensors: a write to a view also changes the tensors that it was taken from.

Backend tensors do not share memory, so a view holds weak references to its base tensors and the operations that lead
from each base to it. A view does not see later writes to its base.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend
from mixtrain.boundary import UserTensor, to_backend_tensors
from mixtrain.ops import indexing
from mixtrain.typing import BackendTensor, Tensor

_Operation = Callable[[BackendTensor], BackendTensor]
# A base tensor of a view, and the operations that lead from it to the view.
Origin = tuple[weakref.ref[Any], tuple[_Operation, ...]]


def record(view: Tensor, base: Tensor, operation: _Operation) -> Tensor:
    """Record that an operation on backend tensors made a view of a base tensor; return the view."""
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


def as_view(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose result, or each result of a tuple, is recorded as a view of its tensor."""

    @functools.wraps(method)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor | tuple[Tensor, ...]:
        result = method(self, *args, **kwargs)
        if isinstance(result, tuple):
            for number, item in enumerate(result):
                _record_result(item, self, functools.partial(_nth, number, method, args, kwargs))
        else:
            _record_result(result, self, lambda x: method(x, *args, **kwargs))
        return result

    return call


def as_views(*functions: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Return several functions as methods that return views; see `as_view`."""
    return [as_view(function) for function in functions]


def _nth(
    number: int, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], x: BackendTensor
) -> BackendTensor:
    return method(x, *args, **kwargs)[number]


def _record_result(result: Any, base: Tensor, operation: _Operation) -> None:
    # A method that changes nothing returns the tensor itself, and in library code results are backend tensors.
    if result is not base and isinstance(result, UserTensor) and not isinstance(result, keras.Variable):
        record(result, base, operation)
