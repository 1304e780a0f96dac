"""The command line: ``python -m mixtrain plan | formats | inspect | report``."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from mixtrain import checks
from mixtrain.diagnostics.report import report_html
from mixtrain.dtype import as_dtype, float_format
from mixtrain.errors import MixtrainError
from mixtrain.network.walk import is_layer
from mixtrain.precision.levels import LEVEL_NAMES
from mixtrain.precision.planner import plan_precision
from mixtrain.serialization.checkpoint import Checkpoint
from mixtrain.serialization.read import read_checkpoint
from mixtrain.serialization.run_state import plan_facts
from mixtrain.text_table import aligned, printable
from mixtrain.typing import Network

_FORMATS: Final = ("float32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3fn")
_NUMBERS: Final = ("bits", "exponent_bits", "fraction_bits", "max", "smallest_normal", "smallest_subnormal", "epsilon")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status.

    Args:
        arguments: Command-line arguments; None for `sys.argv`.
    """
    options = _parser().parse_args(arguments)
    try:
        data, text = options.run(options)
    except (MixtrainError, TypeError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(data, indent=2) if options.json else text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mixtrain", description="Inspect precision from the command line.")
    commands = parser.add_subparsers(required=True, metavar="command")

    plan = commands.add_parser("plan", help="which layer of a network computes in which dtype, and why")
    plan.add_argument("network", help="module:name of a network, or of a function or class that creates one")
    plan.add_argument("--amp-level", default="O2", choices=LEVEL_NAMES, help="default: O2")
    plan.add_argument("--cast-model-type", choices=("float16", "bfloat16"), help="the half dtype; default: float16")
    plan.set_defaults(run=_plan)

    formats = commands.add_parser("formats", help="the range and precision of floating-point formats")
    formats.set_defaults(run=_formats)

    inspect = commands.add_parser("inspect", help="the contents of a checkpoint")
    inspect.add_argument("file", help="a file of save_checkpoint or ModelCheckpoint")
    inspect.set_defaults(run=_inspect)

    report = commands.add_parser("report", help='an HTML page about runs, from the files of model.report("run.json")')
    report.add_argument("files", nargs="+", metavar="file", help="JSON file of a run; several are shown side by side")
    report.add_argument("--output", help="the page to write; default: the names of the files, joined, with .html")
    report.set_defaults(run=_report)

    for command in (plan, formats, inspect, report):
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _plan(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    plan = plan_precision(_network(options.network), options.amp_level, cast_model_type=options.cast_model_type)
    plan_data = plan_facts(plan)
    names = ("path", "layer", "rule", "compute_dtype", "parameter_dtype", "output_dtype")
    rows = [dict(zip(names, row, strict=True)) for row in plan_data["rows"]]
    return plan_data | {"rows": rows}, str(plan)


def _network(name: str) -> Network:
    """Return the network ``module:name``; a class or function of this name is called to create it."""
    where, example = "mixtrain plan", "python -m mixtrain plan my_networks:LeNet5"
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise checks.fail_value(where, "the network must be given as module:name", name, example)
    try:
        network: Network = importlib.import_module(module_name)
        for attribute in path.split("."):
            network = getattr(network, attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{where}: cannot find {name!r}: {error}. Write {example}.") from error
    if isinstance(network, type) or not is_layer(network) and callable(network):
        network = network()
    if not is_layer(network):
        raise checks.fail_type(where, f"{name} must be a Cell or a Keras layer, or create one", network, example)
    return network


def _formats(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    del options
    rows = {name: {key: getattr(float_format(name), key) for key in _NUMBERS} for name in _FORMATS}
    table = [["format", *(key.replace("_", " ") for key in _NUMBERS)]]
    table += [[name, *(f"{value:.6g}" for value in row.values())] for name, row in rows.items()]
    return rows, "\n".join(aligned(table))


def _inspect(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    checkpoint = read_checkpoint(options.file)
    values = {name: _tensor_info(value) for name, value in checkpoint.items()}
    run_info = _run_info(checkpoint)
    total = sum(value.get("size", 0) for value in values.values())
    table = [["name", "dtype", "shape"]]
    table += [[printable(name), value["dtype"], str(tuple(value.get("shape", ())))] for name, value in values.items()]
    lines = [f"{options.file}: {len(values)} values, {total:,} numbers"]
    lines += [f"{name}: {printable(str(value))}" for name, value in run_info.items()]
    return {"file": options.file, "values": values, "run": run_info}, "\n".join([*lines, *aligned(table)])


def _report(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    stems = [os.path.splitext(os.path.basename(file))[0] for file in options.files]
    output = options.output or os.path.join(os.path.dirname(options.files[0]), "-".join(stems) + ".html")
    runs = [_read_run(file) for file in options.files]
    names = stems if len(set(stems)) == len(stems) else options.files
    page = report_html(*runs, names=names if len(runs) > 1 else ())
    with open(output, "w", encoding="utf-8") as page_file:
        page_file.write(page)
    return {"output": output}, f"wrote {output}"


def _read_run(path: str) -> dict[str, Any]:
    """Return the data of a run, of which a page can be made."""
    try:
        with open(path, encoding="utf-8") as file:
            data: Any = json.load(file)
        if not isinstance(data, dict):
            raise checks.fail_type("mixtrain report", "the file must be a run report", data, 'model.report("run.json")')
        report_html(data)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(
            f"mixtrain report: expected {path!r} to be a run report; got one that cannot be read "
            f'({type(error).__name__}: {printable(str(error)[:300])}). Write the file of model.report("run.json").'
        ) from error
    return data


def _tensor_info(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"dtype": "text"}
    shape = [int(size) for size in value.shape]
    return {"dtype": as_dtype(value.dtype).name, "shape": shape, "size": math.prod(shape)}


def _run_info(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the position and level of the run that wrote a checkpoint."""
    facts = checkpoint.run_state.facts
    position = {name: facts[name] for name in ("epoch", "step", "batch_num") if name in facts}
    plan = facts.get("plan")
    return position | ({"level": plan["level"], "half": plan["half"]} if plan else {})


if __name__ == "__main__":
    sys.exit(main())
