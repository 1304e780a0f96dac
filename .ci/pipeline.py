"""Continuous integration: stages that share a budget of minutes, and a table of what each of them took.

Whole stages come first, and take as long as they take. What is left of the budget is shared out to the sampled stages,
in the order of their priority: a stage gets its part by weight of what is left when it starts, so that minutes which
one does not need go to those after it. `tests/sampling.py` ends a sampled stage when its minutes are over, and draws
the order of its tests from the commit. A stage that fails does not end the run; the run fails at its end.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import TextIO

BUDGET = 40.0  # Minutes for all stages, on two cores without AVX-512.
LAST_START = 70.0  # No stage is started after so many minutes.
LAST_END = 80.0  # A stage that still runs then is stopped, and has failed.
LEAST = 1.0  # Minutes of a sampled stage where the budget is used up.
ERROR_LINES = 40  # Of the first error of a stage that fails, printed once more beside the table.
OVERRUN = 0.9  # Minutes in which a sampled stage collects its tests, and those that it began last end.
ROOT = pathlib.Path(__file__).resolve().parent.parent
# Variables of the caller that would change what the stages run, or print; the last makes each process compile anew.
DROPPED = ("KERAS_BACKEND", "PYTEST_ADDOPTS", "PYTHONPATH", "FORCE_COLOR", "PY_COLORS", "PYTHONDONTWRITEBYTECODE")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A command of bash, and how much of the budget it may use.

    Args:
        name: What the table calls it, and `--only` selects it by.
        command: Runs in the root of the checkout; $WORK is a folder for what the stages make.
        environment: The virtual environment that it runs in, a folder of $WORK; created at first use.
        weight: Its part of the minutes that are left to the sampled stages. None: it runs whole.
    """

    name: str
    command: str
    environment: str = "tensorflow"
    weight: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """What a stage took: minutes by the clock, and of all processors; its verdict; the closing lines of its tests.

    `errors`: The first lines in which its tests say what failed.
    """

    stage: Stage
    minutes: float = 0.0
    cpu_minutes: float = 0.0
    share: float | None = None
    verdict: str = "not started"
    closing: str = ""
    errors: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the run fails by this stage: a whole one must have run."""
        return self.verdict.startswith("FAILED") or self.verdict == "not started" and self.stage.weight is None


def command_of(page: str, mark: str) -> str:
    """Return the command that a page has under a mark: the first line there that installs."""
    block = (ROOT / page).read_text().partition(f"<!-- {mark} -->")[2].partition("```\n\n")[0]
    lines = [line for line in block.splitlines() if line.startswith("python -m pip")]
    if not lines:
        raise SystemExit(f"{page} has no command under {mark}")
    return lines[0]


def stages() -> list[Stage]:
    """Return all stages, in the order in which they run."""
    readme = command_of("README.md", "test-command")
    on_jax = command_of("docs/guide/backends.md", "jax-test-command")
    slow = "python -m pytest -q -n auto -m slow"
    processes = "python -m pytest -q tests/distribution/test_{processes,joint_processes,dying_process}.py"
    site = "python -m pytest -q tests/docs/test_{site,notebook}.py"
    rest = f"{slow} --ignore=tests/distribution/test_{{processes,joint_processes,dying_process}}.py"
    rest += " --ignore=tests/docs/test_{site,notebook}.py"
    result = [
        Stage(name="install", command=readme.partition(" && ")[0]),
        Stage(name="README's tests", command=readme),
        Stage(name="import from above", command='cd .. && python -c "from mixtrain import Model"'),
        Stage(name="lint", command="python -m ruff check ."),
        Stage(name="types", command="python -m mypy"),
        Stage(name="wheel", command=WHEEL, environment="wheel"),
        Stage(name="install extras", command='python -m pip install -q -e ".[docs,integrations]"'),
        Stage(name="install on JAX", command=on_jax.partition(" && KERAS_BACKEND")[0], environment="jax"),
        Stage(name="two processes", command=processes),
        Stage(name="two processes on JAX", command=f"KERAS_BACKEND=jax {processes}"),
        Stage(name="contract on JAX", command=on_jax, environment="jax", weight=9),
        Stage(name="slow tests", command=rest, weight=7),
        Stage(
            name="slow tests on JAX", command=f"{rest} --ignore=tests/train/test_differential.py tests",
            environment="jax", weight=4,
        ),
        Stage(
            name="random networks on JAX",
            command=f"{slow} tests/train/test_differential.py", environment="jax", weight=2,
        ),
        Stage(
            name="eight devices on JAX",
            command="MIXTRAIN_TEST_DEVICES=8 python -m pytest -q -n auto "
            'tests/distribution/test_{traces,skips,data_parallel}.py -k "traces or no_trace or every_size"',
            environment="jax", weight=2,
        ),
    ]
    for backend in ("tensorflow", "jax"):
        command = f"KERAS_BACKEND={backend} python -m pytest -q tests/train/test_loaders.py "
        command += 'tests/train/callback/test_loggers.py tests/docs/test_docs.py -k "loader or loggers"'
        result.append(Stage(name=f"loggers and loaders on {backend}", command=command, weight=1))
    return [*result, Stage(name="site and notebook", command=site, weight=2)]


# The main job and README's blocks, in an environment that has the wheel and knows nothing of the checkout.
WHEEL = """
python -m pip install -q build
python -m build --outdir "$WORK/dist" . > "$WORK/build.log" || { cat "$WORK/build.log"; exit 1; }
python -m pip install -q "$(ls "$WORK"/dist/*.whl)[examples]"
mkdir -p "$WORK/alone"
cp examples/lenet_digits.py "$WORK/alone"
sed -n '/^```python$/,/^```$/p' README.md | grep -v '^```' > "$WORK/alone/readme.py"
cd "$WORK/alone"
python lenet_digits.py
python readme.py
"""


def share_of(stage: Stage, waiting: Sequence[Stage], left: float) -> float | None:
    """Return the minutes of a sampled stage, by its weight among those that wait, itself included.

    Example:
        >>> first, second = Stage(name="a", command="", weight=3), Stage(name="b", command="", weight=1)
        >>> share_of(first, [first, second], 20.0), share_of(second, [second], 2.0)
        (15.0, 2.0)
    """
    if stage.weight is None:
        return None
    return max(LEAST, left * stage.weight / sum(other.weight or 0.0 for other in waiting))


class Pipeline:
    """Runs stages one after another, within the budget.

    Args:
        budget: Minutes for all stages.
        seed: Draws the samples.
        work: A folder for what the stages make.
    """

    def __init__(self, budget: float, seed: str, work: pathlib.Path) -> None:
        self.budget, self.seed, self.work = budget, seed, work
        self.start = time.monotonic()

    def elapsed(self) -> float:
        """Return the minutes since the start."""
        return (time.monotonic() - self.start) / 60

    def run(self, stages: Sequence[Stage]) -> list[Result]:
        """Run all stages; those that would start too late are not started."""
        results = []
        for place, stage in enumerate(stages):
            if self.elapsed() >= LAST_START:
                results.append(Result(stage=stage))
                continue
            results.append(self._run(stage, share_of(stage, stages[place:], self.budget - self.elapsed())))
        return results

    def _run(self, stage: Stage, share: float | None) -> Result:
        """Run one stage, and show what it prints as it prints it."""
        begin, cpu = self.elapsed(), _cpu_minutes()
        options = "" if share is None else f"--minutes={max(LEAST, share - OVERRUN):.2f} --sample={self.seed}"
        print(f"\n+ {stage.name}: {stage.command.strip()}" + (f" {options}" if options else ""), flush=True)
        closing: list[str] = []
        errors: list[str] = []
        folder = self.work / stage.environment
        if not folder.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=False)  # Without it the command fails.
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", stage.command], cwd=ROOT, env=self._environment(stage, options),
            text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        reader = threading.Thread(target=_show, args=(process.stdout, closing, errors), daemon=True)
        reader.start()
        try:
            code = process.wait(60 * (LAST_END - begin))
            verdict = "passed" if code == 0 else f"FAILED ({code})"
        except subprocess.TimeoutExpired:
            verdict = f"FAILED (stopped after {self.elapsed():.0f} minutes of the run)"
        finally:  # Also what a stage left running, and all of it where the run is interrupted.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        reader.join(10)
        return Result(
            stage=stage, minutes=self.elapsed() - begin, cpu_minutes=_cpu_minutes() - cpu, share=share, verdict=verdict,
            closing=", ".join(closing), errors=tuple(errors),
        )

    def _environment(self, stage: Stage, options: str) -> dict[str, str]:
        """Return the environment variables of a stage."""
        path = f"{self.work / stage.environment}/bin{os.pathsep}{os.environ['PATH']}"
        result = {name: value for name, value in os.environ.items() if name not in DROPPED}
        result |= {"WORK": str(self.work), "PATH": path}
        if stage.environment == "jax":
            result["KERAS_BACKEND"] = "jax"
        if options:
            result["PYTEST_ADDOPTS"] = options
        return result


def _show(output: TextIO, closing: list[str], errors: list[str]) -> None:
    """Print what a stage prints; keep the lines that close a test run, and the first of its errors."""
    with output:
        for line in output:
            print(line, end="", flush=True)
            if re.search(r"^\d+ [a-z]+.* in [\d.]+s|^left out: ", line):
                closing.append(re.sub(r" in [\d.]+s.*|;.*", "", line.strip()))
            elif line.startswith("E  ") and len(errors) < ERROR_LINES:
                errors.append(line[1:].strip()[:200])


def table(results: Sequence[Result]) -> str:
    """Return the table of the stages' times and verdicts."""
    width = max(len(result.stage.name) for result in results)
    lines = [f"{'stage':{width}}  minutes   CPU  share  verdict"]
    for result in results:
        share = "whole" if result.share is None else f"{result.share:.1f}"
        lines.append(
            f"{result.stage.name:{width}}  {result.minutes:7.1f} {result.cpu_minutes:5.1f} {share:>6}  {result.verdict}"
            + (f": {result.closing}" if result.closing else "")
        )
    total = sum(result.minutes for result in results), sum(result.cpu_minutes for result in results)
    return "\n".join([*lines, f"{'total':{width}}  {total[0]:7.1f} {total[1]:5.1f}"])


def _cpu_minutes() -> float:
    """Return the minutes that processes which ended spent on all processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) / 60


def commit() -> str:
    """Return the commit that is checked out, which draws the samples; "none", said aloud, where git knows none."""
    command = ["git", "-c", f"safe.directory={ROOT}", "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"git names no commit ({error}): every run draws the same sample", file=sys.stderr)
        return "none"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stages of the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog=".ci/run", description="Run the stages of continuous integration.")
    parser.add_argument("--budget", type=float, default=BUDGET, help="minutes for all stages (default: %(default)s)")
    parser.add_argument("--sample", help="draws what sampled stages run (default: the commit)")
    parser.add_argument("--only", action="append", metavar="STAGE", help="run this stage, and those that install")
    parser.add_argument("--list", action="store_true", help="print the names of the stages, and run none")
    options = parser.parse_args(arguments)
    every = stages()
    if options.list:
        print("\n".join(stage.name for stage in every))
        return 0
    names = {stage.name for stage in every}
    if unknown := set(options.only or ()) - names:
        parser.error(f"--only must name stages; got {sorted(unknown)}. .ci/run --list prints their names.")
    chosen = every if not options.only else _with_installs(every, options.only)
    seed = options.sample or commit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))
    with tempfile.TemporaryDirectory(prefix="mixtrain-ci-", ignore_cleanup_errors=True) as work:
        results = Pipeline(options.budget, seed, pathlib.Path(work)).run(chosen)
        for result in results:
            if result.failed and result.errors:
                print("\n".join([f"\n{result.stage.name}, its first errors:", *result.errors]))
        print(f"\n{table(results)}\nsample {seed}, budget {options.budget:g} minutes", flush=True)
    failed = [result.stage.name for result in results if result.failed]
    for name in failed:
        print(f"reproduce: .ci/run --budget {options.budget:g} --sample {seed} --only {name!r}")
    return 1 if failed else 0


def _with_installs(every: Sequence[Stage], names: Sequence[str]) -> list[Stage]:
    """Return the stages of these names, and those that install into their environments."""
    used = {stage.environment for stage in every if stage.name in names}
    return [
        stage for stage in every
        if stage.name in names or (stage.name.startswith("install") and stage.environment in used)
    ]


if __name__ == "__main__":
    sys.exit(main())
