"""Time Model's training steps against keras.Model.fit, on Keras networks at several precisions.

    python -m benchmarks.keras_fit
    python -m benchmarks.keras_fit --case lenet-float32 --rounds 5 --steps 32 --print-only

A case is one network, trained by Keras's own `compile` and `fit` and by mixtrain: the same initial weights, batches,
loss and optimizer, in one process, in turn. A run of all cases writes `benchmarks/results/keras_fit.json` and the table
of `docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from typing import Any

from benchmarks.children import Interpreters
from benchmarks.keras_fit_cases import CASES
from benchmarks.race import Race
from benchmarks.run import run_set

JIT: dict[str, Any] = {"auto": "auto", "on": True, "off": False}


def with_jit(race: Race, jit: Any) -> Race:
    """Return a race whose contenders have another `jit_compile`."""
    contenders = tuple(dataclasses.replace(contender, jit=jit) for contender in race.contenders)
    return dataclasses.replace(race, contenders=contenders)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the record and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=list(CASES), help="one case; may be repeated")
    parser.add_argument("--rounds", type=int, help="timed rounds of each contender, at least 2")
    parser.add_argument("--steps", type=int, help="steps per round, instead of each case's own")
    parser.add_argument("--keras-jit", choices=list(JIT), default="auto", help="jit_compile of Keras's compile")
    parser.add_argument("--print-only", action="store_true", help="leave the record and the table as they are")
    options = parser.parse_args(arguments)
    if options.case and not options.print_only:
        parser.error("the record and the table hold all cases: write --print-only with --case")
    if (options.rounds is not None and options.rounds < 2) or (options.steps is not None and options.steps < 1):
        parser.error("--rounds must be at least 2, and --steps at least 1")
    races = [
        with_jit(CASES[name], JIT[options.keras_jit]).changed(rounds=options.rounds, steps=options.steps)
        for name in options.case or CASES
    ]
    run_set("keras_fit", races, Interpreters(), write=not options.print_only)


if __name__ == "__main__":
    main()
