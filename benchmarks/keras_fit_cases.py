"""The cases of `benchmarks.keras_fit`: one network at one precision, in mixtrain and in Keras."""

from __future__ import annotations

from typing import Final

from benchmarks.contender import Contender, DType
from benchmarks.goals import Goal
from benchmarks.race import Race
from benchmarks.workloads import CIFAR, LENET, Workload


def _case(title: str, workload: Workload, dtype: DType, policy: str, steps: int, limit: float) -> Race:
    ours, peer = "mixtrain", f"Keras fit, {policy}"
    return Race(
        workload,
        (Contender(peer, "keras", dtype), Contender(ours, "mixtrain", dtype)),
        steps=steps,
        title=title,
        goals=(Goal(f"{title} against Keras fit, {policy}", ours, peer, limit),),
    )


CASES: Final[dict[str, Race]] = {
    "lenet-float32": _case("LeNet-5 O0", LENET, "float32", "float32", 128, 0.95),
    "cifar-float32": _case("CIFAR CNN O0", CIFAR, "float32", "float32", 8, 0.70),
    "cifar-bfloat16": _case("CIFAR CNN O2 bfloat16", CIFAR, "bfloat16", "mixed_bfloat16", 8, 0.55),
    "cifar-float16": _case("CIFAR CNN O2 float16", CIFAR, "float16", "mixed_float16", 2, 0.10),
}
