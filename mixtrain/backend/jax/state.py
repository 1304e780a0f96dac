"""Functions that read and write Keras variables, as pure functions that JAX compiles."""

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

from mixtrain.backend.jax.code_paths import in_all_paths
from mixtrain.backend.jax.group import from_group, spanned, to_group
from mixtrain.backend.jax.variables import store, stored
from mixtrain.backend.tensor_base import TensorBase, backend_value
from mixtrain.typing import Tensor, Tree


class Trace:
    """A function that is being traced; supports weak references.

    Attributes:
        finished: Whether its trace ran to the end.
    """

    finished = False


class _Open(threading.local):
    """The open scopes of this thread, the outermost first."""

    def __init__(self) -> None:
        self.scopes: list[StateScope] = []


_open = _Open()


class StateScope(keras.StatelessScope):
    """A stateless scope that records which variables are read and written.

    Args:
        variables: The variables that have values of their own in the scope.
        values: Their values, of their stored dtypes.
        trace: The function that is being traced, for a scope around one; None for a scope inside of one.

    Attributes:
        read: The other variables that were read, by identity.
        used: The identities of all variables that were read.
        written: The variables that were assigned, by identity.
    """

    def __init__(
        self, variables: Sequence[keras.Variable] = (), values: Sequence[Tensor] = (), trace: Trace | None = None
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

    def get_current_value(self, variable: keras.Variable) -> Tensor | None:
        """Return a variable's value in this scope, in its stored dtype; None for one that has no value yet."""
        self.used.add(id(variable))
        value = self.state_mapping.get(id(variable))
        if value is None:
            self.read[id(variable)] = variable
            value = stored(variable) if self._outer is None else self._outer.get_current_value(variable)
        return value

    def add_update(self, update: tuple[keras.Variable, Tensor]) -> None:
        """Assign a variable in this scope."""
        variable, value = update
        self.written[id(variable)] = variable
        self.state_mapping[id(variable)] = value

    def values_of(self, variables: Sequence[keras.Variable]) -> list[Tensor]:
        """Return the values of variables in this scope, as arrays."""
        return [jnp.asarray(self.get_current_value(variable)) for variable in variables]


def current(variable: keras.Variable) -> Any:
    """Return a variable's value in the innermost scope, in its stored dtype."""
    return _open.scopes[-1].get_current_value(variable) if _open.scopes else stored(variable)


def tracing() -> bool:
    """Whether a scope is open, as in a function that is being traced."""
    return bool(_open.scopes)


def put(variable: keras.Variable, value: Tensor) -> None:
    """Assign a variable a value of its stored dtype in the innermost scope."""
    if _open.scopes:
        _open.scopes[-1].add_update((variable, value))
    else:
        store(variable, value)


def open_traces() -> tuple[Trace, ...]:
    """Return the functions that are being traced in this thread, the innermost first."""
    return tuple(scope.trace for scope in reversed(_open.scopes) if scope.trace is not None)


@contextlib.contextmanager
def outside_scopes() -> Iterator[None]:
    """Run the code inside eagerly, on concrete values, as if nothing were being traced."""
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
        trace: JAX's trace of it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.trace: Any = core.trace_ctx.trace

    def release(self) -> None:
        """Free what was traced; called from outside of the function.

        JAX (0.10.2) frees a trace that ran to its end. The finalizers of its own constants keep one that an exception
        ended alive until the process ends.
        """
        trace = self.trace
        while trace is not None and trace is not core.trace_ctx.trace:
            trace.invalidate()
            trace = getattr(trace, "parent_trace", None)


class MoreState(TraceEnded):
    """A traced function uses variables that are not among its arguments.

    Args:
        scope: The scope around the function.
    """

    def __init__(self, scope: StateScope) -> None:
        super().__init__("a traced function uses variables that are not among its arguments")
        self.scope = scope


class NeedsGroup(TraceEnded):
    """A traced function communicates with other processes, and is not traced for all of them."""

    def __init__(self) -> None:
        super().__init__("a traced function communicates with other processes")


def _reference_counts(values: Sequence[Any]) -> list[int]:
    return [sys.getrefcount(value) for value in values]


class _Owner:
    def __init__(self) -> None:
        self.value = object()


# The count of `_reference_counts` for a value that only one attribute, such as that of a variable, refers to.
_owner: Final = _Owner()
_SOLE_OWNER_COUNT: Final = _reference_counts([_owner.value])[0]


class Stateful:
    """A compiled function that reads and writes variables: it takes their values and returns the new ones.

    The first trace shows which variables the function uses; the second one is compiled. The arrays of written variables
    are donated, except those that something else refers to.

    Args:
        function: Takes and returns structures of tensors; reads and writes variables.
        wrap: Transforms the pure function ``(constants, state, *tensors) -> (state, results)`` to the compiled one of
            the same signature; `constants` are the values that are only read.

    Attributes:
        traces: The number of traces.
        read: The variables that it only reads.
        written: The variables that it writes.
    """

    def __init__(
        self, function: Callable[..., Any], *,
        wrap: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda pure: pure,
    ) -> None:
        self._function = function
        self.traces = 0
        self.read: list[keras.Variable] = []
        self.written: list[keras.Variable] = []
        # Kept as long as the function: others cache by these traces with weak references (see trace.py).
        self._finished: list[Trace] = []
        self._wrapped = wrap(self._pure)
        self._jitted = jax.jit(self._wrapped, donate_argnums=1)
        # Without donation: for a caller that needs the old values, or inside another traced function.
        self._jitted_undonated = jax.jit(self._wrapped)
        # Whether it communicates with other processes, as its trace shows: then it is one program of all processes.
        self._spans = False

    def __call__(self, *tensors: Tensor) -> Any:
        return self._run(tensors, donate=True)

    def without_donation(self, *tensors: Tree) -> Any:
        """Call without donation: the old values of variables stay valid, and are not copied."""
        return self._run(tensors, donate=False)

    def _run(self, tensors: Sequence[Tree], *, donate: bool) -> Any:
        inside = bool(_open.scopes)
        while True:
            constants = [current(variable) for variable in self.read]
            donate = not inside and (donate or self._spans)
            state = self._donated_values() if donate else [current(variable) for variable in self.written]
            try:
                if not donate:
                    state, results = self._jitted_undonated(constants, state, *tensors)
                elif self._spans:
                    state, results = from_group(self._jitted(*to_group((constants, state, *tensors))))
                else:
                    state, results = self._jitted(constants, state, *tensors)
            except MoreState as error:
                self._add_variables(error)
                continue
            except NeedsGroup as error:
                if inside:
                    raise
                self._compile_for_group(error)
                continue
            write = put if inside else store
            for variable, value in zip(self.written, state, strict=True):
                write(variable, value)
            return results

    def values_before(self, *tensors: Tree) -> list[tuple[keras.Variable, Tensor]]:
        """Return each variable that a call would write, with its value, without running the function."""
        while True:
            try:
                self._jitted.eval_shape([stored(variable) for variable in self.read], self._donated_values(), *tensors)
            except MoreState as error:
                self._add_variables(error)
                continue
            except NeedsGroup as error:
                self._compile_for_group(error)
                continue
            return [(variable, stored(variable)) for variable in self.written]

    def _donated_values(self) -> list[Tensor]:
        """Return the values to donate: copies where something else refers to the array too."""
        values = [stored(variable) for variable in self.written]
        counted = zip(values, _reference_counts(values), strict=True)
        return [value if count <= _SOLE_OWNER_COUNT else jnp.copy(value) for value, count in counted]

    def _compile_for_group(self, error: NeedsGroup) -> None:
        error.release()
        self._spans = True
        self._jitted = jax.jit(spanned(self._wrapped), donate_argnums=1)

    def _add_variables(self, error: MoreState) -> None:
        scope = error.scope
        error.release()
        known = {id(variable) for variable in self.written}
        self.written += [variable for key, variable in scope.written.items() if key not in known]
        known = {id(variable) for variable in (*self.written, *self.read)}
        self.read += [variable for key, variable in scope.read.items() if key not in known]
        written = {id(variable) for variable in self.written}
        self.read = [variable for variable in self.read if id(variable) not in written]

    def _pure(self, constants: list[Tensor], state: list[Tensor], *tensors: Tree) -> tuple[list[Tensor], Any]:
        results = in_all_paths(lambda: self._run_function(constants, state, *tensors), (constants, state, tensors))
        self.traces += 1
        return results

    def _run_function(self, constants: list[Tensor], state: list[Tensor], *tensors: Tree) -> tuple[list[Tensor], Any]:
        trace = Trace()
        with StateScope([*self.read, *self.written], [*constants, *state], trace) as scope:
            results = jax.tree.map(
                backend_value, self._function(*tensors), is_leaf=lambda value: isinstance(value, TensorBase)
            )
            if scope.read or not set(scope.written) <= {id(variable) for variable in self.written}:
                raise MoreState(scope)
            state = scope.values_of(self.written)
        trace.finished = True
        self._finished.append(trace)
        return state, results
