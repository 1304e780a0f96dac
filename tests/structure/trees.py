"""The files of the package, which are parsed and walked once for all tests of their structure."""

from __future__ import annotations

import ast
import functools
import gc
import pathlib

import mixtrain

ROOT = pathlib.Path(mixtrain.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


@functools.cache
def trees() -> dict[pathlib.Path, list[ast.AST]]:
    """Return the nodes of each file's syntax tree, a module first; a million, forgotten after the last test of them."""
    gc.disable()  # Collections halfway find nothing, and take as long as the rest.
    try:
        return {path: list(ast.walk(ast.parse(path.read_text()))) for path in FILES}
    finally:
        gc.enable()
