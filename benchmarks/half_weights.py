"""Measure weights that are stored in bfloat16: the loss after training, the share that moves, and the memory.

    python -m benchmarks.half_weights
    KERAS_BACKEND=jax python -m benchmarks.half_weights --print-only --epochs 1

Each network is trained by Adam at a rate of 1e-4 from the same weights on the same batches, in float32 and by each way
to store and update its weights. Labels are those of a fixed teacher, some of them changed, so that no loss falls to 0.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import keras
import numpy as np

from benchmarks.call_pairs import BACKENDS
from benchmarks.networks.in_keras import network
from benchmarks.surroundings import RunStart, versions
from benchmarks.table import line, publish, short, surroundings_line
from benchmarks.workloads import LENET, RESNET, TRANSFORMER, VOCABULARY, Workload
from benchmarks.written import rounded
from mixtrain import Model, backend, set_seed
from mixtrain.dataset import NumpySlicesDataset
from mixtrain.precision.master_weights import full_value, has_master
from mixtrain.step.train_step import step_of

NAMES: Final = tuple(f"half_weights_{backend}" for backend in BACKENDS)
RATE: Final = 1e-4
GOAL: Final = 0.01
_WRONG: Final = 0.2  # Share of labels that are changed.
_HALF: Final = {"amp_level": "O2", "cast_model_type": "bfloat16"}
WAYS: Final[dict[str, dict[str, Any]]] = {
    "float32, O0": {},
    "float32, O2 bfloat16": _HALF,
    "bfloat16 with float32 copies": _HALF | {"master_weights": True},
    "bfloat16, compensated": _HALF | {"master_weights": False, "low_precision_update": "compensated"},
    "bfloat16, stochastic": _HALF | {"master_weights": False, "low_precision_update": "stochastic"},
    "bfloat16, nearest": _HALF | {"master_weights": False, "low_precision_update": "nearest"},
}
_NEAREST: Final = "bfloat16, nearest"


@dataclasses.dataclass(frozen=True)
class Training:
    """A network and how long it is trained."""

    workload: Workload
    steps: int
    epochs: int


TRAININGS: Final = {
    "LeNet-5": Training(LENET, 200, 4), "ResNet-20": Training(RESNET, 30, 4),
    "transformer": Training(TRANSFORMER, 80, 4),
}


def data(workload: Workload, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples and one-hot labels: the teacher is linear in the image, or counts tokens."""
    random = np.random.default_rng(0)
    rows = steps * workload.batch
    if workload.tokens:
        x: np.ndarray = random.integers(0, VOCABULARY, (rows, *workload.shape), np.int32)
        scores = random.standard_normal((VOCABULARY, workload.classes))[x].sum(1)
    else:
        x = random.standard_normal((rows, *workload.shape)).astype(np.float32)
        # Smooth patterns, which convolutions and pooling do not lose.
        patterns = np.kron(random.standard_normal((workload.classes, 4, 4, 1)), np.ones((1, 8, 8, workload.shape[-1])))
        scores = np.tensordot(x, patterns.astype(np.float32), axes=([1, 2, 3], [1, 2, 3]))
        x += np.float32(0.5) * patterns[scores.argmax(1)].astype(np.float32)
    labels = np.where(random.random(rows) < _WRONG, random.integers(0, workload.classes, rows), scores.argmax(1))
    return x, np.eye(workload.classes, dtype=np.float32)[labels]


def measured(name: str, way: str, training: Training) -> dict[str, Any]:
    """Train a network in one way; return its losses by epoch, the share of weights that a step moves, and bytes."""
    gc.collect()
    before = live_arrays()  # Those of the last network stay alive until this one replaces them.
    set_seed(0)
    net = network(training.workload)
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    model = Model(net, loss, keras.optimizers.Adam(RATE), ["accuracy"], explain_overflow=False, **WAYS[way])
    x, y = data(training.workload, training.steps)
    weights = model.train_network.weights
    start = [backend.to_numpy(full_value(weight)) for weight in weights]
    model.train(1, NumpySlicesDataset((x, y), shuffle=False).batch(training.workload.batch).take(1), verbose=0)
    pairs = zip(weights, start, strict=True)
    moved = sum(int((backend.to_numpy(full_value(weight)) != value).sum()) for weight, value in pairs)
    gc.collect()
    known = {*map(id, before or ())}
    live = None if before is None else sum(array.nbytes for array in live_arrays() or () if id(array) not in known)
    rows = NumpySlicesDataset((x, y), shuffle=True).batch(training.workload.batch)
    history = model.train(training.epochs, rows, dataset_sink_mode=True, verbose=0)
    row = {
        "network": name, "way": way, "losses": [float(value) for value in history["loss"]],
        "moved": moved / sum(math.prod(weight.shape) for weight in weights), "live_bytes": live, **counted(model),
    }
    print(f"{name}, {way}: {row['losses'][-1]:.4f}, moved {row['moved']:.0%}", flush=True)
    return row


def counted(model: Model) -> dict[str, int]:
    """Return the bytes of the trained weights, their float32 copies, the rests, and the optimizer's variables."""
    step = step_of(model.train_network)
    weights, slots = step.weights, step.driver.state_variables()
    rests = [each for each in step.optimizer_state() if each.name == "rest"]
    copies = sum(4 * math.prod(weight.shape) for weight in weights if has_master(weight))
    return {
        "weights": sum(map(_bytes, weights)), "copies": copies, "rests": sum(map(_bytes, rests)),
        "optimizer": sum(map(_bytes, slots)),
    }


def _bytes(variable: Any) -> int:
    return math.prod(variable.shape) * backend.bytes_of(keras.backend.standardize_dtype(variable.dtype))


def live_arrays() -> list[Any] | None:
    """Return all arrays on the device; None where the framework does not list them."""
    return sys.modules["jax"].live_arrays() if keras.backend.backend() == "jax" else None


def record_of(rows: Sequence[Mapping[str, Any]], start: RunStart) -> dict[str, Any]:
    """Return the record of a run."""
    name = f"half_weights_{keras.backend.backend()}"
    return rounded({**start.metadata(name, versions()), "rate": RATE, "rows": list(rows)})  # type: ignore[no-any-return]


def as_text(record: Mapping[str, Any]) -> str:
    """Format a record as Markdown: a table of losses, and one of memory."""
    rows = {(row["network"], row["way"]): row for row in record["rows"]}
    names = list(dict.fromkeys(name for name, _ in rows))
    exact = {name: rows[name, next(iter(WAYS))]["losses"][-1] for name in names}
    head = ["weights", *(f"{name}: loss, against float32" for name in names), "weights that a step moves", "goal", ""]
    lines, bytes_lines = [line(head), "|---" * len(head) + "|"], []
    for way in WAYS:
        ratios = [rows[name, way]["losses"][-1] / exact[name] - 1 for name in names]
        losses = [rows[name, way]["losses"][-1] for name in names]
        cells = [f"{loss:.4f}, {ratio:+.2%}" for loss, ratio in zip(losses, ratios, strict=True)]
        moved = ", ".join(f"{rows[name, way]['moved']:.0%}" for name in names)
        judged = way not in (next(iter(WAYS)), _NEAREST)
        met = "met" if all(ratio <= GOAL for ratio in ratios) else "not met"
        lines.append(line([way, *cells, moved, f"<= {GOAL:+.0%}" if judged else "", met if judged else ""]))
    memory = ["bytes per weight", "weights", "copies", "rests", "optimizer", "all", "of float32", "live on the device"]
    bytes_lines = [line(memory), "|---" * len(memory) + "|"]
    for way in WAYS:
        row, plain = rows[names[-1], way], rows[names[-1], next(iter(WAYS))]
        count = plain["weights"] / 4
        parts = [row[part] for part in ("weights", "copies", "rests", "optimizer")]
        all_bytes, of_plain = sum(parts), sum(plain[part] for part in ("weights", "copies", "rests", "optimizer"))
        live = "not listed" if row["live_bytes"] is None else short(row["live_bytes"] / count)
        shown = [f"{part / count:.2f}" for part in (*parts, all_bytes)]
        bytes_lines.append(line([way, *shown, f"{all_bytes / of_plain:.0%}", live]))
    about = f"Adam at a rate of {record['rate']:g}; the mean loss of the last epoch. Memory is that of the {names[-1]}."
    return "\n\n".join([surroundings_line(record), about, "\n".join(lines), "\n".join(bytes_lines)])


def main() -> None:
    """Measure, and write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args()
    start, rows = RunStart(), []
    for name, training in TRAININGS.items():
        if options.epochs is not None:
            training = dataclasses.replace(training, epochs=options.epochs)
        rows += [measured(name, way, training) for way in WAYS]
    record = record_of(rows, start)
    publish(record, as_text(record), print_only=options.print_only)


if __name__ == "__main__":
    main()
