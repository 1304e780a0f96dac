"""Measure the matrix-product ceiling of the CPU and how close the convolutions of the CIFAR CNN come to it.

    python -m benchmarks.cpu_ceiling
    python -m benchmarks.cpu_ceiling --print-only

It complements the step times of `docs/benchmarks.md` with the arithmetic that no framework can avoid: the six
convolutions and their gradients, each alone, by the kernels that a step calls, and large products in each dtype.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import tensorflow as tf

from benchmarks.surroundings import RunStart
from benchmarks.table import PAGE, line, short, surroundings_line, update_section
from benchmarks.workloads import CIFAR
from benchmarks.written import RESULTS, read_records, rounded, write_json

NAME: Final = "cpu_ceiling"
DTYPES: Final = ("float32", "bfloat16", "float16")
FILTERS: Final = (32, 64, 128)


def convolutions(batch: int, side: int, channels: int) -> list[tuple[int, int, int]]:
    """Return (side, channels, filters) of each convolution of the CIFAR CNN."""
    result = []
    for filters in FILTERS:
        result += [(side, channels, filters), (side, filters, filters)]
        side, channels = side // 2, filters
    return result


def seconds_of(function: Callable[[], Any], rounds: int) -> float:
    """Return the shortest time of a call after two warm-up calls; other load only adds to it."""
    seconds = []
    for _ in range(rounds + 2):
        started = time.perf_counter()
        tf.nest.map_structure(lambda tensor: tensor.numpy(), function())
        seconds.append(time.perf_counter() - started)
    return min(seconds[2:])


def product_speeds(size: int, rounds: int) -> dict[str, float]:
    """Return the GFLOP/s of a product of two square matrices, by dtype."""
    values = np.random.default_rng(0).standard_normal((size, size), np.float32)
    speeds = {}
    for name in DTYPES:
        matrix = tf.cast(values, name)
        # Only one element is read back, so that the product alone is timed.
        multiply = tf.function(lambda matrix=matrix: tf.matmul(matrix, matrix)[0, 0], autograph=False)
        speeds[name] = 2e-9 * size**3 / seconds_of(multiply, rounds)
    return speeds


def convolution_rows(batch: int, side: int, channels: int, rounds: int) -> list[dict[str, Any]]:
    """Return the milliseconds of each convolution: forward, gradient by input and gradient by filter."""
    random = np.random.default_rng(0)
    rows = []
    for index, (side, channels, filters) in enumerate(convolutions(batch, side, channels)):
        x = tf.constant(random.standard_normal((batch, side, side, channels), np.float32))
        kernel = tf.constant(random.standard_normal((3, 3, channels, filters), np.float32))
        upstream = tf.nn.conv2d(x, kernel, 1, "SAME")
        options = {"strides": [1] * 4, "padding": "SAME"}
        calls: dict[str, Callable[[], Any]] = {
            "forward": lambda: tf.nn.conv2d(x, kernel, 1, "SAME"),
            "by_input": lambda: tf.raw_ops.Conv2DBackpropInput(
                input_sizes=x.shape, filter=kernel, out_backprop=upstream, **options
            ),
            "by_filter": lambda: tf.raw_ops.Conv2DBackpropFilter(
                input=x, filter_sizes=kernel.shape, out_backprop=upstream, **options
            ),
        }
        if index == 0:
            del calls["by_input"]  # Training needs no gradient by the images.
        times = {
            name: 1e3 * seconds_of(tf.function(lambda call=call: call()[0, 0, 0, 0], autograph=False), rounds)
            for name, call in calls.items()
        }
        flop = 2 * batch * side * side * 9 * channels * filters
        rows.append({"side": side, "channels": channels, "filters": filters, "flop": flop, "ms": times})
    return rows


def measured(*, size: int = 2048, batch: int = CIFAR.batch, rounds: int = 15) -> dict[str, Any]:
    """Return the record."""
    start = RunStart()
    side, _, channels = CIFAR.shape
    record = {"gflop_per_second": product_speeds(size, rounds), "rows": convolution_rows(batch, side, channels, rounds)}
    return rounded({  # type: ignore[no-any-return]
        **start.metadata(NAME, {"numpy": np.__version__, "tensorflow": tf.__version__}),
        "matrices": size,
        "batch": batch,
        **record,
    })


def as_text(record: Mapping[str, Any], step: float | None) -> str:
    """Format a record as Markdown.

    Args:
        record: The result of `measured`.
        step: Milliseconds of a whole step, if known.
    """
    ceiling = record["gflop_per_second"]["float32"]
    head = ["convolution", "forward, ms", "gradient by input, ms", "gradient by filter, ms", "of the ceiling"]
    lines = [line(head), "|---" * len(head) + "|"]
    total = flop = 0.0
    for row in record["rows"]:
        spent, work = sum(row["ms"].values()), len(row["ms"]) * row["flop"]
        total, flop = total + spent, flop + work
        name = f"{row['side']}x{row['side']}, {row['channels']} to {row['filters']} channels"
        cells = [short(row["ms"][key]) if key in row["ms"] else "" for key in ("forward", "by_input", "by_filter")]
        lines.append(line([name, *cells, f"{1e-6 * work / spent / ceiling:.0%}"]))
    speeds = ", ".join(f"{name} {short(value)}" for name, value in record["gflop_per_second"].items())
    size = record["matrices"]
    text = [
        surroundings_line(record),
        f"Products of {size}x{size} matrices, GFLOP per second: {speeds}.",
        "\n".join(lines),
        f"All convolutions of a step of {record['batch']} samples: {short(total)} ms at "
        f"{1e-6 * flop / total / ceiling:.0%} of the float32 ceiling.",
    ]
    if step is not None:
        text[-1] += f" That is {total / step:.0%} of a float32 step of mixtrain, which takes {short(step)} ms."
    return "\n\n".join(text)


def measured_step(folder: pathlib.Path = RESULTS) -> float | None:
    """Return the recorded time of a float32 step of the CIFAR CNN, in milliseconds; None where there is no record."""
    for record in read_records(["cifar"], folder):
        for row in record["races"][0]["contenders"]:
            if row["name"] == "mixtrain O0":
                return float(row["median"])
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args(arguments)
    record = measured()
    text = as_text(record, measured_step())
    print(text)
    if not options.print_only:
        write_json(record, RESULTS)
        update_section(NAME, text, PAGE)


if __name__ == "__main__":
    main()
