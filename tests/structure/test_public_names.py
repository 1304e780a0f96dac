"""The public names are frozen: adding or losing one is a decision, made here; each is documented."""

from __future__ import annotations

import inspect
import json
import pathlib
from typing import Any

import pytest

import mixtrain
import mixtrain.dataset.transforms
import mixtrain.dataset.vision
import mixtrain.experimental.optim.lr_scheduler
import mixtrain.keras
import mixtrain.nn.metrics
import mixtrain.numpy
import mixtrain.serialization
import mixtrain.train.callback

FROZEN = pathlib.Path(__file__).parent / "public_names.json"
MODULES = {
    module.__name__: module
    for module in (
        mixtrain, mixtrain.amp, mixtrain.communication, mixtrain.dataset, mixtrain.dataset.transforms,
        mixtrain.dataset.vision, mixtrain.experimental.optim, mixtrain.experimental.optim.lr_scheduler, mixtrain.keras,
        mixtrain.nn, mixtrain.nn.metrics, mixtrain.numpy, mixtrain.ops, mixtrain.serialization, mixtrain.train,
        mixtrain.train.callback,
    )
}


def test_public_names_are_the_frozen_ones() -> None:
    names = {name: sorted(module.__all__) for name, module in MODULES.items()}
    assert names == json.loads(FROZEN.read_text()), f"if this is meant, write the names into {FROZEN.name}"


def objects() -> list[tuple[str, Any]]:
    """Return every public class and function with its dotted name."""
    found = {}
    for path, module in MODULES.items():
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found[id(value)] = (f"{path}.{name}", value)
    return sorted(found.values(), key=lambda item: item[0])


@pytest.mark.parametrize(("name", "value"), objects(), ids=lambda item: item if isinstance(item, str) else "")
def test_every_public_name_is_documented_with_its_arguments(name: str, value: Any) -> None:
    text = value.__doc__ or ""
    assert len(text.strip().splitlines()) >= 1 and text.strip(), f"{name} has no docstring"
    if issubclass(value, Exception) if inspect.isclass(value) else False:
        return
    function = value.__init__ if inspect.isclass(value) else value
    if function is object.__init__:
        return
    parameters = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in ("self", "args", "kwargs") and parameter.kind is not parameter.VAR_KEYWORD
    ]
    inherited = inspect.isclass(value) and "__init__" not in vars(value)
    for parameter in [] if inherited else parameters:
        assert parameter in text, f"{name}: the docstring does not speak of {parameter}"


@pytest.mark.parametrize(("name", "value"), objects(), ids=lambda item: item if isinstance(item, str) else "")
def test_public_methods_are_documented_and_signatures_typed(name: str, value: Any) -> None:
    members = {name: value} if inspect.isfunction(value) else {
        f"{name}.{key}": getattr(value, key)
        for key, member in vars(value).items()
        if not key.startswith("_") and (inspect.isfunction(member) or isinstance(member, (property, classmethod)))
    }
    for path, member in members.items():
        assert inspect.getdoc(member), f"{path} has no docstring, of its own or inherited"
        function = member.fget if isinstance(member, property) else member
        hints = function.__annotations__
        assert "return" in hints, f"{path} does not say what it returns"
        for parameter in inspect.signature(function).parameters.values():
            assert parameter.name in hints or parameter.name in ("self", "cls"), f"{path}: {parameter.name} has no type"
