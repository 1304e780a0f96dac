"""Results of a race: a series per contender, the contenders that are missing, and the versions."""

from __future__ import annotations

import dataclasses

from benchmarks.children import VARIABLES, Interpreters
from benchmarks.contender import Contender
from benchmarks.measure import Series


@dataclasses.dataclass
class Findings:
    """Results of a race.

    Attributes:
        series: Measurements by contender.
        missing: Reason by contender that was not measured.
        versions: Versions of the frameworks, by name.
    """

    series: dict[str, Series] = dataclasses.field(default_factory=dict)
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    versions: dict[str, str] = dataclasses.field(default_factory=dict)


# The output of the process is left out: it contains paths of this machine.
ENDED = "its process ended; what it said was printed in the run"


def python_for(contender: Contender, interpreters: Interpreters, findings: Findings) -> str | None:
    """Return the interpreter for a contender; where there is none, add the contender to the missing ones."""
    package = contender.runner.package
    python = interpreters.of(package)
    if python is None and package is not None:
        findings.missing[contender.name] = (
            f"{package} is not installed here. Write --{package}-python PATH or set {VARIABLES[package]}."
        )
    return python
