"""The examples in the docstrings of JAX's backend and of the interfaces run; pytest collects all others itself."""

from __future__ import annotations

import doctest
import importlib
import pathlib

import keras
import pytest

import mixtrain

ROOT = pathlib.Path(mixtrain.__file__).parent
FOLDERS = [ROOT / package / name for package in ("backend", "data_backend") for name in ("interface", "jax")]
PATHS = sorted(path for folder in FOLDERS for path in folder.glob("*.py"))
MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in PATHS]


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="about the JAX backend")
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(f"mixtrain.{name}")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
