"""Functions that read and write Keras variables, as pure functions that JAX compiles."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax._src import core
from jax.sharding import NamedSharding

from mixtrain.backend.jax.branches import first_path
from mixtrain.backend.jax.group import from_group, spanned, to_group
from mixtrain.backend.jax.tensor import store, stored
from mixtrain.backend.jax.tracing import now
from mixtrain.backend.signatures import Variables
from mixtrain.backend.tensor_base import TensorBase, backend_value
from mixtrain.typing import Tensor, Tree


class Trace:
    """A function that is being traced; supports weak references."""

    finished = False  # Whether its trace ran to the end.


class StateScope(keras.StatelessScope):
    """A stateless scope that records which variables are read and written.

    `variables`: The variables that have values of their own, of their stored dtypes, in the scope. `trace`: The
    function that is being traced, for a scope around one; None for a scope inside of one.
    """

    def __init__(self, variables: Variables = (), values: Sequence[Tensor] = (), trace: Trace | None = None) -> None:
        super().__init__(collect_losses=True, initialize_variables=False)
        self.state_mapping = {id(variable): value for variable, value in zip(variables, values, strict=True)}
        self.trace = trace
        self.used: set[int] = set()  # The identities of the variables that were read.
        self.read: dict[int, keras.Variable] = {}  # Those without a value of their own, by identity.
        self.written: dict[int, keras.Variable] = {}  # The variables that were assigned, by identity.
        self._outer: StateScope | None = None

    def __enter__(self) -> StateScope:
        self._outer = now.scopes[-1] if now.scopes else None
        now.scopes.append(self)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        now.scopes.pop()

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

    def forget_local(self) -> None:
        """Forget the variables that were made inside, such as those of a layer that each call makes anew."""
        for variables in (self.read, self.written):
            for key in [key for key, variable in variables.items() if stored(variable) is None]:
                del variables[key]

    def values_of(self, variables: Variables) -> list[Tensor]:
        """Return the values of variables in this scope, as arrays."""
        return [jnp.asarray(self.get_current_value(variable)) for variable in variables]


def current(variable: keras.Variable) -> Any:
    """Return a variable's value in the innermost scope, in its stored dtype."""
    return now.scopes[-1].get_current_value(variable) if now.scopes else stored(variable)


def tracing() -> bool:
    """Whether a scope is open, as in a function that is being traced."""
    return bool(now.scopes)


def put(variable: keras.Variable, value: Tensor) -> None:
    """Assign a variable a value of its stored dtype in the innermost scope."""
    if now.scopes:
        now.scopes[-1].add_update((variable, value))
    else:
        store(variable, value)


@contextlib.contextmanager
def outside_scopes() -> Iterator[None]:
    """Run the code inside eagerly, on concrete values, as if nothing were being traced."""
    scopes, now.scopes = now.scopes, []
    for scope in reversed(scopes):
        keras.StatelessScope.__exit__(scope)
    try:
        with jax.ensure_compile_time_eval():
            yield
    finally:
        for scope in scopes:
            keras.StatelessScope.__enter__(scope)
        now.scopes = scopes


class TraceEnded(Exception):
    """A function must be retraced.

    `scope`: The scope around the function, if it uses variables that are not among its arguments; None if it
    communicates with other processes, and is not traced for all of them.
    """

    def __init__(self, reason: str, scope: StateScope | None = None) -> None:
        super().__init__(reason)
        self.scope = scope
        self._trace: Any = core.trace_ctx.trace  # JAX's trace of it.

    def release(self) -> None:
        """Free what was traced; called from outside of the function.

        JAX (0.10.2) frees a trace that ran to its end. The finalizers of its own constants keep one that an exception
        ended alive until the process ends.
        """
        trace = self._trace
        while trace is not None and trace is not core.trace_ctx.trace:
            trace.invalidate()
            trace = getattr(trace, "parent_trace", None)


def _in_layout(variable: keras.Variable, value: Tensor) -> Tensor:
    """Return a new value of a variable with the layout on a mesh of devices that its old one has."""
    sharding = getattr(stored(variable), "sharding", None)
    return jax.lax.with_sharding_constraint(value, sharding) if isinstance(sharding, NamedSharding) else value


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

    `function`: Takes and returns structures of tensors. `wrap`: Transforms the pure function
    ``(constants, state, *tensors) -> (state, results)`` to the compiled one of the same signature; `constants` are the
    values that are only read.
    """

    def __init__(
        self, function: Callable[..., Any], *,
        wrap: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda pure: pure,
    ) -> None:
        self._function = function
        self.traces = 0  # The number of traces.
        self.read: list[keras.Variable] = []  # The variables that it only reads.
        self.written: list[keras.Variable] = []
        # Kept as long as the function: others cache by these traces with weak references.
        self._finished: list[Trace] = []
        self._wrapped = wrap(self._pure)
        self._jitted = jax.jit(self._wrapped, donate_argnums=1)
        # Without donation: for a caller that needs the old values, or inside another traced function.
        self._jitted_undonated = jax.jit(self._wrapped)
        # Whether it communicates with other processes, as its trace shows: then it is one program of all processes.
        self._spans = False

    def __call__(self, *tensors: Tree, donate: bool = True) -> Any:
        """Call the function; without donation the old values of variables stay valid, and are not copied."""
        inside = bool(now.scopes)
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
            except TraceEnded as error:
                if inside and error.scope is None:
                    raise
                self._expect(error)
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
            except TraceEnded as error:
                self._expect(error)
                continue
            return [(variable, stored(variable)) for variable in self.written]

    def _donated_values(self) -> list[Tensor]:
        """Return the values to donate: copies where something else refers to the array too."""
        values = [stored(variable) for variable in self.written]
        counted = zip(values, _reference_counts(values), strict=True)
        return [value if count <= _SOLE_OWNER_COUNT else jnp.copy(value) for value, count in counted]

    def _expect(self, error: TraceEnded) -> None:
        """Prepare for the next trace what the last one lacked."""
        error.release()
        if error.scope is None:
            self._spans = True
            self._jitted = jax.jit(spanned(self._wrapped), donate_argnums=1)
            return
        written = {id(variable): variable for variable in self.written} | error.scope.written
        read = {id(variable): variable for variable in self.read} | error.scope.read
        self.written = list(written.values())
        self.read = [variable for key, variable in read.items() if key not in written]

    def _pure(self, constants: list[Tensor], state: list[Tensor], *tensors: Tree) -> tuple[list[Tensor], Any]:
        first = first_path((constants, state, tensors))
        for path in first.explored():
            trace = Trace()
            with path, StateScope([*self.read, *self.written], [*constants, *state], trace) as scope:
                results = jax.tree.map(
                    backend_value, self._function(*tensors), is_leaf=lambda value: isinstance(value, TensorBase)
                )
                scope.forget_local()
                if scope.read or not set(scope.written) <= {id(variable) for variable in self.written}:
                    raise TraceEnded("a traced function uses variables that are not among its arguments", scope)
                values = zip(self.written, scope.values_of(self.written), strict=True)
                path.result = [_in_layout(variable, value) for variable, value in values], results
            trace.finished = True
            self._finished.append(trace)
        self.traces += 1
        return first.result  # type: ignore[no-any-return]


@dataclasses.dataclass(frozen=True)
class _Slot:
    """The position of a tensor in a structure."""

    index: int


def split_tensors(structure: Tree) -> tuple[list[Tensor], Callable[[list[Tensor]], Tree]]:
    """Return the tensors of a structure, and a function that fills it with other ones.

    Example:
        >>> tensors, fill = split_tensors({"loss": jax.numpy.ones(()), "name": "first"})
        >>> fill([2.0])
        {'loss': 2.0, 'name': 'first'}
    """
    tensors: list[Tensor] = []

    def take(value: Any) -> Any:
        value = backend_value(value)
        if not isinstance(value, (jax.Array, np.ndarray)):
            return value
        tensors.append(value)
        return _Slot(len(tensors) - 1)

    template = keras.tree.map_structure(take, structure)

    def fill(values: list[Tensor]) -> Tree:
        return keras.tree.map_structure(lambda leaf: values[leaf.index] if isinstance(leaf, _Slot) else leaf, template)

    return tensors, fill
