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
DType = Literal["float32", "bfloat16", "float16", "float8"]
Level = Literal["O0", "O2", "O3", "auto"]
Products = Literal["default", "float32", "tensorfloat32"]
Round = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Runner:
    """The module, package and environment that run a kind of contender.

    Attributes:
        module: The module whose ``build(contender, workload, steps)`` builds network and data and returns a function
            that prepares the training and returns a function that trains for one round.
        package: Package required in the peer's interpreter; None for contenders that run in this process.
        environment: Environment variables of its process.
    """

    module: str
    package: str | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


# Processes allocate device memory on demand, so that several fit side by side, up to this share of it.
DEVICE_SHARE: Final = 0.95
_ON_JAX: Final = {
    "KERAS_BACKEND": "jax",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "XLA_PYTHON_CLIENT_MEM_FRACTION": str(DEVICE_SHARE),
}
RUNNERS: dict[Kind, Runner] = {
    "mixtrain": Runner("benchmarks.contenders.model"),
    "mixtrain cell": Runner("benchmarks.contenders.model"),
    "mixtrain script": Runner("benchmarks.contenders.script"),
    "keras": Runner("benchmarks.contenders.keras_fit"),
    "loop": Runner("benchmarks.contenders.loop"),
    "pytorch": Runner("benchmarks.contenders.pytorch", "torch"),
    "mindspore": Runner("benchmarks.contenders.script", "mindspore"),
    "mixtrain jax": Runner("benchmarks.contenders.jax_model", "jax", _ON_JAX),
    "keras jax": Runner("benchmarks.contenders.jax_fit", "jax", _ON_JAX),
    "hand jax": Runner("benchmarks.contenders.jax_hand", "jax", _ON_JAX),
    "plain": Runner("benchmarks.contenders.plain_tensorflow"),
    "plain jax": Runner("benchmarks.contenders.plain_jax", "jax", _ON_JAX),
    "mixtrain data": Runner("benchmarks.contenders.data_script"),
    "mixtrain data jax": Runner("benchmarks.contenders.data_script", "jax", _ON_JAX),
    "mindspore data": Runner("benchmarks.contenders.data_script", "mindspore"),
    "tf.data": Runner("benchmarks.contenders.data_tensorflow"),
    "torchvision": Runner("benchmarks.contenders.data_torch", "torch"),
}


@dataclasses.dataclass(frozen=True)
class Contender:
    """One way of training.

    Attributes:
        name: Its name in the tables and in goals.
        kind: Key of `RUNNERS`.
        dtype: Compute dtype of the layers: ours through O0 or O2, Keras's through its mixed policy, PyTorch's through
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
        steps: Steps per round; by default the race's.
        resident: Whether the batches are copied to the device before training (ours and hand-written loops, on JAX).
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
    def runner(self) -> Runner:
        """The runner of its kind."""
        return RUNNERS[self.kind]

    @property
    def policy(self) -> str:
        """The Keras dtype policy for its dtype."""
        return {"float32": "float32", "float8": "mixed_bfloat16"}.get(self.dtype, f"mixed_{self.dtype}")

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of its process."""
        precision = {"JAX_DEFAULT_MATMUL_PRECISION": self.products} if self.products != "default" else {}
        return {**self.runner.environment, **precision}


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build a contender's network and data in this process.

    Returns:
        A function that prepares the training (`Model(...)`, `compile`) and returns a function that trains for one
        round.
    """
    module = importlib.import_module(contender.runner.module)
    return module.build(contender, workload, steps)  # type: ignore[no-any-return]


def as_text(contender: Contender, workload: Workload, steps: int) -> str:
    """Serialize a child's contender, workload and steps as one line of JSON.

    Defaults are left out: an older checkout may lack the field.
    """
    return json.dumps([_non_default(contender), dataclasses.asdict(workload), steps])


def _non_default(contender: Contender) -> dict[str, Any]:
    values = dataclasses.asdict(contender)
    return {
        field.name: values[field.name]
        for field in dataclasses.fields(contender)
        if values[field.name] != field.default
    }


def from_text(text: str) -> tuple[Contender, Workload, int]:
    """Parse the output of `as_text`."""
    contender, workload, steps = json.loads(text)
    return Contender(**contender), Workload(**{**workload, "shape": tuple(workload["shape"])}), steps
