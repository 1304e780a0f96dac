"""`in_one_program`: a function that looks at each value of many tensors, compiled as one pass over each of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

from mixtrain import backend

# Several operations on each value, which the plain graph would do in as many passes over them.
_COUNTING: Final = backend.JitChoice(True, "counting values is one pass over them")
# TensorFlow spends some ten microseconds on each argument of a program of XLA's: small tensors are passed as one.
_SMALL: Final = 2**13


def in_one_program(function: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """Call a function of tensors whose shapes do not matter to it; those of small ones become (n,).

    Args:
        function: Takes the tensors, and returns tensors.
        tensors: Dense tensors.
    """
    if backend.INLINES_COMPILED:
        return function(*tensors)
    small: dict[Any, list[int]] = {}
    for place, value in enumerate(tensors):
        if all(isinstance(size, int) for size in value.shape) and math.prod(value.shape) <= _SMALL:
            small.setdefault(value.dtype, []).append(place)
    places = list(itertools.chain.from_iterable(small.values()))
    large = [place for place in range(len(tensors)) if place not in places]
    sizes = [[math.prod(tensors[place].shape) for place in group] for group in small.values()]
    packed = [
        keras.ops.concatenate([keras.ops.reshape(tensors[place], (-1,)) for place in group])
        for group in small.values()
    ]

    def run(*given: Any) -> Any:
        found = dict(zip(large, given[len(sizes) :], strict=True))
        order = iter(places)
        for value, parts in zip(given, sizes, strict=False):
            ends = itertools.accumulate(parts)
            found |= {next(order): value[end - size : end] for end, size in zip(ends, parts, strict=True)}
        return function(*(found[place] for place in range(len(tensors))))

    return backend.compile_function(run, choice=_COUNTING)(*packed, *(tensors[place] for place in large))
