"""Every backend has every name of the interface, with the same signature, as read from the source files."""

from __future__ import annotations

import ast
import functools
import inspect
import pathlib

import pytest

from mixtrain import backend

ROOM = pathlib.Path(inspect.getfile(backend)).parent
BACKENDS = ("jax", "tensorflow")
NEUTRAL = {
    "ClassLabels", "DeviceInfo", "ExampleColumn", "GroupInfo", "JitChoice", "LabelOutOfRange", "RowPart", "SEED_STRIDE",
    "Share", "TensorBase", "UnreadableRecord", "backend_value", "cast_keeping_layout", "elementwise", "first_outside",
    "forked_after_start", "is_one_number", "join_along", "merge_of", "nhwc_of", "note_class_labels", "processors",
    "public_tensor", "reduce_axes", "speaking_of", "telling_place", "to_channels_last", "wrap_with",
}
MODULES = {"colors", "images", "row_random", "special", "warp"}
# What the files of one backend know of each other.
OWN = {"Pipeline": ("dataset",), "row_random": ("seed_words",)}
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@functools.cache
def imported(name: str) -> dict[str, str]:
    """Return the names that the backend interface takes from a backend, with the file of each."""
    found = {}
    for node in ast.walk(ast.parse((ROOM / "__init__.py").read_text())):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"mixtrain.backend.{name}."):
            file = (node.module or "").removeprefix(f"mixtrain.backend.{name}").removeprefix(".")
            found |= {alias.asname or alias.name: file or alias.name for alias in node.names}
    return found


@functools.cache
def definitions(name: str, file: str) -> dict[str, Definition]:
    """Return what a file of a backend defines, or takes from a file beside it or above it, by name."""
    found: dict[str, Definition] = {}
    for node in ast.parse((ROOM / name / f"{file}.py").read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                found |= {one.id: node for one in names if isinstance(one, ast.Name)}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mixtrain.backend"):
            path = ROOM.parent.parent.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            if path.is_file():
                there = definitions(str(path.parent.relative_to(ROOM)), path.stem)
                found |= {one.asname or one.name: there[one.name] for one in node.names if one.name in there}
    return found


def form(node: Definition) -> object:
    """Return what callers depend on: kinds, names and defaults of parameters; of a class, those of public methods."""
    if isinstance(node, ast.FunctionDef):
        bare = ast.arguments(
            posonlyargs=[ast.arg(one.arg) for one in node.args.posonlyargs],
            args=[ast.arg(one.arg) for one in node.args.args],
            vararg=node.args.vararg and ast.arg(node.args.vararg.arg),
            kwonlyargs=[ast.arg(one.arg) for one in node.args.kwonlyargs],
            kwarg=node.args.kwarg and ast.arg(node.args.kwarg.arg),
            kw_defaults=node.args.kw_defaults, defaults=node.args.defaults,
        )
        decorators = {ast.unparse(decorator).split("(")[0] for decorator in node.decorator_list}
        return ast.unparse(bare), bool(decorators & {"property", "functools.cached_property"})
    if isinstance(node, ast.ClassDef):
        return {
            method.name: form(method) for method in node.body if isinstance(method, ast.FunctionDef)
            and (not method.name.startswith("_") or method.name in ("__init__", "__call__"))
        }
    return "a value"


def given(node: ast.ClassDef) -> set[str]:
    """Return the public attributes that a class gives its instances in `__init__`."""
    return {
        found.attr for found in ast.walk(node)
        if isinstance(found, ast.Attribute) and isinstance(found.ctx, ast.Store) and not found.attr.startswith("_")
    }


def test_both_backends_give_every_name() -> None:
    for name in BACKENDS:
        assert set(imported(name)) | NEUTRAL == set(backend.__all__)
        assert set(imported(name)) & NEUTRAL == set()


def test_an_backends_rooms_have_the_same_names() -> None:
    one, other = (imported(name) for name in BACKENDS)
    assert one == other


@pytest.mark.parametrize("name", sorted(set(backend.__all__) - NEUTRAL - MODULES))
def test_a_name_has_the_same_signature_in_both(name: str) -> None:
    nodes = [definitions(one, imported(one)[name])[name] for one in BACKENDS]
    forms = [form(node) for node in nodes]
    for node, own, other in zip(nodes, forms, reversed(forms), strict=True):
        if isinstance(node, ast.ClassDef) and isinstance(own, dict) and isinstance(other, dict):
            # What one backend gives as a method, the other may give as an attribute that is called.
            own.update({method: other[method] for method in given(node) & other.keys()})
            for method in OWN.get(name, ()):
                own.pop(method, None)
    assert forms[0] == forms[1]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_has_the_same_functions_in_both(module: str) -> None:
    forms = [
        {
            node.name: form(node) for node in ast.parse((ROOM / one / f"{module}.py").read_text()).body
            if isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", *OWN.get(module, ())))
        }
        for one in BACKENDS
    ]
    assert forms[0] and forms[0] == forms[1]


def test_a_difference_would_be_seen() -> None:
    one, other, copied = (
        ast.parse(text).body[0] for text in (
            "def f(a: int, *, b: bool = True): ...", "def f(a, *, b=False): ...", "def f(a: str, *, b=True) -> int: 1",
        )
    )
    assert form(one) != form(other) and form(one) == form(copied)
