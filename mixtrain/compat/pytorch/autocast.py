"""`autocast`, a scope in which each operator computes in a suitable dtype, and `list_operators`, its table."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import keras

from mixtrain import checks, ops
from mixtrain.autocast.operator_lists import OPERATOR_CLASSES, TABLE, OperatorClass, normal, rows
from mixtrain.autocast.state import Autocast, autocast_in_force, enter_autocast, leave_autocast
from mixtrain.cell.cell import Cell
from mixtrain.compat.pytorch.interposition import INTERPOSITION
from mixtrain.dtype import HALF_DTYPES, DType, as_dtype, float16

_HEADINGS: Final[dict[OperatorClass, str]] = {
    "half": "computes in half", "float32": "computes in float32",
    "promote": "computes in the widest format among its arguments", "inputs": "computes in what it is given",
}


class autocast:
    """Scope in which each operator computes in a suitable dtype; a context manager and a decorator.

    Matrix products and convolutions compute in half; exponentials, logarithms, softmax, norms, sums, means and losses
    in float32; operators that combine tensors in the widest dtype of these; everything else in the dtype of its inputs
    (`list_operators` shows the table). Integers and bools are never cast, and float64 is never narrowed. Parameters and
    their gradients stay float32. The scope affects `mixtrain.ops`, plain operators, cells, Keras layers and
    `keras.ops`, in this thread only. Scopes may be nested; the innermost counts.

    A `to_float` rule beats the plan of a network (O1 to O3), and a plan beats autocast for the layers that it has rules
    for. Autocast decides for everything else, including operators between the layers of a planned network.

    A traced function keeps the casts of its trace, so write ``with autocast():`` inside a `tf.function`. Functions
    compiled by `mixtrain.jit` and `Model` are recompiled under another autocast.

    Args:
        dtype: float16 or bfloat16.
        enabled: False to turn autocast off in the scope: operators compute in the dtypes of their inputs.
        half: Names of operators that compute in half in this scope, whatever the table says.
        float32: Names of operators that compute in float32.
        promote: Names of operators that promote.
        inputs: Names of operators that compute in the dtype of their inputs.

    Raises:
        TypeError: An argument has the wrong type, or a generator is decorated.
        ValueError: `dtype` is not a half dtype, or a name is unknown or in two lists.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> x = mixtrain.Tensor([[1.0, 2.0]])
        >>> with mixtrain.amp.autocast():
        ...     y = ops.matmul(x, x.T)
        ...     print(y.dtype.name, ops.exp(y).dtype.name)
        float16 float32

    Source: PyTorch, `torch.autocast`; NVIDIA apex, `opt_level="O1"`.
    """

    def __init__(
        self, dtype: DType | str = float16, enabled: bool = True, *, half: Sequence[str] = (),
        float32: Sequence[str] = (), promote: Sequence[str] = (), inputs: Sequence[str] = (),
    ) -> None:
        self.dtype = _half_dtype(dtype)
        self.enabled = checks.boolean("autocast", "enabled", enabled)
        own = _own_rows({"half": half, "float32": float32, "promote": promote, "inputs": inputs})
        self._names = tuple(name for name, _ in own)
        own_rows = tuple(sorted((normal(name), kind) for name, kind in own))
        self._state = Autocast(self.dtype, own_rows) if enabled else None

    def __enter__(self) -> autocast:
        if self._state is not None:
            INTERPOSITION.enter(self._names)
        enter_autocast(self._state)
        return self

    def __exit__(self, *error: object) -> None:
        leave_autocast()
        if self._state is not None:
            INTERPOSITION.leave()

    def __call__(self, func: Any) -> Any:
        """Decorate a function or method so that it runs in this scope.

        `func`: The function.

        Raises: TypeError if `func` is not a function, or its body runs after the call has returned.
        """
        if not callable(func) or isinstance(func, type):
            raise checks.fail_type("autocast", "what is decorated must be a function", func, "@amp.autocast()")
        if inspect.isgeneratorfunction(func) or inspect.iscoroutinefunction(func):
            raise checks.fail_type(
                "autocast", "what is decorated must run to its end when it is called", func,
                "with amp.autocast(): inside the function",
            )

        @functools.wraps(func)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return call

    def __repr__(self) -> str:
        return f"autocast(dtype={self.dtype.name}, enabled={self.enabled})"


def is_autocast_enabled() -> bool:
    """Whether an `autocast` is in force here.

    Example:
        >>> import mixtrain
        >>> with mixtrain.amp.autocast():
        ...     mixtrain.amp.is_autocast_enabled()
        True

    Source: PyTorch, `torch.is_autocast_enabled`.
    """
    return autocast_in_force() is not None


class OperatorTable(Mapping[str, OperatorClass]):
    """Mapping from operator names, in any spelling, to their classes; prints as a table.

    Args:
        table: Names and classes.
    """

    def __init__(self, table: Mapping[str, OperatorClass]) -> None:
        self._table = dict(table)
        self._by_spelling = {normal(name): kind for name, kind in self._table.items()}

    def __getitem__(self, name: str) -> OperatorClass:
        return self._by_spelling[normal(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __str__(self) -> str:
        lines = []
        for kind in OPERATOR_CLASSES:
            lines.append(f"{kind}: {_HEADINGS[kind]}")
            names = " ".join(name for name, its_kind in self._table.items() if its_kind == kind)
            lines.extend(textwrap.wrap(names, width=100, initial_indent="    ", subsequent_indent="    "))
        return "\n".join(lines)


def list_operators() -> OperatorTable:
    """Return the table of operators: which compute in half or float32, which promote, which follow their inputs.

    Returns:
        A mapping from names to "half", "float32", "promote" or "inputs", which prints as a table. Inside an `autocast`
        it includes the lists of that scope. An operator without a row computes in the dtype of its inputs.

    Example:
        >>> import mixtrain
        >>> table = mixtrain.amp.list_operators()
        >>> table["matmul"], table["softmax"], table["concat"], table["relu"]
        ('half', 'float32', 'promote', 'inputs')
    """
    state = autocast_in_force()
    table: dict[str, OperatorClass] = dict(rows())
    if state is not None:
        own = dict(state.own_rows)
        table = {name: own.pop(normal(name), kind) for name, kind in table.items()} | own
    return OperatorTable(table)


def _half_dtype(dtype: Any) -> DType:
    try:
        half = as_dtype(dtype)
    except TypeError:
        half = None
    if half not in HALF_DTYPES:
        raise checks.fail_value("autocast", "dtype must be float16 or bfloat16", dtype, "autocast(mixtrain.float16)")
    return half


def _own_rows(lists: dict[OperatorClass, Sequence[str]]) -> list[tuple[str, OperatorClass]]:
    """Check the user's lists, and return their rows."""
    own: dict[str, tuple[str, OperatorClass]] = {}
    for kind, names in lists.items():
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise checks.fail_type("autocast", f"{kind} must be a list of names", names, f'{kind}=["matmul"]')
        for name in names:
            _check_known(kind, name)
            first_name, first_kind = own.setdefault(normal(name), (name, kind))
            if first_kind != kind:
                raise checks.fail_value(
                    "autocast", f"an operator must be in one list; {first_name} is in {first_kind}",
                    f"{kind}={checks.short_repr(name)}", "it in one of them",
                )
    return list(own.values())


def _check_known(kind: str, name: str) -> None:
    """Raise if a name in a user's list is not that of an operator or layer."""
    if normal(name) in TABLE:
        return
    modules = (ops, keras.ops, keras.layers, keras.activations, keras.losses)
    known = {row for row, _ in rows()} | {cell.__name__ for cell in _subclasses(Cell)}
    known |= {public for module in modules for public in vars(module) if not public.startswith("_")}
    if normal(name) not in set(map(normal, known)):
        nearest = checks.nearest(name, sorted(known), count=3)
        raise checks.fail_value(
            "autocast", f"{kind} must name operators or layers", name, " or ".join(f'"{other}"' for other in nearest)
        )


def _subclasses(kind: type) -> Iterator[type]:
    """Yield all subclasses of a class, direct or not."""
    subclasses: list[type] = kind.__subclasses__()
    for subclass in subclasses:
        yield subclass
        yield from _subclasses(subclass)
