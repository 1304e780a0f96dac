"""Count what a device holds of a network whose weights are fully sharded, on 1, 2, 4 and 8 devices of a CPU.

    KERAS_BACKEND=jax python -m benchmarks.sharded_memory

The bytes are those of the compiled step, by XLA's own analysis, and those of the variables: counted, not timed.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import keras
import numpy as np

from benchmarks.surroundings import RunStart, versions
from benchmarks.table import line, publish, surroundings_line
from benchmarks.written import rounded
from mixtrain import DynamicLossScaleManager, Model, set_seed
from mixtrain.distribution import fully_sharded

NAME: Final = "sharded_memory"
COUNTS: Final = (1, 2, 4, 8)
_WIDTH, _DEPTH, _ROWS, _CLASSES = 512, 6, 64, 16
_MIB: Final = 2.0**20


def network() -> keras.Model:
    """Return a network that is mostly kernels: dense layers of one width."""
    set_seed(0)
    body = [keras.layers.Dense(_WIDTH, "relu") for _ in range(_DEPTH)]
    return keras.Sequential([keras.Input((_WIDTH,)), *body, keras.layers.Dense(_CLASSES)])


def measured(count: int, amp_level: str) -> dict[str, Any]:
    """Train a step on so many devices; return the bytes that the first of them holds, and those of the step."""
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((_ROWS, _WIDTH)).astype(np.float32), draw.integers(0, _CLASSES, _ROWS).astype(np.int32)
    with fully_sharded(count).scope() if count > 1 else contextlib.nullcontext():
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model = Model(
            network(), loss, keras.optimizers.Adam(1e-3), amp_level=amp_level,  # type: ignore[arg-type]
            loss_scale_manager=DynamicLossScaleManager(1024) if amp_level != "O0" else None,
        )
        model.train(1, [(x, y)], verbose=0)
    variables = [*model.train_network.weights, *model.optimizer.variables]
    shards = [variable.value.addressable_shards[0].data for variable in variables]
    step = _compiled(model, x, y).memory_analysis()
    row = {
        "devices": count, "level": amp_level, "weights": sum(shard.nbytes for shard in shards),
        "arguments": step.argument_size_in_bytes, "temporary": step.temp_size_in_bytes,
    }
    print(f"{count} devices, {amp_level}: {row['weights'] / _MIB:.2f} MiB", flush=True)
    return row


def _compiled(model: Model, *columns: np.ndarray) -> Any:
    """Return XLA's program of a training step."""
    from mixtrain.backend.jax.state import Stateful
    from mixtrain.backend.jax.tensor import stored

    pure = Stateful(model.train_network.set_train())
    pure.values_before(*columns)
    values = [[stored(variable) for variable in kind] for kind in (pure.read, pure.written)]
    return pure._jitted.lower(*values, *columns).compile()


def as_text(record: Mapping[str, Any]) -> str:
    """Format a record as Markdown."""
    rows: Sequence[Mapping[str, Any]] = record["rows"]
    head = ["devices", "level", "weights and slots a device, MiB", "of one device's", "a step needs besides, MiB"]
    lines = [line(head), "|---" * len(head) + "|"]
    whole = {row["level"]: row["weights"] for row in rows if row["devices"] == 1}
    for row in rows:
        share = row["weights"] / whole[row["level"]]
        sizes = [f"{row[name] / _MIB:.2f}" for name in ("weights", "temporary")]
        lines.append(line([str(row["devices"]), row["level"], sizes[0], f"{share:.3f}", sizes[1]]))
    about = f"{_DEPTH} dense layers, {_WIDTH} wide, and Adam; a batch of {_ROWS} rows. Counted, not timed."
    return "\n\n".join([surroundings_line(record), about, "\n".join(lines)])


def main() -> None:
    """Count, and write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args()
    import jax

    jax.config.update("jax_num_cpu_devices", max(COUNTS))
    start = RunStart()
    rows = [measured(count, level) for level in ("O0", "O2") for count in COUNTS]
    record = rounded({**start.metadata(NAME, versions()), "rows": rows})
    publish(record, as_text(record), print_only=options.print_only)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
