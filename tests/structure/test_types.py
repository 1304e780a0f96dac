"""Public signatures name the kind of each value; `Any` is for what can be anything."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

import mixtrain.nn
import mixtrain.numpy
import mixtrain.ops

# Functions of any object, and of the user's functions and their weights in several forms.
ANYTHING = {
    "constexpr", "depend", "get_grad", "get_metric_fn", "grad", "is_tensor", "scalar_cast", "value_and_grad", "vjp",
}
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@pytest.mark.parametrize("module", [mixtrain.ops, mixtrain.nn, mixtrain.numpy], ids=lambda module: module.__name__)
def test_no_public_function_annotates_a_value_as_any(module: ModuleType) -> None:
    result = []
    for name in module.__all__:
        function = inspect.unwrap(getattr(module, name))
        if name in ANYTHING or not inspect.isfunction(function):
            continue
        kinds = {parameter.name: parameter.kind for parameter in inspect.signature(function).parameters.values()}
        result += [
            f"{name}: {argument}" for argument, annotation in function.__annotations__.items()
            if annotation == "Any" and kinds.get(argument) not in VARIABLE
        ]
    assert not result, "see mixtrain/typing.py"


LAYERS = [name for name in mixtrain.nn.__all__ if hasattr(getattr(mixtrain.nn, name), "construct")]


@pytest.mark.parametrize("name", LAYERS)
def test_no_layer_takes_a_value_annotated_as_any(name: str) -> None:
    method = inspect.unwrap(getattr(mixtrain.nn, name).construct)
    parameters = inspect.signature(method).parameters.values()
    assert not [item.name for item in parameters if item.annotation == "Any" and item.kind not in VARIABLE]
