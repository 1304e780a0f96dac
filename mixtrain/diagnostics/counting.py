"""`in_one_program`: compiles a function of many tensors into one program with one pass over each tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.typing import Tensor, Tree

# A graph that XLA does not fuse makes a pass over the values for each operation.
_COUNTING: Final = backend.JitChoice(True, "counting values is one pass over them")
# TensorFlow spends about ten microseconds on each argument of an XLA program: smaller tensors are concatenated.
_MAX_PACKED_SIZE: Final = 2**13


def in_one_program(function: Callable[..., Tree], tensors: Sequence[Tensor]) -> Tree:
    """Call a function of tensors that does not depend on their shapes; small tensors are passed as shape (n,)."""
    if backend.INLINES_COMPILED:
        return function(*tensors)
    # Indices of the small tensors by dtype, and of the others.
    small: dict[Any, list[int]] = {}
    for index, value in enumerate(tensors):
        if all(isinstance(size, int) for size in value.shape) and math.prod(value.shape) <= _MAX_PACKED_SIZE:
            small.setdefault(value.dtype, []).append(index)
    small_indices = list(itertools.chain.from_iterable(small.values()))
    large = [index for index in range(len(tensors)) if index not in small_indices]
    sizes = [[math.prod(tensors[index].shape) for index in group] for group in small.values()]
    packed = [
        keras.ops.concatenate([keras.ops.reshape(tensors[index], (-1,)) for index in group]) for group in small.values()
    ]

    def run(*inputs: Tensor) -> Tree:
        by_index = dict(zip(large, inputs[len(sizes) :], strict=True))
        order = iter(small_indices)
        for value, group_sizes in zip(inputs, sizes, strict=False):
            ends = itertools.accumulate(group_sizes)
            by_index |= {next(order): value[end - size : end] for end, size in zip(ends, group_sizes, strict=True)}
        return function(*(by_index[index] for index in range(len(tensors))))

    return backend.compile_function(run, choice=_COUNTING)(*packed, *(tensors[index] for index in large))
