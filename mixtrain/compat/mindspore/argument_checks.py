"""MindSpore's checks of arguments, for layers and optimizers of scripts that import them from `_checkparam`."""

from __future__ import annotations

import functools
import inspect
import numbers
import operator
import re
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeVar

from mixtrain import checks
from mixtrain.lazy_names import serve_names

_ValueT = TypeVar("_ValueT")

# Comparisons of one number, and bounds of a range.
EQ, NE, LT, LE, GT, GE = "==", "!=", "<", "<=", ">", ">="
INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = "()", "[)", "(]", "[]"
IN, NOT_IN = "in", "not in"

_COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    EQ: operator.eq, NE: operator.ne, LT: operator.lt, LE: operator.le, GT: operator.gt, GE: operator.ge,
    IN: lambda value, values: value in values, NOT_IN: lambda value, values: value not in values,
}
Rel: Final = types.SimpleNamespace(
    EQ=EQ, NE=NE, LT=LT, LE=LE, GT=GT, GE=GE, INC_NEITHER=INC_NEITHER, INC_LEFT=INC_LEFT, INC_RIGHT=INC_RIGHT,
    INC_BOTH=INC_BOTH, IN=IN, NOT_IN=NOT_IN,
)


def _refuse(error: Callable[..., Exception], where: str | None, name: str | None, expected: str, got: Any) -> None:
    name = name or "the argument"
    raise error(where or "script", f"{name} must be {expected}", got, f"another value of {name}")


def check_value_type(arg_name: str, arg_value: _ValueT, valid_types: Any, prim_name: str | None = None) -> _ValueT:
    """Return a value of one of several types; a bool is an int only where bool is listed.

    Example: ``check_value_type("rate", 0.5, [float], "MyLayer")``. Raises: TypeError.
    """
    kinds = tuple(valid_types) if isinstance(valid_types, Collection) else (valid_types,)
    if not isinstance(arg_value, kinds) or (isinstance(arg_value, bool) and bool not in kinds):
        names = " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
        _refuse(checks.fail_type, prim_name, arg_name, f"of type {names}", arg_value)
    return arg_value


def check_isinstance(arg_name: str, arg_value: _ValueT, classes: Any) -> _ValueT:
    """Return an instance of a class. Example: ``check_isinstance("net", net, nn.Cell)``. Raises: TypeError."""
    return check_value_type(arg_name, arg_value, classes)


def check_bool(arg_value: bool, arg_name: str | None = None, prim_name: str | None = None) -> bool:
    """Return a bool. Example: ``check_bool(True, "training", "MyLayer")``. Raises: TypeError."""
    return check_value_type(arg_name or "the argument", arg_value, bool, prim_name)


def check_subclass(arg_name: str, type_: Any, template_types: Any, prim_name: str | None = None) -> None:
    """Check that a class, or a dtype, is one of several. Example: ``check_subclass("x", nn.ReLU, nn.Cell, "MyLayer")``.

    Raises: TypeError.
    """
    kinds = tuple(template_types) if isinstance(template_types, (tuple, list)) else (template_types,)
    if not any(type_ == kind or (isinstance(type_, type) and isinstance(kind, type) and issubclass(type_, kind))
               for kind in kinds):
        _refuse(checks.fail_type, prim_name, arg_name, f"a subclass of {', '.join(map(str, kinds))}", type_)


def check_type_name(arg_name: str, arg_type: Any, valid_types: Any, prim_name: str | None = None) -> Any:
    """Return a dtype that is one of several. Example: ``check_type_name("x", x.dtype, [float32], "MyLayer")``."""
    check_subclass(arg_name, arg_type, valid_types, prim_name)
    return arg_type


def check_string(arg_value: str, valid_values: Any, arg_name: str | None = None, prim_name: str | None = None) -> str:
    """Return a str that is one of several. Example: ``check_string("same", ["same", "valid"], "mode", "MyLayer")``.

    Raises: ValueError.
    """
    values = [valid_values] if isinstance(valid_values, str) else list(valid_values)
    if not isinstance(arg_value, str) or arg_value not in values:
        _refuse(checks.fail_value, prim_name, arg_name, f"one of {values}", arg_value)
    return arg_value


def _checked_number(kind: type, value: Any, name: str | None, where: str | None) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        expected = "an int" if kind in (int, numbers.Integral) else "a float" if kind is float else "a number"
        _refuse(checks.fail_type, where, name, expected, value)
    return value


def check(
    arg_name: str, arg_value: Any, value_name: str, value: Any, rel: str = EQ, prim_name: str | None = None
) -> Any:
    """Return a value that compares with another one. Example: ``check("rank", 2, "the other rank", 2, EQ, "MyLayer")``.

    Raises: ValueError.
    """
    if not _COMPARED[rel](arg_value, value):
        _refuse(checks.fail_value, prim_name, arg_name, f"{rel} {value_name}, {value}", arg_value)
    return arg_value


def _comparison(kind: type, rel: str, bound: float) -> Callable[..., Any]:
    """Return the check that a number of a kind compares with a bound."""

    def check_number(arg_value: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
        """Return a number within its bound. Raises: TypeError or ValueError."""
        _checked_number(kind, arg_value, arg_name, prim_name)
        return check(arg_name or "the argument", arg_value, "the bound", bound, rel, prim_name)

    return check_number


check_positive_int: Final = _comparison(numbers.Integral, GT, 0)
check_non_negative_int: Final = _comparison(numbers.Integral, GE, 0)
check_negative_int: Final = _comparison(numbers.Integral, LT, 0)
check_non_positive_int: Final = _comparison(numbers.Integral, LE, 0)
check_positive_float: Final = _comparison(float, GT, 0)
check_non_negative_float: Final = _comparison(float, GE, 0)
check_negative_float: Final = _comparison(float, LT, 0)
check_non_positive_float: Final = _comparison(float, LE, 0)


def check_is_int(arg_value: int, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """Return an int. Example: ``check_is_int(3, "size", "MyLayer")``. Raises: TypeError."""
    return _checked_number(numbers.Integral, arg_value, arg_name, prim_name)  # type: ignore[no-any-return]


def check_is_float(arg_value: float, arg_name: str | None = None, prim_name: str | None = None) -> float:
    """Return a float. Example: ``check_is_float(0.5, "rate", "MyLayer")``. Raises: TypeError."""
    return _checked_number(float, arg_value, arg_name, prim_name)  # type: ignore[no-any-return]


def check_int(arg_value: int, value: int, rel: str, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """Return an int that compares with another one. Example: ``check_int(3, 1, GE, "size", "MyLayer")``."""
    check_is_int(arg_value, arg_name, prim_name)
    check(arg_name or "the argument", arg_value, "the bound", value, rel, prim_name)
    return arg_value


def _in_range(kind: type) -> Callable[..., Any]:
    """Return the check that a number of a kind is in a range."""

    def check_range(
        arg_value: Any, lower_limit: float, upper_limit: float, rel: str, arg_name: str | None = None,
        prim_name: str | None = None,
    ) -> Any:
        """Return a number in a range, of which `rel` says which ends are in it. Raises: TypeError or ValueError."""
        _checked_number(kind, arg_value, arg_name, prim_name)
        above = arg_value >= lower_limit if rel[0] == "[" else arg_value > lower_limit
        below = arg_value <= upper_limit if rel[1] == "]" else arg_value < upper_limit
        if not (above and below):
            expected = f"in {rel[0]}{lower_limit}, {upper_limit}{rel[1]}"
            _refuse(checks.fail_value, prim_name, arg_name, expected, arg_value)
        return arg_value

    return check_range


check_int_range: Final = _in_range(numbers.Integral)
check_float_range: Final = _in_range(float)
check_number_range: Final = _in_range(numbers.Real)


def _expand_tuple(n_dimensions: int) -> Callable[[Any], tuple[int, ...]]:
    """Return the function that makes a tuple of so many ints of an int, or checks one: ``_expand_tuple(2)(3)``."""

    def expand(x: Any) -> tuple[int, ...]:
        """Return ints of an int or a tuple. Example: ``twice(3)`` is ``(3, 3)``. Raises: TypeError."""
        values = x if isinstance(x, tuple) else (x,) * n_dimensions
        if len(values) != n_dimensions:
            _refuse(checks.fail_type, None, None, f"an int or {n_dimensions} ints", x)
        return tuple(_checked_number(int, value, None, None) for value in values)

    return expand


once, twice, triple = map(_expand_tuple, (1, 2, 3))


def _of_each(check_one: Callable[..., Any]) -> Callable[..., Any]:
    """Return the check of each number of a sequence."""

    def check_sequence(sequence: Any, arg_name: str | None = None, prim_name: str | None = None) -> Any:
        """Return a sequence of numbers within their bound. Raises: TypeError or ValueError."""
        for index, value in enumerate(sequence):
            check_one(value, f"{arg_name or 'the argument'}[{index}]", prim_name)
        return sequence

    return check_sequence


check_positive_int_sequence: Final = _of_each(check_positive_int)
check_non_negative_int_sequence: Final = _of_each(check_non_negative_int)
check_positive_float_sequence: Final = _of_each(check_positive_float)


def check_equal_int(arg_value: int, value: int, arg_name: str | None = None, prim_name: str | None = None) -> int:
    """Return an int that equals another one. Example: ``check_equal_int(3, 3, "rank", "MyLayer")``."""
    return check_int(arg_value, value, EQ, arg_name, prim_name)


def check_float(
    arg_value: float, value: float, rel: str, arg_name: str | None = None, prim_name: str | None = None
) -> float:
    """Return a float that compares with another one. Example: ``check_float(0.5, 0.0, GE, "rate", "MyLayer")``."""
    return check(arg_name or "the argument", check_is_float(arg_value), "the bound", value, rel)  # type: ignore[no-any-return]


def check_input_format(input_param: str) -> str:
    """Return the format NCHW. Example: ``check_input_format("NCHW")``. Raises: ValueError for others."""
    return check_string(input_param, "NCHW", "the data format")


def check_str_by_regular(
    target: str, reg: str | None = None, flag: int = re.ASCII, prim_name: str | None = None
) -> bool:
    """Return True for a str that a regular expression matches, by default that of names: ``check_str_by_regular("a")``.

    Raises: ValueError.
    """
    pattern = r"^\w+[0-9a-zA-Z\_\.]*$" if reg is None else reg
    if re.match(pattern, target, flag) is None:
        _refuse(checks.fail_value, prim_name, None, f"a match of {pattern}", target)
    return True


def check_pad_value_by_mode(pad_mode: str, padding: int, prim_name: str) -> int:
    """Return a padding, which is 0 but for the mode "pad": ``check_pad_value_by_mode("pad", 1, "MyLayer")``."""
    return padding if pad_mode == "pad" else check_equal_int(padding, 0, "padding", prim_name)


def check_element_type_of_iterable(
    arg_name: str, arg_value: Any, valid_types: Sequence[type], prim_name: str | None = None
) -> None:
    """Check a list or tuple of elements of some types: ``check_element_type_of_iterable("sizes", [1], [int], "Mine")``.

    Raises: TypeError.
    """
    for value in check_value_type(arg_name, arg_value, [list, tuple], prim_name):
        check_value_type(arg_name, value, tuple(valid_types), prim_name)


def is_stub_tensor(tensor: Any) -> bool:
    """Return False: no tensor waits for its values.

    Example: ``is_stub_tensor(Tensor(1))`` is False.
    """
    return False


check_tensor_dtype_valid: Final = check_subclass


# MindSpore's name before 2.0.
Validator: Final = types.SimpleNamespace(**{name: value for name, value in globals().items() if name[:5] == "check"})


def check_types_same_and_valid(args: Mapping[str, Any], valid_values: Any, prim_name: str) -> None:
    """Check that dtypes are equal, and one of several. Example: ``check_types_same_and_valid({"x": x.dtype}, ...)``.

    Raises: TypeError.
    """
    for name, dtype in args.items():
        check_subclass(name, dtype, valid_values, prim_name)
        first = next(iter(args))
        if dtype != args[first]:
            _refuse(checks.fail_type, prim_name, name, f"{args[first]}, as {first} is", dtype)


def args_type_check(*type_args: Any, **type_kwargs: Any) -> Callable[[Callable[..., _ValueT]], Callable[..., _ValueT]]:
    """Decorate a function with a check of the types of its arguments, given in order or by name; None is always taken.

    Example: ``@args_type_check(rate=(int, float))``. Raises: TypeError, of a call.
    """

    def decorate(function: Callable[..., _ValueT]) -> Callable[..., _ValueT]:
        signature = inspect.signature(function)
        kinds = signature.bind_partial(*type_args, **type_kwargs).arguments

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> _ValueT:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                if name in kinds and value is not None and not isinstance(value, kinds[name]):
                    _refuse(checks.fail_type, function.__qualname__, name, f"of type {kinds[name]}", value)
            return function(*args, **kwargs)

        return call

    return decorate


serve_names(__name__)
