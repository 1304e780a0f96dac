"""Who trains a workload, and how: one row for each contender, plain enough to be sent to a child process."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from benchmarks.workloads import Workload

Kind = Literal[
    "mixtrain", "mixtrain cell", "mixtrain script", "keras", "loop", "pytorch", "mindspore",
    "mixtrain jax", "keras jax", "hand jax",
    "plain", "plain jax", "mixtrain data", "mixtrain data jax", "mindspore data", "tf.data", "torchvision",
]
DType = Literal["float32", "bfloat16", "float16"]
Level = Literal["O0", "O2", "O3", "auto"]
Products = Literal["default", "float32", "tensorfloat32"]
Round = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Way:
    """How a kind of contender is run.

    Attributes:
        module: The module whose ``made(contender, workload, steps)`` builds network and data; what it returns makes the
            training when called, and that trains for one round when called.
        package: The package that the peer's interpreter must have; None for contenders of this process.
        environment: Environment variables of its process.
    """

    module: str
    package: str | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


# A process takes device memory as it needs it, so that many can stand beside each other; of all but a little.
DEVICE_SHARE: Final = 0.95
_ON_JAX: Final = {
    "KERAS_BACKEND": "jax",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "XLA_PYTHON_CLIENT_MEM_FRACTION": str(DEVICE_SHARE),
}
WAYS: dict[Kind, Way] = {
    "mixtrain": Way("benchmarks.contenders.model"),
    "mixtrain cell": Way("benchmarks.contenders.model"),
    "mixtrain script": Way("benchmarks.contenders.script"),
    "keras": Way("benchmarks.contenders.keras_fit"),
    "loop": Way("benchmarks.contenders.loop"),
    "pytorch": Way("benchmarks.contenders.pytorch", "torch"),
    "mindspore": Way("benchmarks.contenders.script", "mindspore"),
    "mixtrain jax": Way("benchmarks.contenders.jax_model", "jax", _ON_JAX),
    "keras jax": Way("benchmarks.contenders.jax_fit", "jax", _ON_JAX),
    "hand jax": Way("benchmarks.contenders.jax_hand", "jax", _ON_JAX),
    "plain": Way("benchmarks.contenders.plain_tensorflow"),
    "plain jax": Way("benchmarks.contenders.plain_jax", "jax", _ON_JAX),
    "mixtrain data": Way("benchmarks.contenders.data_script"),
    "mixtrain data jax": Way("benchmarks.contenders.data_script", "jax", _ON_JAX),
    "mindspore data": Way("benchmarks.contenders.data_script", "mindspore"),
    "tf.data": Way("benchmarks.contenders.data_tensorflow"),
    "torchvision": Way("benchmarks.contenders.data_torch", "torch"),
}


@dataclasses.dataclass(frozen=True)
class Contender:
    """One way of training.

    Attributes:
        name: Its name in the tables and in goals.
        kind: Key of `WAYS`.
        dtype: The format that layers compute in: ours at O0 or at O2, Keras's by its mixed policy, PyTorch's by
            autocast.
        sink: Whether many steps run in one compiled call: ours by `dataset_sink_mode`, the hand-written loop's own.
        callback: Whether a user's callback is called after every step (ours).
        accuracy: Whether the accuracy is computed while training (ours).
        scaling: Loss scaling of ours: "level" (the level's own), "none", "fixed" or "dynamic".
        channels_last: Whether images lie channels last in memory (PyTorch).
        jit: `jit_compile` of Keras's `compile`; True runs PyTorch's network through `torch.compile`.
        steps_per_execution: That of Keras's `compile`.
        level: The level of ours; by default O0 in float32 and O2 in half.
        products: How products of float32 tensors are computed on a GPU: in float32, in TensorFloat-32, or as the
            framework does by default.
        steps: Steps a round where its own pace asks for other than the race's.
        resident: Whether the batches lie in the device's memory before it begins (ours and loops by hand, on JAX).
    """

    name: str
    kind: Kind
    dtype: DType = "float32"
    sink: bool = False
    callback: bool = False
    accuracy: bool = False
    scaling: Literal["level", "none", "fixed", "dynamic"] = "level"
    channels_last: bool = True
    jit: bool | Literal["auto"] = "auto"
    steps: int | None = None
    steps_per_execution: int = 1
    level: Level | None = None
    products: Products = "default"
    resident: bool = False

    @property
    def way(self) -> Way:
        """How it is run."""
        return WAYS[self.kind]

    @property
    def policy(self) -> str:
        """Keras's dtype policy of its format."""
        return "float32" if self.dtype == "float32" else f"mixed_{self.dtype}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of its process."""
        told = {"JAX_DEFAULT_MATMUL_PRECISION": self.products} if self.products != "default" else {}
        return {**self.way.environment, **told}


def made(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build a contender's network and data in this process.

    Returns:
        What makes its training (`Model(...)`, `compile`) when called; that trains for one round when called.
    """
    build: Callable[..., Callable[[], Round]] = importlib.import_module(contender.way.module).made
    return build(contender, workload, steps)


def as_text(contender: Contender, workload: Workload, steps: int) -> str:
    """Return what a child must know, as one line: without what is as by default, which an older checkout may not know.
    """
    return json.dumps([_told(contender), dataclasses.asdict(workload), steps])


def _told(contender: Contender) -> dict[str, Any]:
    values = dataclasses.asdict(contender)
    return {of.name: values[of.name] for of in dataclasses.fields(contender) if values[of.name] != of.default}


def from_text(text: str) -> tuple[Contender, Workload, int]:
    """Return what `as_text` was given."""
    contender, workload, steps = json.loads(text)
    return Contender(**contender), Workload(**{**workload, "shape": tuple(workload["shape"])}), steps
