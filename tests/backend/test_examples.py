"""The examples in the docstrings of JAX's backend run; pytest collects those of all other files itself."""

from __future__ import annotations

import doctest
import importlib
import pathlib

import keras
import pytest

import mixtrain.backend

MODULES = sorted(path.stem for path in (pathlib.Path(mixtrain.backend.__file__).parent / "jax").glob("*.py"))


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="about the JAX backend")
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(f"mixtrain.backend.jax.{name}")
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
