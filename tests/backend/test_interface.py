"""Every backend has every name of the interface, with the same signature, according to the source files."""

from __future__ import annotations

import ast
import functools
import inspect
import pathlib

import pytest

from mixtrain import backend
from tests.backends import quick_every

PACKAGE = pathlib.Path(inspect.getfile(backend)).parent
BACKENDS = ("jax", "tensorflow")
NEUTRAL = {
    "ClassLabels", "DeviceInfo", "ExampleColumn", "GroupInfo", "JitChoice", "LabelOutOfRange", "RowPart", "SEED_STRIDE",
    "Share", "TensorBase", "UnreadableRecord", "Unstorable", "backend_value", "cast_keeping_layout", "elementwise",
    "first_outside", "forked_after_start", "is_one_number", "join_along", "merge_of", "nhwc_of", "note_class_labels",
    "processors", "public_tensor", "reduce_axes", "error_subject", "naming_position", "text_for_numbers",
    "EmptyBatch", "RefusedBatch", "is_next_value", "mark_next_value", "next_values", "refuse_empty",
    "takes_next_value", "to_channels_last", "without_next_values", "wrap_with",
}
MODULES = {"colors", "images", "row_random", "special", "warp"}
# Methods and functions that only files of the same backend use.
OWN = {"Pipeline": ("dataset",), "row_random": ("seed_words",)}
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@functools.cache
def imported(name: str) -> dict[str, str]:
    """Return the names that the backend interface imports from a backend, with the file of each."""
    files = {}
    for node in ast.walk(ast.parse((PACKAGE / "__init__.py").read_text())):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"mixtrain.backend.{name}."):
            file = (node.module or "").removeprefix(f"mixtrain.backend.{name}").removeprefix(".")
            files |= {alias.asname or alias.name: file or alias.name for alias in node.names}
    return files


@functools.cache
def definitions(name: str, file: str) -> dict[str, Definition]:
    """Return the definitions in a file of a backend, or in the files that it imports from the package, by name."""
    nodes: dict[str, Definition] = {}
    for node in ast.parse((PACKAGE / name / f"{file}.py").read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            nodes[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                nodes |= {item.id: node for item in names if isinstance(item, ast.Name)}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mixtrain.backend"):
            path = PACKAGE.parent.parent.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            if path.is_file():
                there = definitions(str(path.parent.relative_to(PACKAGE)), path.stem)
                nodes |= {item.asname or item.name: there[item.name] for item in node.names if item.name in there}
    return nodes


def signature_of(node: Definition) -> object:
    """Return the names, kinds and defaults of parameters of a function, or of the public methods of a class."""
    if isinstance(node, ast.FunctionDef):
        bare = ast.arguments(
            posonlyargs=[ast.arg(parameter.arg) for parameter in node.args.posonlyargs],
            args=[ast.arg(parameter.arg) for parameter in node.args.args],
            vararg=node.args.vararg and ast.arg(node.args.vararg.arg),
            kwonlyargs=[ast.arg(parameter.arg) for parameter in node.args.kwonlyargs],
            kwarg=node.args.kwarg and ast.arg(node.args.kwarg.arg),
            kw_defaults=node.args.kw_defaults, defaults=node.args.defaults,
        )
        decorators = {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}
        return ast.unparse(bare), bool(decorators & {"property", "functools.cached_property"})
    if isinstance(node, ast.ClassDef):
        return {
            method.name: signature_of(method) for method in node.body if isinstance(method, ast.FunctionDef)
            and (not method.name.startswith("_") or method.name in ("__init__", "__call__"))
        }
    return "a value"


def attributes_of(node: ast.ClassDef) -> set[str]:
    """Return the public attributes that the methods of a class set."""
    return {
        child.attr for child in ast.walk(node)
        if isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store) and not child.attr.startswith("_")
    }


def test_both_backends_have_every_name() -> None:
    for name in BACKENDS:
        assert set(imported(name)) | NEUTRAL == set(backend.__all__)
        assert set(imported(name)) & NEUTRAL == set()


def test_both_backends_have_the_same_names_in_the_same_files() -> None:
    one, other = (imported(name) for name in BACKENDS)
    assert one == other


@quick_every(3)
@pytest.mark.parametrize("name", sorted(set(backend.__all__) - NEUTRAL - MODULES))
def test_a_name_has_the_same_signature_in_both(name: str) -> None:
    nodes = [definitions(library, imported(library)[name])[name] for library in BACKENDS]
    signatures = [signature_of(node) for node in nodes]
    for node, own, other in zip(nodes, signatures, reversed(signatures), strict=True):
        if isinstance(node, ast.ClassDef) and isinstance(own, dict) and isinstance(other, dict):
            # A method of one backend may be a callable attribute in the other.
            own.update({method: other[method] for method in attributes_of(node) & other.keys()})
            for method in OWN.get(name, ()):
                own.pop(method, None)
    assert signatures[0] == signatures[1]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_has_the_same_functions_in_both(module: str) -> None:
    signatures = [
        {
            node.name: signature_of(node) for node in ast.parse((PACKAGE / library / f"{module}.py").read_text()).body
            if isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", *OWN.get(module, ())))
        }
        for library in BACKENDS
    ]
    assert signatures[0] and signatures[0] == signatures[1]


def test_a_difference_is_detected() -> None:
    function, other, copied = (
        ast.parse(text).body[0] for text in (
            "def f(a: int, *, b: bool = True): ...", "def f(a, *, b=False): ...", "def f(a: str, *, b=True) -> int: 1",
        )
    )
    assert signature_of(function) != signature_of(other) and signature_of(function) == signature_of(copied)
