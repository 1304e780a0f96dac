"""Code paths of a traced function: where a tensor decides a branch, both are traced and one result is selected."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp

from mixtrain.typing import Tensor, Tree

_Result = TypeVar("_Result")

# Each path is traced whole, so more would take long to compile; a `while` has no end of them.
_MAX_PATHS: Final = 32


class _Path:
    """One path through the function: the outcome at each tensor that decides a branch.

    Args:
        forced: The first outcomes; those after them are True.
        remaining: How many more paths may be traced.
        site: JAX's trace of the function, whose tensors may decide.
    """

    def __init__(self, forced: tuple[bool, ...], remaining: int, site: Any) -> None:
        self.forced = forced
        self.remaining = remaining
        self.site = site
        self.decisions: list[tuple[Any, bool]] = []

    @property
    def outcomes(self) -> tuple[bool, ...]:
        """The outcomes so far."""
        return tuple(outcome for _, outcome in self.decisions)

    def decide(self, condition: Tensor) -> bool:
        """Return the outcome at a tensor."""
        index = len(self.decisions)
        if condition._trace is not self.site:
            return bool(condition)  # Raises JAX's error.
        if index < len(self.forced):
            outcome = self.forced[index]
        elif self.remaining <= 0:
            return bool(condition)
        else:
            outcome, self.remaining = True, self.remaining - 1
        self.decisions.append((condition, outcome))
        return outcome


class _Open(threading.local):
    path: _Path | None = None


_open = _Open()


def decisions() -> list[tuple[Any, bool]]:
    """Return the tensors that decided branches of the function that is being traced, with their outcomes."""
    return [] if _open.path is None else _open.path.decisions


def decided(tensor: Tensor) -> bool:
    """Return the outcome of a branch: a tensor's value, or the outcome on the path that is being traced.

    Args:
        tensor: A JAX array.

    Raises:
        jax.errors.TracerBoolConversionError: The tensor has no value yet, and the function is not traced along all
            paths.
    """
    if _open.path is None or not isinstance(tensor, jax.core.Tracer) or tensor.shape != ():
        return bool(tensor)
    return _open.path.decide(tensor)


def in_all_paths(run: Callable[[], _Result], args: Any) -> _Result:
    """Trace a function along all its paths, and return the result of the path that the tensors in it decide.

    Args:
        run: Called once for each path; returns a structure of arrays. Its side effects in Python are repeated.
        args: The arguments of the function that is traced, in any structure.

    Raises:
        TypeError: The paths return values of different shapes or dtypes.
        jax.errors.TracerBoolConversionError: There are too many paths, as with a ``while``; or a tensor decides that
            belongs to another function, such as the body of a loop.
    """
    traced = [value for value in jax.tree.leaves(args) if isinstance(value, jax.core.Tracer)]
    # A tracer's trace has no public name; tests/backend/test_branches.py fails if it moves.
    return _explore(run, _Path((), _MAX_PATHS - 1, traced[0]._trace if traced else None))


def _explore(run: Callable[[], _Result], path: _Path) -> _Result:
    with _tracing(path):
        try:
            result = run()
        except Exception as error:
            if path.decisions:
                outcomes = ", ".join(map(str, path.outcomes))
                error.add_note(
                    "mixtrain: a compiled function is traced along every path that its tensors may decide; this was "
                    f"raised where its ifs, in the order of the program, are {outcomes}."
                )
            raise
    # Every True outcome that this path chose itself, the last first: trace the path with False, and select.
    for index in reversed(range(len(path.forced), len(path.decisions))):
        other = _Path((*path.outcomes[:index], False), path.remaining, path.site)
        result = _select(path.decisions[index][0], result, _explore(run, other))
        path.remaining = other.remaining
    return result


@contextlib.contextmanager
def _tracing(path: _Path) -> Iterator[None]:
    before, _open.path = _open.path, path
    try:
        yield
    finally:
        _open.path = before


def _select(condition: Tensor, yes: Tree, no: Tree) -> Tree:
    specs = [jax.tree.map(_spec, values) for values in (yes, no)]
    if specs[0] != specs[1]:
        raise TypeError(
            "a compiled call: expected both branches of an if that a tensor decides to give values of the same shapes "
            f"and dtypes; got {specs[0][1]} and {specs[1][1]}. Write ops.cast or ops.reshape in one of them."
        )
    return jax.tree.map(lambda x, y: x if x is y else jnp.where(condition, x, y), yes, no)


def _spec(value: Any) -> str:
    array = jnp.asarray(value)
    return f"{array.dtype}{list(array.shape)}"


def reached() -> Any:
    """Return whether this place is reached: True, a tensor, or False where another path stands for this one."""
    path = _open.path
    if path is None:
        return True
    if len(path.decisions) < len(path.forced):
        return False  # The path that forced these outcomes runs the same code up to here.
    result: Any = True
    for condition, outcome in path.decisions:
        result = jnp.logical_and(result, condition if outcome else jnp.logical_not(condition))
    return result
