"""The child's side: one contender in a process of its own, told what to do line by line.

    python -m benchmarks.child '<contender, workload and steps, as JSON>'

It answers each line that comes in with one line of JSON: ``prepare`` (make the training), ``round`` (train for one
round) and ``forget`` (count the peak of memory from now) by ``{"seconds": ..., "peak_bytes": ...,
"device_peak_bytes": ...}``, the last null where the framework does not count its device's memory. Its first line says
that network and data are built, and with which versions. Anything else that is printed goes to stderr.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pathlib
import re
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from benchmarks.contender import from_text, build
from benchmarks.device_memory import device_peak_bytes

PACKAGES = ("mixtrain", "keras", "tensorflow", "jax", "jaxlib", "torch", "mindspore", "numpy")


def serve(build: Callable[[], Callable[[], Callable[[], Any]]], questions: TextIO, answers: TextIO) -> None:
    """Build a contender and answer until the questions end.

    Args:
        build: Builds network and data; see `benchmarks.contender.build`.
        questions: Lines ``prepare``, ``round`` and ``forget``.
        answers: Gets one line of JSON for each, and one before them.
    """

    def answer(**facts: Any) -> None:
        answers.write(json.dumps(facts) + "\n")
        answers.flush()

    prepare = build()
    answer(versions=versions())
    state: dict[str, Any] = {}

    def prepared() -> None:
        state["round"] = prepare()

    actions = {"prepare": prepared, "round": lambda: state["round"](), "forget": forget_peak}
    for question in questions:
        seconds = timed(actions[question.strip()])
        answer(seconds=seconds, peak_bytes=peak_bytes(), device_peak_bytes=device_peak_bytes())


def timed(action: Callable[[], Any]) -> float:
    """Return the seconds that an action takes, with the garbage collected before it and not during it."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start
    finally:
        gc.enable()


def versions() -> dict[str, str]:
    """Return the versions of the frameworks that this process has imported."""
    found = {name: importlib.import_module(name) for name in PACKAGES if name in sys.modules}
    return {name: str(module.__version__) for name, module in found.items()}


def forget_peak() -> None:
    """Count the peak of memory from now, where the system can."""
    path = pathlib.Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5")


def peak_bytes() -> int:
    """Return the most memory that this process has had resident."""
    path = pathlib.Path("/proc/self/status")
    found = re.search(r"VmHWM:\s*(\d+) kB", path.read_text()) if path.exists() else None
    if found:
        return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Serve the parent over stdin and stdout."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(lambda: build(*from_text(sys.argv[1])), sys.stdin, answers)


if __name__ == "__main__":
    main()
