"""Count what training steps launch and move on an H200, without one, and write the record and docs/benchmarks_gpu.md.

    python -m benchmarks.gpu_compiled --jax-python PATH
    python -m benchmarks.gpu_compiled --jax-python PATH --only resnet50 --programs build/gpu

The steps are compiled ahead of time, which needs `jax[cuda12]` (5.6 GB) with keras, numpy and safetensors, and no GPU;
a step takes about a minute. The versions decide what is fused: counts of different versions do not compare.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from benchmarks.children import ChildFailed, Interpreters
from benchmarks.contender import Contender, as_text
from benchmarks.gpu_cases import (
    BFLOAT16,
    FLOAT8,
    FLOAT16,
    HAND_RESIDENT,
    KERAS,
    KERAS_BFLOAT16,
    KERAS_FLOAT8,
    KERAS_FLOAT16,
    TF32,
)
from benchmarks.gpu_child import Asker
from benchmarks.gpu_page import PAGE
from benchmarks.hlo import Kernel, counts, kernels_of, products_of
from benchmarks.table import line, update_section
from benchmarks.workloads import ENCODER, RESNET_50, RESNET_128, Workload
from benchmarks.written import RESULTS, read_records, write_json

NAME: Final = "gpu_compiled"
TARGET: Final = "NVIDIA H200"
ENCODER_2: Final = dataclasses.replace(ENCODER, title=ENCODER.title.replace("12 blocks", "2 blocks"), depth=2)
NETWORKS: Final[dict[str, Workload]] = {"resnet50": RESNET_50, "resnet20": RESNET_128, "transformer": ENCODER_2}
_HAND: Final = dataclasses.replace(HAND_RESIDENT, name="hand-written jit", resident=False)
# Format -> mixtrain, Keras and, but for float8, a step that is written by hand.
FORMATS: Final[dict[str, tuple[Contender, ...]]] = {
    "float16": (FLOAT16, KERAS_FLOAT16, _HAND),
    "bfloat16": (BFLOAT16, KERAS_BFLOAT16, dataclasses.replace(_HAND, dtype="bfloat16")),
    "float8": (FLOAT8, KERAS_FLOAT8),
    "TF32": (TF32, KERAS, dataclasses.replace(_HAND, dtype="float32", products="tensorfloat32")),
}
WHO: Final = {"mixtrain jax": "mixtrain", "keras jax": "Keras fit", "hand jax": "hand-written"}
# A part of the name scope of an operation -> its area. The first one that occurs counts.
_AREAS: Final = {
    "batch_normalization": "batch norm", "layer_normalization": "layer norm", "multi_head_attention": "attention",
    "conv2d": "convolution", "re_lu": "ReLU", "max_pooling": "max pooling", "zero_padding": "padding",
    "global_average": "average pooling", "dense": "dense", "embedding": "embedding", "add": "addition",
}
UPDATE: Final = "update, checks, metrics"


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, write the record and the page; return 2 without a Python that can compile."""
    options = parse(arguments)
    if not options.page_only:
        python = Interpreters({"jax": options.jax_python}).of("jax")
        if python is None:
            print("benchmarks.gpu_compiled: write --jax-python PATH of a Python with jax[cuda12]", file=sys.stderr)
            return 2
        networks = options.only or list(NETWORKS)
        with tempfile.TemporaryDirectory() as folder:
            try:
                programs = options.programs or pathlib.Path(folder)
                record = counted(Asker(python), networks, programs, options.formats or list(FORMATS))
            except ChildFailed as error:
                print(error, file=sys.stderr)
                return 2
        record = with_earlier(record, next(iter(read_records([NAME], options.results)), None))
        print(as_markdown(record))
        if options.print_only:
            return 0
        write_json(record, options.results)
    write_page(options.results)
    return 0


def counted(
    asker: Asker, networks: Iterable[str], folder: pathlib.Path, formats: Sequence[str] = tuple(FORMATS)
) -> dict[str, Any]:
    """Compile the steps of some networks in fresh processes, and return the record of their counts.

    Args:
        asker: Asks processes of a Python with JAX for CUDA.
        networks: Keys of `NETWORKS`.
        folder: Where the programs are written. A program that is there already is not compiled again.
        formats: Keys of `FORMATS`. In float8 only networks of dense layers are compiled.
    """
    folder.mkdir(parents=True, exist_ok=True)
    started, versions, programs = time.monotonic(), {}, []
    cases = [
        (network, dtype, contender)
        for network in networks
        for dtype in formats if dtype != "float8" or NETWORKS[network].network == "transformer"
        for contender in FORMATS[dtype]
    ]
    for network, dtype, contender in cases:
        name = f"{contender.kind.split()[0]}-{contender.dtype}.{network}"
        text, notes = folder / f"{name}.hlo.txt", folder / f"{name}.notes.json"
        if not notes.exists():
            request = {"of": as_text(contender, NETWORKS[network], 1), "text": str(text.resolve())}
            answer = asker.ask("compiled", {**contender.environment, "JAX_PLATFORMS": "cpu"}, **request)
            notes.write_text(json.dumps(answer))
            print(f"{name}: compiled in {answer['seconds']:.0f} s", file=sys.stderr, flush=True)
        answer = json.loads(notes.read_text())
        versions |= answer["versions"]
        row = {"network": network, "format": dtype, "who": WHO[contender.kind], "peak_bytes": answer["peak_bytes"]}
        program = text.read_text()
        row["products"], row["products_in_float8"] = products_of(program)
        programs.append({**row, **counts_by_area(kernels_of(program))})
    return {
        "set": NAME, "target": TARGET, "versions": dict(sorted(versions.items())), "programs": programs,
        "seconds": time.monotonic() - started,
    }


def counts_by_area(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """Return the counts of all kernels, and of those of each area, with the most bytes first."""
    areas: dict[str, list[Kernel]] = collections.defaultdict(list)
    for kernel in kernels:
        areas[area_of(kernel.name)].append(kernel)
    rows = {area: counts(found) for area, found in areas.items()}
    return {**counts(kernels), "areas": dict(sorted(rows.items(), key=lambda row: -row[1]["gb"]))}


def area_of(name: str) -> str:
    """Return the area of an operation by its name scope: a kind of layer and its pass, or the rest of the step."""
    if "jvp" not in name:
        return UPDATE if name else "copies and padding without a name"
    layer = next((area for word, area in _AREAS.items() if word in name), "other")
    return f"{layer}, {'backward' if 'transpose(' in name else 'forward'}"


def with_earlier(record: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """Keep the programs that were not compiled now, if they were by the same versions."""
    if earlier is None or earlier["versions"] != record["versions"]:
        return dict(record)
    now = {(row["network"], row["format"]) for row in record["programs"]}
    kept = (row for row in earlier["programs"] if (row["network"], row["format"]) not in now)
    networks, formats = list(NETWORKS), list(FORMATS)
    order = sorted(
        [*record["programs"], *kept],
        key=lambda row: (networks.index(row["network"]), formats.index(row["format"])),
    )
    return {**record, "programs": order}


def as_markdown(record: Mapping[str, Any]) -> str:
    """Format a record as a section of the page."""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    parts = [
        f"**Counted, not timed**: steps compiled for an {record['target']} without one, by {versions}. Gigabytes are "
        "the operands and results of all kernels and library calls, as far as they are read; small kernels move less "
        "than 1 MiB."
    ]
    rows = record["programs"]
    for network in dict.fromkeys(row["network"] for row in rows):
        of_network = [row for row in rows if row["network"] == network]
        parts += [f"### {NETWORKS[network].title}, counted", _totals(of_network)]
        parts += [
            f"In float8, {row['who']} multiplies float8 values in {row['products_in_float8']} of {row['products']} "
            "products." for row in of_network if row["format"] == "float8"
        ]
        first = [row for row in of_network if row["format"] == "float16"]
        parts += ["In float16, kernels and GB by area (counted):", _by_area(first)]
    return "\n\n".join(parts)


def _totals(rows: Sequence[Mapping[str, Any]]) -> str:
    head = ("format", "step", "kernels", "small ones", "for " + UPDATE, "GB", "GB, of Keras's", "peak GiB")
    lines = [line(head), "|---" * len(head) + "|"]
    for row in rows:
        keras = next(other for other in rows if other["format"] == row["format"] and other["who"] == "Keras fit")
        update = row["areas"].get(UPDATE, {"kernels": 0})["kernels"]
        lines.append(line([
            row["format"], row["who"], f"{row['kernels']:,}", f"{row['small']:,}", str(update), f"{row['gb']:.2f}",
            f"{row['gb'] / keras['gb']:.3f}", f"{row['peak_bytes'] / 2**30:.2f}",
        ]))
    return "\n".join(lines)


def _by_area(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [line(["area", *(row["who"] for row in rows)]), "|---" * (len(rows) + 1) + "|"]
    for area in dict.fromkeys(area for row in rows for area in row["areas"]):
        found = [row["areas"].get(area) for row in rows]
        lines.append(line([area, *(f"{item['kernels']}, {item['gb']:.2f}" if item else "0" for item in found)]))
    return "\n".join(lines)


def write_page(folder: pathlib.Path = RESULTS, page: pathlib.Path = PAGE) -> None:
    """Write the section of the page from the record."""
    for record in read_records([NAME], folder):
        update_section(NAME, as_markdown(record), page)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_compiled", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=list(NETWORKS), help="these networks; others stay as recorded")
    parser.add_argument("--formats", nargs="+", choices=list(FORMATS), help="in these formats; others stay as recorded")
    parser.add_argument("--programs", type=pathlib.Path, metavar="FOLDER", help="keep programs; count those there")
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    parser.add_argument("--page-only", action="store_true", help="write the page from the record, and compile nothing")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="the folder of the records")
    parser.add_argument("--jax-python", metavar="PATH", help="a Python with jax[cuda12], keras, numpy and safetensors")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
