"""Names in back-ticks in docstrings exist: what is renamed or removed is not told of any longer."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import keyword
import re
from collections.abc import Iterable, Iterator

from tests.structure.trees import ROOT, trees

# Libraries whose names docstrings give as the source of a rule; not all of them are installed.
LIBRARIES = {"apex", "jax", "keras", "mindspore", "oneflow", "tensorflow", "tf", "torch"}
NAMING = frozenset({"name", "arg", "id", "attr", "asname"})  # The fields of nodes that hold names.
_NAME = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)`(?!`)")


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.Constant]]:
    """Yield the name of each module, class and function of a file with its docstring."""
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
            yield getattr(node, "name", "the file"), node.body[0].value  # type: ignore[attr-defined]


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that a file defines or uses, and the words of its texts other than docstrings."""
    skipped = {id(text) for _, text in docstrings(nodes)}
    names: set[str] = set()
    for node in nodes:
        for field in NAMING.intersection(node._fields):
            value = getattr(node, field)
            names.update(value.split(".") if isinstance(value, str) else ())
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            names |= set(re.findall(r"\w+", node.value))
    return names


@functools.cache
def is_library(name: str) -> bool:
    """Whether a name is that of a library."""
    return name in LIBRARIES or importlib.util.find_spec(name) is not None


def unknown(text: str, known: set[str]) -> list[str]:
    """Return the names in back-ticks in a text that are neither known nor those of a library."""
    return [
        name for name in _NAME.findall(text)
        if not set(name.split(".")) <= known and not ("." in name and is_library(name.split(".")[0]))
    ]


def test_names_in_back_ticks_exist() -> None:
    known = {*dir(builtins), *keyword.kwlist, *LIBRARIES, "mixtrain"}
    for path, nodes in trees().items():
        known |= names_in(nodes) | set(path.relative_to(ROOT).with_suffix("").parts)
    assert [
        f"{path.relative_to(ROOT)}: {where}: {name}"
        for path, nodes in trees().items() for where, text in docstrings(nodes) for name in unknown(text.value, known)
    ] == []


def test_what_does_not_exist_would_be_seen() -> None:
    nodes = list(ast.walk(ast.parse('def f(x):\n    """`x`, `y`, `keras.ops.abs` and ``z``."""\n')))
    assert [unknown(text.value, names_in(nodes)) for _, text in docstrings(nodes)] == [["y"]]
