"""A name that is not available can be imported; using it says what to write instead."""

from __future__ import annotations

import importlib

import pytest

from mixtrain.compat.mindspore import refused_names


@pytest.mark.parametrize("path", sorted(refused_names.REFUSED))
def test_every_refused_name_can_be_imported_and_not_used(path: str) -> None:
    module = importlib.import_module(path)
    for name, why in refused_names.REFUSED[path].items():
        stub = getattr(module, "Anything" if name == "*" else name)
        assert refused_names.is_refused(stub) and " Write " in f" {why}", name
        with pytest.raises(NotImplementedError, match=why.split(".")[0].split("(")[0]):
            stub()


def test_a_refusal_names_the_module_and_a_class_of_it_refuses_attributes_too() -> None:
    from mixtrain.mindrecord import FileReader

    with pytest.raises(NotImplementedError, match=r"^mixtrain\.mindrecord\.FileReader: files of rows are written by"):
        FileReader.open("x")
    with pytest.raises(NotImplementedError, match="_random_normal: it is MindSpore's own library in C"):
        importlib.import_module("mixtrain._c_expression")._random_normal(0, [1.0], 0.0, 1.0)
    assert not hasattr(importlib.import_module("mixtrain._c_expression"), "__wrapped__")


def test_what_is_here_is_not_refused() -> None:
    for path, table in refused_names.REFUSED.items():
        module = importlib.import_module(path)
        assert not [name for name in table if name in vars(module)], path
