"""Coverage of the names that MindSpore scripts use, by count: `python -m tests.conformance.surface`."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import inspect
import json
import pathlib
from collections.abc import Iterator
from typing import Any, Final

import mixtrain
import mixtrain.common.initializer
import mixtrain.dataset.transforms
import mixtrain.dataset.vision
from mixtrain import nn, ops
from mixtrain.compat.mindspore.refused_names import is_refused
from mixtrain.optim import Optimizer

COUNTED: Final = json.loads((pathlib.Path(__file__).parent / "surface.json").read_text())
_MAKES: Final = mixtrain.common.initializer.Initializer
PAGE: Final = pathlib.Path(__file__).parents[2] / "docs" / "from_mindspore.md"
BEGIN: Final = "<!-- names: written by python -m tests.conformance.surface --write -->"
END: Final = "<!-- names: end -->"

# By the prefix of a counted name: the heading, and the modules in which it may be.
SECTIONS: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "train:": ("Model and training (`mixtrain`, `mixtrain.train`)", (mixtrain, mixtrain.train)),
    "amp:": ("Mixed precision (`mixtrain.amp`)", (mixtrain.amp,)),
    "metric:": ("Metrics (`mixtrain.nn`, `mixtrain.train`)", (nn.metrics,)),
    "context:": ("Settings (`mixtrain.context`, `mixtrain`)", (mixtrain.context,)),
    "ms.": ("Top level (`mixtrain`)", (mixtrain,)),
    "dtype.": ("Dtypes (`mixtrain`, `mixtrain.dtype`)", (mixtrain.dtype,)),
    "nn.": ("Layers, losses, optimizers (`mixtrain.nn`)", (nn,)),
    "initializer.": ("Initial values (`mixtrain.common.initializer`)", (mixtrain.common.initializer,)),
    "ds.": ("Datasets (`mixtrain.dataset`)", (mixtrain.dataset,)),
    "vision.": ("Image transforms (`mixtrain.dataset.vision`)", (mixtrain.dataset.vision,)),
    "transforms.": ("Transforms (`mixtrain.dataset.transforms`)", (mixtrain.dataset.transforms,)),
    "ops.": ("Operations (`mixtrain.ops`)", (ops,)),
}

# Names that exist only to say what to write instead.
REFUSED: Final = frozenset({
    "nn.thor", "nn.GraphCell", "train:load", "train:connect_network_with_dataset",
})


@dataclasses.dataclass(frozen=True)
class Counted:
    """One name and in how many projects it is used.

    Attributes:
        name: As counted, such as ``nn.Conv2d`` or ``Cell.set_train``.
        section: Heading of its part of the table.
        light: Projects of the light computer-vision set, of 294.
        everywhere: Projects of the widest set that was counted.
        exists: Whether there is such a name here.
        refused: Whether it is there only to say what to write instead.
    """

    name: str
    section: str
    light: int
    everywhere: int
    exists: bool
    refused: bool = False

    @property
    def short(self) -> str:
        """The name without what stands before it."""
        return self.name.replace(":", ".").partition(".")[2]


def names() -> Iterator[Counted]:
    """Yield every counted name of a module."""
    for name, light, _, _, everywhere in COUNTED["names"]:
        prefix = next(prefix for prefix in SECTIONS if name.startswith(prefix))
        section, modules = SECTIONS[prefix]
        path = name.removeprefix(prefix)
        exists = name not in REFUSED and any(_has(module, path) for module in modules)
        refused = name in REFUSED or any(is_refused(getattr(module, path, None)) for module in modules)
        yield Counted(name, section, light, everywhere, exists, refused)


def methods() -> Iterator[Counted]:
    """Yield every counted method."""
    owners: dict[str, Any] = {
        "Model": mixtrain.Model, "Cell": nn.Cell, "Optimizer": Optimizer, "RunContext": mixtrain.RunContext,
        "Parameter": mixtrain.Parameter, "Callback": mixtrain.Callback, "Metric": mixtrain.train.Metric,
        "Dataset": mixtrain.dataset.ImageFolderDataset, "Tensor": mixtrain.Tensor([1.0]),
    }
    for name, light, _, everywhere in COUNTED["methods"]:
        owner, _, method = name.partition(".")
        exists = name not in REFUSED and hasattr(owners[owner], method)
        yield Counted(name, f"Methods of {owner}", light, everywhere, exists, name in REFUSED)


@functools.cache
def counted() -> tuple[Counted, ...]:
    """Return all names and methods."""
    return (*names(), *methods())


def coverage(rows: list[Counted]) -> float:
    """Return the percentage of uses of these names, weighted by projects, that are of existing names."""
    return 100.0 * sum(row.everywhere for row in rows if row.exists) / sum(row.everywhere for row in rows)


def by_section() -> dict[str, list[Counted]]:
    """Return the rows under their headings, in the order of the count."""
    sections: dict[str, list[Counted]] = {}
    for row in counted():
        sections.setdefault(row.section, []).append(row)
    return sections


def page_part() -> str:
    """Return the generated part of the page: the coverage, and the names by section."""
    rows = list(counted())
    lines = [
        BEGIN,
        f"Of {len(rows)} names and methods counted in 2,215 public projects, mixtrain has "
        f"{sum(row.exists for row in rows)}; weighted by the projects that use them, {coverage(rows):.1f} %.",
        "",
        "| names | available | weighted by use |",
        "|---|---|---|",
    ]
    for section, group in by_section().items():
        lines.append(f"| {section} | {sum(row.exists for row in group)} of {len(group)} | {coverage(group):.1f} % |")
    for section, group in by_section().items():
        available = ", ".join(f"`{row.short}`" for row in group if row.exists)
        lines += ["", f"**{section}**: {available}."]
        more = sorted(_uncounted(section, {row.short for row in group}))
        if more:
            lines += ["", f"Also available: {', '.join(f'`{name}`' for name in more)}."]
        titles = {"Refused with an error that says what to write instead": True, "Not available": False}
        for title, refused in titles.items():
            rest = [f"`{row.short}`" for row in group if not row.exists and row.refused is refused]
            if rest:
                lines += ["", f"{title}: {', '.join(rest)}."]
    return "\n".join([*lines, END])


def _uncounted(section: str, known: set[str]) -> set[str]:
    """Return the public names of a section's own module that were not counted."""
    module = next((modules[-1] for heading, modules in SECTIONS.values() if heading == section), None)
    if module is None:
        return set()
    if module is mixtrain.common.initializer:
        public = {name for name, value in vars(module).items() if inspect.isclass(value) and issubclass(value, _MAKES)}
    else:
        public = set(getattr(module, "__all__", ()))
    elsewhere = {name for other in (nn, mixtrain.train, mixtrain.amp, mixtrain.dtype) for name in dir(other)}
    metrics = set(nn.metrics.__all__) if module in (nn, mixtrain.train) else set()
    shown_before = elsewhere if module is mixtrain else metrics
    return {name for name in public if not name.startswith("_")} - known - shown_before


def _has(module: Any, path: str) -> bool:
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
        if is_refused(module):
            return False
    return True


def _write() -> None:
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + page_part() + rest.partition(END)[2])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the names into docs/from_mindspore.md")
    if parser.parse_args().write:
        _write()
    print(page_part())
