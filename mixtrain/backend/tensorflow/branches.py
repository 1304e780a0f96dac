"""Tensors that decide an ``if`` or ``while`` of a compiled call: AutoGraph rewrites their functions."""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import functools
import inspect
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from mixtrain.backend.tensor_base import TensorBase, backend_value, public_tensor
from mixtrain.backend.tensorflow.autograph_source import prepared, with_code
from mixtrain.backend.tensorflow.graph_writes import TraceAgain
from mixtrain.backend.user_code import UndecidedBranch, users_code

# Rewriting everything would slow down compilation and change tracebacks, so only functions in which a tensor decided a
# branch are rewritten: those in `_needed`.
_needed: set[types.CodeType] = set()


def with_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(function, types.MethodType):
        return types.MethodType(with_branches(function.__func__), function.__self__)
    if not isinstance(function, types.FunctionType) or inspect.isgeneratorfunction(function):
        return function
    code = function.__code__
    if code not in _rewritten:
        _rewritten[code] = _rewriting(function)
    rewriting = _rewritten[code]
    return function if rewriting is None else rewriting.of(function)


@dataclasses.dataclass(frozen=True)
class _Rewriting:
    """Code that AutoGraph generated for a function; it has no reference to the function, which may hold a network."""

    code: types.CodeType
    cells: Mapping[str, types.CellType]  # Those that AutoGraph adds to the function's own, by name.
    notes: Mapping[str, Any]  # Attributes by which AutoGraph maps errors to the original lines.

    def of(self, function: types.FunctionType) -> Callable[..., Any]:
        """Return the rewritten version of a function that has the original code."""
        cells = {**dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)), **self.cells}
        closure = tuple(cells[name] for name in self.code.co_freevars)
        result = with_code(function, self.code, closure)
        vars(result).update(self.notes)
        return result


# By code, not by function: a closure made for each network would keep that network alive.
_rewritten: weakref.WeakKeyDictionary[types.CodeType, _Rewriting | None] = weakref.WeakKeyDictionary()


def _rewriting(function: types.FunctionType) -> _Rewriting | None:
    """Rewrite a function; return None where that is impossible.

    The generated code has AutoGraph's operators in its closure, under the private name "ag__";
    tests/backend/test_branches.py fails if it changes.
    """
    try:
        with warnings.catch_warnings():
            # On Python 3.13 AutoGraph's annotated syntax trees cause this warning, which may be an error here.
            warnings.simplefilter("ignore", DeprecationWarning)
            converted = tf.autograph.to_graph(prepared(function), recursive=False)
    except Exception:  # AutoGraph's own errors have no public class.
        return None
    added = {
        name: types.CellType(_Operators(cell.cell_contents)) if name == "ag__" else cell
        for name, cell in zip(converted.__code__.co_freevars, converted.__closure__ or (), strict=True)
        if name not in function.__code__.co_freevars
    }
    own = vars(function)
    notes = {name: note for name, note in vars(converted).items() if name not in own}
    return _Rewriting(converted.__code__, added, notes)


class _Failed(threading.local):
    """Whether code of the user's raised while one way of a branch that a tensor decides was traced."""

    path = False


_failed = _Failed()


class _Operators:
    """AutoGraph's operators, of its own module, for code with mixtrain's Tensors, which they unwrap and wrap."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def if_stmt(
        self, cond: Any, body: Any, orelse: Any, get_state: Any, set_state: Any, names: Any, count: int
    ) -> None:
        """Run an ``if``."""
        get_state, set_state, names, written = _with_written([body, orelse], get_state, set_state, names)
        cond = _truth(cond)
        if tf.is_tensor(cond):
            body, orelse = _on_a_path(body), _on_a_path(orelse)
        with _joining():
            self._own.if_stmt(cond, body, orelse, get_state, set_state, names, count + written)

    def while_stmt(self, test: Any, body: Any, get_state: Any, set_state: Any, names: Any, options: Any) -> None:
        """Run a ``while``."""
        get_state, set_state, names, _ = _with_written([body], get_state, set_state, names)
        self._own.while_stmt(lambda: _truth(test(), folded=False), body, get_state, set_state, names, options)

    def for_stmt(
        self, iter_: Any, extra_test: Any, body: Any, get_state: Any, set_state: Any, names: Any, options: Any
    ) -> None:
        """Run a ``for``; over the rows of a Tensor or a range it is unrolled, unless a tensor may end it early."""
        test = None if extra_test is None else lambda: _truth(extra_test(), folded=False)
        get_state, set_state, names, _ = _with_written([body], get_state, set_state, names)

        def run(rows: Any) -> None:
            self._own.for_stmt(rows, test, lambda row: body(_public(row)), get_state, set_state, names, options)

        if test is None:
            run(iter_)
        elif not isinstance(iter_, range):
            run(_value(iter_))
        else:
            initial = get_state()
            try:
                run(iter_)
            except NotImplementedError:  # A tensor decides when the loop ends, so AutoGraph cannot unroll it.
                set_state(initial)
                run(tf.range(iter_.start, iter_.stop, iter_.step))

    def if_exp(self, cond: Any, if_true: Any, if_false: Any, *rest: Any) -> Any:
        """Return the value of ``a if cond else b``."""
        cond = _truth(cond)
        if not tf.is_tensor(cond):
            return self._own.if_exp(cond, if_true, if_false, *rest)
        with _joining():
            return _public(self._own.if_exp(cond, _on_a_path(_read(if_true)), _on_a_path(_read(if_false)), *rest))

    def and_(self, a: Any, b: Any) -> Any:
        """Return ``a and b``."""
        first = a()
        return self.if_exp(first, b, lambda: first, "a and b")

    def or_(self, a: Any, b: Any) -> Any:
        """Return ``a or b``."""
        first = a()
        return self.if_exp(first, lambda: first, b, "a or b")

    def not_(self, a: Any) -> Any:
        """Return ``not a``."""
        return _public(self._own.not_(_truth(a)))

    def assert_stmt(self, expression1: Any, expression2: Any) -> Any:
        """Run an ``assert``."""
        return self._own.assert_stmt(_truth(expression1), expression2)

    def converted_call(self, f: Any, args: Any, *rest: Any) -> Any:
        """Call a function; `range`, `int` and `float` get backend tensors, which AutoGraph converts."""
        if f in (range, int, float) and args:
            return self._own.converted_call(f, tuple(map(_value, args)), *rest)
        return self._own.converted_call(_branching_call(f), args, *rest)


def _truth(value: Any, *, folded: bool = True) -> Any:
    """Return what a value decides: a boolean tensor without axes for a tensor, or a bool where it is `folded`."""
    tensor = _value(value)
    if not isinstance(value, TensorBase) or not tf.is_tensor(tensor):
        return tensor
    if tensor.shape.num_elements() not in (None, 1):
        bool(value)  # Which raises.
    constant = tf.get_static_value(tensor) if folded else None
    return tf.cast(tf.reshape(tensor, ()), "bool") if constant is None else bool(constant)


@contextlib.contextmanager
def _joining() -> Iterator[None]:
    """Say what is wrong with the values of an ``if`` that TensorFlow cannot join."""
    try:
        yield
    except TypeError as error:
        if _failed.path or isinstance(error, tf.errors.OperatorNotAllowedInGraphError):
            raise
        raise TypeError(
            "a compiled call: Cannot join the return values of different branches: expected both branches of an if "
            f"that a tensor decides to give values of the same dtypes and structure; got {str(error).rstrip('.')}. "
            "Write ops.cast in one of them."
        ) from error


def _with_written(
    bodies: list[Any], get: Callable[[], Any], set_: Callable[[Any], None], names: tuple[str, ...]
) -> tuple[Callable[[], Any], Callable[[Any], None], tuple[str, ...], int]:
    """Return the state of a branch or loop, in backend tensors, with the Tensors that its bodies write in place.

    Those come first; the last value is their number. AutoGraph's own state has the variables that are assigned.
    """
    around = {
        name: cell.cell_contents for body in bodies if _writes_in_place(body.__code__)
        for name, cell in zip(body.__code__.co_freevars, body.__closure__ or (), strict=True)
        if name not in names and cell != types.CellType()  # Which is empty.
    }
    tensors = ((name, value) for name, value in around.items() if isinstance(value, TensorBase))
    written: dict[str, Any] = {name: value for name, value in tensors if not isinstance(value, keras.Variable)}

    def read() -> tuple[Any, ...]:
        return _value((*written.values(), *get()))  # type: ignore[no-any-return]

    def write(values: Any) -> None:
        for tensor, value in zip(written.values(), values, strict=False):
            tensor.content = value
        set_(_public(values[len(written) :]))

    return read, write, (*written, *names), len(written)


@functools.cache
def _writes_in_place(code: types.CodeType) -> bool:
    """Whether code, or that of a function in it, sets items or calls methods as ``x.add_``."""
    names = (name == "__setitem__" or name.endswith("_") and not name.endswith("__") for name in code.co_names)
    inner = (_writes_in_place(value) for value in code.co_consts if isinstance(value, types.CodeType))
    return any(names) or any(each.opname == "STORE_SUBSCR" for each in dis.get_instructions(code)) or any(inner)


def _on_a_path(branch: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        try:
            return branch()
        except (TraceAgain, tf.errors.OperatorNotAllowedInGraphError):
            raise  # After which the call is traced again.
        except Exception:
            _failed.path = True
            raise

    return run


def failed_on_a_path(error: BaseException) -> bool:
    failed, _failed.path = _failed.path, False
    return failed


def _branching_call(function: Any) -> Any:
    """Return a callable of the user's, rewritten if a tensor decided a branch in it."""
    if isinstance(function, types.FunctionType):
        return with_branches(function) if function.__code__ in _needed else function
    if isinstance(function, types.MethodType):
        return branching(function)
    call = vars(type(function)).get("__call__")
    is_needed = isinstance(call, types.FunctionType) and call.__code__ in _needed
    return branching(function.__call__) if is_needed else function


def _value(value: Any) -> Any:
    """Return a structure with backend tensors in place of public ones."""
    return tf.nest.map_structure(backend_value, value)


def _public(value: Any) -> Any:
    """Return a structure with public tensors in place of those of the backend."""
    return tf.nest.map_structure(lambda part: public_tensor(part) if tf.is_tensor(part) else part, value)


def _read(get: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: _value(get())


def branching(method: Callable[..., Any]) -> Callable[..., Any]:
    """Rewrite the method or function if a tensor decided a branch in it."""
    if not _needed or tf.executing_eagerly():
        return method
    function = getattr(method, "__func__", method)
    if not isinstance(function, types.FunctionType) or function.__code__ not in _needed:  # `jit` rewrites its own.
        return method
    return with_branches(function) if function is method else types.MethodType(with_branches(function), method.__self__)  # type: ignore[attr-defined]


def call_with_branches(compiled: Callable[..., Any], *args: Any) -> Any:
    # Where a tensor decides a branch in the user's code, that is rewritten and the call repeated. Nothing of the failed
    # call has run: it fails while it is traced. The same holds for a `TraceAgain`.
    while True:
        try:
            return compiled(*args)
        except TraceAgain:
            continue
        except tf.errors.OperatorNotAllowedInGraphError as error:
            # All callers too: only rewritten code rewrites what it calls.
            codes = users_code(error, tf.__file__)
            if _needed.issuperset(codes):
                where = codes[-1].co_qualname if codes else "a compiled call"
                raise UndecidedBranch(
                    f"{where}: expected a Python value to decide an if or while of a compiled call; got a tensor, in "
                    "code that is not rewritten. Write the branch in construct or in a function under @mixtrain.jit, "
                    "whose source can be read, or ops.select(condition, one, other), or run in PYNATIVE_MODE."
                ) from error
            _needed.update(codes)


def tensor_decided() -> bool:
    """AutoGraph has made them tensors."""
    return False
