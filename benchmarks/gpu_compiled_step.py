"""Compile a contender's training step for a GPU that need not be there, by JAX's ahead-of-time compilation.

What decides itself by looking at the device is not as on a real one: XLA tunes nothing, so products become Triton
fusions with default settings, and Keras does not choose cuDNN's attention.
"""

from __future__ import annotations

import pathlib
import time
import types
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import jax
import keras
import numpy as np
from jax.experimental import topologies

from benchmarks.contender import Contender, from_text
from benchmarks.contenders import jax_hand, jax_model
from benchmarks.networks import in_keras
from benchmarks.workloads import Workload, arrays
from mixtrain.backend.jax import device, state

TARGET: Final = pathlib.Path(__file__).parent / "targets" / "h200.txtpb"


class Step(NamedTuple):
    """A jitted training step and its arguments."""

    jitted: Any
    arguments: tuple[Any, ...]


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Compile a step, write its text to a file, and return the device memory that it takes.

    Args:
        request: "of": a contender and its workload as `benchmarks.contender.as_text`; "text": the path of the file.
    """
    contender, workload, _ = from_text(request["of"])
    started = time.perf_counter()
    topology = topologies.get_topology_desc(platform="cuda", target_config=TARGET.read_text(), topology="1x1x1")
    sharding = jax.sharding.SingleDeviceSharding(topology.devices[0])
    step = step_of(contender, workload)
    specs = jax.tree.map(
        lambda value: jax.ShapeDtypeStruct(np.shape(value), value.dtype, sharding=sharding), step.arguments
    )
    compiled = step.jitted.trace(*specs).lower(lowering_platforms=("cuda",)).compile()
    pathlib.Path(request["text"]).write_text(compiled.as_text())
    peak = compiled.memory_analysis().peak_memory_in_bytes
    return {"peak_bytes": peak, "seconds": time.perf_counter() - started}


def step_of(contender: Contender, workload: Workload) -> Step:
    """Return the step of mixtrain's `Model`, of Keras's `fit`, or one that is written by hand."""
    return {"mixtrain jax": _step_of_model, "keras jax": _step_of_fit, "hand jax": _hand_written}[contender.kind](
        contender, workload
    )


def _step_of_model(contender: Contender, workload: Workload) -> Step:
    class Caught(Exception):
        pass

    caught: list[Any] = []

    def catch(self: Any, *tensors: Any, **options: Any) -> None:
        self.values_before(*tensors)  # Traced until its variables are known, as by a first call.
        caught[:] = self, tensors
        raise Caught

    # mixtrain chooses some code by its device.
    gpu = types.SimpleNamespace(platform="gpu", device_kind="GPU", compute_capability="9.0", memory_stats=lambda: {})
    before = device.jax, state.Stateful.__call__
    device.jax = types.SimpleNamespace(devices=lambda: [gpu], config=jax.config)  # type: ignore[assignment]
    device.describe_device.cache_clear()
    state.Stateful.__call__ = catch  # type: ignore[method-assign, assignment]
    try:
        jax_model.build(contender, workload, 1)()()
    except Caught:
        pass
    finally:
        device.jax, state.Stateful.__call__ = before  # type: ignore[method-assign]
        device.describe_device.cache_clear()
    step, tensors = caught
    return Step(step._jitted, (_values(step.read), _values(step.written), *tensors))


def _step_of_fit(contender: Contender, workload: Workload) -> Step:
    model = in_keras.network(workload, contender.policy)
    if contender.dtype == "float8":
        for layer in model._flatten_layers():  # Those inside attention too, which Keras has no public name for.
            if type(layer) in (keras.layers.Dense, keras.layers.EinsumDense):
                layer.quantize("float8")
    model.compile(in_keras.optimizer(), in_keras.loss())
    batch = _batch(workload)
    model._symbolic_build(data_batch=batch)
    groups = (
        model.trainable_variables, model.non_trainable_variables, model.optimizer.variables, model.metrics_variables
    )
    return Step(jax.jit(model.train_step, donate_argnums=0), (tuple(map(_values, groups)), batch))


def _hand_written(contender: Contender, workload: Workload) -> Step:
    step, state = jax_hand.training(workload, contender.policy)
    return Step(jax.jit(step, donate_argnums=0), (state, _batch(workload)))


def _values(variables: list[keras.Variable]) -> list[Any]:
    return [jax.ShapeDtypeStruct(variable.shape, variable.value.dtype) for variable in variables]


def _batch(workload: Workload) -> tuple[Any, Any]:
    x, y = arrays(workload, 1)
    return x[0], y[0]
