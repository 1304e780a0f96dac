"""`autocast`: inside it, each operator computes in the format that suits it; and the table that says which."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import keras

from mixtrain import checks, ops
from mixtrain.autocast.operator_lists import OPERATOR_CLASSES, TABLE, OperatorClass, normal, rows
from mixtrain.autocast.scope.interposition import INTERPOSITION
from mixtrain.autocast.state import Autocast, autocast_in_force, enter_autocast, leave_autocast
from mixtrain.cell.cell import Cell
from mixtrain.dtype import HALF_DTYPES, DType, as_dtype, float16

_SHOWN: Final[dict[OperatorClass, str]] = {
    "half": "computes in half", "float32": "computes in float32",
    "promote": "computes in the widest format among its arguments", "inputs": "computes in what it is given",
}


class autocast:
    """Let each operator inside compute in the format that suits it: a context manager and a decorator.

    Matrix products and convolutions take their float arguments in half; exponentials, logarithms, softmax, norms, sums,
    means and losses in float32; what brings tensors together promotes to the widest; everything else computes in what
    it is given (`list_operators` shows the table). Integers and bools are never cast, float64 is never narrowed.
    Parameters stay float32, and so do their gradients. It holds for `mixtrain.ops`, plain operators, cells, Keras
    layers and `keras.ops`, in this thread only, and may be nested: the innermost counts.

    A `to_float` rule beats the plan of a network (O1 to O3), which beats autocast for the layers it has rules for;
    autocast decides for all else, also for operators between the layers of a planned network.

    What is traced keeps the casts of its trace: write ``with autocast():`` inside a `tf.function`. Functions that
    `mixtrain.jit` and `Model` compile are recompiled under another autocast.

    Args:
        dtype: float16 or bfloat16.
        enabled: False computes in the formats of the inputs until the end; you cast where formats must meet.
        half: Names of operators that compute in half here, whatever the table says.
        float32: Names of operators that compute in float32.
        promote: Names of operators that promote.
        inputs: Names of operators that compute in what they are given.

    Raises:
        TypeError: An argument has the wrong type; a generator is decorated.
        ValueError: Another `dtype`, an unknown name, or a name in two lists.

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
        self,
        dtype: DType | str = float16,
        enabled: bool = True,
        *,
        half: Sequence[str] = (),
        float32: Sequence[str] = (),
        promote: Sequence[str] = (),
        inputs: Sequence[str] = (),
    ) -> None:
        format_ = _half_format(dtype)
        checks.boolean("autocast", "enabled", enabled)
        own = _own_rows({"half": half, "float32": float32, "promote": promote, "inputs": inputs})
        self.dtype, self.enabled = format_, enabled
        self._names = tuple(name for name, _ in own)
        own_rows = tuple(sorted((normal(name), kind) for name, kind in own))
        self._state = Autocast(format_, own_rows) if enabled else None

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
        """Return a function or method that always runs inside.

        Args:
            func: The function.

        Raises:
            TypeError: It is no function, or one whose body runs after its call has returned.
        """
        if not callable(func) or isinstance(func, type):
            raise checks.fail_type("autocast", "what is decorated must be a function", func, "@amp.autocast()")
        if inspect.isgeneratorfunction(func) or inspect.iscoroutinefunction(func):
            raise checks.fail_type(
                "autocast", "what is decorated must run to its end when it is called", func,
                "with amp.autocast(): inside the function",
            )
        return _inside(self, func)

    def __repr__(self) -> str:
        return f"autocast(dtype={self.dtype.name}, enabled={self.enabled})"


def _inside(scope: autocast, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with scope:
            return function(*args, **kwargs)

    return call


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
    """Names of operators and their classes; ``print`` shows it, and any spelling of a name finds its row.

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
            lines.append(f"{kind}: {_SHOWN[kind]}")
            lines.extend(_wrapped([name for name, found in self._table.items() if found == kind]))
        return "\n".join(lines)


def list_operators() -> OperatorTable:
    """Return which operators compute in half, which in float32, which promote, and which take what they are given.

    Returns:
        A mapping from names to "half", "float32", "promote" or "inputs", which prints as a table; inside an `autocast`
        with lists of its own, with those. An operator without a row computes in what it is given.

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


def _wrapped(names: list[str], width: int = 100) -> list[str]:
    lines, line = [], "   "
    for name in names:
        if len(line) + len(name) + 1 > width:
            lines.append(line)
            line = "   "
        line += f" {name}"
    return [*lines, line] if line.strip() else lines


def _half_format(dtype: Any) -> DType:
    try:
        found = as_dtype(dtype)
    except TypeError:
        found = dtype
    if found not in HALF_DTYPES:
        raise checks.fail_value("autocast", "dtype must be float16 or bfloat16", dtype, "autocast(mixtrain.float16)")
    return as_dtype(found)


def _own_rows(lists: dict[OperatorClass, Sequence[str]]) -> list[tuple[str, OperatorClass]]:
    """Return the rows of the user's lists, checked."""
    found: dict[str, tuple[str, OperatorClass]] = {}
    for kind, names in lists.items():
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise checks.fail_type("autocast", f"{kind} must be a list of names", names, f'{kind}=["matmul"]')
        for name in names:
            _check_known(kind, name)
            before = found.setdefault(normal(name), (name, kind))
            if before[1] != kind:
                raise checks.fail_value(
                    "autocast", f"an operator must be in one list; {before[0]} is in {before[1]}",
                    f"{kind}={checks.shown(name)}", "it in one of them",
                )
    return list(found.values())


def _check_known(kind: str, name: str) -> None:
    if normal(name) in TABLE:
        return
    places = (ops, keras.ops, keras.layers, keras.activations, keras.losses)
    known = {shown for shown, _ in rows()} | {kind.__name__ for kind in _subclasses(Cell)}
    known |= {public for place in places for public in vars(place) if not public.startswith("_")}
    if normal(name) not in set(map(normal, known)):
        near = checks.nearest(name, sorted(known), count=3)
        raise checks.fail_value(
            "autocast", f"{kind} must name operators or layers", name, " or ".join(f'"{one}"' for one in near)
        )


def _subclasses(kind: type) -> Iterator[type]:
    below: list[type] = kind.__subclasses__()
    for one in below:
        yield one
        yield from _subclasses(one)
