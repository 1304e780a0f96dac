"""`line_search`: a step along a direction that satisfies the strong Wolfe conditions (Nocedal and Wright, 2006)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from mixtrain import checks
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import is_float
from mixtrain.ops.value_and_grad import value_and_grad

_MAX_ZOOMS: Final = 10


class LineSearchResults(NamedTuple):
    """The step `a_k`, the value `f_k` and gradient `g_k` there; `status` 1: no step was found, 3: in `maxiter`."""

    failed: bool
    nit: int
    nfev: int
    ngev: int
    k: int
    a_k: float
    f_k: float
    g_k: Tensor
    status: int


class _Point(NamedTuple):
    step: Any
    value: Any
    slope: Any = None
    gradient: Any = None


def evaluated(where: str, func: Callable[..., Any], jac: Callable[..., Any] | None, x: Any) -> Callable[..., Any]:
    """Return a function of an array that computes the value and the gradient of one of a Tensor like `x`."""
    if not isinstance(x, Tensor) or not is_float(x.dtype):
        raise checks.fail_type(where, "x must be a Tensor of floats", x, "mixtrain.Tensor([0.0, 0.0])")
    dtype, both = x.asnumpy().dtype, value_and_grad(func) if jac is None else lambda x: (func(x), jac(x))
    return lambda x: tuple(np.asarray(one.asnumpy(), dtype)[()] for one in both(Tensor(x)))


def _cubic_minimum(low: _Point, high: _Point, other: _Point) -> Any:
    to_high, to_other = high.step - low.step, other.step - low.step
    # In float32 whatever the dtype, as in MindSpore.
    matrix = np.array([[to_other**2, -(to_high**2)], [-(to_other**3), to_high**3]], np.float32)
    rests = [point.value - low.value - low.slope * (point.step - low.step) for point in (high, other)]
    a, b = matrix @ np.array(rests, np.float32) / ((to_high * to_other) ** 2 * (to_high - to_other))
    return low.step + (-b + np.sqrt(b * b - 3.0 * a * low.slope)) / (3.0 * a)


def _zoom(at: Callable[..., _Point], low: _Point, high: _Point, start: _Point, c1: float, c2: float) -> Any:
    """Return a point between two with the strong Wolfe conditions, and whether none was found."""
    first, recent = low, _Point((low.step + high.step) / 2, (low.value + high.value) / 2)
    for count in range(_MAX_ZOOMS):
        left, right, width = min(low.step, high.step), max(low.step, high.step), high.step - low.step
        parabola = low.step - low.slope / (2.0 * (high.value - low.value - low.slope * width) / width**2)
        step = parabola if left + 0.1 * width < parabola < right - 0.1 * width else (low.step + high.step) / 2
        if count and left + 0.2 * width < (cubic := _cubic_minimum(low, high, recent)) < right - 0.2 * width:
            step = cubic
        point = at(step)
        if point.value > start.value + c1 * step * start.slope or point.value >= low.value:
            recent, high = high, point
        elif abs(point.slope) <= -c2 * start.slope:
            return point, count == _MAX_ZOOMS - 1
        else:
            # The first `low`, as in MindSpore; Nocedal and Wright take the current one.
            high = first if point.slope * width >= 0 else high
            recent, low = low, point
    return first._replace(step=first.step * 0 + 1, gradient=start.gradient), True


def line_search(
    f: Callable[..., Any], xk: Tensor, pk: Tensor, jac: Callable[..., Any] | None = None, gfk: Any = None,
    old_fval: Any = None, old_old_fval: Any = None, c1: float = 1e-4, c2: float = 0.9, maxiter: int = 20,
) -> LineSearchResults:
    """Find a step along `pk` from `xk` by which the function `f` of a Tensor satisfies the strong Wolfe conditions.

    `jac` is its gradient, that of the backend if None; `gfk` and `old_fval` are the gradient and the value at `xk`,
    `old_old_fval` the value before, if they are known; `c1` and `c2` the constants of decrease and curvature, and
    `maxiter` the most iterations.

    Example:
        >>> import mixtrain
        >>> start, direction = mixtrain.Tensor([1.0, 1.0]), mixtrain.Tensor([-1.0, -1.0])
        >>> mixtrain.scipy.optimize.line_search(lambda x: (x**2).sum(), start, direction).a_k
        1.0
    """
    both, count = evaluated("scipy.optimize.line_search", f, jac, xk), 0
    x, direction = xk.asnumpy(), pk.asnumpy()
    number, zero = x.dtype.type, x.dtype.type(0)

    def at(step: Any) -> _Point:
        nonlocal count
        count += 1
        value, gradient = both(x + step * direction)
        return _Point(step, value, np.dot(gradient, direction), gradient)

    with np.errstate(all="ignore"):
        if old_fval is None or gfk is None:
            start = at(zero)
        else:
            start = _Point(zero, number(old_fval), np.dot(gfk.asnumpy(), direction), gfk.asnumpy())
        step = math.nan if old_old_fval is None else 1.01 * 2 * (start.value - number(old_old_fval)) / start.slope
        step = min(step, number(1)) if math.isfinite(step) else number(1)
        best, done, failed, previous, k = start, False, False, start, 1
        while not done and k <= maxiter:
            point, done = at(step), True
            if point.value > start.value + c1 * step * start.slope or k > 1 and point.value >= previous.value:
                best, failed = _zoom(at, previous, point, start, c1, c2)
            elif abs(point.slope) <= -c2 * start.slope:
                best = point
            elif point.slope >= 0:
                best, failed = _zoom(at, point, previous, start, c1, c2)
            else:
                done = False
            previous, step, k = point, step * 2, k + 1
    length = best.step if number is np.float64 else np.sign(best.step) * max(abs(best.step), 1e-8)
    status = 1 if failed else 3 if k > maxiter else 0
    ended = float(number(length)), float(best.value), Tensor(best.gradient), status
    return LineSearchResults(failed or not done, k - 1, count, count, k, *ended)
