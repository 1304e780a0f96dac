"""Code paths of a traced function: where a tensor decides a branch, both are traced and one result is selected."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp

_Result = TypeVar("_Result")

# Each path is traced whole, so more would take long to compile; a `while` has no end of them.
_MAX_PATHS: Final = 32


class _Path:
    """One path through the function: the outcome at each tensor that decides a branch.

    Args:
        forced: The first outcomes; those after them are True.
        left: How many paths may still be found.
        site: JAX's trace of the function, whose tensors may decide.
    """

    def __init__(self, forced: tuple[bool, ...], left: int, site: Any) -> None:
        self.forced = forced
        self.left = left
        self.site = site
        self.asked: list[tuple[Any, bool]] = []

    @property
    def taken(self) -> tuple[bool, ...]:
        """The decisions so far."""
        return tuple(taken for _, taken in self.asked)

    def decide(self, condition: Any) -> bool:
        """Return the decision at a tensor."""
        place = len(self.asked)
        if condition._trace is not self.site:
            return bool(condition)  # Refuses.
        if place < len(self.forced):
            taken = self.forced[place]
        elif self.left <= 0:
            return bool(condition)
        else:
            taken, self.left = True, self.left - 1
        self.asked.append((condition, taken))
        return taken


class _Open(threading.local):
    path: _Path | None = None


_open = _Open()


def decisions() -> list[tuple[Any, bool]]:
    """Return the tensors that have decided branches of the function that is being traced, and what they decided."""
    return [] if _open.path is None else _open.path.asked


def decided(tensor: Any) -> bool:
    """Return what a tensor decides: its value, or in a function that is traced along all paths, what this one decides.

    Args:
        tensor: A JAX array.

    Raises:
        jax.errors.TracerBoolConversionError: The tensor has no value yet, and the function is not traced along all.
    """
    if _open.path is None or not isinstance(tensor, jax.core.Tracer) or tensor.shape != ():
        return bool(tensor)
    return _open.path.decide(tensor)


def in_all_paths(run: Callable[[], _Result], given: Any) -> _Result:
    """Return what a function gives while it is traced, whichever path the tensors in it decide.

    Args:
        run: Run once for each path. Only what it returns, a structure of arrays, counts: its first run's side effects
            in Python are repeated in others.
        given: A structure with what the function that is traced was given.

    Raises:
        TypeError: The paths give values of other shapes or dtypes.
        jax.errors.TracerBoolConversionError: There are too many paths, as with a ``while``; or a tensor decides that is
            not the function's own, but of the body of a loop in it, say.
    """
    traced = [value for value in jax.tree.leaves(given) if isinstance(value, jax.core.Tracer)]
    # A tracer's trace has no public name; tests/backend/test_branches.py fails if it moves.
    return _explored(run, _Path((), _MAX_PATHS - 1, traced[0]._trace if traced else None))


def _explored(run: Callable[[], _Result], path: _Path) -> _Result:
    with _opened(path):
        try:
            result = run()
        except Exception as error:
            if path.asked:
                decided = ", ".join(str(taken) for taken in path.taken)
                error.add_note(
                    "mixtrain: a compiled function is traced along every path that its tensors may decide; this was "
                    f"raised where its ifs, in the order of the program, are {decided}."
                )
            raise
    for place in reversed(range(len(path.forced), len(path.asked))):
        other = _Path((*path.taken[:place], False), path.left, path.site)
        result = _chosen(path.asked[place][0], result, _explored(run, other))
        path.left = other.left
    return result


@contextlib.contextmanager
def _opened(path: _Path | None) -> Iterator[None]:
    before, _open.path = _open.path, path
    try:
        yield
    finally:
        _open.path = before


def _chosen(condition: Any, yes: Any, no: Any) -> Any:
    forms = [jax.tree.map(_form, values) for values in (yes, no)]
    if forms[0] != forms[1]:
        raise TypeError(
            "a compiled call: expected both branches of an if that a tensor decides to give values of the same shapes "
            f"and formats; got {forms[0][1]} and {forms[1][1]}. Write ops.cast or ops.reshape in one of them."
        )
    return jax.tree.map(lambda one, other: one if one is other else jnp.where(condition, one, other), yes, no)


def _form(value: Any) -> str:
    array = jnp.asarray(value)
    return f"{array.dtype}{list(array.shape)}"


def reached() -> Any:
    """Return whether this place is reached: True, a tensor, or False where another path sees to it."""
    path = _open.path
    if path is None:
        return True
    if len(path.asked) < len(path.forced):
        return False  # Before the first decision that is this path's own.
    found: Any = True
    for condition, taken in path.asked:
        found = jnp.logical_and(found, condition if taken else jnp.logical_not(condition))
    return found
