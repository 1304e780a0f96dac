"""`Distribution`: the base of distributions, which finds the formula of a function by its name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from mixtrain import checks, ops
from mixtrain.boundary import run_users
from mixtrain.cell.cell import Cell
from mixtrain.dtype import DType, as_dtype
from mixtrain.nn.probability import parameters as given
from mixtrain.seed import drawing_as
from mixtrain.typing import DTypeLike, Shape, Tensor, TensorLike

_Formula = Callable[..., Any]


def _less(x: Tensor) -> Tensor:
    return 1.0 - x


# By the name of a function: those from which it follows where a distribution has no formula for it, first ones first.
_DERIVED: Final[Mapping[str, Mapping[str, tuple[_Formula, ...]]]] = MappingProxyType({
    "prob": {"log_prob": (ops.exp,)},
    "log_prob": {"prob": (ops.log,)},
    "sd": {"var": (ops.sqrt,)},
    "var": {"sd": (ops.square,)},
    "cdf": {"log_cdf": (ops.exp,), "survival_function": (_less,), "log_survival": (ops.exp, _less)},
    "log_cdf": {"cdf": (ops.log,), "survival_function": (_less, ops.log), "log_survival": (ops.exp, _less, ops.log)},
    "survival_function": {"log_survival": (ops.exp,), "cdf": (_less,), "log_cdf": (ops.exp, _less)},
    "log_survival": {"survival_function": (ops.log,), "cdf": (_less, ops.log), "log_cdf": (ops.exp, _less, ops.log)},
})
_FUNCTIONS: Final = (
    *_DERIVED, "mean", "mode", "entropy", "kl_loss", "cross_entropy", "sample", "get_dist_args", "get_dist_type",
)


def _function(name: str, doc: str) -> _Formula:
    """Return the method that computes a function by its name, for users: it takes and returns Tensors."""

    def call(self: Distribution, *args: Any, **kwargs: Any) -> Any:
        return run_users(self._compute, (name, *args), kwargs)

    call.__name__, call.__qualname__, call.__doc__ = name, f"Distribution.{name}", doc
    return call


class Distribution(Cell):
    """The base of distributions. A subclass defines `_log_prob` or `_prob`, `_sample`, `_mean` and other formulas.

    Functions that follow from others need no formula: prob from log_prob, sd from var, cdf, log_cdf, survival_function
    and log_survival from any of them. Each can be called by its name too: ``dist("log_prob", value)``.

    Args:
        seed: Seed of the samples, at least 0; two distributions of one seed draw the same samples. With 0 or None they
            follow `set_seed`.
        dtype: dtype of values and samples.
        name: Its name in errors.
        param: Its parameters by name in "param_dict": Tensors, NumPy arrays, lists, numbers, or None for those that
            each call is given. Usually ``dict(locals())`` with "param_dict" added.

    Raises:
        TypeError: An argument has the wrong type, or parameters have different dtypes.
        ValueError: `seed` is negative, or shapes of parameters do not broadcast.

    Example:
        >>> import mixtrain
        >>> from mixtrain.nn.probability.distribution import Distribution
        >>> class Unit(Distribution):
        ...     def __init__(self):
        ...         super().__init__(0, mixtrain.float32, "Unit", {"param_dict": {}})
        ...     def _log_prob(self, value):
        ...         return -value
        >>> print(Unit().prob(mixtrain.Tensor([0.0])))
        [1.]
    """

    takes_tensors = True
    parameter_type: DType
    _batch_shape: Shape | None
    _broadcast_shape: Shape | None
    _is_scalar_batch: bool

    def __init__(self, seed: int | None, dtype: DTypeLike, name: str, param: Mapping[str, Any]) -> None:
        super().__init__()
        where = type(self).__name__
        self._name: str = checks.instance(where, "name", name, str, 'name="Normal"')
        self._seed = checks.integer(where, "seed", 0 if seed is None else seed, at_least=0)
        self._dtype = as_dtype(dtype)
        self._parameters = given.arguments(param)
        self._reset_parameters()
        if "distribution" not in param:  # Otherwise it is a transformed one, which has the shapes of that.
            values = param.get("param_dict", {})
            self.parameter_type = given.parameter_dtype(where, values, dtype)
            self._batch_shape = self._broadcast_shape = given.batch_shape(where, values)
            self._is_scalar_batch = given.are_numbers(values)

    name = given.stored("name", "The name of the distribution.")
    dtype = given.stored("dtype", "The dtype of values and samples.")
    seed = given.stored("seed", "The seed of the samples, 0 for none.")
    parameters = given.stored("parameters", "The arguments of the construction by name.")
    is_scalar_batch = given.stored("is_scalar_batch", "Whether all parameters are numbers.")
    batch_shape = given.stored("batch_shape", "The shape of the parameters; None if one is not given.")
    broadcast_shape = given.stored("broadcast_shape", "The shape of one sample; None if it depends on the call.")

    # ---- what subclasses use --------------------------------------------------------------------------------------
    def _reset_parameters(self) -> None:
        self.default_parameters: list[Tensor | None] = []
        self.parameter_names: list[str] = []

    def _add_parameter(self, value: TensorLike | None, name: str) -> Tensor | None:
        """Note a parameter and return it as a Tensor, or None."""
        tensor = None if value is None else given.as_parameter(type(self).__name__, name, value, self.parameter_type)
        self.default_parameters.append(tensor)
        self.parameter_names.append(name)
        return tensor

    def _check_value(self, value: Any, name: str) -> Tensor:
        return given.check_tensor(type(self).__name__, name, value)

    # As subclasses in scripts call them.
    def checktensor(self, x: Any, name: str) -> Tensor:
        """Return `x`, the argument `name`, if it is a Tensor."""
        return self._check_value(x, name)

    def checktuple(self, x: Any, name: str) -> tuple[Any, ...]:
        """Return `x`, the argument `name`, if it is a tuple."""
        return checks.instance(type(self).__name__, name, x, tuple, f"{name}=(2, 3)")  # type: ignore[no-any-return]

    def _check_param_type(self, *args: Tensor | None) -> Any:
        """Return parameters of a call, those of the construction for None, broadcast and in the parameters' dtype."""
        where, values = type(self).__name__, dict(zip(self.parameter_names, self._or_defaults(*args), strict=False))
        for name, value in values.items():
            if value is None:
                expected = f"{name}, which was not given at construction, must be a Tensor"
                raise checks.fail_type(where, expected, value, f"{where}({name}=...)")
        given.parameter_dtype(where, values, None)
        results = [ops.cast(value, self.parameter_type) for value in values.values()]
        shapes = {name: tuple(value.shape) for name, value in zip(values, results, strict=True)}
        if len(set(shapes.values())) > 1:
            given.common_shape(where, shapes)
            # An axis may be of unknown size, so that there is no shape to broadcast to.
            zeros = functools.reduce(ops.add, map(ops.zeros_like, results))
            results = [value + zeros for value in results]
        return results[0] if len(results) == 1 else tuple(results)

    def _or_defaults(self, *args: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return Tensors of a call, the parameters of the construction where they are None."""
        triples = zip(args, self.parameter_names, self.default_parameters, strict=False)
        return tuple(default if value is None else self._check_value(value, name) for value, name, default in triples)

    # ---- functions ------------------------------------------------------------------------------------------------
    def construct(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Compute a function by its name, such as "prob"."""
        return self._compute(name, *args, **kwargs)

    def _compute(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "get_dist_type":
            args, kwargs = (), {}  # As a posterior passes its parameters to each function.
        # Samples of two distributions of one seed are the same.
        with drawing_as(self, f"{type(self).__name__}[{self.seed}]"):
            return self._formula_of(name)(*args, **kwargs)

    def _formula_of(self, name: str) -> _Formula:
        """Return the formula of a function: that of the class, else one from which it follows."""
        steps_from = {name: ()} | dict(_DERIVED.get(name, {})) if name in _FUNCTIONS else {}
        for source, steps in steps_from.items():
            function = getattr(type(self), f"_{source}", None)  # Of the class: an attribute may be a parameter.
            if function is not None:
                base = function.__get__(self)
                return lambda *args, **kwargs: functools.reduce(lambda x, step: step(x), steps, base(*args, **kwargs))
        sources = {each: (each, *_DERIVED.get(each, ())) for each in _FUNCTIONS}
        known = [each for each in sources if any(hasattr(type(self), f"_{source}") for source in sources[each])]
        raise NotImplementedError(
            f"{type(self).__name__}: expected a function of the distribution {self.name}; got {name!r}, which is not "
            f"implemented. Write one of {checks.join_names(known)}, or define _{name} in a subclass."
        )

    prob = _function("prob", "Return the density, or the probability of a discrete distribution, at `value`.")
    log_prob = _function("log_prob", "Return the logarithm of `prob` at `value`.")
    cdf = _function("cdf", "Return the probability of at most `value`.")
    log_cdf = _function("log_cdf", "Return the logarithm of `cdf` at `value`.")
    survival_function = _function("survival_function", "Return the probability of more than `value`.")
    log_survival = _function("log_survival", "Return the logarithm of `survival_function` at `value`.")
    mean = _function("mean", "Return the mean.")
    mode = _function("mode", "Return the most likely value.")
    sd = _function("sd", "Return the standard deviation.")
    var = _function("var", "Return the variance.")
    entropy = _function("entropy", "Return the entropy.")
    kl_loss = _function("kl_loss", "Return KL(a || b) from this distribution to one of the family `dist`.")
    cross_entropy = _function("cross_entropy", "Return the cross entropy with a distribution of the family `dist`.")
    sample = _function("sample", "Draw samples of `shape` + the shape of the parameters.")
    get_dist_args = _function("get_dist_args", "Return the parameters: those of the call, else of the construction.")
    get_dist_type = _function("get_dist_type", "Return the name of the family.")
