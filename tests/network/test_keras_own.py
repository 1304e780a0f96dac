"""Keras's own classes and functions are known by the package that users import, wherever Keras keeps them inside."""

from __future__ import annotations

import ast
import pathlib
import re
from typing import Any

import keras
import pytest

import mixtrain
from mixtrain.network.keras_own import keras_owns

_ENTRY = keras.Input((1,))
_EXIT = keras.layers.Flatten()(_ENTRY)


class Mine(keras.layers.Dense):
    """A user's layer."""


@pytest.mark.parametrize(("thing", "expected"), [
    (keras.layers.Dense, True), (keras.Sequential, True), (type(keras.Model(_ENTRY, _EXIT)), True),
    (keras.activations.softmax, True), (keras.layers.Dense.call, True), (Mine, False), (Mine.call, True),
    (mixtrain.Model, False), (keras_owns, False), (None, False), ("keras.layers.Dense", False),
])
def test_a_class_or_function_is_of_keras_or_not(thing: Any, expected: bool) -> None:
    assert keras_owns(thing) is expected


@pytest.mark.parametrize(("module", "expected"), [
    ("keras.src.layers", True), ("keras.moved.inside", True), ("keras", True), ("keras_hub.layers", False),
    ("my.keras.layers", False),
])
def test_modules_inside_of_keras_may_move(module: str, expected: bool) -> None:
    assert keras_owns(type("Layer", (keras.Layer,), {"__module__": module})) is expected


def test_no_file_compares_a_module_s_name_with_keras_s() -> None:
    root = pathlib.Path(mixtrain.__file__).parent
    violations = []
    for path in root.rglob("*.py"):
        text = path.read_text()
        if path.name == "keras_own.py" or not re.search(r"""["']keras\.(src)?""", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and node.value in ("keras.", "keras.src", "keras.src."):
                violations.append(f"{path.relative_to(root)}:{node.lineno}")
    assert not violations
