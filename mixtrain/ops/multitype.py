"""`MultitypeFuncGraph`: one name for several functions, chosen by the types of the arguments."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import is_any_tensor
from mixtrain.dtype import DType, as_dtype, is_float
from mixtrain.ops.inputs import tensor_dtype
from mixtrain.ops.primitive import Primitive


def _is_int(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def _is_bool(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


# The test of each type's name; `_predicate` parses "Tensor[Float32]" and "Float32".
_KINDS: Final[dict[str, Callable[[Any], bool]]] = {
    "Tensor": is_any_tensor,
    "Parameter": lambda value: isinstance(value, keras.Variable),
    "Number": lambda value: isinstance(value, numbers.Real) or _is_bool(value),
    "Bool": _is_bool,
    "Int": _is_int,
    "Float": lambda value: isinstance(value, numbers.Real) and not _is_int(value) and not _is_bool(value),
    "String": lambda value: isinstance(value, str) and not isinstance(value, DType),
    "Tuple": lambda value: isinstance(value, tuple),
    "List": lambda value: isinstance(value, list),
    "Dictionary": lambda value: isinstance(value, dict),
    "Function": lambda value: callable(value) and not is_any_tensor(value),
    "RowTensor": backend.is_sparse,
    "COOTensor": lambda value: False,
    "CSRTensor": lambda value: False,
    "MapTensor": lambda value: False,
    "Slice": lambda value: isinstance(value, slice),
    "Ellipsis": lambda value: value is Ellipsis,
    "None": lambda value: value is None,
    "TypeType": lambda value: isinstance(value, DType),
}


class MultitypeFuncGraph(Primitive):
    """A function with several definitions; a call runs the first one whose types are those of the arguments.

    `name`: its name, for errors; `read_value` is accepted: Parameters are passed as they are.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> scale = ops.MultitypeFuncGraph("scale")
        >>> @scale.register("Number", "Tensor")
        ... def scale_tensor(factor, x):
        ...     return x * factor
        >>> scale(3, mixtrain.Tensor([2.0])).numpy().tolist()
        [6.0]
    """

    def __init__(self, name: str, read_value: bool = False) -> None:
        super().__init__(name)
        checks.instance("MultitypeFuncGraph", "name", name, str, 'name="grad_scale"')
        self.read_value = checks.boolean("MultitypeFuncGraph", "read_value", read_value)
        self.entries: list[tuple[tuple[str, ...], Callable[..., Any]]] = []

    def register(self, *type_names: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator that makes a function the definition for some types, `type_names`.

        One for each argument: "Tensor", "Number", "Bool", "Int", "Float", "String", "Tuple", "List", "Function",
        "RowTensor", "Parameter", "None", "Float32", "Tensor[Float32]" and the like, or a `DType`.
        """
        for name in type_names:
            _predicate(name)

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            self.entries.append((tuple(str(name) for name in type_names), function))
            return function

        return decorate

    def __call__(self, *args: Any) -> Any:
        """Run the definition for the types of `args`."""
        args = tuple(backend.to_tensor(value) if isinstance(value, np.ndarray) else value for value in args)
        for names, function in self.entries:
            if len(names) == len(args) and all(map(_fits, names, args)):
                return backend.branching(function)(*args)
        if len(self.entries) == 1 and self._almost_matches(args):
            return backend.branching(self.entries[0][1])(*args)
        known = "; ".join(f"({', '.join(names)})" for names, _ in self.entries) or "nothing"
        got = checks.join_names(map(_kind_of, args))
        raise TypeError(
            f"MultitypeFuncGraph {self.name}: expected arguments of one of the types registered: {known}; got ({got}). "
            f"Write @{self.name}.register({checks.join_names(repr(_kind_of(value)) for value in args)}) for these."
        )

    def _almost_matches(self, args: tuple[Any, ...]) -> bool:
        """Whether the only definition matches if numbers and tensors stand for each other."""
        names = self.entries[0][0]
        numeric = ("Tensor", "Number")
        return len(names) == len(args) and all(
            _fits(name, value) or (name in numeric and _kind_of(value) in numeric)
            for name, value in zip(names, args, strict=True)
        )


def _predicate(name: Any) -> Callable[[Any], bool]:
    """Return the test of a type's name."""
    where = "MultitypeFuncGraph.register"
    if not isinstance(name, str):
        raise checks.fail_type(where, "a type must be a name", name, '"Tensor"')
    if name in _KINDS:
        return _KINDS[name]
    outer, bracket, inner = name.rstrip("]").partition("[")
    if bracket and outer in ("Tuple", "List"):
        item, kind = _predicate(inner), _KINDS[outer]
        return lambda value: kind(value) and all(map(item, value))
    try:
        dtype = as_dtype((inner if bracket else name).lower())
    except TypeError:
        checks.one_of(where, "type name", name, tuple(_KINDS))
        raise
    if bracket:
        return lambda value: is_any_tensor(value) and tensor_dtype(value) == dtype
    return _KINDS["Float"] if is_float(dtype) else _KINDS["Bool"] if dtype == "bool" else _KINDS["Int"]


def _fits(name: str, value: Any) -> bool:
    return _predicate(name)(value)


def _kind_of(value: Any) -> str:
    """Return the name of the type of a value."""
    names = ("Tensor", "Number", "String", "Tuple", "List", "Dictionary", "RowTensor", "None", "TypeType", "Function")
    return next((name for name in names if _KINDS[name](value)), type(value).__name__)
