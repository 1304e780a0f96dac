"""The `Examples:` of MindSpore's docstrings, run there and here: a recipe, which keeps none of their texts.

Where MindSpore is installed, the first command writes what each example prints; the second swaps the import, runs the
same examples here and compares::

    python tests/conformance/doc_examples.py --reference --into /tmp/reference.jsonl
    python -m tests.conformance.doc_examples --reference-results /tmp/reference.jsonl --into /tmp/here.jsonl
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import doctest
import importlib
import inspect
import io
import json
import linecache
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

# Where the examples are read from: a module's public names, or a class's public methods.
PLACES: Final = {
    "nn": ("mindspore.nn", None), "ops": ("mindspore.ops", None), "train": ("mindspore.train", None),
    "amp": ("mindspore.amp", None), "Tensor": ("mindspore", "Tensor"), "Parameter": ("mindspore", "Parameter"),
    "Cell": ("mindspore.nn", "Cell"), "Optimizer": ("mindspore.nn", "Optimizer"),
    "initializer": ("mindspore.common.initializer", None), "dataset": ("mindspore.dataset", None),
    "vision": ("mindspore.dataset.vision", None), "transforms": ("mindspore.dataset.transforms", None),
    "mindspore": ("mindspore", None), "numpy": ("mindspore.numpy", None),
    "experimental": ("mindspore.experimental.optim", None),
    "lr_scheduler": ("mindspore.experimental.optim.lr_scheduler", None),
}
SECONDS: Final = 60
# What the documentation's examples take from elsewhere: a network and its data.
PREAMBLE: Final = """
import numpy as np
import mindspore
import mindspore.dataset as ds
from mindspore import Parameter, Tensor, nn, ops
import numpy as _numpy
import mindspore.nn as _nn
import mindspore.dataset as _dataset


class LeNet5(_nn.Cell):
    def __init__(self, num_class=10, num_channel=1):
        super().__init__()
        self.conv1 = _nn.Conv2d(num_channel, 6, 5, pad_mode="valid")
        self.conv2 = _nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.fc1 = _nn.Dense(16 * 5 * 5, 120)
        self.fc2 = _nn.Dense(120, 84)
        self.fc3 = _nn.Dense(84, num_class)
        self.relu = _nn.ReLU()
        self.max_pool2d = _nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = _nn.Flatten()

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.flatten(self.max_pool2d(self.relu(self.conv2(x))))
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


def create_dataset(*_, batch_size=32, **__):
    rng = _numpy.random.default_rng(0)
    images = rng.standard_normal((64, 1, 32, 32)).astype(_numpy.float32)
    labels = rng.integers(0, 10, 64).astype(_numpy.int32)
    data = _dataset.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=False)
    return data.batch(batch_size)


Net = Net1 = Net2 = LeNet5
"""
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|\bnan\b|\binf\b")


def documented() -> Iterator[tuple[str, str]]:
    """Yield name and docstring of every documented example of the installed MindSpore, each docstring once."""
    seen: set[str] = set()
    for place, (path, owner) in PLACES.items():
        module = importlib.import_module(path)
        holder = getattr(module, owner) if owner else module
        names = [name for name in dir(holder) if not name.startswith("_")]
        for name in [*names, *(["__init__"] if owner else [])]:
            value = holder if name == "__init__" else getattr(holder, name, None)
            text = inspect.getdoc(value) or ""
            if ">>>" in text and text not in seen and not inspect.ismodule(value):
                seen.add(text)
                yield f"{place}.{name}", text


def swap(source: str) -> str:
    """Return a source that imports `mixtrain` wherever it imported `mindspore`."""
    source = re.sub(
        r"^([ \t]*)import mindspore(?=[ \t]*(?:$|#))", r"\1import mixtrain as mindspore", source, flags=re.M
    )
    source = re.sub(r"^([ \t]*)import mindspore\.([\w.]+)[ \t]+as\b", r"\1import mixtrain.\2 as", source, flags=re.M)
    source = re.sub(
        r"^([ \t]*)import mindspore\.([\w.]+)[ \t]*$", r"\1import mixtrain as mindspore; import mixtrain.\2", source,
        flags=re.M,
    )
    return re.sub(r"^([ \t]*(?:from|import) )mindspore\b", r"\1mixtrain", source, flags=re.M)


class TooLong(BaseException):
    """An example took longer than `SECONDS`."""


def _late(*_: Any) -> None:
    raise TooLong


def run(name: str, text: str, package: str, folder: pathlib.Path) -> dict[str, Any]:
    """Run the example of one docstring; return what each statement printed, and the first error."""
    examples = doctest.DocTestParser().get_examples(text)
    sources = [example.source if package == "mindspore" else swap(example.source) for example in examples]
    path = folder / (re.sub(r"\W", "_", name) + ".py")
    preamble = PREAMBLE if package == "mindspore" else swap(PREAMBLE)
    path.write_text("".join([preamble, *sources]))
    linecache.checkcache(str(path))
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    expected = [example.want for example in examples]
    result: dict[str, Any] = {"name": name, "printed": [], "wanted": expected, "error": ""}
    exec(compile(preamble, str(path), "exec"), vars(module))  # noqa: S102
    line = preamble.count("\n")
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        for source in sources:
            tree = ast.parse(source, mode="exec")
            ast.increment_lineno(tree, line)
            line += source.count("\n")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(ast.Interactive(tree.body), str(path), "single"), vars(module))  # noqa: S102
            result["printed"].append(printed.getvalue())
    except TooLong:
        result["error"] = "TooLong"
    except BaseException as error:  # noqa: BLE001  An example may do anything; its error is the result.
        result["error"] = f"{type(error).__name__}: {error}"[:400]
        result["at"] = source.strip().splitlines()[-1][:160]
    finally:
        signal.alarm(0)
    return result


def alike(one: str, other: str) -> bool:
    """Whether two outputs say the same: words but for spaces and line ends, numbers within 2e-3."""
    one, other = (re.sub(r"\bmixtrain\b", "mindspore", text) for text in (one, other))
    words = [re.sub(r"[\s,]+", "", _NUMBER.sub("#", text)) for text in (one, other)]
    numbers = [[float(number) for number in _NUMBER.findall(text)] for text in (one, other)]
    return words[0] == words[1] and all(
        a == b or a != a and b != b or abs(a - b) <= 2e-3 * max(abs(a), abs(b)) + 1e-5
        for a, b in zip(*numbers, strict=True)
    )


def verdict(reference: dict[str, Any], here: dict[str, Any]) -> str:
    """Return "passes", or how an example failed here."""
    if here["error"]:
        return here["error"]
    if not exact(reference):
        return "passes"
    for there, got in zip(reference["printed"], here["printed"], strict=True):
        if not alike(there, got):
            return f"prints {got.strip()[:120]!r} for {there.strip()[:120]!r}"
    return "passes"


def exact(reference: dict[str, Any]) -> bool:
    """Whether MindSpore printed what its documentation says, so that the numbers are no random ones."""
    return all(alike(expected, got) for expected, got in zip(reference["wanted"], reference["printed"], strict=True))


def work(package: str, into: pathlib.Path, wanted: set[str] | None, texts: pathlib.Path) -> None:
    """Run the examples that have no result yet; one that ends the process is noted first."""
    done = {json.loads(line)["name"] for line in into.read_text().splitlines()} if into.exists() else set()
    all_texts = json.loads(texts.read_text())
    folder = pathlib.Path(tempfile.mkdtemp())
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    importlib.import_module(package)
    starting = into.with_suffix(".starting")
    for name, text in all_texts:
        if name in done or wanted is not None and name not in wanted:
            continue
        starting.write_text(name)
        _fresh(package)
        result = run(name, text, package, folder)
        with into.open("a") as file:
            file.write(json.dumps(result) + "\n")
    starting.write_text("")


def _fresh(package: str) -> None:
    """Set what an earlier example may have changed: seeds and the mode."""
    module = importlib.import_module(package)
    module.set_context(mode=module.PYNATIVE_MODE)
    module.set_seed(1)


def supervise(arguments: argparse.Namespace, into: pathlib.Path) -> None:
    """Start the worker again for as long as examples end it."""
    starting = into.with_suffix(".starting")
    command = [sys.executable, __file__ if arguments.reference else "-m"]
    command += [] if arguments.reference else ["tests.conformance.doc_examples"]
    starting.write_text("")
    while True:
        process = subprocess.Popen([*command, *sys.argv[1:], "--worker"], stderr=subprocess.DEVNULL)
        while process.poll() is None:
            time.sleep(0.5)
            # A signal does not end a computation outside Python; a new process is started then.
            if starting.exists() and starting.read_text() and time.time() - starting.stat().st_mtime > 2 * SECONDS:
                process.kill()
        name = starting.read_text()
        if not name:
            return
        with into.open("a") as file:
            file.write(json.dumps({"name": name, "printed": [], "wanted": [], "error": "ended the process"}) + "\n")
        starting.write_text("")


def results(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Return the results in a file, by name."""
    return {row["name"]: row for row in map(json.loads, path.read_text().splitlines())}


def report(reference: dict[str, dict[str, Any]], here: dict[str, dict[str, Any]]) -> str:
    """Return pass rates by place, and the failures with their reasons."""
    tried, passed, failures = Counter[str](), Counter[str](), []
    for name, row in sorted(reference.items()):
        if row["error"] or name not in here:
            continue
        place = name.partition(".")[0]
        said = verdict(row, here[name])
        tried[place] += 1
        passed[place] += said == "passes"
        if said != "passes":
            failures.append(f"{name}: {said}   [{here[name].get('at', '')}]")
    table = [f"{place:14} {passed[place]:4} of {count:4}" for place, count in tried.items()]
    return "\n".join([*failures, "", *table, f"all {sum(passed.values())} of {sum(tried.values())}"])


def main() -> None:
    """Run the examples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", action="store_true", help="run them under MindSpore")
    parser.add_argument("--reference-results", type=pathlib.Path, help="what the first command wrote")
    parser.add_argument("--into", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="a regular expression for names")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    into = arguments.into.resolve()
    texts = (into if arguments.reference else arguments.reference_results.resolve()).with_suffix(".texts")
    package = "mindspore" if arguments.reference else "mixtrain"
    selected = None
    if not arguments.reference:
        rows = results(arguments.reference_results)
        selected = {name for name, row in rows.items() if not row["error"] and re.search(arguments.only, name)}
    if arguments.worker:
        work(package, into, selected, texts)
        return
    if arguments.reference:
        texts.write_text(json.dumps(list(documented())))
    supervise(arguments, into)
    if not arguments.reference:
        print(report(rows, results(into)))


if __name__ == "__main__":
    main()
