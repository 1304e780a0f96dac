"""The public names are frozen: adding or losing one is a decision, made here; each is documented."""

from __future__ import annotations

import inspect
import json
import pathlib
from typing import Any

import mixtrain
import mixtrain.dataset.text
import mixtrain.dataset.transforms
import mixtrain.dataset.vision
import mixtrain.diagnostics
import mixtrain.distribution
import mixtrain.experimental.optim.lr_scheduler
import mixtrain.keras
import mixtrain.mindrecord
import mixtrain.mint.distributed
import mixtrain.mint.linalg
import mixtrain.mint.nn
import mixtrain.mint.nn.functional
import mixtrain.mint.optim
import mixtrain.mint.special
import mixtrain.nn.metrics
import mixtrain.nn.probability.bnn_layers
import mixtrain.numpy
import mixtrain.scipy.optimize
import mixtrain.serialization
import mixtrain.train.callback

FROZEN = pathlib.Path(__file__).parent / "public_names.json"
MODULES = {
    module.__name__: module
    for module in (
        mixtrain, mixtrain.amp, mixtrain.communication, mixtrain.dataset, mixtrain.dataset.text,
        mixtrain.dataset.transforms, mixtrain.dataset.vision, mixtrain.diagnostics, mixtrain.distribution,
        mixtrain.experimental.optim, mixtrain.experimental.optim.lr_scheduler, mixtrain.keras,
        mixtrain.mindrecord, mixtrain.mint, mixtrain.mint.distributed, mixtrain.mint.linalg, mixtrain.mint.nn,
        mixtrain.mint.nn.functional, mixtrain.mint.optim, mixtrain.mint.special, mixtrain.nn, mixtrain.nn.metrics,
        mixtrain.nn.probability.bijector, mixtrain.nn.probability.bnn_layers, mixtrain.nn.probability.distribution,
        mixtrain.numpy, mixtrain.ops, mixtrain.scipy, mixtrain.scipy.fft, mixtrain.scipy.linalg,
        mixtrain.scipy.optimize, mixtrain.serialization, mixtrain.train, mixtrain.train.callback,
    )
}


def test_public_names_are_the_frozen_ones() -> None:
    names = {name: sorted(module.__all__) for name, module in MODULES.items()}
    assert names == json.loads(FROZEN.read_text()), f"if this is meant, write the names into {FROZEN.name}"


def test_dir_of_the_package_offers_its_public_names_alone() -> None:
    # These are not in `__all__`, since `from mixtrain import *` would hide Keras, NumPy and Python's `bool`.
    beside = {"bool", "experimental", "keras", "mindrecord", "mint", "numpy", "scipy"}
    assert set(dir(mixtrain)) == set(mixtrain.__all__) | beside
    assert all(hasattr(mixtrain, name) for name in dir(mixtrain))


def objects() -> dict[str, Any]:
    """Return every public class and function by its dotted name."""
    result = {}
    for path, module in MODULES.items():
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                result[id(value)] = (f"{path}.{name}", value)
    return dict(sorted(result.values(), key=lambda item: item[0]))


def undocumented(name: str, value: Any) -> list[str]:
    """Return what the docstring of a class or function lacks."""
    text = value.__doc__ or ""
    if not text.strip():
        return [f"{name} has no docstring"]
    function = value.__init__ if inspect.isclass(value) else value
    inherited = inspect.isclass(value) and "__init__" not in vars(value)
    if function is object.__init__ or inherited or (inspect.isclass(value) and issubclass(value, Exception)):
        return []
    parameters = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in ("self", "args", "kwargs") and parameter.kind is not parameter.VAR_KEYWORD
    ]
    return [f"{name}: the docstring does not speak of {one}" for one in parameters if one not in text]


def untyped(name: str, value: Any) -> list[str]:
    """Return what the methods of a class, or a function, lack."""
    members = {name: value} if inspect.isfunction(value) else {
        f"{name}.{key}": getattr(value, key)
        for key, member in vars(value).items()
        if not key.startswith("_") and (inspect.isfunction(member) or isinstance(member, (property, classmethod)))
    }
    result = []
    for path, member in members.items():
        function = member.fget if isinstance(member, property) else member
        hints = function.__annotations__
        if not inspect.getdoc(member):
            result.append(f"{path} has no docstring, of its own or inherited")
        if "return" not in hints:
            result.append(f"{path} does not say what it returns")
        names = set(inspect.signature(function).parameters) - {"self", "cls", *hints}
        result += [f"{path}: {parameter} has no type" for parameter in sorted(names)]
    return result


def test_every_public_name_is_documented_with_its_arguments() -> None:
    assert [line for name, value in objects().items() for line in undocumented(name, value)] == []


def test_public_methods_are_documented_and_signatures_typed() -> None:
    assert [line for name, value in objects().items() for line in untyped(name, value)] == []


def test_what_is_missing_would_be_seen() -> None:
    def silent(x, y: int = 0):  # type: ignore[no-untyped-def]
        pass

    def quiet(size: int) -> None:
        """Do nothing."""

    assert undocumented("silent", silent) == ["silent has no docstring"]
    assert undocumented("quiet", quiet) == ["quiet: the docstring does not speak of size"]
    assert untyped("silent", silent) == [
        "silent has no docstring, of its own or inherited", "silent does not say what it returns",
        "silent: x has no type",
    ]
    assert len(objects()) > 1000
