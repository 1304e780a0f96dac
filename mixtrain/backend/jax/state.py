"""State in pure functions: what variables a function reads and writes while it is traced, and what it leaves there."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import keras
from jax._src import core

from mixtrain.backend.jax.group import from_group, spanned, to_group
from mixtrain.backend.jax.variables import store, stored
from mixtrain.backend.jax.code_paths import in_all_paths
from mixtrain.backend.tensor_base import TensorBase, backend_value


class Trace:
    """A function that is being traced here; it can be referred to weakly.

    Attributes:
        finished: Whether it was traced to its end.
    """

    finished = False


class _Open(threading.local):
    """The scopes that are open in this thread, the outermost first."""

    def __init__(self) -> None:
        self.scopes: list[StateScope] = []


_open = _Open()


class StateScope(keras.StatelessScope):
    """Variables read in it have the values they were given, and what is assigned stays in it.

    Args:
        variables: The variables that are given values.
        values: Their values, of their stored formats.
        trace: The function that is being traced, where this scope is around one; None where it is inside of one.

    Attributes:
        read: The variables without a given value that were read from outside, each once.
        used: The identities of all variables that were read.
        written: The variables that were assigned, each once.
    """

    def __init__(
        self, variables: Sequence[keras.Variable] = (), values: Sequence[Any] = (), trace: Trace | None = None
    ) -> None:
        super().__init__(collect_losses=True, initialize_variables=False)
        self.state_mapping = {id(variable): value for variable, value in zip(variables, values, strict=True)}
        self.trace = trace
        self.read: dict[int, keras.Variable] = {}
        self.used: set[int] = set()
        self.written: dict[int, keras.Variable] = {}
        self._outer: StateScope | None = None

    def __enter__(self) -> StateScope:
        self._outer = _open.scopes[-1] if _open.scopes else None
        _open.scopes.append(self)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        _open.scopes.pop()

    def get_current_value(self, variable: keras.Variable) -> Any:
        """Return what a variable holds here, in its stored format; None for one that has no value yet."""
        self.used.add(id(variable))
        value = self.state_mapping.get(id(variable))
        if value is None:
            self.read[id(variable)] = variable
            value = stored(variable) if self._outer is None else self._outer.get_current_value(variable)
        return value

    def add_update(self, update: tuple[keras.Variable, Any]) -> None:
        """Let a variable hold another value here."""
        variable, value = update
        self.written[id(variable)] = variable
        self.state_mapping[id(variable)] = value

    def values_of(self, variables: Sequence[keras.Variable]) -> list[Any]:
        """Return what variables hold here, as arrays."""
        return [jnp.asarray(self.get_current_value(variable)) for variable in variables]


def current(variable: keras.Variable) -> Any:
    """Return what a variable holds here, in its stored format."""
    return _open.scopes[-1].get_current_value(variable) if _open.scopes else stored(variable)


def tracing() -> bool:
    """Whether a function is being traced here, whose variables have values of the trace."""
    return bool(_open.scopes)


def put(variable: keras.Variable, value: Any) -> None:
    """Let a variable hold a value of its stored format, for as long as the innermost scope lasts."""
    if _open.scopes:
        _open.scopes[-1].add_update((variable, value))
    else:
        store(variable, value)


def open_traces() -> tuple[Trace, ...]:
    """Return the functions that are being traced here, the innermost first."""
    return tuple(scope.trace for scope in reversed(_open.scopes) if scope.trace is not None)


@contextlib.contextmanager
def outside_scopes() -> Iterator[None]:
    """Run what is inside at once, on real values, as if nothing were being traced."""
    scopes, _open.scopes = _open.scopes, []
    for scope in reversed(scopes):
        keras.StatelessScope.__exit__(scope)
    try:
        with jax.ensure_compile_time_eval():
            yield
    finally:
        for scope in scopes:
            keras.StatelessScope.__enter__(scope)
        _open.scopes = scopes


class TraceEnded(Exception):
    """A function must be retraced.

    Attributes:
        trace: JAX's trace of it, which ends here.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.trace: Any = core.trace_ctx.trace

    def release(self) -> None:
        """Let what was traced be freed; called where the function was.

        JAX (0.10.2) frees a trace that ran to its end. One that an exception ended is held by the finalizers of its own
        constants, for as long as the process lives.
        """
        trace = self.trace
        while trace is not None and trace is not core.trace_ctx.trace:
            trace.invalidate()
            trace = getattr(trace, "parent_trace", None)


class MoreState(TraceEnded):
    """A traced function uses variables that it was not given.

    Args:
        scope: The scope around the function.
    """

    def __init__(self, scope: StateScope) -> None:
        super().__init__("a traced function uses variables that it was not given")
        self.scope = scope


class NeedsGroup(TraceEnded):
    """A traced function communicates with other processes, and is not traced for all of them."""

    def __init__(self) -> None:
        super().__init__("a traced function communicates with other processes")


def _references(values: Sequence[Any]) -> list[int]:
    return [sys.getrefcount(value) for value in values]


class _Holder:
    """Holds a value alone."""

    def __init__(self) -> None:
        self.value = object()


# How many references Python counts here to what a variable alone holds.
_holder: Final = _Holder()
_ALONE: Final = _references([_holder.value])[0]


class Stateful:
    """A function that writes variables, as one compiled call that is handed their values and hands back new ones.

    The first trace shows which variables the function uses; the second is what is compiled. The memory of written
    variables is given to their new values, but for what somebody else holds too.

    Args:
        wrap: From a pure function ``(kept, moved, *tensors) -> (moved, results)`` to the one that is compiled, of the
            same form: `kept` are values that are only read.
        function: Takes and returns structures of tensors; reads and writes variables.

    Attributes:
        traces: How often the function was traced for being compiled.
        read: The variables that it only reads.
        written: The variables that it writes.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        wrap: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda pure: pure,
    ) -> None:
        self._function = function
        self.traces = 0
        self.read: list[keras.Variable] = []
        self.written: list[keras.Variable] = []
        # What is kept for a trace (see trace.py) lives as long as the function.
        self._finished: list[Trace] = []
        self._wrapped = wrap(self._pure)
        self._jitted = jax.jit(self._wrapped, donate_argnums=1)
        # The values of before stay as they are: for a caller who may need them, or another function that is traced.
        self._keeping = jax.jit(self._wrapped)
        # Whether it communicates with other processes, which its trace shows: then it is one program of them all.
        self._spans = False

    def __call__(self, *tensors: Any) -> Any:
        return self._run(tensors, keep=False)

    def keeping(self, *tensors: Any) -> Any:
        """Call; the values that variables had before stay in memory for whoever holds them, without being copied."""
        return self._run(tensors, keep=True)

    def _run(self, tensors: Sequence[Any], *, keep: bool) -> Any:
        inside = bool(_open.scopes)
        while True:
            kept = [current(variable) for variable in self.read]
            keep = inside or (keep and not self._spans)
            given = [current(variable) for variable in self.written] if keep else self._given()
            try:
                if keep:
                    moved, results = self._keeping(kept, given, *tensors)
                elif self._spans:
                    moved, results = from_group(self._jitted(*to_group((kept, given, *tensors))))
                else:
                    moved, results = self._jitted(kept, given, *tensors)
            except MoreState as found:
                self._learn(found)
                continue
            except NeedsGroup as found:
                if inside:
                    raise
                self._span(found)
                continue
            write = put if inside else store
            for variable, value in zip(self.written, moved, strict=True):
                write(variable, value)
            return results

    def values_before(self, *tensors: Any) -> list[tuple[keras.Variable, Any]]:
        """Return each variable that a call would write, with its value, which the call leaves alone."""
        while True:
            try:
                self._jitted.eval_shape([stored(variable) for variable in self.read], self._given(), *tensors)
            except MoreState as found:
                self._learn(found)
                continue
            except NeedsGroup as found:
                self._span(found)
                continue
            return [(variable, stored(variable)) for variable in self.written]

    def _given(self) -> list[Any]:
        """Return the values to hand over: copies where somebody else holds the array too."""
        values = [stored(variable) for variable in self.written]
        held = zip(values, _references(values), strict=True)
        return [value if references <= _ALONE else jnp.copy(value) for value, references in held]

    def _span(self, found: NeedsGroup) -> None:
        found.release()
        self._spans = True
        self._jitted = jax.jit(spanned(self._wrapped), donate_argnums=1)

    def _learn(self, found: MoreState) -> None:
        scope = found.scope
        found.release()
        known = {id(variable) for variable in self.written}
        self.written += [variable for key, variable in scope.written.items() if key not in known]
        known = {id(variable) for variable in (*self.written, *self.read)}
        self.read += [variable for key, variable in scope.read.items() if key not in known]
        written = {id(variable) for variable in self.written}
        self.read = [variable for variable in self.read if id(variable) not in written]

    def _pure(self, kept: list[Any], moved: list[Any], *tensors: Any) -> tuple[list[Any], Any]:
        results = in_all_paths(lambda: self._in_one_way(kept, moved, *tensors), (kept, moved, tensors))
        self.traces += 1
        return results

    def _in_one_way(self, kept: list[Any], moved: list[Any], *tensors: Any) -> tuple[list[Any], Any]:
        trace = Trace()
        with StateScope([*self.read, *self.written], [*kept, *moved], trace) as scope:
            results = jax.tree.map(
                backend_value, self._function(*tensors), is_leaf=lambda value: isinstance(value, TensorBase)
            )
            if scope.read or not set(scope.written) <= {id(variable) for variable in self.written}:
                raise MoreState(scope)
            moved = scope.values_of(self.written)
        trace.finished = True
        self._finished.append(trace)
        return moved, results
