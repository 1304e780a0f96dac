"""What a step of Model costs beside keras.Model.fit, and what loss scaling adds to it.

    python -m benchmarks.step_overhead

LeNet-5, batch 32, float32, host feed, the same network, data and optimizer for all. Writes
`benchmarks/results/step_overhead.json` and the table of `docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import mixtrain
from benchmarks.measure import interleaved, ratio, surroundings, write_json
from benchmarks.table import update_table
from mixtrain import DynamicLossScaleManager, Model

BATCH, STEPS = 32, 128
RESULTS = pathlib.Path(__file__).parent / "results" / "step_overhead.json"
# (what, ours, peer, goal)
RATIOS = [
    ("LeNet-5 O0 against keras.Model.fit", "mixtrain O0", "keras fit", 1.05),
    ("LeNet-5 O0 with dynamic loss scaling against without", "mixtrain O0, dynamic", "mixtrain O0", 1.10),
    ("LeNet-5 O0 with fixed loss scaling against without", "mixtrain O0, fixed", "mixtrain O0", 1.10),
]


def lenet() -> keras.Model:
    """Return LeNet-5 for images (32, 32, 1), built."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((32, 32, 1)),
            layers.Conv2D(6, 5, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(16, 5, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(120, activation="relu"),
            layers.Dense(84, activation="relu"),
            layers.Dense(10),
        ]
    )


def dataset() -> tf.data.Dataset:
    """Return the batches of an epoch, kept in memory."""
    random = np.random.default_rng(0)
    x = random.standard_normal((BATCH * STEPS, 32, 32, 1), np.float32)
    y = np.eye(10, dtype=np.float32)[random.integers(0, 10, len(x))]
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, drop_remainder=True).cache().prefetch(8)


def loss() -> keras.losses.Loss:
    """Return the loss of all contenders."""
    return keras.losses.CategoricalCrossentropy(from_logits=True)


def optimizer() -> keras.optimizers.Optimizer:
    """Return the optimizer of all contenders."""
    return keras.optimizers.SGD(0.01, momentum=0.9)


def keras_fit(data: tf.data.Dataset) -> Callable[[], int]:
    """Return a run of an epoch by Keras's own `fit`."""
    model = lenet()
    model.compile(optimizer(), loss())

    def run() -> int:
        model.fit(data, epochs=1, verbose=0)
        return STEPS

    return run


def mixtrain_train(data: tf.data.Dataset, manager: Any) -> Callable[[], int]:
    """Return a run of an epoch by `Model.train`."""
    model = Model(lenet(), loss(), optimizer(), loss_scale_manager=manager)

    def run() -> int:
        model.train(1, data, verbose=0)
        return STEPS

    return run


def main() -> None:
    """Measure, and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    data = dataset()
    contenders = {
        "keras fit": keras_fit(data),
        "mixtrain O0": mixtrain_train(data, None),
        "mixtrain O0, dynamic": mixtrain_train(data, DynamicLossScaleManager(2**10)),
        "mixtrain O0, fixed": mixtrain_train(data, mixtrain.FixedLossScaleManager(1024.0)),
    }
    timings = interleaved(contenders, rounds=options.rounds)
    record = {
        "surroundings": surroundings(),
        "rounds": options.rounds,
        "steps_a_round": STEPS,
        "milliseconds_a_step": {
            name: {"median": timing.median, "spread": timing.spread} for name, timing in timings.items()
        },
        "ratios": [
            {"what": what, "ratio": ratio(timings, ours, peer), "goal": goal} for what, ours, peer, goal in RATIOS
        ],
    }
    write_json(RESULTS, record)
    print(update_table("step_overhead", record))


if __name__ == "__main__":
    main()
