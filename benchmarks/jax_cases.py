"""The races of the set "jax": three networks on JAX against Keras's `fit` and hand-written loops.

Each contender runs in its own process and is idle while another is timed.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from benchmarks.contender import Contender
from benchmarks.goals import Goal
from benchmarks.race import Race
from benchmarks.workloads import CIFAR, LENET, MLP

KERAS: Final = Contender("Keras fit on JAX", "keras jax")
KERAS_32: Final = Contender("Keras fit(steps_per_execution=32) on JAX", "keras jax", steps_per_execution=32)
KERAS_BFLOAT16: Final = Contender("Keras fit on JAX, mixed_bfloat16", "keras jax", "bfloat16")
HAND: Final = Contender("hand-written jit", "hand jax")
SCAN: Final = Contender("hand-written jit + scan", "hand jax", sink=True)
OURS: Final = Contender("mixtrain O0 on JAX", "mixtrain jax", scaling="none")
SINK: Final = Contender("mixtrain O0 on JAX, sink", "mixtrain jax", scaling="none", sink=True)
DYNAMIC: Final = Contender("mixtrain O0 on JAX, dynamic scaling", "mixtrain jax", scaling="dynamic")
DYNAMIC_SINK: Final = dataclasses.replace(DYNAMIC, name="mixtrain O0 on JAX, dynamic scaling, sink", sink=True)
BFLOAT16: Final = Contender("mixtrain O2 bfloat16 on JAX", "mixtrain jax", "bfloat16")
BFLOAT16_SINK: Final = dataclasses.replace(BFLOAT16, name="mixtrain O2 bfloat16 on JAX, sink", sink=True)
AGAINST_32: Final = "no callback between steps, against Keras fit, steps_per_execution=32"

JAX_MLP: Final = Race(
    MLP,
    (KERAS, KERAS_32, HAND, SCAN, OURS, SINK, DYNAMIC, DYNAMIC_SINK),
    steps=512,
    title="MLP with 3 small layers, batch 32, on JAX",
    goals=(
        Goal("MLP O0 on JAX, no callback between steps, against Keras fit", OURS.name, KERAS.name, 1.0),
        Goal(f"MLP O0 on JAX, {AGAINST_32}", OURS.name, KERAS_32.name, 1.0),
        Goal("MLP O0 on JAX, sink, against hand-written jit + scan", SINK.name, SCAN.name, 1.03),
        Goal("MLP on JAX, sink, dynamic scaling on against off", DYNAMIC_SINK.name, SINK.name, 1.25),
        Goal("MLP on JAX, dynamic scaling on against off", DYNAMIC.name, OURS.name),
    ),
)
LENET_PEERS: Final = Race(
    LENET,
    (KERAS, HAND, SCAN, OURS, SINK),
    steps=64,
    title="LeNet-5, batch 32, on JAX",
    goals=(
        Goal("LeNet-5 O0 on JAX against Keras fit on JAX", OURS.name, KERAS.name, 1.0),
        Goal("LeNet-5 O0 on JAX, sink, against hand-written jit + scan", SINK.name, SCAN.name, 1.03),
        Goal("LeNet-5 O0 on JAX against hand-written jit", OURS.name, HAND.name),
    ),
)
JAX_LENET: Final = dataclasses.replace(
    LENET_PEERS,
    contenders=(KERAS, KERAS_32, HAND, SCAN, OURS, SINK, DYNAMIC),
    goals=(
        *LENET_PEERS.goals,
        Goal(f"LeNet-5 O0 on JAX, {AGAINST_32}", OURS.name, KERAS_32.name, 1.0),
        Goal("LeNet-5 on JAX, dynamic scaling on against off", DYNAMIC.name, OURS.name, 1.03),
    ),
)
JAX_CIFAR: Final = Race(
    CIFAR,
    (
        KERAS, dataclasses.replace(KERAS_32, steps=32), KERAS_BFLOAT16, OURS, SINK, DYNAMIC, BFLOAT16, BFLOAT16_SINK,
    ),
    steps=3,
    rounds=9,
    patience=240.0,
    title="CIFAR CNN, batch 64, on JAX",
    goals=(
        Goal("CIFAR CNN O0 on JAX against Keras fit", OURS.name, KERAS.name, 0.95),
        Goal("CIFAR CNN O2 bfloat16 on JAX against Keras fit mixed_bfloat16", BFLOAT16.name, KERAS_BFLOAT16.name, 0.95),
        Goal(f"CIFAR CNN O0 on JAX, {AGAINST_32}", OURS.name, KERAS_32.name, 1.0),
        Goal("CIFAR CNN on JAX, dynamic scaling on against off", DYNAMIC.name, OURS.name, 1.03),
        Goal("CIFAR CNN O2 bfloat16 on JAX against our O0", BFLOAT16.name, OURS.name),
    ),
)
