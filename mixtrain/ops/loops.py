"""Loops as primitives: Python loops, which compiled functions unroll."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mixtrain.boundary import run_users, to_backend_tensors
from mixtrain.ops.primitive import Primitive
from mixtrain.typing import Tree


class ForiLoop(Primitive):
    """``for i in range(lower, upper): value = loop_func(i, value)``.

    Example:
        >>> import mixtrain.ops as ops
        >>> ops.ForiLoop()(0, 4, lambda i, total: total + i, 0)
        6
    """

    def __call__(
        self, lower: int, upper: int, loop_func: Callable[[int, Any], Any], init_val: Tree, unroll: bool = True
    ) -> Tree:
        for index in range(int(lower), int(upper)):
            init_val = run_users(loop_func, (index, init_val), {})
        return init_val


class WhileLoop(Primitive):
    """``while cond_func(value): value = loop_func(value)``; outside compiled functions.

    Example:
        >>> import mixtrain.ops as ops
        >>> ops.WhileLoop()(lambda value: value < 100, lambda value: value * 2, 1)
        128
    """

    def __call__(self, cond_func: Callable[[Any], Any], loop_func: Callable[[Any], Any], init_val: Tree) -> Tree:
        while to_backend_tensors(run_users(cond_func, (init_val,), {})):
            init_val = run_users(loop_func, (init_val,), {})
        return init_val


class Scan(Primitive):
    """A loop over elements with a carried value: ``value, result = loop_func(value, element)`` for each of `xs`.

    If `xs` is None, there are `length` elements None. Returns the last value and the list of results.

    Example:
        >>> import mixtrain.ops as ops
        >>> ops.Scan()(lambda total, x: (total + x, total), 0, [1, 2, 3])
        (6, [0, 1, 3])
    """

    def __call__(
        self, loop_func: Callable[[Any, Any], tuple[Any, Any]], init: Tree, xs: Sequence[Any] | None,
        length: int | None = None, unroll: bool = True,
    ) -> tuple[Tree, list[Tree]]:
        results = []
        for element in [None] * int(length or 0) if xs is None else xs:
            init, result = run_users(loop_func, (init, element), {})
            results.append(result)
        return init, results
