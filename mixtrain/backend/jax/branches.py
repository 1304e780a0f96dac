"""Tensors that decide an ``if`` of a compiled call: all code paths are traced, and one result is selected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import jax
import jax.numpy as jnp
import keras

from mixtrain.backend.jax.tracing import now
from mixtrain.backend.user_code import UndecidedBranch, users_code
from mixtrain.typing import Tensor, Tree

# Each path is traced whole, so more would take long to compile; a `while` has no end of them.
_MAX_PATHS: Final = 32
_ON_A_PATH: Final = "mixtrain: a compiled function is traced along every path"


def with_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return it as it is: it is traced along all paths."""
    return function


def branching(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return it as it is: it is traced along all paths."""
    return method


def call_with_branches(compiled: Callable[..., Any], *args: Any) -> Any:
    try:
        return compiled(*args)
    except (jax.errors.ConcretizationTypeError, AttributeError, IndexError) as caught:
        # Keras fails with an AttributeError when it adds a layer's arguments to an error of JAX.
        error = _jax_error(caught)
        if not isinstance(error, jax.errors.TracerBoolConversionError):
            refusal = None if error is None else _value_needed(error)
            if refusal is None:
                raise
            raise refusal from error
        codes = users_code(error, jax.__file__)
        where = codes[-1].co_qualname if codes else "a compiled call"
        raise UndecidedBranch(
            f"{where}: with the JAX backend, expected a Python value to decide a while of a compiled call, the last of "
            "many ifs, or one inside a loop of JAX's; got a tensor. Write ops.select(condition, one, other), run in "
            "PYNATIVE_MODE, or set KERAS_BACKEND=tensorflow."
        ) from error


def failed_on_a_path(error: BaseException) -> bool:
    return any(note.startswith(_ON_A_PATH) for note in getattr(error, "__notes__", ()))


def _jax_error(error: BaseException | None) -> BaseException | None:
    """Return JAX's error that a tensor has no value yet from the context of an error; None without one."""
    jax_error = None
    while error is not None:
        is_index_error = isinstance(error, IndexError) and "static integers" in str(error)
        if is_index_error or isinstance(error, jax.errors.ConcretizationTypeError):
            jax_error = error
        error = error.__context__
    return jax_error


def _value_needed(error: BaseException) -> TypeError | None:
    """Return the error for the innermost Keras layer that needs the value of a tensor; None where there is none."""
    layer, trace = None, error.__traceback__
    while trace is not None:
        caller = trace.tb_frame.f_locals.get("self")
        layer = caller if isinstance(caller, keras.Layer) else layer
        trace = trace.tb_next
    if layer is None:
        return None
    return TypeError(
        f"{layer.name} ({type(layer).__name__}): with the JAX backend, expected a layer that computes without the "
        "values of tensors in Python while a step is compiled; got one that asks for them, as int(tensor) does. Write "
        "its work into the data set, run in PYNATIVE_MODE, or set KERAS_BACKEND=tensorflow."
    )


def tensor_decided() -> bool:
    return now.path is not None and bool(now.path.decisions)


class Path:
    """One path through a function that is being traced: the outcome at each tensor that decides a branch.

    The function is traced inside of each path that the first one yields, which repeats its side effects in Python.

    `forced`: The first outcomes; those after them are True. `remaining`: How many more paths may be traced. `site`:
    JAX's trace of the function, whose tensors may decide.
    """

    def __init__(self, forced: tuple[bool, ...], remaining: int, site: Any) -> None:
        self.forced = forced
        self.remaining = remaining
        self.site = site
        self.decisions: list[tuple[Any, bool]] = []
        # What the function returned; once all paths are explored, the result that the tensors decide.
        self.result: Any = None
        self._before: Path | None = None

    def __enter__(self) -> None:
        self._before, now.path = now.path, self

    def __exit__(self, kind: Any, error: BaseException | None, *_: Any) -> None:
        now.path, self._before = self._before, None
        if self.decisions and isinstance(error, Exception):
            outcomes = ", ".join(str(outcome) for _, outcome in self.decisions)
            error.add_note(
                f"{_ON_A_PATH} that its tensors may decide; this was raised where its ifs, in the order of the "
                f"program, are {outcomes}."
            )

    def explored(self) -> Iterator[Path]:
        """Yield this path and those that branch off it, and select among their results.

        Raises: TypeError if the paths return values of different shapes or dtypes.
        """
        yield self
        # Every True outcome that this path chose itself, the last first: trace the path with False, and select.
        for index in reversed(range(len(self.forced), len(self.decisions))):
            outcomes = [outcome for _, outcome in self.decisions[:index]]
            other = Path((*outcomes, False), self.remaining, self.site)
            yield from other.explored()
            self.result = _select(self.decisions[index][0], self.result, other.result)
            self.remaining = other.remaining

    def decide(self, condition: Tensor) -> bool:
        """Return the outcome at a tensor.

        Raises: JAX's error if there are too many paths, as with a ``while``; or the tensor belongs to another function,
        such as the body of a loop.
        """
        index = len(self.decisions)
        if condition._trace is not self.site or (index >= len(self.forced) and self.remaining <= 0):
            return bool(condition)  # Raises JAX's error.
        if index < len(self.forced):
            outcome = self.forced[index]
        else:
            outcome, self.remaining = True, self.remaining - 1
        self.decisions.append((condition, outcome))
        return outcome


def first_path(args: Any) -> Path:
    """Return the path through a function with arguments, in any structure, on which all outcomes are True."""
    traced = [value for value in jax.tree.leaves(args) if isinstance(value, jax.core.Tracer)]
    # A tracer's trace has no public name; tests/backend/test_branches.py fails if it moves.
    return Path((), _MAX_PATHS - 1, traced[0]._trace if traced else None)


def _select(condition: Tensor, yes: Tree, no: Tree) -> Tree:
    specs = [jax.tree.map(_spec, values) for values in (yes, no)]
    if specs[0] != specs[1]:
        raise TypeError(
            "a compiled call: Cannot join the return values of different branches: expected both branches of an if "
            f"that a tensor decides to give values of the same shapes and dtypes; got {specs[0][1]} and {specs[1][1]}. "
            "Write ops.cast or ops.reshape in one of them."
        )
    return jax.tree.map(lambda x, y: x if x is y else jnp.where(condition, x, y), yes, no)


def _spec(value: Any) -> str:
    array = jnp.asarray(value)
    return f"{array.dtype}{list(array.shape)}"


def reached() -> Any:
    """Return whether this place is reached: True, a tensor, or False where another path stands for this one."""
    path = now.path
    if path is None:
        return True
    if len(path.decisions) < len(path.forced):
        return False  # The path that forced these outcomes runs the same code up to here.
    result: Any = True
    for condition, outcome in path.decisions:
        result = jnp.logical_and(result, condition if outcome else jnp.logical_not(condition))
    return result
