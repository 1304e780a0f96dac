"""Every kind of Keras network at every level: planned through, computed as planned, trained, and left as it was."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp, backend
from tests.backends import ON_TENSORFLOW, quick_every
from tests.precision.zoo import HEAD, LEVELS, PAGE, ZOO, Entry, disagreements, forward_nodes, line, model_of
from tests.precision.zoo_trace import contradicted, recording, stray_products, uncalled

# Each case compiles anew, which XLA alone does on JAX.
ON_JAX = {
    "sequential": ["O2"], "several_ends": ["O0"], "subclassed": ["O2 bfloat16"], "shared": ["O3"],
    "recurrent": ["O2"], "attention": ["O2 bfloat16"], "custom": ["O2"],
    "regularized": ["O1"], "operations": ["O3"],
}
# These take half of the time of all; quickly tried at one level.
DEAR = ("masked", "recurrent", "attention", "convolutions", "bidirectional", "augmentation", "raw_variables")


def _slow(entry: Entry, column: str) -> bool:
    return entry.large or ON_TENSORFLOW and (column == "O2" or entry.name in DEAR and column != "O2 bfloat16")


CASES = [
    pytest.param(entry, column, marks=pytest.mark.slow if _slow(entry, column) else ())
    for entry in ZOO for column in LEVELS if ON_TENSORFLOW or column in ON_JAX.get(entry.name, ())
]

# Only XLA, and oneDNN on processors where TensorFlow uses it, differentiate grouped convolutions on a CPU.
GROUPED = ("conv_next_tiny",)

# Their gradients in float16 are not finite on a first step of two 32x32 images: such a step is skipped.
STEEP, HALF_STEPS = ("resnet50_v2", "efficient_net_v2_b0"), ("O1", "O2", "O3")


def _name(value: Any) -> str:
    return value.name if isinstance(value, Entry) else value


def layers_of(network: Any) -> list[Any]:
    """Return every layer of a network once, as Keras lists them, without input layers and Sequential's copies."""
    result = [layer for layer in network._flatten_layers() if not isinstance(layer, keras.layers.InputLayer)]
    copies = [layer._functional for layer in result if isinstance(layer, keras.Sequential)]
    return [layer for layer in result if all(layer is not copied for copied in copies)]


def _set_by_compile() -> set[str]:
    """Return the names of the attributes that `keras.Model.compile` makes."""
    network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    before = set(vars(network))
    network.compile("sgd", "mse")
    return set(vars(network)) - before


# Of a network that a Model has trained these stay; of a layer the others come with a call.
NO_PLAN_S = _set_by_compile() | {"_call_context_args", "losses"}


def state_of(network: Any) -> list[tuple[Any, ...]]:
    """Return what a plan may change: each layer's policy, and the names of its attributes."""
    operations = [result for layer in layers_of(network) for result in getattr(layer, "operations", ())]
    return [
        (id(result), getattr(result, "dtype_policy", None), set(vars(result)) - NO_PLAN_S)
        for result in (*layers_of(network), *operations)
    ]


@functools.cache
def application(make: Callable[[], Any]) -> Any:
    """Return one of `keras.applications`, the same one for every level: each leaves it as it was."""
    return make()


def outputs_of(network: Any, inputs: Any) -> list[np.ndarray]:
    return [np.asarray(output) for output in keras.tree.flatten(network(inputs, training=False))]


@contextlib.contextmanager
def functions_as_they_are(wanted: bool) -> Iterator[None]:
    """Run TensorFlow's functions eagerly: Keras compiles each grouped convolution by XLA where it is not told so."""
    if not ON_TENSORFLOW:
        yield
        return
    import tensorflow as tf

    tf.config.run_functions_eagerly(wanted)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


def check_plan(network: Any, entry: Entry, column: str, plan: amp.PrecisionPlan) -> None:
    """Every layer has one row, and those that the zoo names compute in the level's format."""
    level, _ = LEVELS[column]
    rows = [id(row.target) for row in plan.rows if isinstance(row.target, keras.Layer)]
    assert len(rows) == len(set(rows)) and set(rows) == {id(layer) for layer in layers_of(network)}
    assert len({row.path for row in plan.rows}) == len(plan.rows)
    expected = {path: plan.half if code[int(level[1])] == "h" else "float32" for path, code in entry.formats.items()}
    assert {path: plan.row(path).compute_dtype for path in expected} == expected
    assert plan.row("").output_dtype == "float32"


def check_step(network: Any, entry: Entry, column: str, model: mixtrain.Model) -> None:
    """A step is finite, changes the weights, and computes as planned: what layers take and give, and its graph."""
    plan, batch = model.precision_report(), entry.batch()
    before = [backend.to_numpy(weight) for weight in network.trainable_weights]
    # An application compiles in tens of seconds: its step runs as it is, its forward pass alone is traced.
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE if entry.large else mixtrain.GRAPH_MODE)
    # O2 is compiled as the backend chooses, by XLA on a CPU; the others, of the same formats, in the plain graph.
    mixtrain.set_context(jit_level="auto" if column == "O2" else "O0")
    as_they_are = functions_as_they_are(entry.large and entry.name not in GROUPED)
    with recording(plan) as in_step, as_they_are, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch 1, 1 of 1 steps were skipped")
        history = model.train(1, [batch], verbose=0)
    skipped = history.get("skipped_steps", [0]) == [1]
    assert not skipped or (entry.name in STEEP and column in HALF_STEPS)
    assert skipped or math.isfinite(history["loss"][0])
    after = [backend.to_numpy(weight) for weight in network.trainable_weights]
    assert all(np.isfinite(weight).all() and weight.dtype == np.float32 for weight in after)
    assert skipped == all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    with recording(plan) as in_graph:
        nodes = forward_nodes(network, batch[0])
    for seen in (in_step, in_graph):
        assert contradicted(plan, seen) == []
        assert uncalled(seen) <= entry.uncalled
    products, stray = stray_products(plan, nodes)
    assert products and stray == []
    checked, wrong = disagreements(plan, nodes)
    assert checked and not wrong
    # How many casts there are is the backend's matter, and Keras's.
    if ON_TENSORFLOW and keras.__version__.startswith("3.15."):
        assert line(entry.name, column, plan, nodes) in PAGE.read_text(encoding="utf-8").splitlines()


@quick_every(61 if ON_TENSORFLOW else 3)
@pytest.mark.parametrize(("entry", "column"), CASES, ids=_name)
def test_a_network_at_a_level(entry: Entry, column: str) -> None:
    network, (inputs, label) = application(entry.make) if entry.large else entry.make(), entry.batch()
    expected, state = outputs_of(network, inputs), state_of(network)
    values = [backend.to_numpy(variable) for variable in network.variables]
    model = model_of(network, column)
    check_plan(network, entry, column, model.precision_report())
    check_step(network, entry, column, model)

    applied = amp.applied_plan(network)
    assert applied is not None
    applied.undo()
    assert state_of(network) == state
    for variable, value in zip(network.variables, values, strict=True):
        variable.assign(value)
    for one, other in zip(outputs_of(network, inputs), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    # Keras compiles its step for small networks after O3, and runs it as it is elsewhere; for the large ones after O3.
    if not entry.large or column == "O3":
        compiled = column == "O3" and not entry.large
        network.compile("sgd", "mse", jit_compile=False, run_eagerly=not compiled)
        assert math.isfinite(network.fit(inputs, label, batch_size=2, verbose=0).history["loss"][0])


def test_the_page_has_a_row_for_every_network_and_level_and_every_one_is_ok() -> None:
    head, _, table = PAGE.read_text(encoding="utf-8").partition("|---|---|---|---|---|---|\n")
    assert HEAD.startswith(head)
    rows = [[cell.strip() for cell in row.split("|")[1:4]] for row in table.splitlines()]
    assert rows == [[entry.name, column, "ok"] for entry in ZOO for column in LEVELS]
