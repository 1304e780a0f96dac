"""The wall: mixed precision (the engine) imports nothing of MindSpore's surface, of data sets or of interop.

What feeds its steps may use the data backend; tests/structure/test_layers.py holds that computing does not.

What crosses it would be listed here, a line each; nothing does.
"""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest

from tests.structure.test_layers import KNOWN, for_type_checkers, module_name, named
from tests.structure.trees import FILES, ROOT, trees

# A name that is longer beats a shorter one: `compat.apex` is interop, the rest of `compat` is surface.
SIDES = {
    "engine": {
        "autocast", "backend", "boundary", "checks", "class_labels", "diagnostics", "distribution", "dtype", "errors",
        "execution", "faces", "keras", "lazy_names", "log", "loss_scale", "metrics", "network", "precision",
        "process_group", "seed", "serialization", "step", "text_table", "trace_version", "train", "typing", "version",
    },
    "surface": {
        "amp", "auto_parallel", "cell", "common", "communication", "compat", "context", "experimental", "mindrecord",
        "mint", "nn", "numpy", "ops", "optim", "scipy",
    },
    "data": {"dataset"},
    "data backend": {"data_backend"},
    "interop": {"compat.apex", "compat.oneflow", "compat.pytorch"},
    "front door": {"__init__", "__main__"},
}
SIDE_OF = {name: side for side, names in SIDES.items() for name in names}

CROSSINGS = ""


def side_of(module: str) -> str | None:
    """Return the side of the wall of a module, by its dotted name without "mixtrain."."""
    parts = module.split(".")
    return next((SIDE_OF[name] for end in range(len(parts), 0, -1) if (name := ".".join(parts[:end])) in SIDE_OF), None)


def local_name(path: pathlib.Path) -> str:
    """Return a file's dotted name without "mixtrain."."""
    return module_name(path).removeprefix("mixtrain").lstrip(".") or "__init__"


def imports(tree: ast.AST) -> set[str]:
    """Return the modules of mixtrain that a part of a file imports, without "mixtrain."."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mixtrain":
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names |= {name if name in KNOWN else str(node.module) for name in full}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("mixtrain.")}
    return {name.removeprefix("mixtrain").lstrip(".") or "__init__" for name in names}


def crossings(parts: Callable[[list[ast.AST]], Iterable[ast.AST]]) -> set[str]:
    """Return the imports of parts of the engine's files that cross the wall, as ``file -> module``."""
    return {
        f"{named(path)} -> {module}"
        for path, nodes in trees().items() if side_of(local_name(path)) == "engine"
        for part in parts(nodes) for module in imports(part) if side_of(module) not in ("engine", "data backend")
    }


# MindSpore's names that a package of the engine has, too: it loads them when they are asked for.
LENT_NAMES = {
    "serialization/__init__.py -> compat.mindspore.export", "train/__init__.py -> compat.mindspore.train",
    "train/__init__.py -> nn.metrics", "train/callback/__init__.py -> compat.mindspore.train",
}
# With them, what an engine file loads when a script asks for one of MindSpore's names or classes, not before.
LOADED_ON_DEMAND = LENT_NAMES | {"metrics/factory.py -> nn.metrics", "serialization/read.py -> common.parameter"}


def test_every_module_is_on_a_side_of_the_wall() -> None:
    assert {local_name(path) for path in FILES if side_of(local_name(path)) is None} == set()


def test_only_the_listed_imports_cross_the_wall() -> None:
    found = sorted(crossings(lambda nodes: nodes[:1]) - LENT_NAMES)
    assert "".join(f"{line}\n" for line in found) == CROSSINGS.lstrip(), "take out what is cut; add nothing"
    assert crossings(for_type_checkers) == LENT_NAMES


def test_only_the_listed_modules_of_the_other_sides_are_loaded_on_demand() -> None:
    constants = {
        f"{named(path)} -> {node.value.removeprefix('mixtrain.')}"
        for path, nodes in trees().items() if side_of(local_name(path)) == "engine"
        for node in nodes
        if isinstance(node, ast.Constant) and node.value in KNOWN - {"mixtrain"}
        and side_of(node.value.removeprefix("mixtrain.")) != "engine"
    }
    assert constants == LOADED_ON_DEMAND


# Lines of mixtrain that a program may load.
BUDGETS = {
    "model": 34_000,
    "prepare": 20_000,
    "rule": 9_000,
}
NETWORK = """
import keras, numpy as np
network = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
x, y = np.ones((8, 4), "float32"), np.ones((8, 2), "float32")
"""
PROGRAMS = {
    "model": f"""
from mixtrain import Model
{NETWORK}
model = Model(network, keras.losses.MeanSquaredError(), keras.optimizers.SGD(0.1), amp_level="O2")
model.train(1, [(x, y), (x, y)])
""",
    "prepare": f"""
from mixtrain.keras import prepare
{NETWORK}
network.compile(prepare(network, keras.optimizers.SGD(0.1), "O2"), "mse")
network.fit(x, y, epochs=1, batch_size=4, verbose=0)
""",
    "rule": "import mixtrain.loss_scale.rule\n",
}
COUNT = """
import sys
files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
loaded = [file for file in files if file.startswith(sys.argv[1]) and file.endswith(".py")]
print("lines:", sum(open(file, encoding="utf-8").read().count("\\n") for file in loaded))
"""


# Lines of the parts of mixtrain, at most. Only a capability raises them: 22,000, 29,000 and 77,000 held before the
# trial of a step (`Model.check`), a report of several runs, tried cures of overflows, packed gradients on a GPU, lines
# of overflows, warnings of weights that do not move and of layers that are far off, products in float8, weights
# stored in half, Keras models that train by steps of their own, Keras's methods of a batch, bars, sharded weights,
# sentences about loss scales that the step itself has shown, Model.compile's ways to run a step, `nn.probability`,
# `mint`, gradients of integers, plain safetensors files, `scipy`, steps that run uncompiled.
SIZES = {"engine without the backend": 25_750, "engine": 33_850, "package": 93_650}


def test_the_parts_are_no_larger_than_their_budgets() -> None:
    lines = {local_name(path): path.read_text().count("\n") for path in FILES}
    engine = {name: count for name, count in lines.items() if side_of(name) == "engine"}
    backend = sum(count for name, count in engine.items() if name.split(".")[0] == "backend")
    total = sum(engine.values())
    sizes = {"engine without the backend": total - backend, "engine": total, "package": sum(lines.values())}
    assert {part: size for part, size in sizes.items() if size > SIZES[part]} == {}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_loads_no_more_of_mixtrain_than_its_budget(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS[program] + COUNT, str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.rpartition("lines:")[2]) <= BUDGETS[program]
