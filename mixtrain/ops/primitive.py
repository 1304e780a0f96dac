"""`Primitive`, an operation as an object, and functions that define its subclasses as rows of a table."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from mixtrain import checks
from mixtrain.lazy_names import serve_names
from mixtrain.ops.attributes import checked
from mixtrain.ops.operator import of_this_package, primitive_call
from mixtrain.seed import drawing_as
from mixtrain.typing import Tree

_PrimitiveT = TypeVar("_PrimitiveT", bound="Primitive")
_Parameter: Final = inspect.Parameter
_EITHER: Final = _Parameter.POSITIONAL_OR_KEYWORD


class Primitive:
    """The base of operations that are objects: ``ops.Add()(x, y)`` is ``ops.add(x, y)``.

    `name` is what the representation shows; without it, the class's name. Example: ``ops.Add()`` prints as
    ``Prim[Add]``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        call = vars(cls).get("__call__")
        if call is not None and of_this_package(cls):
            cls.__call__ = primitive_call(call)  # type: ignore[method-assign]
        init = vars(cls).get("__init__")
        if init is not None and of_this_package(cls):
            cls.__init__ = checked(init)  # type: ignore[method-assign]

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not isinstance(name, str):
            raise checks.fail_type("Primitive", "name must be a str", name, 'name="Add"')
        self._name = name
        self.attrs: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The operation's name."""
        return type(self).__name__ if self._name is None else self._name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the operation; a subclass defines it."""
        raise NotImplementedError(f"{self.name}: a Primitive must define its computation. Write def __call__(self, x).")

    def add_prim_attr(self: _PrimitiveT, name: str, value: Any) -> _PrimitiveT:
        """Store a `value` as `name` in `attrs`, which does not change the computation; return the primitive."""
        self.attrs[name] = value
        return self

    def init_prim_io_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Store the names of `inputs` and `outputs` in `attrs`."""
        self.attrs.update(input_names=list(inputs), output_names=list(outputs))

    def shard(self: _PrimitiveT, in_strategy: Any = None, out_strategy: Any = None) -> _PrimitiveT:
        """Return the primitive; sharding by `in_strategy` and `out_strategy` has no effect on one device."""
        return self

    def set_device(self: _PrimitiveT, device_target: str) -> _PrimitiveT:
        """Return the primitive; the backend places operations, whatever the `device_target`."""
        return self

    def __repr__(self) -> str:
        settings = [f"{key}={value}" for key, value in vars(self).items() if key not in ("_name", "attrs")]
        settings += [f"{key}={value}" for key, value in self.attrs.items()]
        return f"Prim[{self.name}]" + (f"<{', '.join(settings)}>" if settings else "")


class PrimitiveWithCheck(Primitive):
    """The base of user-defined primitives with checks of shapes and dtypes, which are not called."""


class PrimitiveWithInfer(Primitive):
    """The base of user-defined primitives with inference of shapes and dtypes, which is not called."""


def prim_attr_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Decorate a primitive's `__init__`, `fn`, so that its arguments become attributes.

    Example:
        >>> class Power(Primitive):
        ...     @prim_attr_register
        ...     def __init__(self, exponent=2):
        ...         pass
        >>> Power(), Power(3).exponent
        (Prim[Power]<exponent=2>, 3)
    """
    signature = inspect.signature(fn)

    @functools.wraps(fn)
    def __init__(self: Primitive, *args: Any, **kwargs: Any) -> None:
        Primitive.__init__(self)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        vars(self).update(list(bound.arguments.items())[1:])
        fn(self, *args, **kwargs)

    return __init__


def prim_arg_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Decorate a primitive's `__init__`, `fn`: its arguments become attributes, as with `prim_attr_register`."""
    return prim_attr_register(fn)


def primitive(name: str, function: Callable[..., Any]) -> type[Primitive]:
    """Return the class of primitives that have no settings and compute `function`.

    Example:
        >>> primitive("Twice", lambda x: 2 * x)()(3)
        6
    """
    return _primitive_without_settings(name, function, _caller())


def primitives(**functions: Callable[..., Any]) -> list[type[Primitive]]:
    """Return the classes of several primitives without settings, in order: ``Abs, Neg = primitives(Abs=abs, Neg=neg)``.

    Example:
        >>> Twice, Half = primitives(Twice=lambda x: 2 * x, Half=lambda x: x / 2)
        >>> Twice()(3), Half()(3)
        (6, 1.5)
    """
    module = _caller()
    return [_primitive_without_settings(name, function, module) for name, function in functions.items()]


def _primitive_without_settings(name: str, function: Callable[..., Any], module: str) -> type[Primitive]:
    doc = f"{function.__doc__ or 'An operation without settings.'} Example: ``ops.{name}()(...)``."
    if _is_public(function):
        same = function.__name__
        doc = f"`{same}` as an object. Example: ``ops.{name}()(...)`` is ``ops.{same}(...)``."
    return type(name, (Primitive,), {"__call__": staticmethod(function), "__doc__": doc, "__module__": module})


def _is_public(function: Callable[..., Any]) -> bool:
    return not function.__name__.startswith("_") and "<" not in function.__qualname__  # As in "<lambda>", "<locals>".


def _caller() -> str:
    """Return the module of a row, where pickle looks for its class; as `collections.namedtuple` finds it."""
    return str(sys._getframe(2).f_globals["__name__"])


REQUIRED: Final = inspect.Parameter.empty


def argument_reader(settings: Mapping[str, Any]) -> Callable[..., dict[str, Any]]:
    """Return a function that binds arguments to `settings`, the names in order with defaults, and returns all by name.

    Example:
        >>> argument_reader({"size": REQUIRED, "step": 1})(3)
        {'size': 3, 'step': 1}
    """
    return _binder(inspect.Signature([_Parameter(key, _EITHER, default=value) for key, value in settings.items()]))


def _binder(signature: inspect.Signature) -> Callable[..., dict[str, Any]]:
    def bind(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    return bind


def configured(name: str, function: Callable[..., Any], **settings: Any) -> Any:
    """Return the class of primitives that store `settings` and compute ``function(*inputs, **settings)``.

    `settings` are the arguments of the class in order, each with its default; `REQUIRED` for none.

    Example:
        >>> Power = configured("Power", lambda x, exponent: x**exponent, exponent=2)
        >>> Power()(3), Power(3)(2)
        (9, 8)
    """
    what = f"`{function.__name__}`" if _is_public(function) else "An operation"
    fixed = ", ".join(f"`{key}`" for key in settings)
    doc = f"{what}{' with fixed ' if fixed else ''}{fixed}. Example: ``ops.{name}(...)(x)``."
    known = inspect.signature(function).parameters
    types = {key: known[key].annotation if key in known else _Parameter.empty for key in settings}
    parameters = [_Parameter(key, _EITHER, default=value, annotation=types[key]) for key, value in settings.items()]
    return _primitive_with_settings(name, function, parameters, {"__doc__": doc, "__module__": _caller()})


def as_primitive(function: Callable[..., Any]) -> Any:
    """Decorate a function of the name of a primitive, whose keyword-only arguments are the primitive's settings.

    Example:
        >>> @as_primitive
        ... def Power(x, *, exponent=2):
        ...     return x**exponent
        >>> Power(), Power(3)(2)
        (Prim[Power]<exponent=2>, 8)
    """
    parameters = [
        parameter.replace(kind=_EITHER) for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is _Parameter.KEYWORD_ONLY
    ]
    names = {"__doc__": function.__doc__, "__module__": function.__module__}
    if not parameters:
        return type(function.__name__, (Primitive,), {"__call__": staticmethod(function), **names})
    return _primitive_with_settings(function.__name__, function, parameters, names)


def _primitive_with_settings(
    name: str, function: Callable[..., Any], parameters: Sequence[inspect.Parameter], names: Mapping[str, Any]
) -> type[Primitive]:
    bind = _binder(inspect.Signature(parameters))
    settings = [parameter.name for parameter in parameters]
    seeds = [key for key in settings if key.lower() in ("seed", "seed0", "seed1", "seed2")]
    draws_by_input = not seeds and "seed" in inspect.signature(function).parameters

    def __init__(self: Primitive, *args: Any, **kwargs: Any) -> None:
        Primitive.__init__(self)
        vars(self).update(bind(*args, **kwargs))

    def __call__(self: Primitive, *inputs: Any, **named: Any) -> Tree:
        current = {key: vars(self)[key] for key in settings}
        chosen = [current[key] for key in seeds]
        if not any(chosen) and not draws_by_input:
            return function(*inputs, **current, **named)
        # As in MindSpore, two primitives of one seed draw the same numbers, whatever `set_seed` is given.
        with drawing_as(self, f"{name}{chosen}"):
            return function(*inputs, **current, **named)

    own = _Parameter("self", _EITHER)
    inputs = [one for one in inspect.signature(function).parameters.values() if one.name not in settings]
    __init__.__signature__ = inspect.Signature([own, *parameters])  # type: ignore[attr-defined]
    __call__.__signature__ = inspect.Signature([own, *inputs])  # type: ignore[attr-defined]
    return type(name, (Primitive,), {"__init__": __init__, "__call__": __call__, **names})


serve_names(__name__)
