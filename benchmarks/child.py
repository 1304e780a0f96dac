"""Child process of a benchmark: run one contender, controlled line by line over stdin.

    python -m benchmarks.child '<contender, workload and steps, as JSON>'

The commands are ``prepare`` (prepare the training), ``round`` (train for one round) and ``forget`` (reset the peak of
memory). Each is answered by a line of JSON, ``{"seconds": ..., "peak_bytes": ..., "device_peak_bytes": ...}``; the last
is null where the framework does not track its device's memory. A first line with the versions is written once network
and data are built. All other output goes to stderr.
"""

from __future__ import annotations

import gc
import json
import os
import pathlib
import re
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from benchmarks.contender import build, from_text
from benchmarks.device_memory import device_peak_bytes

PACKAGES = ("mixtrain", "keras", "tensorflow", "jax", "jaxlib", "torch", "mindspore", "numpy")


def serve(build: Callable[[], Callable[[], Callable[[], Any]]], commands: TextIO, answers: TextIO) -> None:
    """Build a contender and answer commands until their end.

    Args:
        build: Builds network and data; see `benchmarks.contender.build`.
        commands: Lines ``prepare``, ``round`` and ``forget``.
        answers: Receives the versions, and then one line of JSON per command.
    """

    def answer(**values: Any) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    prepare = build()
    answer(versions=versions())
    state: dict[str, Any] = {}

    def prepare_round() -> None:
        state["round"] = prepare()

    actions = {"prepare": prepare_round, "round": lambda: state["round"](), "forget": reset_peak}
    for command in commands:
        seconds = timed(actions[command.strip()])
        answer(seconds=seconds, peak_bytes=peak_bytes(), device_peak_bytes=device_peak_bytes())


def timed(action: Callable[[], Any]) -> float:
    """Return the seconds of an action; garbage is collected before it and not during it."""
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
    return {name: str(sys.modules[name].__version__) for name in PACKAGES if name in sys.modules}


def reset_peak() -> None:
    """Reset the peak of resident memory, on Linux."""
    path = pathlib.Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5")  # Resets VmHWM; see proc(5).


def peak_bytes() -> int:
    """Return the peak of this process's resident memory."""
    path = pathlib.Path("/proc/self/status")
    match = re.search(r"VmHWM:\s*(\d+) kB", path.read_text()) if path.exists() else None
    if match:
        return int(match[1]) * 1024
    # Bytes on macOS, KiB elsewhere.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Serve the parent over stdin and stdout."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(lambda: build(*from_text(sys.argv[1])), sys.stdin, answers)


if __name__ == "__main__":
    main()
