"""Answer one question about the device in a fresh process: its ceilings, checks, traces or the cost of a step.

    python -m benchmarks.gpu_child '<{"about": ..., ...} as JSON>'

It writes a line with its versions, then answers the first line of stdin. All other output goes to stderr.
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

# Modules whose `answer(request)` returns JSON values.
ABOUT: Final = {
    "ceilings": "benchmarks.gpu_ceilings",
    "checks": "benchmarks.gpu_checks",
    "traces": "benchmarks.gpu_traces",
    "cost": "benchmarks.gpu_cost",
    "compiled": "benchmarks.gpu_compiled_step",
}


@dataclasses.dataclass(frozen=True)
class Asker:
    """Asks questions in fresh processes.

    Attributes:
        python: A Python that has JAX.
        budget: Time limit of the answers; None for no limit.
    """

    python: str
    budget: Budget | None = None

    def ask(self, about: str, environment: Mapping[str, str] | None = None, **request: Any) -> dict[str, Any]:
        """Return the answer to a question.

        Args:
            about: Key of `ABOUT`.
            environment: Environment variables of the process.
            request: Arguments of the question.

        Raises:
            ChildFailed: The process ended without an answer.
        """
        command = [self.python, "-m", "benchmarks.gpu_child", json.dumps({"about": about, **request})]
        with Child(command, about, {**RUNNERS["hand jax"].environment, **(environment or {})}) as child:
            with stopped_in_time(child, self.budget) if self.budget else contextlib.nullcontext():
                return {**child.ask("answer"), "versions": child.versions}


def main() -> None:
    """Answer the parent over stdout."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.loads(sys.argv[1])
    answer: Callable[[Mapping[str, Any]], dict[str, Any]] = importlib.import_module(ABOUT[request["about"]]).answer
    answers.write(json.dumps({"versions": versions()}) + "\n")
    answers.flush()
    sys.stdin.readline()
    answers.write(json.dumps(answer(request)) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
