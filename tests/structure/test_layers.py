"""The layers hold: imports point down, only backends import array libraries, nothing is imported inside functions."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterable, Sequence

from tests.structure.trees import FILES, ROOT, trees

# From the bottom up; a package may import packages of lower layers and its own, never its neighbors on the same layer.
# A subpackage that is named here is a package of its own.
LAYERS = [
    # The engine of mixed precision.
    {"dtype", "errors", "checks", "execution", "process_group", "compat.mindspore.module_paths",
     "compat.mindspore.refused_names", "lazy_names", "log", "text_table", "typing", "version"},
    {"backend"},
    {"autocast", "boundary", "class_labels", "data_backend", "distribution", "faces", "network", "seed"},
    {"metrics", "step.optimizer_driver", "trace_version"},
    {"precision", "diagnostics"},
    {"loss_scale"},
    {"step"},
    {"keras", "serialization"},
    {"train"},
    # MindSpore's surface, data sets, and other libraries' APIs.
    {"auto_parallel", "communication", "ops"},
    {"context"},
    {"common"},
    {"dataset", "numpy"},
    {"cell", "mindrecord"},
    {"compat", "compat.mindspore", "compat.pytorch", "optim"},
    {"experimental"},
    {"compat.apex", "compat.oneflow"},
    {"nn"},
    {"amp", "mint", "scipy"},
    # The front door.
    {"__init__"},
    {"__main__"},
]
LAYER_OF = {package: number for number, packages in enumerate(LAYERS) for package in packages}
# Modules at the bottom may use each other (errors by checks, say): they hold no state of packages above.
BOTTOM = LAYERS[0]
BACKEND_PACKAGES = {"backend", "data_backend"}
BACKENDS = {"tensorflow": {"tensorflow"}, "jax": {"jax", "jaxlib"}}
# The packages that read data; what computes knows tensors, not where they come from.
READERS = {"data_backend", "dataset", "train"}
# Words of data feeding, none of which names a file of the backend that computes.
DATA_WORDS = {"colors", "decode", "encoded", "image", "images", "records", "row", "rows", "stream", "streams", "warp"}
# Each says why, and a test of its own fails when the name moves.
PRIVATE_KERAS = {"backend/tensor_base.py"}
OPTIONAL = {"PIL", "matplotlib", "onnx", "tensorboard", "tf2onnx"}


def package_of(name: str) -> str:
    """Return the package in `LAYERS` that a dotted name, without "mixtrain.", belongs to."""
    parts = name.split(".")
    prefixes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in LAYER_OF), parts[0])


def package_of_file(path: pathlib.Path) -> str:
    """Return the package that a file belongs to."""
    return package_of(".".join(path.relative_to(ROOT).with_suffix("").parts))


def for_type_checkers(nodes: Iterable[ast.AST]) -> list[ast.If]:
    """Return the blocks of a file that run for type checkers alone."""
    return [
        node for node in nodes
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]


def imported_packages(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the packages of mixtrain that a file imports when it runs."""
    names: set[str] = set()
    unused = {inner for block in for_type_checkers(nodes) for inner in ast.walk(block)}
    for node in nodes:
        if node in unused:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mixtrain":
            inside = node.module.removeprefix("mixtrain").lstrip(".")  # type: ignore[union-attr]
            names |= {f"{inside}.{alias.name}".lstrip(".") for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {a.name.removeprefix("mixtrain.") for a in node.names if a.name.startswith("mixtrain.")}
    return {package_of(name) for name in names}


def external_imports(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the top names of the packages that a file or function imports."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def named(path: pathlib.Path) -> str:
    """Return a file's path inside the package."""
    return path.relative_to(ROOT).as_posix()


def test_a_file_imports_only_packages_below_its_own() -> None:
    wrong = []
    for path, nodes in trees().items():
        package = package_of_file(path)
        for other in imported_packages(nodes) - {package}:
            down = other in LAYER_OF and LAYER_OF[other] < LAYER_OF[package]
            if not down and not (package in BOTTOM and other in BOTTOM):
                wrong.append(f"{named(path)} must not import {other}")
    assert wrong == []


def test_only_a_backend_imports_its_array_library() -> None:
    libraries = set().union(*BACKENDS.values())
    wrong = []
    for path, nodes in trees().items():
        place = path.relative_to(ROOT).parts
        own = BACKENDS.get(place[1], set()) if place[0] in BACKEND_PACKAGES and len(place) > 2 else set()
        if external_imports(nodes) & libraries - own:
            wrong.append(named(path))
    assert wrong == []


def test_only_what_reads_data_uses_the_data_backend() -> None:
    users = {package_of_file(path) for path, nodes in trees().items() if "data_backend" in imported_packages(nodes)}
    assert users <= READERS


def test_the_backend_that_computes_has_no_images_rows_or_streams() -> None:
    files = [path for path in FILES if package_of_file(path) == "backend"]
    assert [named(path) for path in files if DATA_WORDS & set(path.stem.split("_"))] == []


def test_only_the_backend_packages_ask_which_backend_runs() -> None:
    """What differs is a function of the backend interface."""
    assert [
        f"{named(path)}:{node.lineno}"
        for path, nodes in trees().items() if package_of_file(path) not in BACKEND_PACKAGES
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr == "backend" and isinstance(node.value, ast.Attribute)
    ] == []


def test_private_names_of_jax_are_in_the_files_that_say_why() -> None:
    private = {named(path) for path in FILES if "jax._src" in path.read_text()}
    assert private <= {f"backend/jax/{name}.py" for name in ("compile", "device", "state")}


def test_nothing_is_imported_inside_a_function_but_optional_extras() -> None:
    assert [
        f"{named(path)}: {function.name}"
        for path, nodes in trees().items()
        for function in nodes
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        and external_imports(ast.walk(function)) - OPTIONAL
    ] == []


def test_a_file_says_its_idea_at_its_top_and_is_short_enough_to_hold_one() -> None:
    assert [named(path) for path, nodes in trees().items() if not ast.get_docstring(nodes[0])] == []
    assert [named(path) for path in FILES if path.read_text().count("\n") > 500] == []


def test_no_file_asserts_or_imports_stars_or_keras_internals() -> None:
    wrong = []
    for path, nodes in trees().items():
        for node in nodes:
            if isinstance(node, ast.Assert):
                wrong.append(f"{named(path)}:{node.lineno}: raise an error instead of asserting")
            elif isinstance(node, ast.ImportFrom):
                if any(alias.name == "*" for alias in node.names):
                    wrong.append(f"{named(path)}:{node.lineno}: star import")
                if (node.module or "").startswith("keras.src") and named(path) not in PRIVATE_KERAS:
                    wrong.append(f"{named(path)}:{node.lineno}: private Keras import")
    assert wrong == []


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
    result: set[str] = set()
    for node in trees()[path]:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mixtrain"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                result.add(full if full in KNOWN else node.module)
    own_package = module_name(path)
    return {name for name in result if name in KNOWN and name not in ("mixtrain", own_package)}


KNOWN = {module_name(path) for path in FILES}
