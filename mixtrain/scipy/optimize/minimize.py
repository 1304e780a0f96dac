"""`minimize`: minima by BFGS and L-BFGS with line searches, or under constraints by an augmented Lagrangian."""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from mixtrain import checks
from mixtrain.common.tensor import Tensor
from mixtrain.scipy.optimize.lagrange import LagrangeResults, minimize_lagrange
from mixtrain.scipy.optimize.line_search import evaluated, line_search


class OptimizeResults(NamedTuple):
    """The point `x`; `status` 0: a minimum, 1: the most iterations, 2 and that of a line search: it failed."""

    x: Tensor
    success: bool
    status: int
    fun: float
    jac: Tensor
    hess_inv: Tensor | None
    nfev: int
    njev: int
    nit: int


class _Bfgs:
    """The inverse Hessian, which each step corrects; `towards` returns its product with a gradient."""

    def __init__(self, size: int, dtype: Any) -> None:
        self.identity = self.inverse = np.eye(size, dtype=dtype)

    def towards(self, gradient: np.ndarray, step: np.ndarray, change: np.ndarray) -> np.ndarray:
        rho = 1 / (change @ step)
        left, right = (self.identity - rho * np.outer(*pair) for pair in ((step, change), (change, step)))
        self.inverse = left @ self.inverse @ right + rho * np.outer(step, step)
        return self.inverse @ gradient


class _Lbfgs:
    """The latest steps and changes of the gradient, in place of the inverse Hessian."""

    inverse = None

    def __init__(self, size: int, dtype: Any, history_size: int = 20) -> None:
        self._history: Any = collections.deque(maxlen=history_size)

    def towards(self, gradient: np.ndarray, step: np.ndarray, change: np.ndarray) -> np.ndarray:
        curvature, alphas = change @ step, []
        if curvature <= 1e-10:
            return gradient
        self._history.append((1 / curvature, step, change))
        for rho, s, y in reversed(self._history):
            alphas.append((rho * s) @ gradient)
            gradient = gradient - alphas[-1] * y
        gradient = curvature / (change @ change) * gradient
        for (rho, s, y), alpha in zip(self._history, reversed(alphas), strict=True):
            gradient = gradient + alpha * s - ((rho * y) @ gradient) * s
        return gradient


_METHODS: Final[dict[str, Any]] = {"bfgs": _Bfgs, "lbfgs": _Lbfgs}


def _descend(
    kind: Any, func: Callable[..., Any], x: Tensor, jac: Any, *, maxiter: int | None = None, norm: float = np.inf,
    gtol: float = 1e-5, line_search_maxiter: int = 10, **settings: Any,
) -> OptimizeResults:
    value, gradient = evaluated("scipy.optimize.minimize", func, jac, x)(x.asnumpy())
    method, earlier = kind(x.size, gradient.dtype, **settings), value + np.sqrt(np.sum(gradient**2)) / 2
    order, maxiter = np.inf if norm == np.inf else 2, 200 * x.size if maxiter is None else maxiter
    towards, converged, searched, evaluations, k = gradient, abs(gradient).max() < gtol, None, 1, 0
    while k < maxiter:
        known = Tensor(gradient), value, earlier
        searched = line_search(func, x, Tensor(-towards), jac, *known, maxiter=line_search_maxiter)
        evaluations += searched.nfev
        if searched.failed:
            break
        step = gradient.dtype.type(searched.a_k) * -towards
        x, earlier, value, before, gradient = x + Tensor(step), value, searched.f_k, gradient, searched.g_k.asnumpy()
        if converged := np.linalg.norm(gradient, order) < gtol:
            break
        with np.errstate(all="ignore"):
            towards = method.towards(gradient, step, gradient - before)
        k += 1
    failed = searched is not None and searched.failed
    status = 0 if converged else 1 if k == maxiter else 2 + searched.status if searched and failed else -1
    inverse = None if method.inverse is None else Tensor(method.inverse)
    success = bool(converged and not failed)
    return OptimizeResults(x, success, status, float(value), Tensor(gradient), inverse, evaluations, evaluations, k)


def minimize(
    func: Callable[..., Any], x0: Tensor, args: tuple[Any, ...] = (), method: str | None = None,
    jac: Callable[..., Any] | None = None, hess: Any = None, hessp: Any = None, bounds: Any = None,
    constraints: Sequence[Callable[..., Any]] = (), tol: Sequence[float] | None = None, callback: Any = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults | LagrangeResults:
    """Find a minimum of a function of a Tensor.

    Args:
        func: The function ``func(x, *args)``, whose value is a number.
        x0: The start, a Tensor (n,) of floats.
        args: More arguments of `func`.
        method: "BFGS", "LBFGS" or "LAGRANGE".
        jac: The gradient ``jac(x)``; None for that of the backend.
        constraints: For "LAGRANGE", functions that are below 0 of a point that is allowed; below `tol` in its results.
        tol: For "LAGRANGE", a number for each constraint; 1 by default.
        options: `maxiter`, `norm`, `gtol`, `line_search_maxiter`, of "LBFGS" `history_size`; of "LAGRANGE" see
            `minimize_lagrange`.
        hess, hessp, bounds, callback: Not used.

    Raises: TypeError if `x0` is no Tensor of floats, or for another option; ValueError for another `method`.

    Example:
        >>> import mixtrain
        >>> start = mixtrain.Tensor([0.0, 0.0])
        >>> mixtrain.scipy.optimize.minimize(lambda x: ((x - 1) ** 2).sum(), start, method="BFGS").success
        True
    """
    where = "scipy.optimize.minimize"
    name = method.lower() if isinstance(method, str) else method
    checks.one_of(where, "method", name, (*_METHODS, "lagrange"))
    checks.instance(where, "args", args, tuple, "args=(1.0,)")
    if name == "lagrange":
        return minimize_lagrange(func, x0, constraints, tol, **options or {})
    return _descend(_METHODS[str(name)], lambda x: func(x, *args), x0, jac, **options or {})
