"""A sample of the tests: in an order that a seed draws, none begun once a limit of minutes is over."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

BLOCK = 10  # Neighbors in a file stay together: they share what is trained once.
LEFT_OUT = "left out: the minutes for these tests are over (--minutes)"


def add_options(parser: pytest.Parser) -> None:
    """Add the limit, and the seed by which the tests that it holds change."""
    parser.addoption("--minutes", type=float, metavar="M", help="begin no test once M minutes are over")
    parser.addoption("--sample", metavar="SEED", help="run the tests in an order drawn by SEED")


class Sampling:
    """The hooks of `--minutes` and `--sample`."""

    def __init__(self, minutes: float | None, seed: str | None) -> None:
        self.seed = seed
        self.minutes = minutes
        self.deadline: float | None = None
        self.left_out: dict[str, int] = {}
        self.begun: set[str] = set()

    @pytest.hookimpl(trylast=True)  # After `-m` has left out what is not run.
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put blocks of neighboring tests in the order of the seed."""
        if self.seed is None:
            return
        places: dict[str, float] = {}
        counts: dict[str, int] = {}
        for item in items:
            file = _file(item.nodeid)
            counts[file] = counts.get(file, -1) + 1
            places[item.nodeid] = random.Random(f"{self.seed} {file} {counts[file] // BLOCK}").random()
        items.sort(key=lambda item: places[item.nodeid])

    def pytest_collection_finish(self) -> None:
        """Start the clock: what collects slowly still runs tests."""
        self.deadline = None if self.minutes is None else time.monotonic() + 60 * self.minutes

    def pytest_runtest_setup(self) -> None:
        """Skip a test when the time is over."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            pytest.skip(LEFT_OUT)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what was left out, by file."""
        if report.when != "setup":
            return
        if report.skipped and isinstance(report.longrepr, tuple) and LEFT_OUT in report.longrepr[2]:
            file = _file(report.nodeid)
            self.left_out[file] = self.left_out.get(file, 0) + 1
        elif report.passed:
            self.begun.add(_file(report.nodeid))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print what was left out, and how to run it."""
        if not self.left_out:
            return
        never = sorted(set(self.left_out) - self.begun)
        terminalreporter.write_sep("-", "sample")
        terminalreporter.write_line(
            f"left out: {sum(self.left_out.values())} tests in {len(self.left_out)} files, "
            f"of {len(self.begun | set(self.left_out))} files; the order is that of --sample={self.seed}"
        )
        for file in never:
            terminalreporter.write_line(f"  {file} ({self.left_out[file]})")


def _file(nodeid: str) -> str:
    """Return the file of a test."""
    return nodeid.partition("::")[0]
