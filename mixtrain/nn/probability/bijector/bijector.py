"""`Bijector`: invertible functions of tensors, with the logarithms of their Jacobians."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from mixtrain import checks, ops
from mixtrain.boundary import run_users
from mixtrain.cell.cell import Cell
from mixtrain.common.tensor import Tensor as MindSporeTensor
from mixtrain.dtype import DType, as_dtype, is_float
from mixtrain.nn.probability import parameters as given
from mixtrain.typing import DTypeLike, Shape, Tensor, TensorLike

_FUNCTIONS: Final = ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian")


def _function(name: str, doc: str) -> Callable[..., Any]:
    """Return the method that computes a function by its name, for users: it takes and returns Tensors."""

    def call(self: Bijector, *args: Any, **kwargs: Any) -> Any:
        return run_users(getattr(self, f"_{name}"), args, kwargs)

    call.__name__, call.__qualname__, call.__doc__ = name, f"Bijector.{name}", doc
    return call


class Bijector(Cell):
    """The base of bijectors. A subclass defines `_forward`, `_inverse` and, for densities, the two log-Jacobians.

    Called with a distribution, a bijector returns the transformed distribution; called with the name of a function, its
    value: ``bijector("forward", x)``.

    Args:
        is_constant_jacobian: Whether the Jacobian is the same everywhere.
        is_injective: Whether each value comes from one alone.
        name: Its name in errors.
        dtype: The float dtype of values and parameters; None for any, the same for all parameters.
        param: Its parameters by name in "param_dict". Usually ``dict(locals())`` with "param_dict" added. As in
            MindSpore, the value of a Parameter is read once, and not trained.

    Raises: TypeError: An argument has the wrong type.

    Example:
        >>> import mixtrain
        >>> from mixtrain.nn.probability.bijector import Bijector
        >>> class Twice(Bijector):
        ...     def __init__(self):
        ...         super().__init__(True, name="Twice", param={"param_dict": {}})
        ...     def _forward(self, x):
        ...         return 2 * x
        >>> print(Twice().forward(mixtrain.Tensor([3.0])))
        [6.]
    """

    takes_tensors = True
    # The class of a transformed distribution; its module sets it, as that uses bijectors.
    transform: ClassVar[type[Any]]
    # What must hold for parameters, where their values are known.
    rules: ClassVar[Mapping[str, given.Rule]] = {}
    _batch_shape: Shape | None = None
    _is_scalar_batch = False

    def __init__(
        self, is_constant_jacobian: bool = False, is_injective: bool = True, name: str | None = None,
        dtype: DTypeLike | None = None, param: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        where = type(self).__name__
        self._name: str = checks.instance(where, "name", name, str, 'name="Exp"')
        self._is_constant_jacobian = checks.boolean(where, "is_constant_jacobian", is_constant_jacobian)
        self._is_injective = checks.boolean(where, "is_injective", is_injective)
        self._dtype = None if dtype is None else self._check_float("dtype", as_dtype(dtype))
        param = param or {}
        self._parameters = given.arguments(param)
        self.default_parameters: list[TensorLike] = []
        self.parameter_names: list[str] = []
        self.common_dtype = self._dtype
        if "param_dict" in param:
            self._batch_shape = given.batch_shape(where, param["param_dict"])
            self._is_scalar_batch = given.are_numbers(param["param_dict"])

    def _start(self, name: str, is_constant_jacobian: bool = False, **values: TensorLike) -> None:
        """Initialize a bijector of this package with its parameters."""
        Bijector.__init__(self, is_constant_jacobian, True, name, None, {**values, "name": name, "param_dict": values})
        for key, value in values.items():
            tensor = self._add_parameter(value, key)
            setattr(self, f"_{key}", tensor)
            if key in self.rules:
                self.rules[key].check(type(self).__name__, key, tensor)

    name = given.stored("name", "The name of the bijector.")
    dtype = given.stored("dtype", "The dtype of values and parameters, None for any.")
    parameters = given.stored("parameters", "The arguments of the construction by name.")
    is_constant_jacobian = given.stored("is_constant_jacobian", "Whether the Jacobian is constant.")
    is_injective = given.stored("is_injective", "Whether each value comes from one alone.")
    batch_shape = given.stored("batch_shape", "The shape of the parameters, or None.")
    is_scalar_batch = given.stored("is_scalar_batch", "Whether all parameters are numbers.")

    def extend_repr(self) -> str:
        """Return the parameters if they are numbers, else their shape."""
        if not self.parameter_names:
            return ""
        if not self.is_scalar_batch:
            return f"batch_shape = {self.batch_shape}"
        return ", ".join(f"{name} = {getattr(self, f'_{name}')}" for name in self.parameter_names)

    # ---- what subclasses use --------------------------------------------------------------------------------------
    def _check_float(self, name: str, dtype: DType) -> DType:
        if not is_float(dtype):
            write = "a float such as 1.0, or a Tensor of mixtrain.float32"
            raise checks.fail_type(type(self).__name__, f"{name} must be a float dtype", dtype, write)
        return dtype

    def _add_parameter(self, value: TensorLike, name: str) -> Tensor:
        """Note a parameter and return its value as a Tensor."""
        where = type(self).__name__
        tensor = MindSporeTensor(given.as_parameter(where, name, value))
        dtype = self._check_float(f"the dtype of {name}", tensor.dtype)
        self.common_dtype = self.common_dtype or dtype
        if dtype != self.common_dtype:
            raise checks.fail_type(where, f"{name} must have the dtype of the others", dtype, repr(self.common_dtype))
        self.default_parameters.append(value)
        self.parameter_names.append(name)
        return tensor

    def _check_value(self, value: Any, name: str) -> Tensor:
        return given.check_tensor(type(self).__name__, name, value)

    def _check_value_dtype(self, value: Any) -> Tensor:
        """Return a value, a Tensor of the bijector's dtype, or of any float dtype if it has none."""
        dtype = self._check_float("the dtype of the value", self._check_value(value, "the value").dtype)
        if self.dtype not in (None, dtype):
            raise checks.fail_type(type(self).__name__, f"the value must be {self.dtype}", dtype, repr(self.dtype))
        return value

    def cast_param_by_value(self, value: Tensor, para: Tensor) -> Tensor:
        """Return a parameter in the dtype of `value`."""
        return ops.cast(para, value.dtype)

    # ---- functions ------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Cell):
            return self.transform(self, args[0])
        return super().__call__(*args, **kwargs)

    def construct(self, name: str, *args: Any, **kwargs: Any) -> Tensor:
        """Compute a function by its name, such as "forward"."""
        if name not in _FUNCTIONS:
            raise checks.fail_value(
                type(self).__name__, f"the function must be one of {checks.join_names(_FUNCTIONS)}", name, '"forward"'
            )
        return getattr(self, name)(*args, **kwargs)

    forward = _function("forward", "Return the bijector's value.")
    inverse = _function("inverse", "Return the argument for a value of the bijector.")
    forward_log_jacobian = _function("forward_log_jacobian", "Return the logarithm of the derivative of `forward`.")
    inverse_log_jacobian = _function("inverse_log_jacobian", "Return the logarithm of the derivative of `inverse`.")

    def shape_mapping(self, shape: tuple[int, ...]) -> Shape:
        """Return the shape of the value for an argument of a shape."""
        own = () if self.batch_shape is None else self.batch_shape
        return given.common_shape(type(self).__name__, {"value": shape, "parameters": own})
