"""Parts of tensors: what is assigned to a part shows in the tensors that it was taken from.

Backend tensors do not share memory, so a part remembers weakly where it came from, and a write to it is repeated there.
A part does not see what is written to the whole after it was taken.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend
from mixtrain.boundary import TensorLike, settled
from mixtrain.ops import indexing

_Step = Callable[[Any], Any]


def remember(part: Any, whole: Any, step: _Step) -> Any:
    """Note that a part was taken from a whole by a step, a function of backend tensors; return the part."""
    before = getattr(whole, "origin", ())
    earlier = tuple((found, (*steps, step)) for found, steps in before if found() is not None) if before else ()
    part.origin = ((weakref.ref(whole), (step,)), *earlier)
    return part


def remember_index(part: Any, whole: Any, index: Any) -> Any:
    """Note that a part is ``whole[index]``; return the part."""
    return remember(part, whole, lambda x: indexing.read(x, settled(index)))


def write_back(part: Any) -> None:
    """Write a part's values into the tensors that it was taken from."""
    for found, steps in getattr(part, "origin", ()):
        whole = found()
        if whole is None:
            continue
        value = backend.backend_value(whole.held)
        places = indexing.places(value)
        for step in steps:
            places = step(places)
        whole.store(indexing.scattered(value, places, part.backend_tensor()))


def viewing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose result, or whose results in a tuple, are parts of its tensor."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        if isinstance(result, tuple):
            for number, item in enumerate(result):
                _remember(item, self, functools.partial(_nth, number, method, args, kwargs))
        else:
            _remember(result, self, lambda x: method(x, *args, **kwargs))
        return result

    return call


def _nth(number: int, method: Callable[..., Any], args: Any, kwargs: Any, x: Any) -> Any:
    return method(x, *args, **kwargs)[number]


def _remember(part: Any, whole: Any, step: _Step) -> None:
    # Parts are Tensors of their own; a method that changes nothing gives the tensor itself.
    if part is not whole and isinstance(part, TensorLike) and not isinstance(part, keras.Variable):
        remember(part, whole, step)
