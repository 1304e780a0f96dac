"""`Family`: distributions that are declared by the names of their parameters, and formulas that get them checked."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final

from mixtrain import checks, ops
from mixtrain.dtype import DType, as_dtype, float32
from mixtrain.nn.probability import parameters as given
from mixtrain.nn.probability.distribution.distribution import Distribution
from mixtrain.typing import Tensor, TensorLike

_EMPTY: Final = inspect.Parameter.empty


def _signature(defaults: Mapping[str, Any]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind, default=value) for name, value in defaults.items()])


def _bound(
    where: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        names = checks.join_names(signature.parameters) or "none"
        raise TypeError(f"{where}: {error}; its arguments are {names}. Write them by name.") from None
    bound.apply_defaults()
    return dict(bound.arguments)


def formula(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the method of a formula, whose arguments it checks and casts by their names.

    `dist` is the name of the family; `value` is cast to the dtype of the distribution, and arguments that end in
    ``_b``, parameters of a second distribution, to that of its parameters. `shape` becomes the shape of a sample, which
    is then cast to the dtype of the distribution. The others are the parameters: the Tensors of the call, or those of
    the construction where there is none, broadcast to one shape.
    """
    names = list(inspect.signature(compute).parameters)[1:]
    own = [name for name in names if name not in ("dist", "value", "shape") and not name.endswith("_b")]
    defaults = {"shape": ()} | dict.fromkeys(own)
    signature = _signature({name: defaults.get(name, _EMPTY) for name in names})

    @functools.wraps(compute)
    def call(self: Family, *args: Any, **kwargs: Any) -> Tensor:
        values = _bound(type(self).__name__, signature, args, kwargs)
        values |= {name: self._check_argument(name, values[name]) for name in names if name not in own}
        if own:
            parameters = self._check_param_type(*(values[name] for name in own))
            values.update(zip(own, parameters if len(own) > 1 else (parameters,), strict=True))
        if "shape" not in values:
            return compute(self, *values.values())
        values["shape"] += tuple(values[own[0]].shape) if own else self.broadcast_shape
        return ops.cast(compute(self, *values.values()), self.dtype)

    return call


class Family(Distribution):
    """The base of this package's distributions, declared by the names of their parameters and their default dtype.

    The constructor takes the parameters, Tensors, NumPy arrays, lists, numbers or None for those that each call is
    given, then `seed`, `dtype` and `name` as in `Distribution`.

    Raises:
        TypeError: `dtype` or the type of a parameter is not one of the family's, or parameters have different dtypes.
        ValueError: A parameter is out of its range, `seed` is negative, or shapes do not broadcast.
    """

    # How the attribute is called that stores a parameter; MindSpore's checkpoints have its name.
    stored_as: ClassVar[str] = "_{}"
    # What the representation calls parameters.
    labels: ClassVar[Mapping[str, str]] = MappingProxyType({})
    # What must hold for parameters, where their values are known.
    rules: ClassVar[Mapping[str, given.Rule]] = MappingProxyType({})
    dtypes: ClassVar[tuple[DType, ...]] = given.FLOATS
    # Types of numbers that MindSpore does not take for parameters.
    refused_numbers: ClassVar[tuple[type, ...]] = ()
    # The attribute with the dtype of values: `dtype`, or `parameter_type` for classes and counts.
    value_dtype: ClassVar[str] = "dtype"

    family: ClassVar[str]
    own: ClassVar[tuple[str, ...]]
    constructor: ClassVar[inspect.Signature]

    def __init_subclass__(cls, parameters: Sequence[str] = (), default: DType = float32, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if parameters:
            cls.family, cls.own = cls.__name__, tuple(parameters)
            values = dict.fromkeys((*parameters, "seed")) | {"dtype": default, "name": cls.__name__}
            cls.constructor = _signature(values)
            for name in parameters:
                if not hasattr(cls, name):  # As `mean`, which is a function.
                    setattr(cls, name, given.stored(name))
        # For `help`: a class with an `__init__` has its own.
        cls.__signature__ = None if "__init__" in vars(cls) else cls.constructor  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        param = _bound(self.family, self.constructor, args, kwargs)
        if as_dtype(param["dtype"]) not in self.dtypes:
            names = checks.join_names(self.dtypes)
            raise checks.fail_type(self.family, f"dtype must be one of {names}", param["dtype"], repr(self.dtypes[0]))
        values = {key: param[key] for key in self.own}
        for key, value in values.items():
            if isinstance(value, self.refused_numbers):
                raise checks.fail_type(self.family, f"{key} must not be a number", value, f"{key}=[{value}]")
        super().__init__(param["seed"], param["dtype"], param["name"], param | {"param_dict": values})
        self._store(**values)

    def _store(self, **values: TensorLike | None) -> None:
        """Store and check the parameters."""
        self._reset_parameters()
        for key, value in values.items():
            tensor = self._add_parameter(value, key)
            setattr(self, self.stored_as.format(key), tensor)
            if tensor is not None and key in self.rules:
                self.rules[key].check(type(self).__name__, key, tensor)

    def extend_repr(self) -> str:
        """Return the parameters if they are numbers, else their shape."""
        if not self.is_scalar_batch:
            return f"batch_shape = {self.broadcast_shape}"
        pairs = zip(self.parameter_names, self.default_parameters, strict=True)
        return ", ".join(f"{self.labels.get(name, name)} = {value}" for name, value in pairs)

    def _check_argument(self, name: str, value: Any) -> Any:
        """Check and cast an argument of a formula that is not a parameter of this distribution."""
        if name == "dist":
            return checks.one_of(type(self).__name__, name, value, (self.family,))
        if name == "shape":
            return self.checktuple(value, name)
        dtype = getattr(self, self.value_dtype) if name == "value" else self.parameter_type
        return ops.cast(self._check_value(value, name), dtype)

    def _cross_entropy(self, dist: str, *args: Any, **kwargs: Any) -> Tensor:
        divergence = self._formula_of("kl_loss")(dist, *args, **kwargs)
        # Without those of the second distribution, which come first or end in "_b".
        own = {name.removesuffix("_a"): value for name, value in kwargs.items() if not name.endswith("_b")}
        return self._formula_of("entropy")(*args[len(self.own):], **own) + divergence

    def _get_dist_args(self, *args: Tensor | None, **kwargs: Tensor | None) -> tuple[Tensor | None, ...]:
        # Calls of two families name the probability of 1 "probs1".
        named = {name if name in self.own else name.removesuffix("1"): value for name, value in kwargs.items()}
        return self._or_defaults(*_bound(self.family, _signature(dict.fromkeys(self.own)), args, named).values())

    def _get_dist_type(self) -> str:
        return self.family
