"""Activation functions: rectifiers, sigmoids and others, element by element, with their primitives."""

from __future__ import annotations

from collections.abc import Callable

import keras

from mixtrain import checks
from mixtrain.ops.elementwise import unary, unary_function
from mixtrain.ops.inputs import as_floats, rank_of, tensor, tensor_dtype
from mixtrain.ops.limits import clipped
from mixtrain.ops.primitive import configured, primitives
from mixtrain.typing import Tensor, TensorLike


# ---- on backend tensors, with MindSpore's derivatives at 0, where those of the backends differ ----------------------
def leaky(x: Tensor, slope: float) -> Tensor:
    """Return `leaky_relu`; its derivative at 0 is that of max(x, slope * x)."""
    return keras.ops.where(keras.ops.equal(x, 0), 0.5 * (1 + slope) * x, keras.ops.leaky_relu(x, negative_slope=slope))


def scaled_elu(x: Tensor) -> Tensor:
    """Return `selu`; its derivative at 0 is that of positive numbers."""
    return keras.ops.where(keras.ops.equal(x, 0), 1.0507009873554805 * x, keras.ops.selu(x))


def relu_up_to_6(x: Tensor) -> Tensor:
    """Return `relu6`; its derivative at 6, which halves reach often, is 1."""
    return keras.ops.where(keras.ops.equal(x, 6), x, keras.ops.relu6(x))


def hard_swish(x: Tensor) -> Tensor:
    """Return `hardswish`; its derivatives at -3 and 3 are those of the numbers between."""
    return keras.ops.where(keras.ops.equal(keras.ops.abs(x), 3), x * (x + 3) / 6, keras.ops.hard_silu(x))


def continuous_elu(x: Tensor, alpha: float) -> Tensor:
    """Return `celu`; its derivative at 0 is 1, and that of Keras's on TensorFlow 2."""
    low = keras.ops.where(x > 0, keras.ops.zeros_like(x), x)
    return keras.ops.where(x > 0, x, alpha * keras.ops.expm1(low / alpha))


# ---- operators ------------------------------------------------------------------------------------------------------
sigmoid = unary_function("sigmoid", keras.ops.sigmoid, "1 / (1 + exp(-`input`)).")
tanh = unary_function("tanh", keras.ops.tanh, "The hyperbolic tangent of `input`.")
relu6 = unary_function("relu6", relu_up_to_6, "min(max(`x`, 0), 6).", parameter="x")
silu = unary_function("silu", keras.ops.silu, "`input` * sigmoid(`input`).")
selu = unary_function("selu", scaled_elu, "The scaled exponential linear unit of `input`.")
hardswish = unary_function("hardswish", hard_swish, "`input` * hardsigmoid(`input`).")
hardsigmoid = unary_function("hardsigmoid", keras.ops.hard_sigmoid, "(`input` + 3) / 6, not below 0 and not above 1.")
softsign = unary_function("softsign", keras.ops.softsign, "`x` / (1 + |`x`|).", parameter="x")
logsigmoid = unary_function("logsigmoid", keras.ops.log_sigmoid, "The logarithm of the sigmoid of `x`.", parameter="x")
mish = unary_function(
    "mish", lambda x: x * keras.ops.tanh(keras.ops.softplus(x)), "`x` * tanh(softplus(`x`)).", parameter="x"
)
fast_gelu = unary_function(
    "fast_gelu", lambda x: x * keras.ops.sigmoid(1.702 * x), "`x` * sigmoid(1.702 * `x`), an approximation of `gelu`.",
    parameter="x",
)
tanhshrink = unary_function("tanhshrink", keras.ops.tanh_shrink, "`input` - tanh(`input`).")


def relu(input: TensorLike, inplace: bool = False) -> Tensor:
    """max(`input`, 0), in the dtype of `input`; `inplace` can only be False. Example: ``ops.relu(x)``."""
    if inplace is not False:
        raise checks.fail_value("ops.relu", "inplace must be False", inplace, "x = ops.relu(x)")
    return unary("ops.relu", keras.ops.relu, input)


def gelu(input: TensorLike, approximate: str = "none") -> Tensor:
    """`input` times the cumulative distribution function of the standard normal at `input`.

    `approximate`: "none" for the formula with erf, "tanh" for the one with tanh (Hendrycks and Gimpel, 2016). Example:
    ``ops.gelu(Tensor(1.0))`` is 0.8413.
    """
    use_tanh = checks.one_of("ops.gelu", "approximate", approximate, ("none", "tanh")) == "tanh"
    return unary("ops.gelu", lambda x: keras.ops.gelu(x, approximate=use_tanh), input, floats=True)


def _gelu_tanh(x: Tensor) -> Tensor:
    return gelu(x, "tanh")


def elu(input_x: TensorLike, alpha: float = 1.0) -> Tensor:
    """`input_x` where it is positive, else `alpha` * (exp(`input_x`) - 1).

    Example: ``ops.elu(x)``. Source: MindSpore, `mindspore.ops.elu` (which takes `alpha` 1 only).
    """
    slope = checks.number("ops.elu", "alpha", alpha)
    return unary("ops.elu", lambda x: keras.ops.elu(x, alpha=slope), input_x, floats=True)


def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """`x` where it is positive, else `alpha` * (exp(`x` / `alpha`) - 1). Example: ``ops.celu(x)``."""
    slope = checks.number("ops.celu", "alpha", alpha)
    if slope == 0:
        raise checks.fail_value("ops.celu", "alpha must not be 0", alpha, "alpha=1.0")
    return unary("ops.celu", lambda value: continuous_elu(value, slope), x, floats=True)


def leaky_relu(input: TensorLike, alpha: float = 0.2) -> Tensor:
    """`input` where it is positive, else `alpha` * `input`. Example: ``ops.leaky_relu(x)``."""
    slope = checks.number("ops.leaky_relu", "alpha", alpha)
    return unary("ops.leaky_relu", lambda x: leaky(x, slope), input, floats=True)


def softplus(input: TensorLike, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(`beta` * `input`)) / `beta`; `input` itself where `beta` * `input` is above `threshold`.

    Example: ``ops.softplus(x)``.
    """
    slope = checks.number("ops.softplus", "beta", beta)
    limit = checks.number("ops.softplus", "threshold", threshold)
    if slope == 0:
        raise checks.fail_value("ops.softplus", "beta must not be 0", beta, "beta=1")

    def compute(x: Tensor) -> Tensor:
        return keras.ops.where(x * slope > limit, x, keras.ops.softplus(x * slope) / slope)

    return unary("ops.softplus", compute, input, floats=True)


def hardtanh(input: TensorLike, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`input` clipped to the range from `min_val` to `max_val`. Example: ``ops.hardtanh(x)``."""
    low, high = checks.number("ops.hardtanh", "min_val", min_val), checks.number("ops.hardtanh", "max_val", max_val)
    return unary("ops.hardtanh", lambda x: clipped(x, low, high), input, floats=True)


def hardshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """`input`, and 0 where |`input`| is at most `lambd`. Example: ``ops.hardshrink(x)``."""
    return _shrink("ops.hardshrink", keras.ops.hard_shrink, input, lambd)


def softshrink(input: TensorLike, lambd: float = 0.5) -> Tensor:
    """`input` moved towards 0 by `lambd`, and 0 where |`input`| is at most `lambd`. Example: ``ops.softshrink(x)``."""
    return _shrink("ops.softshrink", keras.ops.soft_shrink, input, lambd)


def _shrink(where: str, function: Callable[..., Tensor], x: TensorLike, lambd: float) -> Tensor:
    threshold = checks.number(where, "lambd", lambd, at_least=0, example=0.5)
    return unary(where, lambda value: function(value, threshold=threshold), x, floats=True)


def threshold(input: TensorLike, thr: float, value: float) -> Tensor:
    """`input` where it is above `thr`, else `value`. Example: ``ops.threshold(x, 0.1, 0.0)``."""

    def compute(x: Tensor) -> Tensor:
        return keras.ops.where(x > thr, x, keras.ops.cast(value, x.dtype))

    return unary("ops.threshold", compute, input)


def prelu(input: TensorLike, weight: TensorLike) -> Tensor:
    """`input` where it is positive, else `weight` * `input`; one slope (1,), or one for each channel of axis 1, (C,).

    Example: ``ops.prelu(Tensor([[-1.0, -1.0]]), Tensor([0.5, 0.1]))`` is ``[[-0.5, -0.1]]`` (He et al., 2015).
    """
    x, slopes = as_floats("ops.prelu", input), tensor("ops.prelu", weight)
    channels = x.shape[1] if rank_of(x) > 1 else 1
    count = slopes.shape[0] if rank_of(slopes) == 1 else None
    if count is None or (count != 1 and channels not in (None, count)):
        raise checks.fail_value(
            "ops.prelu", f"weight must have shape (1,) or ({channels},)", tuple(slopes.shape), "one slope a channel"
        )
    shape = (1,)[: rank_of(x)] if count == 1 else (count, *(1,) * (rank_of(x) - 2))
    slopes = keras.ops.reshape(keras.ops.cast(slopes, tensor_dtype(x)), shape)
    return keras.ops.where(x > 0, x, slopes * x)


(
    ReLU, ReLU6, Sigmoid, Tanh, GeLU, Gelu, FastGeLU, HSwish, HSigmoid, SeLU, Softplus, Softsign, Mish, LogSigmoid,
    PReLU,
) = primitives(
    ReLU=relu, ReLU6=relu6, Sigmoid=sigmoid, Tanh=tanh, GeLU=_gelu_tanh, Gelu=_gelu_tanh, FastGeLU=fast_gelu,
    HSwish=hardswish, HSigmoid=hardsigmoid, SeLU=selu, Softplus=softplus, Softsign=softsign, Mish=mish,
    LogSigmoid=logsigmoid, PReLU=prelu,
)
Elu = configured("Elu", elu, alpha=1.0)
