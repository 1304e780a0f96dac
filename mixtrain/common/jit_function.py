"""`jit`: compile functions, methods and Cells, in GRAPH and in PYNATIVE mode."""

from __future__ import annotations

import functools
import math
import types
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import backend, boundary, checks, execution
from mixtrain.autocast.state import autocast_in_force
from mixtrain.network.referenced_layers import referenced_layers
from mixtrain.network.uncompiled import SETS_ATTRIBUTES, Reason, reason_of, reasons, sets_attributes
from mixtrain.ops.parameter_reads import parameter_read_dtype, trial
from mixtrain.trace_version import TraceState
from mixtrain.typing import BackendTensor, Tree

JitLevel = Literal["O0", "O1", "O2"]

# Constants of these types are compared by value, all others by identity.
_COMPARED_BY_VALUE: Final = (bool, int, float, complex, str, bytes, type(None), np.generic)


class _Slot:
    """Placeholder for a tensor in the arguments or results of a compiled call."""

    def __init__(self, index: int) -> None:
        self.index = index


class _Trace:
    """A compiled call for arguments of one structure, with the same constants and tensors of the same shapes.

    `function`: The function. `arguments`: Its arguments, with slots for tensors. `jit`: Whether XLA compiles it; None
    for the backend's choice. `settings`: The settings that it is traced under. `layers`: The layers that it refers to.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Tree, jit: bool | None, settings: Hashable, layers: Iterable[Any]
    ) -> None:
        self._function, self._arguments, self._results = function, arguments, None
        self._in_place: list[int] = []
        self._compiled = backend.compile_once(self.run, jit=jit)
        self._settings = settings
        self.uncompilable: list[Reason] = []
        self.state = TraceState(layers, modes=True)

    def matches(self, settings: Hashable) -> bool:
        """Whether tracing again under these settings would give the same."""
        return self._settings == settings and self.state.is_valid()

    def __call__(self, tensors: list[BackendTensor]) -> tuple[Tree, dict[int, BackendTensor]]:
        """Return the results, and what was written in place, by the number of the input."""
        try:
            outputs = self._compiled(*tensors)  # The first call traces, which sets `_results`.
        except Exception as error:
            reason = reason_of(error)
            if reason is not None:
                self.uncompilable.append(reason)
            raise
        in_place = outputs[len(outputs) - len(self._in_place) :]
        return _combine(self._results, outputs), dict(zip(self._in_place, in_place, strict=True))

    def run(self, *tensors: BackendTensor) -> tuple[BackendTensor, ...]:
        """Call the function, as it is traced."""
        args, kwargs = boundary.to_inputs(_combine(self._arguments, tensors))
        token = reasons.set(self.uncompilable)
        try:
            with boundary.compiling(), boundary.in_mode("tensors"), self.state.tracing():
                results = boundary.to_backend_tensors(self._function(*args, **kwargs))
                in_place = boundary.to_backend_tensors(boundary.inputs_in_place((args, kwargs)))
        finally:
            reasons.reset(token)
        self._results, outputs = _partition(results, _as_result)
        self._in_place = [*in_place]
        return (*outputs, *in_place.values())


def trace_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Trace a call without running it, so that it raises what the function refuses of such arguments."""
    arguments, tensors = _partition(boundary.to_backend_tensors((args, kwargs)), _as_argument)
    trace = _Trace(backend.with_branches(function), arguments, False, (), ())
    with execution.using(graph_mode=True):
        compiled = backend.compile_function(trace.run, choice=backend.JitChoice(False, "a trace"))
        backend.call_with_branches(functools.partial(backend.trace_for, compiled), *tensors)


class Jitted:
    """A compiled function, as `jit` returns it.

    `function`: A function, method or Cell. `xla`: Whether XLA compiles it; None for the backend's choice.
    """

    def __init__(self, function: Callable[..., Any], xla: bool | None = None) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function, self._xla = function, xla
        self._rewritten = backend.with_branches(function)
        self._traces: dict[Hashable, list[_Trace]] = {}
        self._uncompilable: list[Reason] = []

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'.")
        return getattr(self._function, name)

    def __repr__(self) -> str:
        return f"jit({self._function!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        returns_tensors = boundary.wants_tensors(args, kwargs)
        if backend.is_tracing() or trial() is not None:  # A compiled call would keep the trial's values.
            return boundary.run_users(self._rewritten, args, kwargs)
        if self._uncompilable:
            return boundary.run_users(self._function, args, kwargs, as_compiled=True)
        if not self._traces and sets_attributes(self._function, args, kwargs):
            self._uncompilable.append(SETS_ATTRIBUTES)
            return self._call_uncompiled(args, kwargs)
        try:
            results, in_place = self._call_compiled(*boundary.to_backend_tensors((args, kwargs)))
        except Exception:
            if not self._uncompilable:
                raise
            return self._call_uncompiled(args, kwargs)
        boundary.store_in_place((args, kwargs), in_place)
        return boundary.to_tensors(results) if returns_tensors else results

    def _call_compiled(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Tree, dict[int, BackendTensor]]:
        leaves = keras.tree.flatten((args, kwargs))
        if any(isinstance(leaf, keras.KerasTensor) for leaf in leaves):
            return self._rewritten(*args, **kwargs), {}
        arguments, tensors = _partition((args, kwargs), _as_argument)
        constants = [leaf for leaf in keras.tree.flatten(arguments) if not isinstance(leaf, _Slot)]
        key = (
            _structure_key((args, kwargs)),
            tuple(map(_constant_key, constants)),
            tuple((tuple(value.shape), value.dtype) for value in tensors),
        )
        settings = autocast_in_force(), parameter_read_dtype(), execution.current.jit_level
        traces = self._traces.get(key, [])
        trace = next((trace for trace in traces if trace.matches(settings)), None)
        if trace is None:
            layers = referenced_layers([self._function, *constants])
            trace = _Trace(self._rewritten, arguments, self._xla, settings, layers)
            # Changes of a layer's mode or plan may be undone, so that a trace matches again; other changes are final.
            self._traces[key] = [*(other for other in traces if other.state.may_be_valid_again()), trace]
        try:
            return trace(tensors)
        finally:
            self._uncompilable = trace.uncompilable

    def _call_uncompiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function uncompiled and warn why."""
        problem, advice = self._uncompilable[0]
        name = getattr(self._function, "__name__", "the function")
        warnings.warn(f"jit: {name} {problem}, so it runs uncompiled. {advice}", stacklevel=3)
        return boundary.run_users(self._function, args, kwargs, as_compiled=True)


def _as_argument(value: Any) -> BackendTensor | None:
    """Return the tensor that an argument is traced as; None for a constant."""
    if isinstance(value, np.ndarray):
        return backend.to_tensor(value)
    return value if backend.is_tensor(value) or backend.is_sparse(value) else None


def _as_result(value: Any) -> BackendTensor | None:
    """Return the tensor that a result is returned as; None for a constant."""
    # A number may differ between the branches of a condition on tensors.
    varies = isinstance(value, (bool, int, float)) and backend.tensor_decided()
    return backend.to_tensor(value) if varies or isinstance(value, keras.Variable) else _as_argument(value)


def _partition(values: Tree, tensor_of: Callable[[Any], BackendTensor | None]) -> tuple[Tree, list[BackendTensor]]:
    """Split a structure into itself with a slot for each tensor, and the tensors."""
    tensors: list[BackendTensor] = []

    def to_slot(value: Any) -> Any:
        tensor = tensor_of(value)
        if tensor is None:
            return value
        tensors.append(tensor)
        return _Slot(len(tensors) - 1)

    return keras.tree.map_structure(to_slot, values), tensors


def _combine(structure: Tree, tensors: Sequence[BackendTensor]) -> Tree:
    """Fill the slots of a structure with tensors."""
    return keras.tree.map_structure(lambda leaf: tensors[leaf.index] if isinstance(leaf, _Slot) else leaf, structure)


def _structure_key(value: Any) -> Hashable:
    """Return a hashable description of nested tuples, lists and dicts."""
    if isinstance(value, dict):
        return type(value), tuple((key, _structure_key(item)) for key, item in sorted(value.items(), key=repr))
    if isinstance(value, (tuple, list)):
        return type(value), tuple(map(_structure_key, value))
    return None


def _constant_key(value: Any) -> Hashable:
    """Return a hashable key of a constant, which includes the type, because 1, 1.0 and True are equal."""
    if isinstance(value, (float, np.floating)) and value == 0:
        return type(value), value, math.copysign(1.0, value)  # 0.0 and -0.0 are equal too.
    return (type(value), value) if isinstance(value, _COMPARED_BY_VALUE) else (type(value), id(value))


def jit(
    function: Callable[..., Any] | None = None, *, capture_mode: str = "ast", jit_level: JitLevel = "O0",
    dynamic: int = 0, fullgraph: bool = False, backend: str = "", **options: Any,
) -> Any:
    """Compile a function, method or Cell; usable as a decorator, with or without arguments.

    Tensors and NumPy arrays among the arguments are traced: new shapes and dtypes recompile, new values do not. Every
    other argument is a constant, and another constant recompiles. ``if``, ``while`` and ``for`` of the function itself
    may depend on tensors. Parameters may be assigned; a function that sets attributes of other objects than Cells runs
    uncompiled. Other side effects (appending to a list, printing) happen at compilation only.

    Args:
        function: A function, a method, a Cell, or your class of Cells, whose `construct` is compiled.
        capture_mode: "ast", "bytecode" or "trace"; all the same here.
        jit_level: "O1" and "O2" compile with XLA; "O0" leaves it to the backend and `set_context(jit_level=...)`.
        dynamic: 0 or 1; accepted for MindSpore scripts.
        fullgraph: Accepted for MindSpore scripts; there is always one graph.
        backend: "", "ms_backend" or "GE"; accepted for MindSpore scripts.
        options: Further options of MindSpore's, accepted without effect.

    Returns:
        The compiled function; without `function`, a decorator.

    Raises:
        TypeError: `function` is not a function, method or Cell, or an option has the wrong type.
        ValueError: An option has an unknown value.

    Example:
        >>> import mixtrain
        >>> @mixtrain.jit
        ... def larger(x, y):
        ...     if x > y:
        ...         return x
        ...     return y
        >>> float(larger(mixtrain.Tensor(2.0), mixtrain.Tensor(3.0)))
        3.0
    """
    checks.one_of("jit", "capture_mode", capture_mode, ("ast", "bytecode", "trace"))
    checks.one_of("jit", "jit_level", jit_level, ("O0", "O1", "O2"))
    checks.one_of("jit", "backend", backend, ("", "ms_backend", "GE"))
    checks.one_of("jit", "dynamic", dynamic, (0, 1))
    checks.boolean("jit", "fullgraph", fullgraph)
    function = options.pop("fn", function)
    xla = None if jit_level == "O0" else True
    if function is None:
        return lambda decorated: _jitted(decorated, xla)
    return _jitted(function, xla)


def _jitted(function: Any, xla: bool | None) -> Any:
    if isinstance(function, Jitted):
        return function
    # A class of the user's; those of this package stay as they are for other users of theirs.
    if isinstance(function, type) and "construct" in vars(function) and not function.__module__.startswith("mixtrain."):
        function.construct = _jitted(function.construct, xla)  # type: ignore[attr-defined]
        return function
    if not callable(function) or isinstance(function, type):
        raise checks.fail_type("jit", "function must be a function, a method or a Cell", function, "@mixtrain.jit")
    return Jitted(function, xla)


def ms_function(
    fn: Callable[..., Any] | None = None, input_signature: Any = None, hash_args: Any = None, jit_config: Any = None
) -> Any:
    """Alias of `jit`, from MindSpore 1.

    Args:
        fn: A function, a method or a Cell.
        input_signature: Accepted for MindSpore scripts; each new shape is compiled.
        hash_args: Accepted for MindSpore scripts.
        jit_config: Accepted for MindSpore scripts.

    Returns:
        The compiled function; without `fn`, a decorator.

    Example:
        >>> import mixtrain
        >>> float(mixtrain.ms_function(lambda x: x * 2)(mixtrain.Tensor(2.0)))
        4.0

    Source: MindSpore 1, `mindspore.ms_function`.
    """
    return jit(fn)
