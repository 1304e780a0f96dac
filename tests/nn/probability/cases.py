"""Values of distributions and bijectors, computed by either package.

`reference.json` holds those of MindSpore 2.10 on a CPU: ``python cases.py mindspore > reference.json``.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

# By the family: parameters, those of a second distribution, and values.
FAMILIES: dict[str, tuple[list[Any], list[Any], list[float]]] = {
    "Normal": ([0.5, 2.0], [0.7, 1.5], [-1.0, 3.0]),
    "HalfNormal": ([0.5, 2.0], [], [-1.0, 3.0]),
    "Laplace": ([0.5, 2.0], [], [-1.0, 3.0]),
    "StudentT": ([3.0, 0.5, 2.0], [], [-1.0, 3.0]),
    "LogNormal": ([0.5, 0.8], [0.2, 1.1], [0.6, 5.0]),
    "Cauchy": ([0.5, 2.0], [0.7, 1.5], [-1.0, 30.0]),
    "Gumbel": ([0.5, 2.0], [0.7, 1.5], [-1.0, 8.0]),
    "Logistic": ([0.5, 2.0], [], [-1.0, 40.0]),
    "Uniform": ([0.5, 2.0], [0.2, 2.5], [0.1, 0.7]),
    "Exponential": ([0.5], [0.8], [-1.0, 2.5]),
    "Gamma": ([2.5, 1.5], [1.7, 0.8], [0.1, 5.0]),
    "Beta": ([2.5, 1.5], [1.7, 2.8], [0.1, 0.9]),
    "Bernoulli": ([0.3], [0.6], [0.0, 1.0]),
    "Categorical": ([[0.2, 0.3, 0.5]], [[0.5, 0.25, 0.25]], [0.0, 2.0]),
    "Geometric": ([0.3], [0.6], [-1.0, 3.0]),
    "Poisson": ([2.5], [], [0.0, 4.0]),
}
OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival")
OF_PARAMETERS = ("mean", "mode", "sd", "var", "entropy")
OF_TWO = ("kl_loss", "cross_entropy")
BIJECTORS: dict[str, list[float]] = {
    "Exp": [], "PowerTransform": [0.5], "ScalarAffine": [2.0, 0.5], "Softplus": [1.5], "GumbelCDF": [0.5, 2.0],
}
DIRECTIONS = ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian")


def shown(value: Any) -> Any:
    """Return Tensors as [dtype, shape, values]."""
    if isinstance(value, (tuple, list)):
        return [shown(each) for each in value]
    array = np.asarray(value.asnumpy(), np.float64)
    return [str(value.dtype), list(array.shape), [float(f"{each:.9g}") for each in array.reshape(-1)]]


def results(
    ms: ModuleType, msp: ModuleType, name: str, compiled: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> dict[str, Any]:
    """Return by function what a family or a bijector gives; `compiled` wraps the function that is called."""
    found: dict[str, Any] = {}

    def note(key: str, function: Callable[..., Any], *args: Any) -> None:
        try:
            found[key] = shown(compiled(function)(*args))
        except (NotImplementedError, TypeError, ValueError) as error:
            found[key] = type(error).__name__

    def tensors(values: list[Any], dtype: str = "float32") -> list[Any]:
        return [ms.Tensor(np.array(value, dtype)) for value in values]

    if name in BIJECTORS:
        for dtype in ("float32", "float16"):
            bijector = getattr(msp.bijector, name)(*(np.array([each], "float32") for each in BIJECTORS[name]))
            (value,) = tensors([[0.3, 0.8]], dtype)
            transformed = bijector(msp.distribution.Normal(0.0, 1.0))
            for function in DIRECTIONS:
                note(f"{function} {dtype}", getattr(bijector, function), value)
                inverse = msp.bijector.Invert(bijector)
                note(f"inverse's {function} {dtype}", lambda x, f=function, b=inverse: b(f, x), value)
                if dtype == "float32":
                    note(f"gradient of {function}", ms.grad(lambda x, f=function, b=bijector: b(f, x).sum()), value)
            for function in ("log_prob", "cdf") if dtype == "float32" else ():
                note(f"normal's {function}", lambda x, f=function, t=transformed: t(f, x), value)
            note(f"normal's mean {dtype}", transformed.mean)
        return found

    own, other, values = FAMILIES[name]
    family = getattr(msp.distribution, name)
    for dtype in ("float32", "float16"):
        arrays = [np.array([each] if np.ndim(each) == 0 else each, dtype) for each in own]
        fixed = family(*arrays, dtype=getattr(ms, dtype))
        (value,) = tensors([values], dtype)
        for function in OF_VALUES:
            if dtype == "float32" or function == "log_prob":
                note(f"{function} {dtype}", getattr(fixed, function), value)
        for function in OF_PARAMETERS:
            note(f"{function} {dtype}", getattr(fixed, function))
        for function in OF_TWO if other else ():
            note(f"{function} {dtype}", lambda *b, f=function, d=fixed: d(f, name, *b), *tensors(other, dtype))
    if name != "Gumbel":
        # Without parameters of its own: those of the call, of several shapes.
        free = family()
        called = tensors([[each, each] if number else [[each], [each]] for number, each in enumerate(own)])
        (value,) = tensors([values])
        places = tuple(range(1 + len(own)))
        note("log_prob of the call", lambda *args: free("log_prob", *args), value, *called)
        note("mean of the call", lambda *args: free("mean", *args), *called)
        note("gradient of log_prob", ms.grad(lambda *args: free.log_prob(*args).sum(), places), value, *called)
        for function in OF_TWO if other else ():
            places = tuple(range(2 * len(own)))
            gradient = ms.grad(lambda *args, f=function: free(f, name, *args).sum(), places)
            note(f"gradient of {function}", gradient, *tensors(other), *called)
    return found


if __name__ == "__main__":
    package = importlib.import_module(sys.argv[1])
    probability = importlib.import_module(f"{sys.argv[1]}.nn.probability")
    every = {name: results(package, probability, name, lambda function: function) for name in (*FAMILIES, *BIJECTORS)}
    print("{\n" + ",\n".join(f'"{name}": {json.dumps(found)}' for name, found in every.items()) + "\n}")
