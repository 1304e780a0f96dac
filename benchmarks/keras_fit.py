"""What a step of Model costs beside keras.Model.fit, on Keras networks and at several precisions.

    python -m benchmarks.keras_fit
    python -m benchmarks.keras_fit --case lenet-float32 --rounds 5 --steps 32 --print-only

A case is one network, trained by Keras's own `compile` and `fit` and by mixtrain: the same first weights, batches, loss
and optimizer, in one process, in turn. A run of all cases writes `benchmarks/results/keras_fit.json` and the table of
`docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import mixtrain
from benchmarks.measure import Timing, interleaved, ratio, surroundings, write_json
from benchmarks.step_overhead import lenet, loss, optimizer
from benchmarks.table import as_markdown, update_table
from mixtrain import Model

RESULTS = pathlib.Path(__file__).parent / "results" / "keras_fit.json"
JIT: dict[str, bool | str] = {"auto": "auto", "on": True, "off": False}


def cifar_cnn() -> keras.Model:
    """Return six convolutions, each with batch normalisation, for images (32, 32, 3), built."""
    layers = keras.layers
    stack: list[Any] = [keras.Input((32, 32, 3))]
    for filters in (32, 64, 128):
        for _ in range(2):
            convolution = layers.Conv2D(filters, 3, padding="same", use_bias=False)
            stack += [convolution, layers.BatchNormalization(), layers.ReLU()]
        stack.append(layers.MaxPooling2D(2))
    return keras.Sequential([*stack, layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(10)])


@dataclasses.dataclass(frozen=True)
class Case:
    """One comparison.

    Attributes:
        what: Its title in the table.
        network: Makes the network, under Keras's dtype policy.
        shape: Shape of an image.
        batch: Images a batch.
        steps: Steps a round.
        policy: Keras's dtype policy for its own `fit`.
        options: What `Model` is told beside network, loss and optimizer.
        goal: The ratio of ours to Keras's that must not be passed.
    """

    what: str
    network: Callable[[], keras.Model]
    shape: tuple[int, ...]
    batch: int
    steps: int
    policy: str
    options: Mapping[str, Any]
    goal: float

    @property
    def ours(self) -> str:
        """Name of our contender."""
        return f"{self.what}: mixtrain"

    @property
    def peer(self) -> str:
        """Name of the peer."""
        return f"{self.what}: Keras fit, {self.policy}"


SMALL, LARGE = (32, 32, 1), (32, 32, 3)
BFLOAT16 = {"amp_level": "O2", "cast_model_type": "bfloat16"}
CASES = {
    "lenet-float32": Case("LeNet-5 O0", lenet, SMALL, 32, 128, "float32", {"amp_level": "O0"}, 0.95),
    "cifar-float32": Case("CIFAR CNN O0", cifar_cnn, LARGE, 64, 8, "float32", {"amp_level": "O0"}, 0.70),
    "cifar-bfloat16": Case("CIFAR CNN O2 bfloat16", cifar_cnn, LARGE, 64, 8, "mixed_bfloat16", BFLOAT16, 0.55),
    "cifar-float16": Case("CIFAR CNN O2 float16", cifar_cnn, LARGE, 64, 2, "mixed_float16", {"amp_level": "O2"}, 0.10),
}


def dataset(shape: tuple[int, ...], batch: int, steps: int) -> tf.data.Dataset:
    """Return the batches of a round, kept in memory."""
    random = np.random.default_rng(0)
    x = random.standard_normal((batch * steps, *shape), np.float32)
    y = np.eye(10, dtype=np.float32)[random.integers(0, 10, len(x))]
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(batch, drop_remainder=True).cache().prefetch(8)


def network_of(case: Case, policy: str) -> keras.Model:
    """Return a case's network made under a dtype policy."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        return case.network()
    finally:
        keras.config.set_dtype_policy(before)


def contenders(case: Case, steps: int, jit: bool | str) -> dict[str, Callable[[], int]]:
    """Return a round of Keras's `fit` and a round of mixtrain's, from the same weights."""
    data = dataset(case.shape, case.batch, steps)
    theirs, network = network_of(case, case.policy), network_of(case, "float32")
    network.set_weights(theirs.get_weights())
    theirs.compile(optimizer(), loss(), jit_compile=jit)
    model = Model(network, loss(), optimizer(), **case.options)

    def fit() -> int:
        theirs.fit(data, epochs=1, shuffle=False, verbose=0)
        return steps

    def train() -> int:
        model.train(1, data, verbose=0)
        return steps

    return {case.peer: fit, case.ours: train}


def measured(names: Sequence[str], *, rounds: int, steps: int | None, jit: bool | str) -> dict[str, Any]:
    """Return the record of some cases, one after another.

    Args:
        names: Keys of `CASES`.
        rounds: How often each contender is timed.
        steps: Steps a round; None for each case's own number.
        jit: `jit_compile` of Keras's `compile`.
    """
    timings: dict[str, Timing] = {}
    for name in names:
        case = CASES[name]
        timings |= interleaved(contenders(case, steps or case.steps, jit), rounds=rounds)
    chosen = [CASES[name] for name in names]
    return {
        "surroundings": surroundings(),
        "rounds": rounds,
        "steps_a_round": {case.what: steps or case.steps for case in chosen},
        "keras_jit_compile": jit,
        "milliseconds_a_step": {
            name: {"median": timing.median, "spread": timing.spread} for name, timing in timings.items()
        },
        "ratios": [
            {
                "what": f"{case.what} against Keras fit, {case.policy}",
                "ratio": ratio(timings, case.ours, case.peer),
                "goal": case.goal,
            }
            for case in chosen
        ],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=list(CASES), help="one of them; may be given again")
    parser.add_argument("--rounds", type=int, default=21, help="how often each contender is timed, at least 2")
    parser.add_argument("--steps", type=int, help="steps a round, in place of each case's own number")
    parser.add_argument("--keras-jit", choices=list(JIT), default="auto", help="jit_compile of Keras's compile")
    parser.add_argument("--print-only", action="store_true", help="leave the record and the table as they are")
    options = parser.parse_args(arguments)
    if options.case and not options.print_only:
        parser.error("the record and the table hold all cases: write --print-only with --case")
    if options.rounds < 2 or (options.steps is not None and options.steps < 1):
        parser.error("--rounds must be at least 2, and --steps at least 1")
    mixtrain.set_seed(0)
    record = measured(
        options.case or list(CASES), rounds=options.rounds, steps=options.steps, jit=JIT[options.keras_jit]
    )
    if options.print_only:
        print(as_markdown(record))
        return
    write_json(RESULTS, record)
    print(update_table("keras_fit", record))


if __name__ == "__main__":
    main()
