"""The layers hold: imports point down, only backends import array libraries, nothing is imported inside functions."""

from __future__ import annotations

import ast
import pathlib

import pytest

import mixtrain

ROOT = pathlib.Path(mixtrain.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# From the bottom up; a package may import packages of lower layers and its own, never its neighbors on the same layer.
# A subpackage that is named here is a package of its own.
LAYERS = [
    {"dtype", "errors", "checks", "context", "auto_parallel", "communication", "compat.mindspore.module_paths", "log",
     "version"},
    {"backend"},
    {"autocast", "boundary", "network", "seed"},
    {"trace_version"},
    {"summaries"},
    {"ops"},
    {"common"},
    {"precision", "diagnostics", "dataset"},
    {"cell"},
    {"autocast.scope", "compat", "compat.mindspore", "optim"},
    {"loss_scale"},
    {"step"},
    {"compat.oneflow", "compat.apex"},
    {"nn"},
    {"amp", "serialization"},
    {"train"},
    {"__init__"},
]
LAYER_OF = {package: number for number, packages in enumerate(LAYERS) for package in packages}
# Modules at the bottom may use each other (errors by checks, say): they hold no state of packages above.
BOTTOM = LAYERS[0]
BACKENDS = {"tensorflow": {"tensorflow"}, "jax": {"jax", "jaxlib"}}
# Each says why, and a test of its own fails when the name moves.
PRIVATE_KERAS = {"backend/jax/tensor.py"}
OPTIONAL = {"PIL", "matplotlib", "onnx", "tensorboard", "tf2onnx"}


def package_of(name: str) -> str:
    """Return the package in `LAYERS` that a dotted name, without "mixtrain.", belongs to."""
    parts = name.split(".")
    prefixes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in LAYER_OF), parts[0])


def package_of_file(path: pathlib.Path) -> str:
    """Return the package that a file belongs to."""
    return package_of(".".join(path.relative_to(ROOT).with_suffix("").parts))


def imported_packages(tree: ast.AST) -> set[str]:
    """Return the packages of mixtrain that a file imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mixtrain":
            inside = node.module.removeprefix("mixtrain").lstrip(".")  # type: ignore[union-attr]
            names |= {f"{inside}.{alias.name}".lstrip(".") for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.name.removeprefix("mixtrain.") for a in node.names if a.name.startswith("mixtrain.")}
    return {package_of(name) for name in names}


def external_imports(tree: ast.AST) -> set[str]:
    """Return the top names of the packages that a file imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_packages_below_its_own(path: pathlib.Path) -> None:
    package = package_of_file(path)
    for other in imported_packages(ast.parse(path.read_text())) - {package}:
        assert other in LAYER_OF, f"{path.name} imports {other}, which is on no layer"
        down = LAYER_OF[other] < LAYER_OF[package]
        assert down or (package in BOTTOM and other in BOTTOM), f"{package} must not import {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_a_backend_imports_its_array_library(path: pathlib.Path) -> None:
    place = path.relative_to(ROOT).parts
    own = BACKENDS.get(place[1], set()) if place[0] == "backend" and len(place) > 2 else set()
    assert external_imports(ast.parse(path.read_text())) & set().union(*BACKENDS.values()) <= own


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_backend_package_asks_which_backend_runs(path: pathlib.Path) -> None:
    if package_of_file(path) == "backend":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        named = isinstance(node, ast.Attribute) and node.attr == "backend" and isinstance(node.value, ast.Attribute)
        assert not named, f"{path.name}:{node.lineno}: add a function to the backend interface for what differs"


def test_private_names_of_jax_are_in_the_files_that_say_why() -> None:
    private = {str(path.relative_to(ROOT)) for path in FILES if "jax._src" in path.read_text()}
    assert private <= {f"backend/jax/{name}.py" for name in ("device", "state", "trace")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_imported_inside_a_function_but_optional_extras(path: pathlib.Path) -> None:
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert external_imports(function) <= OPTIONAL, f"{path.name}: {function.name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_says_its_idea_at_its_top_and_is_short_enough_to_hold_one(path: pathlib.Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), f"{path.name} has no sentence at its top"
    assert text.count("\n") <= 500, f"{path.name} has {text.count(chr(10))} lines"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_asserts_or_imports_stars_or_keras_internals(path: pathlib.Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Assert), f"{path.name}:{node.lineno}: raise an error instead"
        if isinstance(node, ast.ImportFrom):
            assert all(alias.name != "*" for alias in node.names), f"{path.name}: star import"
            private = (node.module or "").startswith("keras.src")
            assert not private or str(path.relative_to(ROOT)) in PRIVATE_KERAS, f"{path.name}: private Keras import"


def test_every_package_is_on_a_layer() -> None:
    assert {package_of_file(path) for path in FILES} <= set(LAYER_OF)


def test_imports_between_files_have_no_cycles() -> None:
    graph = {module_name(path): module_imports(path) for path in FILES}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail[trail.index(module):], module))
        if module not in done:
            for other in graph.get(module, ()):
                visit(other, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def module_name(path: pathlib.Path) -> str:
    """Return a file's dotted name."""
    parts = ("mixtrain", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def module_imports(path: pathlib.Path) -> set[str]:
    """Return the files of mixtrain that a file imports, for type checking too."""
    known = {module_name(other) for other in FILES}
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mixtrain"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in known else node.module)
    own_package = module_name(path)
    return {name for name in found if name in known and name not in ("mixtrain", own_package)}
