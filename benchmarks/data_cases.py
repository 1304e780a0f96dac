"""The races of the set "data": input pipelines from PNG files to batches, on both backends and in other libraries."""

from __future__ import annotations

import dataclasses
from typing import Final

from benchmarks.contender import Contender
from benchmarks.goals import Goal
from benchmarks.race import Race
from benchmarks.workloads import CIFAR, LENET, Workload

OURS: Final = (
    Contender("mixtrain.dataset on TensorFlow", "mixtrain data"),
    Contender("mixtrain.dataset on JAX", "mixtrain data jax"),
)
PEERS: Final = (
    Contender("tf.data", "tf.data"),
    Contender("torchvision, DataLoader of 2 workers", "torchvision"),
    Contender("MindSpore dataset", "mindspore data"),
)


def _race(title: str, workload: Workload, steps: int) -> Race:
    return Race(
        dataclasses.replace(workload, shape=(32, 32, 3)),
        (*PEERS, *OURS),
        steps,
        tuple(
            Goal(f"{title}, {ours.name} against {peer.name}", ours.name, peer.name, 1.0)
            for ours in OURS for peer in PEERS
        ),
        rounds=9,
        patience=300.0,
        measure="batch time",
        title=f"{title}, batch {workload.batch}",
    )


DATA: Final = (_race("LeNet-5 pictures", LENET, 256), _race("CIFAR pictures", CIFAR, 128))
