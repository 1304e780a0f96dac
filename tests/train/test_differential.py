"""Random networks, losses and optimizers train as in `keras.Model.fit`: the same losses of epochs, the same weights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import ON_TENSORFLOW, quick_every
from tests.train.random_networks import BATCH, Case, drawn_case

EPOCHS = 2
SEEDS = range(int(os.environ.get("MIXTRAIN_DIFFERENTIAL_FIRST", "0")), 10**9)
COUNT = int(os.environ.get("MIXTRAIN_DIFFERENTIAL_SEEDS", "50"))
QUICK = min(2, COUNT)
SCALE = 1024
EXACT, HALF, ROUNDINGS = 1e-6, 2e-2, 4.0


@pytest.fixture(autouse=True)
def float32_policy() -> Iterator[None]:
    """Put the global policy back."""
    yield
    keras.config.set_dtype_policy("float32")


def in_keras(case: Case, start: list[np.ndarray] | None = None) -> tuple[list[np.ndarray], list[np.ndarray], Any]:
    """Return the first weights, the last ones and the losses of the epochs of `keras.Model.fit`."""
    keras.config.set_dtype_policy(f"mixed_{case.half}" if case.half else "float32")
    network = case.network()
    keras.config.set_dtype_policy("float32")
    if start is not None:
        network.set_weights(start)
    before = [np.array(weight) for weight in network.get_weights()]
    optimizer = case.optimizer()
    if case.half == "float16":
        # Built by a LossScaleOptimizer, Nadam's product of momenta is no variable of it, and stays 1 on JAX.
        optimizer.build(network.trainable_variables)
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=SCALE)
    loss = keras.tree.map_structure(lambda form: form.theirs(), case.loss)
    # Six steps take TensorFlow less time than to trace one; JAX compiles each operation by itself otherwise.
    how = {"run_eagerly": True} if ON_TENSORFLOW else {"jit_compile": True}
    network.compile(optimizer, loss, loss_weights=case.loss_weights, auto_scale_loss=False, **how)
    history = network.fit(
        case.x, case.y, sample_weight=case.weights, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0
    )
    return before, network.get_weights(), history.history["loss"]


def in_a_model(case: Case, start: list[np.ndarray]) -> tuple[list[np.ndarray], Any]:
    """Return the last weights and the losses of the epochs of a Model."""
    if case.half and case.level is None:
        keras.config.set_dtype_policy(f"mixed_{case.half}")
    network = case.network()
    keras.config.set_dtype_policy("float32")
    network.set_weights(start)
    manager = DynamicLossScaleManager(SCALE) if case.half == "float16" else None
    loss: Any = keras.tree.map_structure(lambda form: form.ours(), case.loss)
    arguments: Any = {"optimizer": case.optimizer(), "loss_weights": case.loss_weights}
    if case.own_step:
        loss = keras.tree.map_structure(lambda form: form.theirs(), case.loss)
        network.compile(loss=loss, auto_scale_loss=False, **arguments)
        loss, arguments = None, {}
    else:
        arguments["sample_weight"] = case.weights is not None
    model = Model(
        network, loss, amp_level=case.level or "O0", loss_scale_manager=manager,
        cast_model_type=case.half if case.level not in (None, "O0") else None, **arguments,
    )
    history = model.train(EPOCHS, case.batches(), verbose=0, dataset_sink_mode=case.feed == "sink")
    return network.get_weights(), history["loss"]


def distance(ours: Any, theirs: Any, start: list[np.ndarray], half: bool) -> float:
    """Return how far apart two runs are: their losses, relative to them, and their weights, relative to what moved.

    In float32 each tensor counts by itself, relative to the largest number in it or its largest change. In half, where
    single numbers of a gradient are rounding alone, all weights count together.
    """
    of_losses = np.abs(np.subtract(ours[1], theirs[1])) / np.maximum(np.abs(theirs[1]), 1e-2)
    apart = [one - other for one, other in zip(ours[0], theirs[0], strict=True)]
    moved = [other - first for other, first in zip(theirs[0], start, strict=True)]
    if half:
        of_weights = _norm(apart) / max(_norm(moved), 1e-3)
    else:
        scales = [max(_largest(last), _largest(step), 1e-3) for last, step in zip(theirs[0], moved, strict=True)]
        of_weights = max((_largest(one) / scale for one, scale in zip(apart, scales, strict=True)), default=0.0)
    return max(float(of_losses.max()), of_weights)


def _largest(values: np.ndarray) -> float:
    return float(np.abs(values).max()) if values.size else 0.0


def _norm(tensors: list[np.ndarray]) -> float:
    return float(np.sqrt(sum((tensor.astype(np.float64) ** 2).sum() for tensor in tensors)))


def rounding(case: Case, theirs: Any, start: list[np.ndarray]) -> float:
    """Return how far Keras's own runs come from each other with first weights that differ by a rounding.

    Where gradients cancel out, as those of a bias before normalization do, only the order of operations is left.
    """
    size = {None: 2.0**-24, "float16": 2.0**-12, "bfloat16": 2.0**-9}[case.half]
    signs, result = np.random.default_rng(case.seed), []
    for _ in range(3):
        near = [(x * (1 + size * np.sign(signs.standard_normal(x.shape)))).astype(x.dtype) for x in start]
        _, *again = in_keras(case, near)
        result.append(distance(again, theirs, start, case.half is not None))
    return max(result)


@quick_every(2)
@pytest.mark.parametrize(
    "seed", [*SEEDS[:QUICK], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[QUICK:COUNT])]
)
def test_a_run_equals_keras(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = drawn_case(seed)
    if case.feed == "groups":
        monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 3)
    start, *theirs = in_keras(case)
    result = distance(in_a_model(case, start), theirs, start, case.half is not None)
    limit = HALF if case.half else EXACT
    if result > limit:
        limit = max(limit, ROUNDINGS * rounding(case, theirs, start))
    assert result <= limit, f"{case}: {result:.2e} apart"
