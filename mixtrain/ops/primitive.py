"""`Primitive`, an operation as an object, and functions that define its subclasses as rows of a table."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from mixtrain import checks
from mixtrain.ops.operator import of_this_package, primitive_call
from mixtrain.typing import Tree

_PrimitiveT = TypeVar("_PrimitiveT", bound="Primitive")


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
    """Decorate a primitive's `__init__`, `fn`, so that its arguments become attributes, as `prim_attr_register` does.
    """
    return prim_attr_register(fn)


def primitive(name: str, function: Callable[..., Any]) -> type[Primitive]:
    """Return the class of primitives that have no settings and compute `function`.

    Example:
        >>> primitive("Twice", lambda x: 2 * x)()(3)
        6
    """
    doc = (
        f"`{function.__name__}` as an object. Example: ``ops.{name}()(...)`` is ``ops.{function.__name__}(...)``."
    )
    body = {"__call__": staticmethod(function), "__doc__": doc, "__module__": _caller()}
    return type(name, (Primitive,), body)


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
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(key, kind, default=value) for key, value in settings.items()])

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
    bind = argument_reader(settings)

    def __init__(self: Primitive, *args: Any, **kwargs: Any) -> None:
        Primitive.__init__(self)
        vars(self).update(bind(*args, **kwargs))

    def __call__(self: Primitive, *inputs: Any, **named: Any) -> Tree:
        current = {key: vars(self)[key] for key in settings}
        return function(*inputs, **current, **named)

    doc = (
        f"An operation with fixed settings: {', '.join(f'`{key}`' for key in settings)}. "
        f"Example: ``op = ops.{name}(...)``, then ``op(x)``."
    )
    body = {"__init__": __init__, "__call__": __call__, "__doc__": doc, "__module__": _caller()}
    return type(name, (Primitive,), body)
