"""The parent's side: a child process that holds one contender, asked line by line."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.contender import Contender, as_text
from benchmarks.workloads import Workload

ROOT = pathlib.Path(__file__).parent.parent
# Frameworks keep their notes to themselves; mixtrain sees to that where it is imported first.
ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "2", "GLOG_v": "3", "KERAS_BACKEND": "tensorflow"}
VARIABLES = {
    "torch": "BENCHMARKS_TORCH_PYTHON",
    "mindspore": "BENCHMARKS_MINDSPORE_PYTHON",
    "jax": "BENCHMARKS_JAX_PYTHON",
}


class ChildFailed(RuntimeError):
    """A child process ended; the message holds the end of what it said."""


@dataclasses.dataclass(frozen=True)
class Interpreters:
    """Which Python runs which peer.

    Attributes:
        asked: Paths of interpreters by package; those of the environment and then this process's own otherwise.
    """

    asked: Mapping[str, str | None] = dataclasses.field(default_factory=dict)

    def of(self, package: str | None) -> str | None:
        """Return the interpreter for a package, or None where none was named and this one lacks the package."""
        if package is None:
            return sys.executable
        named = self.asked.get(package) or os.environ.get(VARIABLES[package])
        return named or (sys.executable if importlib.util.find_spec(package) else None)


class Child:
    """A process that holds one contender; a context manager that ends it.

    Args:
        command: What to start.
        name: Whom it holds, for errors.
        environment: What it finds in its environment beside what this process does.
        root: The checkout that it runs.
    """

    def __init__(
        self,
        command: Sequence[str],
        name: str,
        environment: Mapping[str, str] | None = None,
        *,
        root: pathlib.Path = ROOT,
    ) -> None:
        self._name = name
        # Peers leave files where they run.
        self._folder = tempfile.TemporaryDirectory(prefix="benchmarks-")
        self._said = open(pathlib.Path(self._folder.name) / "stderr", "w+")  # noqa: SIM115  (closed by `close`)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            cwd=self._folder.name,
            env={**os.environ, **ENVIRONMENT, **(environment or {}), "PYTHONPATH": str(root)},
        )
        self._versions: dict[str, str] | None = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    @property
    def versions(self) -> dict[str, str]:
        """The versions in use there; waits until network and data are built.

        Raises:
            ChildFailed: The process ended.
        """
        if self._versions is None:
            self._versions = self._answer()["versions"]
        return self._versions

    def ask(self, question: str) -> dict[str, Any]:
        """Return the answer to "prepare", "round" or "forget".

        Raises:
            ChildFailed: The process ended.
        """
        self.versions  # noqa: B018  (said first)
        stream = self._process.stdin
        if stream is not None and self._process.poll() is None:
            stream.write(question + "\n")
            stream.flush()
        return self._answer()

    def prepare(self) -> float:
        """Make the training; return the seconds it took."""
        return float(self.ask("prepare")["seconds"])

    def round(self) -> float:
        """Train for a round; return the seconds it took."""
        return float(self.ask("round")["seconds"])

    def stop(self) -> None:
        """End the process at once, whatever it does; who asks it then is told that it ended."""
        self._process.kill()

    def close(self) -> None:
        """End the process: it ends with its input."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._said.close()
        self._folder.cleanup()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            self._process.wait()
            self._said.seek(0)
            end = "\n".join(self._said.read().splitlines()[-12:])
            raise ChildFailed(f"benchmarks: the process of {self._name} ended ({self._process.returncode}):\n{end}")
        facts: dict[str, Any] = json.loads(line)
        return facts


def start_child(
    contender: Contender,
    workload: Workload,
    steps: int,
    python: str,
    *,
    root: pathlib.Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Start a process that holds a contender, under an interpreter, by default of this checkout.

    Args:
        contender: Who trains.
        workload: What is trained.
        steps: Steps a round.
        python: The interpreter.
        root: The checkout that it runs.
        environment: Environment variables beside the contender's own.
    """
    command = [python, "-m", "benchmarks.child", as_text(contender, workload, steps)]
    name = f"{workload.title}, {contender.name}"
    return Child(command, name, {**contender.environment, **(environment or {})}, root=root)
