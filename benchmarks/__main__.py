"""Measure mixtrain beside its peers, and write benchmarks/results/ and docs/benchmarks.md.

    python -m benchmarks --list
    python -m benchmarks --torch-python PATH --mindspore-python PATH
    python -m benchmarks --set lenet cifar --rounds 21

Without --set the default sets are run. PyTorch and MindSpore run in processes of their own, under the interpreters
named here or by BENCHMARKS_TORCH_PYTHON and BENCHMARKS_MINDSPORE_PYTHON, else under this one where it has them; a peer
that is not found is left out, and its rows say so.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence

from benchmarks.children import Interpreters
from benchmarks.run import run_set
from benchmarks.sets import SETS
from benchmarks.table import goals_as_markdown


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sets named on the command line."""
    options = parse(arguments)
    if options.list:
        for item in SETS.values():
            print(f"{item.name:14} {'' if item.default else '(only by name) '}{item.what}")
        return
    names = options.set or [name for name, item in SETS.items() if item.default]
    interpreters = Interpreters(
        {"torch": options.torch_python, "mindspore": options.mindspore_python, "jax": options.jax_python}
    )
    records = []
    for name in names:
        races = [race.changed(rounds=options.rounds, quick=options.quick) for race in SETS[name].races]
        records.append(run_set(name, races, interpreters, write=not (options.quick or options.print_only)))
    print(f"\n## goals\n\n{goals_as_markdown(records)}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name the sets")
    parser.add_argument("--set", nargs="+", choices=list(SETS), metavar="NAME", help="these sets alone")
    parser.add_argument("--rounds", type=int, help="how often each contender is timed, in place of each race's number")
    parser.add_argument("--quick", action="store_true", help="3 rounds of few steps, to see that all runs; no writing")
    parser.add_argument("--print-only", action="store_true", help="leave the records and the page as they are")
    parser.add_argument("--torch-python", metavar="PATH", help="the Python that has PyTorch")
    parser.add_argument("--mindspore-python", metavar="PATH", help="the Python that has MindSpore")
    parser.add_argument("--jax-python", metavar="PATH", help="the Python that has JAX and Keras")
    options = parser.parse_args(arguments)
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")
    for path in (options.torch_python, options.mindspore_python, options.jax_python):
        if path is not None and shutil.which(path) is None:
            parser.error(f"{path} is no program: name a Python, such as .venv/bin/python")
    return options


if __name__ == "__main__":
    main()
