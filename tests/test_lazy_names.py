"""Names that are imported when they are used: the objects of their modules, known to type checkers too."""

from __future__ import annotations

import ast
import importlib
import pathlib
import sys
import types
from collections.abc import Iterator

import pytest

import mixtrain
from mixtrain.lazy_names import serve_names
from tests.structure.test_layers import for_type_checkers


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    result = types.ModuleType("served_names_of_a_test")
    sys.modules[result.__name__] = result
    yield result
    del sys.modules[result.__name__]


def test_a_name_is_that_of_its_module_and_found_without_a_search_from_then_on(module: types.ModuleType) -> None:
    serve_names(module.__name__, {"escape": "html", "quote": "html:escape", "pages": "html:"})
    assert "escape" not in vars(module)
    html = importlib.import_module("html")
    assert (module.escape, module.quote, module.pages) == (html.escape, html.escape, html)
    assert {"escape", "quote", "pages"} <= vars(module).keys()


def test_another_name_is_an_attribute_error(module: types.ModuleType) -> None:
    serve_names(module.__name__, {"escape": "html"})
    with pytest.raises(AttributeError, match="module 'served_names_of_a_test' has no attribute 'unescape'"):
        module.unescape  # noqa: B018
    assert not hasattr(module, "__wrapped__")


def test_type_checkers_see_the_names_that_the_package_serves() -> None:
    tree = ast.parse(pathlib.Path(mixtrain.__file__).read_text())
    (block,) = for_type_checkers(ast.walk(tree))
    seen = {
        alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(block) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    served = {
        name: home.rstrip(":") if home.endswith(":") else f"{home}.{name}"
        for name, home in mixtrain._HOMES.items() if name != "bool"
    }
    assert seen == served
    beside = {"experimental", "keras", "mindrecord", "mint", "numpy", "scipy", "_Function"}
    assert {*mixtrain.__all__} | beside == set(seen)
