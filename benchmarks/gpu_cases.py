"""The races on one GPU, and their reduced versions for a CPU."""

from __future__ import annotations

import dataclasses
from typing import Final

from benchmarks.contender import Contender
from benchmarks.goals import Goal
from benchmarks.jax_cases import LENET_PEERS
from benchmarks.race import Race
from benchmarks.workloads import ENCODER, LENET, RESNET, RESNET_50, RESNET_128, TRANSFORMER, Workload

FLOAT32: Final = Contender("mixtrain O0, true float32", "mixtrain jax", scaling="none", products="float32")
TF32: Final = Contender("mixtrain O0, TF32", "mixtrain jax", scaling="none", products="tensorfloat32")
TF32_SINK: Final = dataclasses.replace(TF32, name="mixtrain O0, TF32, sink", sink=True)
FLOAT16: Final = Contender("mixtrain O2 float16, dynamic scaling", "mixtrain jax", "float16", scaling="dynamic")
FLOAT16_SINK: Final = dataclasses.replace(FLOAT16, name="mixtrain O2 float16, dynamic scaling, sink", sink=True)
FLOAT16_PLAIN: Final = dataclasses.replace(FLOAT16, name="mixtrain O2 float16, no scaling", scaling="none")
BFLOAT16: Final = Contender("mixtrain O2 bfloat16", "mixtrain jax", "bfloat16", scaling="none")
FLOAT8: Final = Contender("mixtrain O2 float8", "mixtrain jax", "float8", scaling="none")
ALL_HALF: Final = Contender("mixtrain O3 float16", "mixtrain jax", "float16", scaling="none", level="O3")
KERAS: Final = Contender("Keras fit, TF32", "keras jax", products="tensorfloat32")
KERAS_FLOAT16: Final = Contender("Keras fit, mixed_float16", "keras jax", "float16")
KERAS_BFLOAT16: Final = Contender("Keras fit, mixed_bfloat16", "keras jax", "bfloat16")
KERAS_FLOAT8: Final = Contender("Keras fit, mixed_bfloat16 and quantize(float8)", "keras jax", "float8")
# Without copies from the host, to time the step alone.
FLOAT16_RESIDENT: Final = dataclasses.replace(
    FLOAT16_PLAIN, name="mixtrain O2 float16, no scaling, batches on the device", resident=True
)
HAND_RESIDENT: Final = Contender(
    "hand-written jit, mixed_float16, batches on the device", "hand jax", "float16", resident=True
)
HAND_SCAN: Final = Contender("hand-written jit + scan, TF32", "hand jax", sink=True, products="tensorfloat32")
TORCH: Final = Contender("PyTorch, TF32, eager", "pytorch", products="tensorfloat32")
TORCH_FLOAT16: Final = Contender("PyTorch, float16 autocast, eager", "pytorch", "float16", products="tensorfloat32")
TORCH_COMPILED: Final = dataclasses.replace(TORCH_FLOAT16, name="PyTorch, float16 autocast, compiled", jit=True)
TORCH_BFLOAT16: Final = dataclasses.replace(
    TORCH_COMPILED, name="PyTorch, bfloat16 autocast, compiled", dtype="bfloat16"
)
# In order of priority, contenders of goals with limits first: the last ones are dropped when time runs out.
EVERYONE: Final = (
    FLOAT32, TF32, FLOAT16, KERAS_FLOAT16, BFLOAT16, KERAS_BFLOAT16, TORCH_COMPILED, FLOAT16_PLAIN, KERAS,
    TORCH_BFLOAT16, FLOAT16_RESIDENT, HAND_RESIDENT, TF32_SINK, FLOAT16_SINK, ALL_HALF, HAND_SCAN, TORCH_FLOAT16, TORCH,
)


@dataclasses.dataclass(frozen=True)
class Case:
    """One network with its race on a GPU and a reduced race on a CPU.

    Attributes:
        name: Name for `--only`.
        workload: The workload on a GPU.
        reduced: The race on a CPU.
        steps: Steps per round on a GPU.
        gib: Memory limits of a float32 and of a half-precision contender: about twice their use, because of
            fragmentation.
        limits: Whether the goals have limits: only networks that are large enough to fill a GPU.
    """

    name: str
    workload: Workload
    reduced: Race
    steps: int
    gib: tuple[float, float] = (2.0, 2.0)
    limits: bool = False

    def race(self, *, on_cpu: bool) -> Race:
        """Return the race of step times."""
        if on_cpu:
            return self.reduced
        goals = _goals(self.workload, TIMES, self.limits)
        return Race(self.workload, EVERYONE, self.steps, goals, rounds=7, patience=25.0)

    def memory_race(self, race: Race) -> Race:
        """Return the peak-memory race of a step-time race; without goals on a CPU, whose memory is not tracked."""
        goals = () if race is self.reduced else _goals(race.workload, PEAKS, self.limits)
        return dataclasses.replace(race, goals=goals, measure="peak memory", rounds=1)

    def need(self, contender: Contender) -> float:
        """Return the memory limit of a contender in GiB."""
        return self.gib[contender.dtype != "float32"]


TIMES: Final = (
    ("O2 float16 against O0 true float32", FLOAT16, FLOAT32, 0.40),
    ("O2 bfloat16 against O0 true float32", BFLOAT16, FLOAT32, 0.40),
    ("O2 float16 against O0 TF32", FLOAT16, TF32, 0.65),
    ("O2 bfloat16 against O0 TF32", BFLOAT16, TF32, 0.65),
    ("dynamic scaling on against off", FLOAT16, FLOAT16_PLAIN, 1.02),
    ("O0 against Keras fit, both TF32", TF32, KERAS, 0.95),
    ("O2 against Keras fit, both float16", FLOAT16, KERAS_FLOAT16, 0.95),
    ("O2 against Keras fit, both bfloat16", BFLOAT16, KERAS_BFLOAT16, 0.95),
    ("O2 against PyTorch compiled, both float16", FLOAT16, TORCH_COMPILED, 1.15),
    ("O2 against PyTorch compiled, both bfloat16", BFLOAT16, TORCH_BFLOAT16, 1.15),
    ("O2 against hand-written jit, both float16 on the device", FLOAT16_RESIDENT, HAND_RESIDENT, None),
    ("sink against hand-written jit + scan, both TF32", TF32_SINK, HAND_SCAN, None),
)
PEAKS: Final = (
    ("peak memory, O2 float16 against O0", FLOAT16, TF32, 0.60),
    ("peak memory, O2 bfloat16 against O0", BFLOAT16, TF32, 0.60),
    ("peak memory, O2 against Keras fit, both float16", FLOAT16, KERAS_FLOAT16, None),
    ("peak memory, O2 against PyTorch compiled, both float16", FLOAT16, TORCH_COMPILED, None),
)


def _goals(
    workload: Workload, rows: tuple[tuple[str, Contender, Contender, float | None], ...], limits: bool
) -> tuple[Goal, ...]:
    title = workload.title.split(",")[0]
    return tuple(
        Goal(f"{title}: {what}", ours.name, peer.name, limit if limits else None) for what, ours, peer, limit in rows
    )


def _reduced(workload: Workload, title: str, steps: int) -> Race:
    """Return the race on a CPU: O0 and O2 bfloat16 against Keras's fit."""
    ours = Contender("mixtrain O0", "mixtrain jax", scaling="none")
    half = Contender("mixtrain O2 bfloat16", "mixtrain jax", "bfloat16", scaling="none")
    peer = Contender("Keras fit on JAX", "keras jax")
    short = title.split(",")[0]
    goals = (
        Goal(f"{short}, reduced: O0 against Keras fit", ours.name, peer.name),
        Goal(f"{short}, reduced: O2 bfloat16 against O0", half.name, ours.name),
    )
    return Race(workload, (ours, peer, half), steps, goals, rounds=3, patience=12.0, title=title)


CASES: Final[dict[str, Case]] = {
    case.name: case
    for case in (
        Case("lenet", LENET, dataclasses.replace(LENET_PEERS, steps=32, rounds=7, patience=30.0), steps=128),
        Case(
            "resnet50", RESNET_50,
            _reduced(
                dataclasses.replace(RESNET_50, shape=(32, 32, 3), batch=2, classes=10),
                "ResNet-50, reduced to 32x32, batch 2", 2,
            ),
            steps=8, gib=(24.0, 10.0), limits=True,
        ),
        Case(
            "transformer", ENCODER,
            _reduced(
                dataclasses.replace(TRANSFORMER, shape=(32,), width=48, heads=12, batch=4),
                "Transformer encoder, reduced to 2 blocks, 48 wide, rows of 32, batch 4", 8,
            ),
            steps=8, gib=(36.0, 10.0), limits=True,
        ),
        Case(
            "resnet20", RESNET_128,
            _reduced(dataclasses.replace(RESNET, batch=8), "ResNet-20, reduced to batch 8", 4),
            steps=64, gib=(3.0, 2.0),
        ),
    )
}
