"""`HyperMap` and `Map`: a function of every element of sequences, nested or at the first level."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mixtrain import boundary, checks
from mixtrain.ops.primitive import Primitive


class HyperMap(Primitive):
    """Apply a function to every element of nested tuples and lists; a call returns tuples, nested as these.

    In MindSpore's graphs, which `jit` and graph mode make, lists stay lists.

    `ops`: the function, often a `MultitypeFuncGraph`; None if each call passes it as its first argument. `reverse` is
    accepted; the order makes no difference here.

    Example:
        >>> import mixtrain.ops as ops
        >>> ops.HyperMap()(ops.partial(max, 2), (1, (3, 5)))
        (2, (3, 5))
    """

    def __init__(self, ops: Callable[..., Any] | None = None, reverse: bool = False) -> None:
        super().__init__()
        if ops is not None and not callable(ops):
            raise checks.fail_type(self.name, "ops must be a function", ops, 'ops=ops.MultitypeFuncGraph("f")')
        self.ops = ops
        self.reverse = checks.boolean(self.name, "reverse", reverse)

    def __call__(self, *args: Any) -> Any:
        """Apply the function to the elements of `args`; without `ops`, the first argument is the function."""
        function, *sequences = (self.ops, *args) if self.ops is not None else args or (None,)
        if not callable(function):
            raise checks.fail_type(self.name, "the first argument must be a function", function, "a function")
        if not sequences:
            raise checks.fail_value(self.name, "there must be sequences to map", "none", "grads after the function")
        return self._apply(function, sequences)

    def _apply(self, function: Callable[..., Any], values: list[Any]) -> Any:
        if not isinstance(values[0], (tuple, list)):
            return function(*values)
        return self._like(values[0], [self._apply(function, list(row)) for row in self._rows(values)])

    def _like(self, sequence: Any, results: list[Any]) -> list[Any] | tuple[Any, ...]:
        """Return results as a tuple; MindSpore's graphs keep lists."""
        return results if isinstance(sequence, list) and boundary.in_graph() else tuple(results)

    def _rows(self, sequences: list[Any]) -> list[tuple[Any, ...]]:
        """Zip sequences of one length."""
        for other in sequences:
            if not isinstance(other, (tuple, list)):
                raise checks.fail_type(
                    self.name, "a sequence was needed, as the first argument is one", other,
                    "ops.partial(f, value), to give every element the same value",
                )
        lengths = [len(sequence) for sequence in sequences]
        if len(set(lengths)) > 1:
            raise checks.fail_value(self.name, "sequences must have one length", lengths, "sequences of one length")
        return list(zip(*sequences, strict=True))


class Map(HyperMap):
    """Apply `ops` to every element of tuples and lists, at the first level only; else as `HyperMap`, with `reverse`.

    Example: ``ops.Map(len)([(1, 2), (3,)])`` is ``(2, 1)``.
    """

    def _apply(self, function: Callable[..., Any], values: list[Any]) -> Any:
        return self._like(values[0], [function(*row) for row in self._rows(values)])
