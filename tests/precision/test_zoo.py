"""Every kind of Keras network: planned through, computed as planned, trained for a step, and left as it was."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp
from tests.precision.zoo import LEVELS, PAGE, ZOO, Entry, disagreements, line, model_of, planned, step_nodes

SMALL = [entry for entry in ZOO if not entry.large]
LARGE = [entry for entry in ZOO if entry.large]
QUICK = ("O0", "O2 bfloat16")
STEPS = [
    *((entry, column) for entry in SMALL for column in QUICK),
    *(
        pytest.param(entry, column, marks=pytest.mark.slow)
        for entry in SMALL for column in LEVELS if column not in QUICK
    ),
    *(pytest.param(entry, column, marks=pytest.mark.slow) for entry in LARGE for column in QUICK),
]


def _name(value: Any) -> str:
    return value.name if isinstance(value, Entry) else value


def layers_of(network: Any) -> list[Any]:
    """Return every layer of a network once, as Keras lists them, without input layers and Sequential's twins."""
    found = [layer for layer in network._flatten_layers() if not isinstance(layer, keras.layers.InputLayer)]
    twins = [layer._functional for layer in found if isinstance(layer, keras.Sequential)]
    return [layer for layer in found if all(layer is not twin for twin in twins)]


def state_of(network: Any) -> list[tuple[Any, ...]]:
    """Return what a plan may change: each layer's policy, its call, and attributes of ours."""
    operations = [found for layer in layers_of(network) for found in getattr(layer, "operations", ())]
    return [
        (id(found), getattr(found, "dtype_policy", None), {k for k in vars(found) if k == "call" or "mixtrain" in k})
        for found in (*layers_of(network), *operations)
    ]


@pytest.mark.parametrize(
    "entry", [*SMALL, *(pytest.param(entry, marks=pytest.mark.slow) for entry in LARGE)], ids=_name
)
def test_every_layer_is_planned_once_at_every_level_and_in_the_right_format(entry: Entry) -> None:
    network = entry.make()
    layers = {id(layer) for layer in layers_of(network)}
    for column, (level, _) in LEVELS.items():
        plan = planned(network, column)
        rows = [id(row.target) for row in plan.rows if isinstance(row.target, keras.Layer)]
        assert len(rows) == len(set(rows)) and set(rows) == layers
        assert len({row.path for row in plan.rows}) == len(plan.rows)
        wanted = {path: plan.half if code[int(level[1])] == "h" else "float32" for path, code in entry.formats.items()}
        assert {path: plan.row(path).compute_dtype for path in wanted} == wanted
        assert {str(row.output_dtype) for row in plan.rows if row.path == ""} == {"float32"}


@pytest.mark.parametrize(("entry", "column"), STEPS, ids=_name)
def test_a_step_computes_as_planned_is_finite_and_the_plan_is_undone(entry: Entry, column: str) -> None:
    # O2 is compiled as the engine chooses, by XLA on a CPU; the others, of the same formats, in the plain graph.
    mixtrain.set_context(jit_level="auto" if column == "O2" else "O0")
    network, batch = entry.make(), entry.batch()
    before, weights = state_of(network), [weight.numpy().copy() for weight in network.weights]
    model = model_of(network, column)
    plan = model.precision_report()
    nodes = step_nodes(model, batch)
    checked, wrong = disagreements(plan, nodes)
    assert not wrong and checked >= 1
    assert line(entry.name, column, plan, nodes) in PAGE.read_text(encoding="utf-8").splitlines()
    history = model.train(1, [batch], verbose=0)
    assert math.isfinite(history["loss"][0]) and history.get("skipped_steps", [0]) == [0]
    after = [weight.numpy().copy() for weight in network.weights]
    assert all(np.isfinite(weight).all() for weight in after)
    assert any(not np.array_equal(one, other) for one, other in zip(weights, after, strict=True))
    assert {str(weight.dtype) for weight in network.trainable_weights} == {"float32"}
    amp.applied_plan(network).undo()
    assert state_of(network) == before


@pytest.mark.parametrize("entry", SMALL, ids=_name)
def test_keras_s_own_fit_works_after_a_plan_was_taken_back(entry: Entry) -> None:
    network, (inputs, label) = entry.make(), entry.batch()
    expected = network(inputs, training=False)
    applied = amp.apply_plan(network, planned(network, "O3"))
    applied.undo()
    found = network(inputs, training=False)
    for one, other in zip(keras.tree.flatten(found), keras.tree.flatten(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    network.compile("sgd", "mse", jit_compile=False)
    assert math.isfinite(network.fit(inputs, label, batch_size=2, verbose=0).history["loss"][0])
