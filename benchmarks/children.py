"""Parent side of the benchmark processes: start a child with one contender and send it commands."""

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
# Silences the log messages of TensorFlow and MindSpore.
ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "2", "GLOG_v": "3", "KERAS_BACKEND": "tensorflow"}
VARIABLES = {
    "torch": "BENCHMARKS_TORCH_PYTHON",
    "mindspore": "BENCHMARKS_MINDSPORE_PYTHON",
    "jax": "BENCHMARKS_JAX_PYTHON",
}


class ChildFailed(RuntimeError):
    """A child process ended; the message has the last lines of its stderr."""


@dataclasses.dataclass(frozen=True)
class Interpreters:
    """Which Python runs which peer.

    Attributes:
        paths: Paths of interpreters by package; by default those of the environment, then this process's own.
    """

    paths: Mapping[str, str | None] = dataclasses.field(default_factory=dict)

    def of(self, package: str | None) -> str | None:
        """Return the interpreter for a package, or None where none is named and this one lacks the package."""
        if package is None:
            return sys.executable
        python = self.paths.get(package) or os.environ.get(VARIABLES[package])
        return python or (sys.executable if importlib.util.find_spec(package) else None)


class Child:
    """A process with one contender; a context manager that ends it.

    Args:
        command: The command line.
        name: Name of the contender, for errors.
        environment: Environment variables added to those of this process.
        root: Checkout that it imports.
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
        # Peers write files into the working directory.
        self._folder = tempfile.TemporaryDirectory(prefix="benchmarks-")
        self._stderr = open(pathlib.Path(self._folder.name) / "stderr", "w+")  # noqa: SIM115  (closed by `close`)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
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
        """The versions of its frameworks; waits until network and data are built.

        Raises:
            ChildFailed: The process ended.
        """
        if self._versions is None:
            self._versions = self._answer()["versions"]
        return self._versions

    def ask(self, command: str) -> dict[str, Any]:
        """Return the answer to "prepare", "round" or "forget".

        Raises:
            ChildFailed: The process ended.
        """
        self.versions  # noqa: B018  (the first line of output)
        stream = self._process.stdin
        if stream is not None and self._process.poll() is None:
            stream.write(command + "\n")
            stream.flush()
        return self._answer()

    def prepare(self) -> float:
        """Prepare the training; return the seconds it took."""
        return float(self.ask("prepare")["seconds"])

    def round(self) -> float:
        """Train for a round; return the seconds it took."""
        return float(self.ask("round")["seconds"])

    def stop(self) -> None:
        """Kill the process; a pending `ask` raises ChildFailed."""
        self._process.kill()

    def close(self) -> None:
        """End the process by closing its stdin, or kill it after 20 seconds."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()
        self._folder.cleanup()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            self._process.wait()
            self._stderr.seek(0)
            end = "\n".join(self._stderr.read().splitlines()[-12:])
            raise ChildFailed(f"benchmarks: the process of {self._name} ended ({self._process.returncode}):\n{end}")
        return json.loads(line)  # type: ignore[no-any-return]


def start_child(
    contender: Contender,
    workload: Workload,
    steps: int,
    python: str,
    *,
    root: pathlib.Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Start a process with a contender.

    Args:
        contender: The contender.
        workload: The workload.
        steps: Steps per round.
        python: Path of the interpreter.
        root: Checkout that it imports.
        environment: Environment variables added to the contender's.
    """
    command = [python, "-m", "benchmarks.child", as_text(contender, workload, steps)]
    name = f"{workload.title}, {contender.name}"
    return Child(command, name, {**contender.environment, **(environment or {})}, root=root)
