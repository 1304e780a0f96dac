"""The table of sets: every race with its contenders and goals."""

from __future__ import annotations

import dataclasses
from typing import Final

from benchmarks.contender import Contender
from benchmarks.data_cases import DATA
from benchmarks.goals import Goal
from benchmarks.jax_cases import AGAINST_32, JAX_CIFAR, JAX_LENET, JAX_MLP
from benchmarks.keras_fit_cases import CASES
from benchmarks.race import Race, Set
from benchmarks.surroundings import cpu_flags
from benchmarks.workloads import CIFAR, CIFAR_512, LENET, MLP, RESNET, TRANSFORMER
from mixtrain.backend.info import cpu_info, fast_bfloat16

KERAS: Final = Contender("Keras fit", "keras")
KERAS_32: Final = Contender("Keras fit(steps_per_execution=32)", "keras", steps_per_execution=32)
KERAS_BFLOAT16: Final = Contender("Keras fit, mixed_bfloat16", "keras", "bfloat16")
HOST_LOOP: Final = Contender("hand-written loop, host", "loop")
GRAPH_LOOP: Final = Contender("hand-written loop, in graph", "loop", sink=True)
PYTORCH: Final = Contender("PyTorch", "pytorch")
PYTORCH_LAST: Final = Contender("PyTorch, channels last", "pytorch")
PYTORCH_FIRST: Final = Contender("PyTorch, channels first", "pytorch", channels_last=False)
PYTORCH_BFLOAT16: Final = Contender("PyTorch, bfloat16 autocast", "pytorch", "bfloat16")
PYTORCH_LAST_BFLOAT16: Final = Contender("PyTorch, channels last, bfloat16 autocast", "pytorch", "bfloat16")
MINDSPORE: Final = Contender("MindSpore", "mindspore", steps=8)
OURS: Final = Contender("mixtrain O0", "mixtrain", scaling="none")
WATCHED: Final = Contender("mixtrain O0, callback on every step", "mixtrain", scaling="none", callback=True)
SINK: Final = Contender("mixtrain O0, sink", "mixtrain", scaling="none", sink=True)
DYNAMIC: Final = Contender("mixtrain O0, dynamic scaling", "mixtrain", scaling="dynamic")
DYNAMIC_SINK: Final = Contender("mixtrain O0, dynamic scaling, sink", "mixtrain", scaling="dynamic", sink=True)
FIXED: Final = Contender("mixtrain O0, fixed scaling", "mixtrain", scaling="fixed")
BFLOAT16: Final = Contender("mixtrain O2 bfloat16", "mixtrain", "bfloat16")
BFLOAT16_SINK: Final = Contender("mixtrain O2 bfloat16, sink", "mixtrain", "bfloat16", sink=True)
FLOAT16: Final = Contender("mixtrain O2 float16, dynamic scaling", "mixtrain", "float16", scaling="dynamic", steps=48)
KERAS_FLOAT16: Final = Contender("Keras fit, mixed_float16", "keras", "float16", steps=3)
ACCURACY: Final = Contender("mixtrain O0, accuracy while training", "mixtrain", scaling="none", accuracy=True)
CELL: Final = Contender("mixtrain O0, channels-first Cell", "mixtrain cell", scaling="none")
SCRIPT: Final = Contender("mixtrain, MindSpore's script", "mixtrain script")
AUTO: Final = Contender("mixtrain auto", "mixtrain", scaling="none", level="auto")


def bfloat16_limit(info: str) -> float | None:
    """Return the limit on the ratio of a bfloat16 to a float32 step; None on processors without fast bfloat16.

    Args:
        info: The text of `mixtrain.backend.info.cpu_info`.
    """
    if not fast_bfloat16(info):
        return None
    return 0.50 if "amx_bf16" in cpu_flags(info) else 0.67


_MLP = Race(
    MLP,
    (KERAS, KERAS_32, HOST_LOOP, GRAPH_LOOP, PYTORCH, WATCHED, OURS, SINK, DYNAMIC_SINK, AUTO),
    steps=512,
    goals=(
        Goal("MLP, a callback on every step, against Keras fit", WATCHED.name, KERAS.name, 0.75),
        Goal("MLP, no callback between steps, against Keras fit", OURS.name, KERAS.name, 0.30),
        Goal(f"MLP, {AGAINST_32}", OURS.name, KERAS_32.name, 1.0),
        Goal("MLP, sink, against Keras fit", SINK.name, KERAS.name, 0.25),
        Goal("MLP, sink, against the hand-written in-graph loop", SINK.name, GRAPH_LOOP.name, 1.03),
        Goal("MLP, sink, dynamic scaling on against off", DYNAMIC_SINK.name, SINK.name, 1.25),
        Goal("MLP, auto against O0", AUTO.name, OURS.name, 1.03),
        Goal("MLP, no callback between steps, against PyTorch", OURS.name, PYTORCH.name),
    ),
)
_LENET = Race(
    LENET,
    (
        KERAS, KERAS_32, HOST_LOOP, GRAPH_LOOP, PYTORCH_FIRST, PYTORCH_LAST, MINDSPORE, SCRIPT, WATCHED, OURS, SINK,
        DYNAMIC, ACCURACY, CELL,
    ),
    steps=128,
    patience=240.0,
    goals=(
        Goal("LeNet-5 float32, sink, against the hand-written in-graph loop", SINK.name, GRAPH_LOOP.name, 1.03),
        Goal("LeNet-5 float32, a callback on every step, against Keras fit", WATCHED.name, KERAS.name, 0.95),
        Goal("LeNet-5 float32, no callback between steps, against Keras fit", OURS.name, KERAS.name, 0.85),
        Goal(f"LeNet-5 float32, {AGAINST_32}", OURS.name, KERAS_32.name, 1.0),
        Goal("LeNet-5, channels-first Cell against channels-last network, both ours", CELL.name, OURS.name, 1.10),
        Goal("LeNet-5, dynamic scaling on against off", DYNAMIC.name, OURS.name, 1.03),
        Goal("LeNet-5, accuracy while training on against off", ACCURACY.name, OURS.name, 1.05),
        Goal("LeNet-5, the same script, against MindSpore on CPU", SCRIPT.name, MINDSPORE.name, 0.10),
        Goal("LeNet-5, no callback between steps, against PyTorch", OURS.name, PYTORCH_LAST.name),
    ),
)
_LENET_HALF = Race(
    LENET,
    (
        KERAS_BFLOAT16, KERAS_FLOAT16, dataclasses.replace(PYTORCH_LAST_BFLOAT16, steps=32), OURS, BFLOAT16, FLOAT16,
        AUTO,
    ),
    steps=128,
    rounds=11,
    title="LeNet-5, batch 32, half precision",
    goals=(
        Goal("LeNet-5 O2 float16 dynamic, against Keras mixed_float16 fit", FLOAT16.name, KERAS_FLOAT16.name, 0.05),
        Goal("LeNet-5 O2 float16 dynamic, against our O0", FLOAT16.name, OURS.name, 2.0),
        Goal("LeNet-5 O2 bfloat16 against Keras mixed_bfloat16 fit", BFLOAT16.name, KERAS_BFLOAT16.name),
        Goal("LeNet-5 O2 bfloat16 against our O0", BFLOAT16.name, OURS.name),
        Goal("LeNet-5, auto against O0", AUTO.name, OURS.name, 1.03),
    ),
)
_CIFAR = Race(
    CIFAR,
    (
        KERAS, dataclasses.replace(KERAS_32, steps=32), KERAS_BFLOAT16, PYTORCH_LAST, PYTORCH_LAST_BFLOAT16, OURS, SINK,
        DYNAMIC, BFLOAT16, BFLOAT16_SINK, AUTO,
    ),
    steps=3,
    rounds=11,
    patience=240.0,
    goals=(
        Goal("CIFAR CNN O2 bfloat16 against our O0", BFLOAT16.name, OURS.name, bfloat16_limit(cpu_info())),
        Goal("CIFAR CNN, auto against O0", AUTO.name, OURS.name, 1.03),
        Goal(f"CIFAR CNN O0, {AGAINST_32}", OURS.name, KERAS_32.name, 1.0),
        Goal("CIFAR CNN O0 against Keras fit float32", OURS.name, KERAS.name, 0.65),
        Goal("CIFAR CNN O2 bfloat16 against Keras fit mixed_bfloat16", BFLOAT16.name, KERAS_BFLOAT16.name, 0.50),
        Goal("CIFAR CNN O0 against PyTorch float32", OURS.name, PYTORCH_LAST.name, 0.90),
        Goal("CIFAR CNN O2 against PyTorch, both bfloat16", BFLOAT16.name, PYTORCH_LAST_BFLOAT16.name, 0.90),
        Goal("CIFAR CNN, dynamic scaling on against off", DYNAMIC.name, OURS.name, 1.03),
        Goal("CIFAR CNN O0, sink against host feed", SINK.name, OURS.name),
        Goal("CIFAR CNN O2 bfloat16, sink against host feed", BFLOAT16_SINK.name, BFLOAT16.name),
    ),
)
_RESNET = Race(
    RESNET,
    (KERAS, KERAS_BFLOAT16, PYTORCH_LAST, PYTORCH_LAST_BFLOAT16, OURS, BFLOAT16),
    steps=3,
    rounds=7,
    goals=(
        Goal("ResNet-20 O0 against Keras fit float32", OURS.name, KERAS.name),
        Goal("ResNet-20 O2 bfloat16 against Keras fit mixed_bfloat16", BFLOAT16.name, KERAS_BFLOAT16.name),
        Goal("ResNet-20 O0 against PyTorch float32", OURS.name, PYTORCH_LAST.name),
        Goal("ResNet-20 O2 against PyTorch, both bfloat16", BFLOAT16.name, PYTORCH_LAST_BFLOAT16.name),
    ),
)
_TRANSFORMER = Race(
    TRANSFORMER,
    (
        KERAS, dataclasses.replace(KERAS_32, steps=32), KERAS_BFLOAT16, PYTORCH, PYTORCH_BFLOAT16, OURS, DYNAMIC,
        BFLOAT16, AUTO,
    ),
    steps=6,
    rounds=11,
    patience=240.0,
    goals=(
        Goal("Transformer, dynamic scaling on against off", DYNAMIC.name, OURS.name, 1.03),
        Goal(f"Transformer O0, {AGAINST_32}", OURS.name, KERAS_32.name, 1.0),
        Goal("Transformer, auto against O0", AUTO.name, OURS.name, 1.03),
        Goal("Transformer O0 against Keras fit float32", OURS.name, KERAS.name),
        Goal("Transformer O2 bfloat16 against Keras fit mixed_bfloat16", BFLOAT16.name, KERAS_BFLOAT16.name),
        Goal("Transformer O0 against PyTorch float32", OURS.name, PYTORCH.name),
    ),
)
_MEMORY = Race(
    CIFAR_512,
    (KERAS, KERAS_BFLOAT16, OURS, BFLOAT16),
    steps=3,
    rounds=2,
    measure="peak memory",
    goals=(
        Goal("Peak memory above baseline, CIFAR CNN batch 512, O2 bfloat16 against O0", BFLOAT16.name, OURS.name, 0.60),
        Goal("Peak memory, CIFAR CNN batch 512, O0 against Keras fit float32", OURS.name, KERAS.name),
        Goal("Peak memory, CIFAR CNN batch 512, O2 against Keras mixed_bfloat16", BFLOAT16.name, KERAS_BFLOAT16.name),
    ),
)
_FIRST_STEP = Race(
    LENET,
    (KERAS, PYTORCH_LAST, OURS),
    steps=1,
    rounds=5,
    measure="time to first step",
    goals=(Goal("Time to first step, LeNet-5, against Keras fit", OURS.name, KERAS.name, 1.10),),
)
_OVERHEAD = Race(
    LENET,
    (KERAS, OURS, DYNAMIC, FIXED),
    steps=128,
    goals=(
        Goal("LeNet-5 O0 against keras.Model.fit", OURS.name, KERAS.name, 1.05),
        Goal("LeNet-5 O0 with dynamic loss scaling against without", DYNAMIC.name, OURS.name, 1.10),
        Goal("LeNet-5 O0 with fixed loss scaling against without", FIXED.name, OURS.name, 1.10),
    ),
)
SETS: Final[dict[str, Set]] = {
    item.name: item
    for item in (
        Set("mlp", "overhead of a step, where the network costs next to nothing", (_MLP,)),
        Set("lenet", "LeNet-5 in float32 beside every peer", (_LENET,)),
        Set("lenet_half", "LeNet-5 in bfloat16 and float16", (_LENET_HALF,)),
        Set("cifar", "six convolutions with batch normalization, float32 and bfloat16", (_CIFAR,)),
        Set("resnet", "ResNet-20, float32 and bfloat16", (_RESNET,)),
        Set("transformer", "an encoder of two blocks, float32 and bfloat16", (_TRANSFORMER,)),
        Set("memory", "peak memory of training above that before it", (_MEMORY,)),
        Set("first_step", "seconds from Model(...) or compile to the end of the first step", (_FIRST_STEP,)),
        Set("step_overhead", "what loss scaling adds to a step", (_OVERHEAD,), default=False),
        Set("jax", "three networks on JAX beside Keras's fit and hand-written loops", (JAX_MLP, JAX_LENET, JAX_CIFAR),
            default=False),
        Set("data", "input pipelines from PNG files to batches, beside every peer's", DATA, default=False),
        Set("keras_fit", "the same Keras networks in Keras's fit and in Model", tuple(CASES.values()), default=False),
    )
}
