"""`scipy.optimize` finds what MindSpore 2.10 finds on a CPU; the numbers are recorded from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.numpy as mnp
from mixtrain import Tensor
from mixtrain.scipy.ops import LinearSumAssignment
from mixtrain.scipy.optimize import line_search, linear_sum_assignment, minimize


def tensor(values: Any) -> Tensor:
    return Tensor(np.asarray(values, np.float32))


def rosenbrock(x: Tensor) -> Tensor:
    return mnp.sum(100.0 * mnp.diff(x) ** 2 + (1.0 - x[:-1]) ** 2)


def himmelblau(point: Tensor) -> Tensor:
    x, y = point
    return (x**2 + y - 11.0) ** 2 + (x + y**2 - 7.0) ** 2


def matyas(point: Tensor) -> Tensor:
    x, y = point
    return 0.26 * (x**2 + y**2) - 0.48 * x * y


# The minimum, the number of evaluations and of iterations, and the inverse Hessian.
@pytest.mark.parametrize(("method", "func", "start", "x", "counts", "inverse"), [
    ("BFGS", rosenbrock, [0, 0], [1, 1], (14, 3), [[0.5, 0.5], [0.5, 0.505]]),
    ("LBFGS", rosenbrock, [0, 0], [1, 1], (15, 3), None),
    ("bfgs", himmelblau, [0, 0], [3, 2], (18, 10), [[0.01622, -0.00969], [-0.00969, 0.03488]]),
    ("BFGS", matyas, [1, 1], [0, 0], (6, 2), [[13, 12], [12, 13]]),
    ("LBFGS", matyas, [0, 0], [0, 0], (2, 0), None),
])
def test_minima_are_those_of_mindspore(
    method: str, func: Any, start: list[float], x: list[float], counts: tuple[int, int], inverse: Any
) -> None:
    found = minimize(func, tensor(start), method=method, options={"gtol": 1e-6})
    np.testing.assert_allclose(found.x.asnumpy(), x, atol=1e-5)
    assert (found.success, found.status, found.nfev, found.nit) == (True, 0, *counts)
    assert (found.hess_inv is None) == (inverse is None)
    if inverse is not None:
        np.testing.assert_allclose(found.hess_inv.asnumpy(), inverse, atol=2e-3)


@pytest.mark.parametrize(("func", "start", "options", "status", "fun"), [
    (rosenbrock, [0, 0], {"maxiter": 3}, 1, 0.2286023),
    (rosenbrock, [0, 0], {"line_search_maxiter": 1}, 5, 0.9900990),
    (lambda x: mnp.abs(x).sum(), [1.3, -2.1], {}, 3, 0.8),
    (lambda x: x.sum(), [1.3, -2.1], {}, 5, -0.8),
])
def test_a_search_that_ends_early_says_why(func: Any, start: Any, options: Any, status: int, fun: float) -> None:
    found = minimize(func, tensor(start), method="BFGS", options=options)
    assert (found.success, found.status) == (False, status) and found.fun == pytest.approx(fun, abs=1e-4)


# The fields `failed`, `nit`, `nfev`, `k` and `status`, the step, and the value there.
@pytest.mark.parametrize(("func", "x", "direction", "options", "fields", "step", "value"), [
    (lambda x: mnp.dot(x, x), [1.1, 0.1, 0.6], [-1.3, 1.6, -0.1], {}, (False, 1, 3, 2, 0), 0.3122066, 1.1647654),
    (lambda x: (x**4).sum(), [1.1, 0.1, 0.6], [-9.3, 1.6, -0.1], {}, (False, 1, 5, 2, 0), 0.1641302, 0.1663395),
    (lambda x: -x - x**3 + x**4, 0.0, 1.0, {"maxiter": 10}, (False, 1, 2, 2, 0), 1.0, -1.0),
    (lambda x: mnp.dot(x, x), [1, 1], [1, 1], {}, (True, 1, 12, 2, 1), 1.0, 2.0),
    (lambda x: mnp.dot(x, x), [1, 1], [-1e-4, -1e-4], {"maxiter": 2}, (True, 2, 3, 3, 3), 0.0, 2.0),
    (lambda x: mnp.dot(x, x), [1, 1], [-1, -1], {"jac": lambda x: 2 * x, "c1": 0.3}, (False, 1, 2, 2, 0), 1, 0),
    (lambda x: mnp.dot(x, x), [1, 1], [-1, -1], {"gfk": tensor([2, 2]), "old_fval": 2.0, "old_old_fval": 2.5},
     (False, 1, 1, 2, 0), 0.2525, 1.1175125),
])
def test_line_searches_are_those_of_mindspore(
    func: Any, x: Any, direction: Any, options: Any, fields: tuple[int, ...], step: float, value: float
) -> None:
    found = line_search(func, tensor(x), tensor(direction), **options)
    assert (found.failed, found.nit, found.nfev, found.k, found.status) == fields
    assert (found.a_k, found.f_k) == pytest.approx((step, value), abs=1e-5)


def test_constraints_hold_at_the_minimum() -> None:
    constraint, shared = (lambda x: -(x[0] - x[1] - 1.0)), (lambda x: x[0] * x[1])
    found = minimize(
        lambda x, product: -(2 * product + 2 * x[0] - x[0] ** 2 - 2 * x[1] ** 2), tensor([-1, 1]), method="LAGRANGE",
        constraints=[lambda x, product: constraint(x)], options={"rounds": 10, "steps": 50, "coincide_fun": shared},
    )
    assert found.succeeded and found.loss_value < 0.05
    np.testing.assert_allclose(found.best_value, [2, 1], atol=0.03)


@pytest.mark.parametrize(("options", "kind"), [
    ({}, ValueError), ({"method": "cg"}, ValueError), ({"method": "BFGS", "args": [1]}, TypeError),
    ({"method": "BFGS", "options": {"foo": 1}}, TypeError),
    ({"method": "lagrange", "constraints": [3]}, TypeError), ({"method": "lagrange", "tol": [1.0]}, ValueError),
])
def test_wrong_arguments_are_errors(options: Any, kind: type) -> None:
    with pytest.raises(kind):
        minimize(rosenbrock, tensor([0, 0]), **options)
    with pytest.raises(TypeError, match="x must be a Tensor of floats"):
        minimize(rosenbrock, np.zeros(2), method="BFGS")


@pytest.mark.parametrize(("shape", "seed", "maximize", "rows", "columns"), [
    ((6, 6), 3, False, [0, 1, 2, 3, 4, 5], [4, 0, 3, 1, 5, 2]), ((5, 8), 4, True, [0, 1, 2, 3, 4], [2, 7, 0, 4, 5]),
    ((8, 5), 4, False, [0, 1, 2, 3, 5], [4, 0, 1, 3, 2]),
])
def test_assignments_are_those_of_mindspore(shape: Any, seed: int, maximize: bool, rows: Any, columns: Any) -> None:
    cost = tensor(np.random.RandomState(seed).randint(0, 4, shape))
    for solve in (lambda cost: linear_sum_assignment(cost, maximize), mixtrain.jit(
        lambda cost: linear_sum_assignment(cost, maximize)
    )):
        assert [each.asnumpy().tolist() for each in solve(cost)] == [rows, columns]


def test_assignments_look_at_the_first_columns() -> None:
    cost = tensor([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    found = LinearSumAssignment()(cost, Tensor(2), True)
    assert [each.asnumpy().tolist() for each in found] == [[0, 2, -1], [0, 1, -1]]
    for wrong, kind in ((cost[0], ValueError), (cost.asnumpy(), TypeError), (tensor([[np.nan]]), RuntimeError)):
        with pytest.raises(kind):
            linear_sum_assignment(wrong, False)
