"""Measure mixed precision on one GPU, with JAX and Keras alone, and write the record and docs/benchmarks_gpu.md.

    python -m benchmarks.gpu
    python -m benchmarks.gpu --only resnet50 checks --budget 240
    python -m benchmarks.gpu --torch-python PATH

Beside a CUDA JAX (`jax[cuda12]` or `jax[cuda13]`, with its jaxlib, ml_dtypes, opt_einsum, numpy and scipy) it wants the
wheels of keras, safetensors, h5py, absl-py, rich, markdown-it-py, mdurl, pygments, namex, optree, typing_extensions and
packaging, and a checkout of this repository; no network and no TensorFlow. PyTorch takes part where this Python has it,
or the one that is named. On a CPU it runs reduced sizes, and says so.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.children import ChildFailed, Interpreters
from benchmarks.gpu_cases import CASES
from benchmarks.gpu_child import Asker
from benchmarks.gpu_measure import Budget, Machine
from benchmarks.gpu_page import PAGE, as_markdown
from benchmarks.gpu_record import ON_CPU, blank, record_of, with_earlier
from benchmarks.measure import Log
from benchmarks.table import update_section
from benchmarks.written import RESULTS, read_records, rounded, write_json

PARTS: Final = ("checks", "traces", "costs", *CASES)
SECTIONS: Final = {"gpu": False, "gpu_on_cpu": True}
SECONDS: Final = 470.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark, write the record and the page, and return 1 if a check or a trace is wrong."""
    options = parse(arguments)
    if options.page_only:
        write_pages(options.results)
        return 0
    started = time.monotonic()

    def log(text: str) -> None:
        print(f"[{time.monotonic() - started:4.0f} s] {text}", file=sys.stderr, flush=True)

    if options.cpu:
        os.environ |= {**ON_CPU, "CUDA_VISIBLE_DEVICES": ""}
    interpreters = Interpreters({"torch": options.torch_python, "jax": options.jax_python})
    python = interpreters.of("jax")
    if python is None:
        print("benchmarks.gpu: JAX is not installed here. Write --jax-python PATH or install it.", file=sys.stderr)
        return 2
    asker = Asker(python)
    try:
        first = asker.ask("ceilings")
    except ChildFailed as error:
        print(error, file=sys.stderr)
        return 2
    record = measured(first, options, interpreters, asker, started, log)
    print(f"\n{as_markdown(record)}", flush=True)
    if not options.print_only:
        log(f"written: {write_json(record, options.results)}")
        write_pages(options.results)
    return 0 if all_correct(record) else 1


def measured(
    first: Mapping[str, Any], options: argparse.Namespace, interpreters: Interpreters, asker: Asker, started: float,
    log: Log,
) -> dict[str, Any]:
    """Run the selected parts and return their record.

    Args:
        first: The device and its ceilings.
        options: The options of the command line.
        interpreters: Interpreters of the peers.
        asker: Asks fresh processes.
        started: Start time of the run.
        log: Receives progress messages.
    """
    on_cpu = first["platform"] == "cpu"
    seconds = options.budget or SECONDS
    log(f"{first['kind']}: {'reduced sizes, for this is a CPU; ' if on_cpu else ''}{seconds:.0f} s in all")
    jobs = options.jobs or (2 if on_cpu else 6)
    memory = None if on_cpu else (first["memory_bytes"] or 16 * 2**30) / 2**30
    budget = Budget(seconds, since=started)
    machine = Machine(interpreters, memory, jobs, budget, options.contenders)
    only = options.only or PARTS
    record = dict(rounded(record_of(only, machine, Asker(asker.python, budget), first, log)))
    return with_earlier(record, only, next(iter(read_records([record["set"]], options.results)), None))


def all_correct(record: Mapping[str, Any]) -> bool:
    """Whether every check and every trace of a record is correct."""
    checks = all(row["met"] for row in record["checks"] or ())
    traces = all(
        row["as_planted"] and row["as_the_rule"] and row["as_on_cpu"] is not False for row in record["traces"] or ()
    )
    return checks and traces


def write_pages(folder: pathlib.Path = RESULTS, page: pathlib.Path = PAGE) -> None:
    """Write every section of the page from its record, or a blank one."""
    for name, on_cpu in SECTIONS.items():
        records = read_records([name], folder)
        update_section(name, as_markdown(records[0] if records else blank(on_cpu)), page)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, metavar="PART",
        help=f"these alone, of {', '.join(PARTS)}; the others stay as this device was recorded with these versions",
    )
    parser.add_argument("--budget", type=float, help="seconds in all; what does not fit is left out and said")
    parser.add_argument("--contenders", type=int, metavar="N", help="only the first N of each network, in its order")
    parser.add_argument("--jobs", type=int, help="how many contenders are made ready at once")
    parser.add_argument("--cpu", action="store_true", help="the reduced run, on the CPU, also where there is a GPU")
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    parser.add_argument("--page-only", action="store_true", help="write the page from the records, and run nothing")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="the folder of the records")
    parser.add_argument("--torch-python", metavar="PATH", help="the Python that has PyTorch")
    parser.add_argument("--jax-python", metavar="PATH", help="the Python that has JAX and Keras")
    options = parser.parse_args(arguments)
    numbers = (options.budget, options.jobs, options.contenders)
    if any(number is not None and number <= 0 for number in numbers):
        parser.error("--budget, --jobs and --contenders must be above 0")
    return options


if __name__ == "__main__":
    sys.exit(main())
