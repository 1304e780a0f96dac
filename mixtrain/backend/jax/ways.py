"""Ways through a function that is being traced: where a tensor decides a branch both are traced, and one is chosen."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp

_Result = TypeVar("_Result")

# Each is traced whole, so more would take long to compile; a `while` has no end of them.
_MOST: Final = 32


class _Way:
    """One way: what is decided at each tensor that is asked.

    Args:
        told: The first decisions; those after them are True.
        left: How many ways may still be found.
        home: JAX's trace of the function, whose tensors may decide.
    """

    def __init__(self, told: tuple[bool, ...], left: int, home: Any) -> None:
        self.told = told
        self.left = left
        self.home = home
        self.asked: list[tuple[Any, bool]] = []

    @property
    def taken(self) -> tuple[bool, ...]:
        """The decisions so far."""
        return tuple(taken for _, taken in self.asked)

    def decide(self, condition: Any) -> bool:
        """Return the decision at a tensor."""
        place = len(self.asked)
        if condition._trace is not self.home:
            return bool(condition)  # Refuses.
        if place < len(self.told):
            taken = self.told[place]
        elif self.left <= 0:
            return bool(condition)
        else:
            taken, self.left = True, self.left - 1
        self.asked.append((condition, taken))
        return taken


class _Open(threading.local):
    way: _Way | None = None


_open = _Open()


def decisions() -> list[tuple[Any, bool]]:
    """Return the tensors that have decided branches of the function that is being traced, and what they decided."""
    return [] if _open.way is None else _open.way.asked


def decided(tensor: Any) -> bool:
    """Return what a tensor decides: its value, or in a function that is traced in all ways, what this way decides.

    Args:
        tensor: A JAX array.

    Raises:
        jax.errors.TracerBoolConversionError: The tensor has no value yet, and the function is not traced in all ways.
    """
    if _open.way is None or not isinstance(tensor, jax.core.Tracer) or tensor.shape != ():
        return bool(tensor)
    return _open.way.decide(tensor)


def in_all_ways(run: Callable[[], _Result], given: Any) -> _Result:
    """Return what a function gives while it is traced, whichever way the tensors in it decide.

    Args:
        run: Run once for each way. Only what it returns, a structure of arrays, counts: its first run's side effects
            in Python are repeated in others.
        given: A structure with what the function that is traced was given.

    Raises:
        TypeError: The ways give values of other shapes or dtypes.
        jax.errors.TracerBoolConversionError: There are too many ways, as with a ``while``; or a tensor decides that is
            not the function's own, but of the body of a loop in it, say.
    """
    traced = [value for value in jax.tree.leaves(given) if isinstance(value, jax.core.Tracer)]
    # A tracer's trace has no public name; tests/backend/test_branches.py fails if it moves.
    return _explored(run, _Way((), _MOST - 1, traced[0]._trace if traced else None))


def _explored(run: Callable[[], _Result], way: _Way) -> _Result:
    with _opened(way):
        try:
            result = run()
        except Exception as error:
            if way.asked:
                decided = ", ".join(str(taken) for taken in way.taken)
                error.add_note(
                    "mixtrain: a compiled function is traced in every way that its tensors may decide; this was raised "
                    f"where its ifs, in the order of the program, are {decided}."
                )
            raise
    for place in reversed(range(len(way.told), len(way.asked))):
        other = _Way((*way.taken[:place], False), way.left, way.home)
        result = _chosen(way.asked[place][0], result, _explored(run, other))
        way.left = other.left
    return result


@contextlib.contextmanager
def _opened(way: _Way | None) -> Iterator[None]:
    before, _open.way = _open.way, way
    try:
        yield
    finally:
        _open.way = before


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
    """Return whether this place is reached: True, a tensor, or False where another way sees to it."""
    way = _open.way
    if way is None:
        return True
    if len(way.asked) < len(way.told):
        return False  # Before the first decision that is this way's own.
    found: Any = True
    for condition, taken in way.asked:
        found = jnp.logical_and(found, condition if taken else jnp.logical_not(condition))
    return found
