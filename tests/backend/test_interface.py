"""Every backend has every name of the documented interface, with its signature, according to the source files."""

from __future__ import annotations

import ast
import functools
import pathlib

import pytest

import mixtrain
from mixtrain import data_backend
from mixtrain.data_backend import arrays
from tests.backends import quick_every

ROOT = pathlib.Path(mixtrain.__file__).parent
BACKENDS = ("jax", "tensorflow")
# What the package of the interface imports for itself.
INNER = {"check_asked_backend", "check_backend", "note_forks"}
INTERFACES = {
    "backend": {
        alias.name for node in ast.walk(ast.parse((ROOT / "backend" / "__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mixtrain.") for alias in node.names
    } - INNER,
    "data_backend": {*data_backend.__all__, *arrays.__all__},
}
# The files that import names of an interface from a backend.
IMPORTERS = {"backend": ("__init__",), "data_backend": ("__init__", "arrays")}
# Names that need no array library, once for all backends.
NEUTRAL = {
    "ClassLabels", "DeviceInfo", "ExampleColumn", "GroupInfo", "JitChoice", "LabelOutOfRange", "RowPart", "SEED_STRIDE",
    "Share", "TensorBase", "UnreadableRecord", "Unstorable", "backend_value", "cast_keeping_layout", "colors",
    "LayoutView", "first_outside", "forked_after_start", "is_one_number", "make_views_with", "merge_of", "nhwc_of",
    "note_class_labels", "on_layout", "processors", "public_tensor", "error_subject", "naming_position",
    "text_for_numbers", "EmptyBatch", "RefusedBatch", "is_next_value", "mark_next_value", "next_values",
    "refuse_empty", "takes_next_value", "Operation", "UndecidedBranch", "warp", "without_next_values",
    "load_public_with", "mask_of", "set_mask", "wrap_with",
}
MODULES = {
    ("backend", "special"), ("data_backend", "images"), ("data_backend", "row_random"),
}
# Methods and functions that only files of the same backend use.
OWN = {"Pipeline": ("dataset",), "row_random": ("seed_words",)}
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@functools.cache
def imported(package: str, name: str) -> dict[str, str]:
    """Return the names that an interface imports from a backend, with the file of each."""
    files = {}
    text = "".join((ROOT / package / f"{importer}.py").read_text() for importer in IMPORTERS[package])
    for node in ast.walk(ast.parse(text.replace("from __future__ import annotations", ""))):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"mixtrain.{package}.{name}."):
            file = (node.module or "").removeprefix(f"mixtrain.{package}.{name}").removeprefix(".")
            files |= {alias.asname or alias.name: file or alias.name for alias in node.names}
    return files


def path_of(package: str, library: str, name: str) -> pathlib.Path:
    """Return the file of a backend from which an interface imports a name."""
    return ROOT / package / library / f"{imported(package, library)[name]}.py"


@functools.cache
def definitions(path: pathlib.Path) -> dict[str, Definition]:
    """Return the definitions in a file of a backend, or in the files that it imports from the package, by name."""
    nodes: dict[str, Definition] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            nodes[node.name] = node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                nodes |= {item.id: node for item in names if isinstance(item, ast.Name)}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[:1] == ["mixtrain"]:
            other = ROOT.parent.joinpath(*(node.module or "").split(".")).with_suffix(".py")
            if other.is_file() and other.relative_to(ROOT).parts[0] in INTERFACES:
                there = definitions(other)
                nodes |= {item.asname or item.name: there[item.name] for item in node.names if item.name in there}
    return nodes


@functools.cache
def documented(package: str) -> dict[str, Definition]:
    """Return the definitions in the files of an interface, by name; those of a module by "module.name"."""
    files = {imported(package, "jax")[module]: f"{module}." for place, module in MODULES if place == package}
    nodes: dict[str, Definition] = {}
    for path in sorted((ROOT / package / "interface").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            name = getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", None)
            if name and isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign)):
                nodes[files.get(path.stem, "") + name] = node
    return nodes


def implementation(package: str, library: str, name: str) -> Definition:
    """Return the definition of a documented name in a backend."""
    return definitions(path_of(package, library, name.split(".")[0]))[name.split(".")[-1]]


def parts_of(name: str, node: Definition) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Return a function, or a class and its public methods, by name; nothing of a value."""
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {}
    methods = [part for part in node.body if isinstance(part, ast.FunctionDef) and not part.name.startswith("__")]
    public = {f"{name}.{part.name}": part for part in methods if not part.name.startswith("_")}
    return {name: node} | (public if isinstance(node, ast.ClassDef) else {})


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


DOCUMENTED = [(package, name) for package in INTERFACES for name in documented(package)]


@pytest.mark.parametrize("package", INTERFACES)
def test_both_backends_have_every_name(package: str) -> None:
    for name in BACKENDS:
        assert set(imported(package, name)) == INTERFACES[package] - NEUTRAL


@pytest.mark.parametrize("package", INTERFACES)
def test_both_backends_have_the_same_names_in_the_same_files(package: str) -> None:
    one, other = (imported(package, name) for name in BACKENDS)
    assert one == other


@pytest.mark.parametrize("package", INTERFACES)
def test_every_name_is_documented(package: str) -> None:
    own = {name for name in documented(package) if "." not in name}
    assert own | NEUTRAL | {name for place, name in MODULES if place == package} == INTERFACES[package] | NEUTRAL
    for name, node in documented(package).items():
        missing = [place for place, part in parts_of(name, node).items() if ast.get_docstring(part) is None]
        assert missing == [], name


@quick_every(3)
@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize(("package", "name"), DOCUMENTED)
def test_a_name_has_the_signature_of_the_interface(package: str, name: str, library: str) -> None:
    documented_node, node = documented(package)[name], implementation(package, library, name)
    expected, own = signature_of(documented_node), signature_of(node)
    if isinstance(node, ast.ClassDef) and isinstance(own, dict) and isinstance(expected, dict):
        # A method of one backend may be a callable attribute in the other.
        own.update({method: expected[method] for method in attributes_of(node) & expected.keys()})
        for method in OWN.get(name, ()):
            own.pop(method, None)
    assert own == expected


@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize(("package", "name"), DOCUMENTED)
def test_a_docstring_is_in_the_interface_alone(package: str, name: str, library: str) -> None:
    """What is particular to a backend is a line; nothing is said twice."""
    texts = parts_of(name, documented(package)[name])
    for place, node in parts_of(name, implementation(package, library, name)).items():
        text = ast.get_docstring(node)
        if text is not None and place in texts:
            assert "\n" not in text and text not in (ast.get_docstring(texts[place]) or ""), place


@pytest.mark.parametrize("library", BACKENDS)
@pytest.mark.parametrize(("package", "module"), sorted(MODULES))
def test_a_module_has_the_functions_of_the_interface(package: str, module: str, library: str) -> None:
    tree = ast.parse(path_of(package, library, module).read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    values = {node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)}  # type: ignore[attr-defined]
    expected = {name.removeprefix(f"{module}.") for name in documented(package) if name.startswith(f"{module}.")}
    assert names.difference(OWN.get(module, ())) | values & expected == expected


def test_a_difference_is_detected() -> None:
    function, other, copied = (
        ast.parse(text).body[0] for text in (
            "def f(a: int, *, b: bool = True): ...", "def f(a, *, b=False): ...", "def f(a: str, *, b=True) -> int: 1",
        )
    )
    assert signature_of(function) != signature_of(other) and signature_of(function) == signature_of(copied)
