"""Calls of primitives as JSON: what both MindSpore and mixtrain compute of one."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

KINDS = {"i64": np.int64, "f64": np.float64, "bool": np.bool_}


def _given(package: Any, value: Any) -> Any:
    """Return an input: an array of floats in float32, of ints in int32; a dict says of what kind another one is."""
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        if kind in KINDS:
            return package.Tensor(np.array(content, KINDS[kind]))
        if kind == "tuple":
            return tuple(_given(package, each) for each in content)
        if kind == "var":
            given = _given(package, content)
            return package.Parameter(given, name=f"p{id(given)}")
        return tuple(content) if isinstance(content, list) else content  # "raw", no tensor.
    array = np.array(value)
    return package.Tensor(array.astype(np.float32 if array.dtype.kind == "f" else np.int32))


def _setting(package: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return getattr(package, value["dtype"]) if "dtype" in value else value["list"]
    return tuple(value) if isinstance(value, list) else value


def _flat(result: Any) -> list[Any]:
    return [each for part in result for each in _flat(part)] if isinstance(result, (tuple, list)) else [result]


def outputs(package_name: str, call: dict[str, Any]) -> list[np.ndarray]:
    """Return the outputs of a call, or, of one with Parameters, what these are after it."""
    package = importlib.import_module(package_name)
    path = "" if call["module"] == "operations" else f".{call['module']}"
    module = importlib.import_module(f"{package_name}.ops.operations{path}")
    inputs = [_given(package, value) for value in call["inputs"]]
    primitive = getattr(module, call["name"])(*[_setting(package, value) for value in call["settings"]])
    result = _flat(primitive(*inputs))
    parameters = [value for value in inputs if isinstance(value, package.Parameter)]
    return [each.asnumpy() if hasattr(each, "asnumpy") else np.array(each) for each in parameters or result]
