"""A question about the device, answered in a process of its own: its ceilings, its numbers, its traces, a step's cost.

    python -m benchmarks.gpu_child '<{"about": ..., ...} as JSON>'

Its first line says which versions it runs with; it answers the first line that comes in. Anything else goes to stderr.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from benchmarks.child import versions
from benchmarks.children import Child
from benchmarks.contender import RUNNERS
from benchmarks.gpu_measure import Budget, stopped_in_time

# Each has `answer(told)`, which takes what was asked and returns plain values.
ABOUT: Final = {
    "ceilings": "benchmarks.gpu_ceilings",
    "checks": "benchmarks.gpu_checks",
    "traces": "benchmarks.gpu_traces",
    "cost": "benchmarks.gpu_cost",
}


@dataclasses.dataclass(frozen=True)
class Asker:
    """Whoever asks a fresh process.

    Attributes:
        python: A Python that has JAX.
        budget: How long answers may take; None for as long as they do.
    """

    python: str
    budget: Budget | None = None

    def ask(self, about: str, environment: Mapping[str, str] | None = None, **told: Any) -> dict[str, Any]:
        """Return the answer to a question.

        Args:
            about: Key of `ABOUT`.
            environment: Environment variables of the process.
            told: What the question says.

        Raises:
            ChildFailed: The process ended without an answer.
        """
        command = [self.python, "-m", "benchmarks.gpu_child", json.dumps({"about": about, **told})]
        with Child(command, about, {**RUNNERS["hand jax"].environment, **(environment or {})}) as child:
            with stopped_in_time(child, self.budget) if self.budget else contextlib.nullcontext():
                return {**child.ask("answer"), "versions": child.versions}


def main() -> None:
    """Answer the parent over stdout."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    told = json.loads(sys.argv[1])
    answer: Callable[[Mapping[str, Any]], dict[str, Any]] = importlib.import_module(ABOUT[told["about"]]).answer
    answers.write(json.dumps({"versions": versions()}) + "\n")
    answers.flush()
    sys.stdin.readline()
    answers.write(json.dumps(answer(told)) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
