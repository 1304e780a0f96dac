"""What a race gives: a series for each contender, who was missing and why, and the versions seen."""

from __future__ import annotations

import dataclasses

from benchmarks.children import VARIABLES, Interpreters
from benchmarks.contender import Contender
from benchmarks.measure import Series


@dataclasses.dataclass
class Findings:
    """What was measured.

    Attributes:
        series: By contender.
        missing: Why a contender was not measured, by contender.
        versions: Versions of the frameworks, by name.
    """

    series: dict[str, Series] = dataclasses.field(default_factory=dict)
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    versions: dict[str, str] = dataclasses.field(default_factory=dict)


# Without what the process said, which holds paths of this machine.
ENDED = "its process ended; what it said was printed in the run"


def python_for(contender: Contender, interpreters: Interpreters, findings: Findings) -> str | None:
    """Return the interpreter of a contender's process; where there is none, note it in the findings."""
    package = contender.runner.package
    python = interpreters.of(package)
    if python is None and package is not None:
        findings.missing[contender.name] = (
            f"{package} is not installed here. Write --{package}-python PATH or set {VARIABLES[package]}."
        )
    return python
