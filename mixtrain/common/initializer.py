"""MindSpore's initializers, which sample from the generator of the process."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, float32
from mixtrain.lazy_names import serve_names
from mixtrain.seed import initial_values
from mixtrain.typing import DTypeLike, Tensor

FanMode = Literal["fan_in", "fan_out"]


class Initializer:
    """Base class of initializers; a subclass fills an array in `_initialize`.

    Args:
        **kwargs: Shown by `repr`.

    Example:
        >>> class Ramp(Initializer):
        ...     def _initialize(self, arr):
        ...         arr[:] = np.arange(arr.size).reshape(arr.shape)
        >>> initializer(Ramp(), (3,)).numpy().tolist()
        [0.0, 1.0, 2.0]
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def _initialize(self, arr: np.ndarray) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}: an Initializer must define _initialize(self, arr), which fills the array `arr`."
        )

    def __call__(self, arr: np.ndarray) -> None:
        """Fill `arr` in place."""
        self._initialize(arr)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._kwargs.items())})"

    def make(self, shape: Sequence[int]) -> np.ndarray:
        """Return a new float32 array of `shape` with initial values."""
        array = np.zeros(tuple(shape), np.float32)
        self(array)
        return array


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return (fan_in, fan_out) of a weight (out, in, *kernel).

    Raises:
        ValueError: The shape has fewer than two axes.
    """
    if len(shape) < 2:
        raise checks.fail_value(
            "initializer", "fans need a weight of at least 2 axes", tuple(shape), 'init="zeros" or "normal"'
        )
    receptive_field = math.prod(shape[2:])
    return shape[1] * receptive_field, shape[0] * receptive_field


class Zero(Initializer):
    """Zeros. Example: ``initializer("zeros", (2,))``."""

    def _initialize(self, arr: np.ndarray) -> None:
        arr.fill(0)


class One(Initializer):
    """Ones. Example: ``initializer("ones", (2,))``."""

    def _initialize(self, arr: np.ndarray) -> None:
        arr.fill(1)


class Constant(Initializer):
    """One value everywhere. Example: ``Constant(0.5)``."""

    def __init__(self, value: float | numbers.Number | np.ndarray) -> None:
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = self.value


class Uniform(Initializer):
    """Uniform in [-scale, scale). Example: ``Uniform(0.07)``."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = initial_values().uniform(-self.scale, self.scale, arr.shape)


class Normal(Initializer):
    """Normal with standard deviation `sigma`. Example: ``Normal(0.02)``."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        super().__init__(sigma=sigma, mean=mean)
        self.sigma, self.mean = sigma, mean

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = initial_values().normal(self.mean, self.sigma, arr.shape)


class TruncatedNormal(Initializer):
    """Normal, resampled where a value is outside [a, b].

    Example: ``TruncatedNormal(0.02)``.
    """

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        if not a < b:
            raise checks.fail_value("TruncatedNormal", "a must be less than b", (a, b), "a=-2.0, b=2.0")
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def _initialize(self, arr: np.ndarray) -> None:
        generator = initial_values()
        values = generator.normal(self.mean, self.sigma, arr.shape)
        while (outside := (values < self.a) | (values > self.b)).any():
            values[outside] = generator.normal(self.mean, self.sigma, int(outside.sum()))
        arr[...] = values


class XavierUniform(Initializer):
    """Uniform in ±gain·sqrt(6 / (fan_in + fan_out)). Example: ``XavierUniform()``. Source: Glorot and Bengio, 2010."""

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: np.ndarray) -> None:
        bound = self.gain * math.sqrt(6.0 / sum(fans(arr.shape)))
        arr[...] = initial_values().uniform(-bound, bound, arr.shape)


class XavierNormal(Initializer):
    """Normal of deviation gain·sqrt(2 / (fan_in + fan_out)). Example: ``XavierNormal()``. Source: as XavierUniform."""

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = initial_values().normal(0.0, self.gain * math.sqrt(2.0 / sum(fans(arr.shape))), arr.shape)


_GAINS: Final[dict[str, Callable[[float], float]]] = {
    "linear": lambda slope: 1.0,
    "sigmoid": lambda slope: 1.0,
    "tanh": lambda slope: 5.0 / 3.0,
    "relu": lambda slope: math.sqrt(2.0),
    "leaky_relu": lambda slope: math.sqrt(2.0 / (1.0 + slope**2)),
}


class _He(Initializer):
    """Base of HeUniform and HeNormal: the standard deviation gain / sqrt(fan)."""

    def __init__(self, negative_slope: float = 0, mode: FanMode = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope = negative_slope
        self.mode = checks.one_of(type(self).__name__, "mode", mode, ("fan_in", "fan_out"))
        self.nonlinearity = checks.one_of(type(self).__name__, "nonlinearity", nonlinearity, tuple(_GAINS))

    def _deviation(self, shape: Sequence[int]) -> float:
        fan = fans(shape)[("fan_in", "fan_out").index(self.mode)]
        return _GAINS[self.nonlinearity](self.negative_slope) / math.sqrt(fan)


class HeUniform(_He):
    """Uniform in ±gain·sqrt(3 / fan). Example: ``HeUniform(math.sqrt(5))``. Source: He et al., 2015."""

    def _initialize(self, arr: np.ndarray) -> None:
        bound = math.sqrt(3.0) * self._deviation(arr.shape)
        arr[...] = initial_values().uniform(-bound, bound, arr.shape)


class HeNormal(_He):
    """Normal with deviation gain / sqrt(fan). Example: ``HeNormal()``. Source: He et al., 2015."""

    def _initialize(self, arr: np.ndarray) -> None:
        arr[...] = initial_values().normal(0.0, self._deviation(arr.shape), arr.shape)


class Identity(Initializer):
    """The identity matrix. Example: ``Identity()``."""

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim != 2:
            raise checks.fail_value("Identity", "the shape must have 2 axes", arr.shape, "shape=(3, 3)")
        arr[...] = np.eye(*arr.shape)


class Dirac(Initializer):
    """Convolution weights that preserve the input, in each of `groups`. Example: ``Dirac(groups=2)``."""

    def __init__(self, groups: int = 1) -> None:
        super().__init__(groups=groups)
        self.groups = checks.integer("Dirac", "groups", groups, at_least=1)

    def _initialize(self, arr: np.ndarray) -> None:
        if not 3 <= arr.ndim <= 5 or arr.shape[0] % self.groups:
            raise checks.fail_value(
                "Dirac", f"the shape must have 3 to 5 axes, the first a multiple of {self.groups}", arr.shape,
                "shape=(6, 4, 3, 3)",
            )
        arr.fill(0)
        group_size = arr.shape[0] // self.groups
        center = tuple(size // 2 for size in arr.shape[2:])
        for group in range(self.groups):
            for channel in range(min(group_size, arr.shape[1])):
                arr[(group * group_size + channel, channel, *center)] = 1


class Orthogonal(Initializer):
    """Orthogonal rows or columns of length `gain`. Example: ``Orthogonal(2.0)``. Source: Saxe et al., 2013."""

    def __init__(self, gain: float = 1.0) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim < 2:
            raise checks.fail_value("Orthogonal", "the shape must have at least 2 axes", arr.shape, "shape=(4, 3)")
        values = initial_values().normal(0.0, 1.0, (arr.shape[0], arr.size // arr.shape[0]))
        wide = values.shape[0] < values.shape[1]
        q, r = np.linalg.qr(values.T if wide else values)
        # A positive diagonal of R makes the decomposition unique, and Q uniform over the orthogonal matrices.
        q = q * np.sign(np.diag(r))
        arr[...] = self.gain * np.reshape(q.T if wide else q, arr.shape)


class Sparse(Initializer):
    """A normal matrix of deviation `sigma`, a fraction `sparsity` of each column zero. Example: ``Sparse(0.1)``."""

    def __init__(self, sparsity: float, sigma: float = 0.01) -> None:
        super().__init__(sparsity=sparsity, sigma=sigma)
        self.sparsity, self.sigma = sparsity, sigma

    def _initialize(self, arr: np.ndarray) -> None:
        if arr.ndim != 2:
            raise checks.fail_value("Sparse", "the shape must have 2 axes", arr.shape, "shape=(4, 3)")
        arr[...] = initial_values().normal(0.0, self.sigma, arr.shape)
        for column in range(arr.shape[1]):
            arr[np.random.permutation(arr.shape[0])[: math.ceil(self.sparsity * arr.shape[0])], column] = 0


class VarianceScaling(Initializer):
    """Values of variance `scale` / n, where n is the fan of `mode`.

    Args:
        scale: More than 0.
        mode: "fan_in", "fan_out" or "fan_avg".
        distribution: "truncated_normal", "untruncated_normal" or "uniform".

    Example: ``VarianceScaling(2.0, "fan_in", "uniform")``.
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal") -> None:
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        self.scale = checks.number("VarianceScaling", "scale", scale, above=0, example=1.0)
        self.mode = checks.one_of("VarianceScaling", "mode", mode, ("fan_in", "fan_out", "fan_avg"))
        self.distribution = checks.one_of(
            "VarianceScaling", "distribution", distribution, ("uniform", "truncated_normal", "untruncated_normal")
        )

    def _initialize(self, arr: np.ndarray) -> None:
        fan_in, fan_out = fans(arr.shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        deviation = math.sqrt(self.scale / max(1.0, fan))
        if self.distribution == "uniform":
            bound = math.sqrt(3.0) * deviation
            arr[...] = initial_values().uniform(-bound, bound, arr.shape)
        elif self.distribution == "untruncated_normal":
            arr[...] = initial_values().normal(0.0, deviation, arr.shape)
        else:
            # Truncation at two standard deviations reduces the standard deviation to 0.8796.
            values = TruncatedNormal(1.0).make(arr.shape)
            arr[...] = values * (deviation / 0.87962566103423978)


_BY_NAME: Final[dict[str, type[Initializer]]] = {
    "zero": Zero, "zeros": Zero, "one": One, "ones": One, "uniform": Uniform, "normal": Normal,
    "truncatednormal": TruncatedNormal, "xavieruniform": XavierUniform, "xaviernormal": XavierNormal,
    "heuniform": HeUniform, "henormal": HeNormal, "identity": Identity, "dirac": Dirac, "orthogonal": Orthogonal,
    "variancescaling": VarianceScaling,
}


# A name, a number, an `Initializer`, or the tensor of initial values itself.
InitializerLike: TypeAlias = str | float | Initializer | Tensor


def initializer(init: InitializerLike, shape: int | Sequence[int] | None = None, dtype: DTypeLike = float32) -> Tensor:
    """Create a tensor of initial values.

    Args:
        init: An `Initializer`, a name ("zeros", "ones", "normal", "uniform", "xavier_uniform", "XavierUniform",
            "he_normal", ...; case and underscores do not matter), a number, or a tensor, which is returned.
        shape: An int or a sequence of ints; needed unless `init` is a tensor.
        dtype: The dtype.

    Returns:
        A tensor of `shape` and `dtype`.

    Raises:
        TypeError: `init` is none of these.
        ValueError: The name is unknown, the shape is missing, not positive, or not that of the tensor.

    Example:
        >>> initializer("ones", (2,)).numpy().tolist()
        [1.0, 1.0]
    """
    shape = (shape,) if isinstance(shape, (int, numbers.Integral)) else None if shape is None else tuple(shape)
    if backend.is_tensor(init) or isinstance(init, np.ndarray):
        values = backend.to_tensor(init)
        if shape is not None and tuple(values.shape) != shape:
            raise checks.fail_value("initializer", f"init must have shape {shape}", tuple(values.shape), "shape=None")
        return backend.public_tensor(values)
    if shape is None or any(not isinstance(n, numbers.Integral) or n <= 0 for n in shape):
        raise checks.fail_value("initializer", "shape must be positive ints", shape, "shape=(2, 3)")
    if isinstance(init, str):
        name = init.lower().replace("_", "")
        if name not in _BY_NAME:
            checks.one_of("initializer", "init", init, tuple(_BY_NAME))
        init = _BY_NAME[name]()
    elif isinstance(init, numbers.Number) and not isinstance(init, bool):
        init = Constant(init)
    maker = checks.instance("initializer", "init", init, Initializer, 'init="zeros"')
    return backend.public_tensor(backend.to_tensor(maker.make(shape), as_dtype(dtype)))


# ---- names that scripts with initializers of their own import -----------------------------------------------------
_INITIALIZER_ALIAS: Final = _BY_NAME
_calculate_fan_in_and_fan_out: Final = fans


def _calculate_correct_fan(shape: Sequence[int], mode: FanMode) -> int:
    """Return the fan of a mode."""
    return fans(shape)[("fan_in", "fan_out").index(mode)]


def _calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain of an activation; `param` is the slope of a leaky ReLU, 0.01 for None."""
    if nonlinearity.startswith("conv"):
        nonlinearity = "linear"
    checks.one_of("initializer", "nonlinearity", nonlinearity, tuple(_GAINS))
    return _GAINS[nonlinearity](0.01 if param is None else param)


def _assignment(arr: np.ndarray, num: Any) -> np.ndarray:
    """Set the values of an array, and return it."""
    arr[...] = num
    return arr


def _register(*aliases: str) -> Callable[[type[Initializer]], type[Initializer]]:
    """Return a decorator that lets `initializer` find a class by its name, and by others."""

    def register(cls: type[Initializer]) -> type[Initializer]:
        for name in (cls.__name__, *aliases):
            _BY_NAME.setdefault(name.lower().replace("_", ""), cls)
        return cls

    return register


serve_names(__name__)
