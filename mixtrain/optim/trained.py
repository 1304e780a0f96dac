"""`TrainedParameters`: the parameters of an optimizer, checked and uniquely named, and their slots."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import keras

from mixtrain import checks
from mixtrain.common.initializer import InitializerLike, initializer
from mixtrain.common.parameter import Parameter, ParameterTuple
from mixtrain.dtype import DType, as_dtype, float32, is_float, wider
from mixtrain.network.unique_names import unique_names
from mixtrain.typing import Variable


class TrainedParameters(ParameterTuple):
    """A tuple of distinct, uniquely named Parameters and Keras variables.

    Attributes:
        names: Name of each: that of a Parameter, the path of a Keras variable with dots for slashes.
    """

    names: tuple[str, ...]

    @classmethod
    def checked(cls, where: str, parameters: Sequence[Variable]) -> TrainedParameters:
        """Validate `parameters` and return them as a tuple.

        Raises: ValueError: One is listed twice, two Parameters have the same name, a trainable one is not
            floating-point, or none is trainable.
        """
        for parameter in parameters:
            if not isinstance(parameter, keras.Variable):
                raise checks.fail_type(
                    where, "each parameter must be a Parameter or keras.Variable", parameter,
                    "params=network.trainable_params()",
                )
        _check_parameters(where, parameters)
        if not any(parameter.trainable for parameter in parameters):
            raise checks.fail_value(
                where, "some parameter must require a gradient", [parameter.name for parameter in parameters],
                "parameter.requires_grad = True for those to train",
            )
        trained = cls(parameters)
        trained.names = _unique_names(parameters)
        return trained

    def clone(self, prefix: str, init: InitializerLike = "same") -> ParameterTuple:
        """Create one slot per parameter, named ``prefix.<name>``, that requires no gradient.

        Slots are at least float32, so that the state of a half-precision parameter keeps full precision.

        Args:
            prefix: Prefix of the names.
            init: "same" copies the values; otherwise what `initializer` accepts ("zeros", a number, ...).
        """
        slots = []
        for name, parameter in zip(self.names, self, strict=True):
            dtype = working_dtype(parameter)
            if isinstance(init, str) and init == "same":
                value = keras.ops.cast(keras.ops.copy(parameter.value), dtype)
            else:
                value = initializer(init, tuple(parameter.shape), dtype)
            slots.append(Parameter(value, f"{prefix}.{name}", requires_grad=False))
        return ParameterTuple(slots)


def working_dtype(parameter: Variable) -> DType:
    """Return the dtype that updates of a parameter are computed in: its own, but at least float32."""
    dtype = as_dtype(getattr(parameter, "stored_dtype", parameter.dtype))
    return wider(dtype, float32) if is_float(dtype) else float32


def _check_parameters(where: str, parameters: Sequence[Variable]) -> None:
    seen: set[int] = set()
    names: set[str] = set()
    for parameter in parameters:
        if id(parameter) in seen:
            raise checks.fail_value(
                where, "each parameter must be listed once", parameter.name, "each parameter in one place"
            )
        seen.add(id(parameter))
        if isinstance(parameter, Parameter) and parameter.named:
            if parameter.name in names:
                raise checks.fail_value(
                    where, "two parameters must not share a name", parameter.name,
                    "the networks as attributes of one Cell, whose attribute names tell their parameters apart",
                )
            names.add(parameter.name)
        if parameter.trainable and not is_float(getattr(parameter, "stored_dtype", parameter.dtype)):
            raise checks.fail_value(
                where, f"{parameter.name} must hold floats", parameter.dtype.name, "requires_grad=False for it"
            )


def _unique_names(parameters: Sequence[Variable]) -> tuple[str, ...]:
    names: list[str] = []
    for parameter in parameters:
        if isinstance(parameter, Parameter) and not parameter.named:
            parameter.name = next(f"Parameter${n}" for n in itertools.count(1) if f"Parameter${n}" not in names)
        names.append(parameter.name if isinstance(parameter, Parameter) else parameter.path.replace("/", "."))
    return tuple(unique_names(names))
