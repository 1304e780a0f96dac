"""The recipe of a step: order, the unscaled loss, exact unscaling, and what a skipped step writes."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend
from mixtrain.step.recipe import Recipe, Scaling, StepResult


def run_step(loss_of: Any, inputs: list[Any], weights: list[Any], **options: Any) -> StepResult:
    return Recipe(loss_of, weights, **options).run(inputs)


def _parameter(*values: float) -> mixtrain.Parameter:
    return mixtrain.Parameter(np.array(values, np.float32))


def _scaling(scale: float, calls: list[Any] | None = None, **options: Any) -> Scaling:
    calls = [] if calls is None else calls
    settings = {"divides": True, "rollback": backend.Rollback(list), **options}
    return Scaling(loss_scale=lambda: mixtrain.Tensor(scale), advance=calls.append, **settings)


def test_without_scaling_the_gradients_are_applied_as_they_are() -> None:
    weight, seen = _parameter(1.0, 2.0), []
    result = run_step(lambda x: keras.ops.sum(weight * x), [mixtrain.Tensor([3.0, 4.0])], [weight], apply=seen.extend)
    assert (float(result.loss), result.overflow, result.loss_scale) == (11.0, None, None)
    assert backend.to_numpy(seen[0]).tolist() == [3.0, 4.0]


@pytest.mark.parametrize("scale", [2.0, 3.0, 1000.0, 2.0**24])
def test_the_loss_is_reported_unscaled_and_gradients_are_divided_by_the_scale_they_were_multiplied_by(
    scale: float,
) -> None:
    weight, seen, finite = _parameter(0.1), [], []
    result = run_step(
        lambda x: weight * x, [mixtrain.Tensor([0.3])], [weight], apply=seen.extend, scaling=_scaling(scale, finite)
    )
    assert float(result.loss[0]) == np.float32(0.1) * np.float32(0.3)
    assert float(seen[0][0]) == np.float32(0.3) * np.float32(scale) / np.float32(scale)
    assert (bool(result.overflow), float(result.loss_scale), bool(finite[0])) == (False, scale, True)


def test_the_scale_is_moved_last_and_the_one_that_was_used_is_reported() -> None:
    weight, order = _parameter(1.0), []
    scaling = Scaling(
        loss_scale=lambda: mixtrain.Tensor(8.0), divides=True, rollback=backend.Rollback(list),
        advance=lambda finite: order.append("scale"),
    )
    result = run_step(
        lambda: weight * 1.0, [], [weight], apply=lambda gradients: order.append("apply"), scaling=scaling
    )
    assert order == ["apply", "scale"]
    assert float(result.loss_scale) == 8.0


def test_a_half_loss_is_scaled_in_float32() -> None:
    weight, seen = _parameter(1.0), []

    def loss(x: Any) -> Any:
        return keras.ops.cast(weight.value * x, "float16")

    result = run_step(loss, [mixtrain.Tensor([2.0])], [weight], apply=seen.extend, scaling=_scaling(2.0**15))
    assert (result.loss.dtype.name, seen[0].dtype.name) == ("float32", "float32")
    assert float(seen[0][0]) == 2.0  # 2.0 * 2**15 does not fit into float16, its gradient does


def test_a_step_that_drops_puts_the_other_state_back_and_applies_nothing() -> None:
    weight, statistic, applied, finite = _parameter(1.0), _parameter(0.5), [], []

    def loss() -> Any:
        statistic.assign(statistic + 1.0)
        return weight * np.float32(np.inf)

    result = run_step(
        loss, [], [weight], apply=applied.append,
        scaling=_scaling(2.0, finite, rollback=backend.Rollback(lambda: [statistic])),
    )
    assert (bool(result.overflow), bool(finite[0]), applied) == (True, False, [])
    assert statistic.asnumpy().tolist() == [0.5]


def test_a_step_that_does_not_drop_applies_what_is_not_finite_undivided() -> None:
    weight, seen = _parameter(1.0), []
    scaling = _scaling(4.0, divides=False, rollback=None)
    run_step(lambda: weight * 3.0, [], [weight], apply=seen.extend, scaling=scaling)
    run_step(lambda: weight * np.float32(np.inf), [], [weight], apply=seen.extend, scaling=scaling)
    assert [float(gradient[0]) for gradient in seen] == [12.0, np.inf]


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 1])
def test_one_value_that_is_not_finite_anywhere_is_an_overflow(bad: float, place: int) -> None:
    weights = [_parameter(1.0, 1.0), _parameter(1.0, 1.0)]
    factors = [np.ones(2, np.float32), np.ones(2, np.float32)]
    factors[place][1] = bad

    def loss() -> Any:
        return sum(keras.ops.sum(weight * factor) for weight, factor in zip(weights, factors, strict=True))

    result = run_step(loss, [], weights, apply=lambda gradients: None, scaling=_scaling(2.0))
    assert bool(result.overflow) is True


def test_a_weight_without_gradient_passes_none_on() -> None:
    weights, seen = [_parameter(1.0), _parameter(1.0)], []
    run_step(lambda: weights[0] * 2.0, [], weights, apply=seen.extend, scaling=_scaling(4.0))
    assert (float(seen[0][0]), seen[1]) == (2.0, None)


def test_sparse_gradients_are_unscaled_and_checked() -> None:
    table, seen = mixtrain.Parameter(np.ones((4, 2), np.float32)), []

    def loss(rows: Any, factor: Any) -> Any:
        return keras.ops.sum(keras.ops.take(table.value, rows, axis=0) * factor)

    rows = mixtrain.Tensor(np.array([1, 3], np.int32))
    for factor, overflow in ((2.0, False), (np.inf, True)):
        result = run_step(loss, [rows, mixtrain.Tensor(factor)], [table], apply=seen.extend, scaling=_scaling(8.0))
        assert bool(result.overflow) is overflow
    assert len(seen) == 1
    assert backend.to_numpy(keras.ops.convert_to_tensor(seen[0])).tolist() == [[0, 0], [2, 2], [0, 0], [2, 2]]


def test_a_loss_that_depends_on_no_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="the loss must depend on parameters that the optimizer holds; got one that"):
        run_step(lambda: mixtrain.Tensor(1.0), [], [_parameter(1.0)], apply=lambda gradients: None)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("manager", [None, mixtrain.FixedLossScaleManager(8.0, drop_overflow_update=False)])
@pytest.mark.parametrize("width", [4, 2**14])
def test_a_step_whose_forward_pass_fails_moves_no_count_and_decays_no_weight(
    width: int, sink: bool, manager: Any
) -> None:
    layers = [keras.layers.Embedding(5, width), keras.layers.Flatten(), keras.layers.Dense(1)]
    network = keras.Sequential([keras.Input((3,), dtype="int32"), *layers])
    optimizer = keras.optimizers.AdamW(0.1, weight_decay=0.5)
    model = mixtrain.Model(network, "mse", optimizer, loss_scale_manager=manager)
    known, unknown = ((np.full((2, 3), word, np.int32), np.ones((2, 1), np.float32)) for word in (1, 9))
    model.train(1, [known, known], dataset_sink_mode=sink, verbose=0)
    before, count = network.get_weights(), int(optimizer.iterations)
    with pytest.raises(ValueError, match="run time"):
        model.train(1, [unknown, known], dataset_sink_mode=sink, verbose=0)
    assert int(optimizer.iterations) == count == 2
    for one, other in zip(before, network.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
