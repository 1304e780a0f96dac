"""`Model.check`: what one step tells before training, and that nothing of the Model, its data or its run changes."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.dataset as ds
from mixtrain import DynamicLossScaleManager, Model, backend, nn
from mixtrain.diagnostics.deviation import gradient_error, run_pass
from mixtrain.train.keras_data import ArrayBatches
from tests.train.planted import batches, chain_model
from tests.train.test_first_scale import DATA, X, Y, model, values_of
from tests.train.test_suggestion import data as planted_data, model as planted_model, network as planted_network

FEEDS: dict[str, Any] = {
    "list": lambda: DATA,
    "shuffled": lambda: ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=True).batch(16),
    "sequence": lambda: ArrayBatches((X, Y), 16, shuffle=True),
}


@pytest.mark.slow
def test_a_check_says_what_a_run_will_meet() -> None:
    checked = model(loss_scale_manager=DynamicLossScaleManager())
    result = checked.check(DATA)
    assert result.plan == checked.precision_report()
    assert result.first_scale == 2.0**24 and math.log2(result.largest_scale or 0).is_integer()
    assert result.loss_scale == (result.largest_scale or 0) / 2 < 2.0**24
    assert abs(result.loss - result.float32_loss) < 0.01 and 0 < result.error < 0.01
    assert result.finding is None and result.peak_bytes is None or (result.peak_bytes or 0) > 2**20
    paths = {row.path for row in result.plan.rows}
    assert {layer.path for layer in result.layers} <= paths and {row.path for row in result.ranges} <= paths
    # At the scale to expect nothing overflows, and the largest value would not bear two doublings more than it.
    least = min(row.headroom("float16") for row in result.ranges)
    assert 0 < least < 3
    lines = str(result).splitlines()
    assert lines[: len(str(result.plan).splitlines())] == str(result.plan).splitlines()
    for start in (
        "deviation from float32: loss ", "headroom in float16, the least first:",
        f"loss scale: starts at 16777216, but no gradient of this batch overflows up to {result.largest_scale:.10g}: "
        f"DynamicLossScaleManager({result.loss_scale:.10g}) loses no step to it",
    ):
        assert any(line.startswith(start) for line in lines), start
    scale = result.loss_scale
    for factor, skipped in ((1, 0), (4, 1)):
        run = model(loss_scale_manager=DynamicLossScaleManager(factor * scale))
        assert run.train(1, DATA[:1], verbose=0)["skipped_steps"] == [skipped]


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
@pytest.mark.parametrize("feed", FEEDS)
def test_training_after_a_check_is_as_without_it(feed: str, sink: bool) -> None:
    histories, trained = [], []
    for checks in (False, True):
        mixtrain.set_seed(3)
        np.random.seed(3)
        each, dataset = model(metrics=["accuracy"]), FEEDS[feed]()
        if checks:
            before = [value.copy() for value in values_of(each)]
            each.check(dataset)
            for left, right in zip(before, values_of(each), strict=True):
                np.testing.assert_array_equal(left, right)
        histories.append(dict(each.train(2, dataset, dataset_sink_mode=sink, verbose=0)))
        trained.append(each)
    assert histories[0] == histories[1]
    for left, right in zip(*map(values_of, trained), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_layer_that_overflows_is_named() -> None:
    result = planted_model(planted_network("keras")).check(planted_data())
    assert result.largest_scale is None and result.error == math.inf
    assert result.finding is not None and (result.finding.kind, result.finding.layer) == ("forward", "nested/planted")
    text = str(result)
    assert f"\n  {result.finding}\n" in text and "loss scale: none is small enough for this batch" in text


@pytest.mark.slow
def test_gradients_without_loss_scaling_and_a_batch_that_is_not_finite() -> None:
    result = chain_model(None).check(batches("0"))
    assert (result.first_scale, result.largest_scale, result.loss_scale) == (None, None, None)
    assert result.error == 0 and result.loss == result.float32_loss
    assert "loss scale: none" in str(result) and "headroom" not in str(result)
    result = chain_model(DynamicLossScaleManager(16)).check([(np.full((1, 1), np.inf, np.float32),) * 2])
    assert result.finding is not None and result.finding.kind == "input"


@pytest.mark.slow
def test_the_scale_that_training_finds_is_the_one_that_the_check_expects() -> None:
    checked = model()
    result = checked.check(DATA)
    assert result.first_scale == 2.0**24 and result.finds_scale
    assert f"loss scale: {result.loss_scale:.10g}, found on the first batch; no gradient of this" in str(result)
    checked.train(1, DATA[:1], verbose=0)
    assert checked.loss_scale_manager.get_loss_scale() == result.loss_scale
    assert not checked.check(DATA).finds_scale


@pytest.mark.slow
def test_a_scale_that_fits_is_said_to_fit() -> None:
    result = model(loss_scale_manager=DynamicLossScaleManager(64.0)).check(DATA)
    assert result.first_scale == result.loss_scale == 64.0
    assert f"loss scale: 64; no gradient of this batch overflows up to {result.largest_scale:.10g}" in str(result)


@pytest.mark.slow
def test_a_deviation_names_the_layer_it_comes_from() -> None:
    class Cancels(nn.Cell):
        """Loses in half most of what distinguishes its inputs."""

        def construct(self, x: Any) -> Any:
            return (x + 4096.0) - 4096.0

    mixtrain.set_seed(1)
    network = nn.SequentialCell(nn.Dense(4, 4), Cancels(), nn.Dense(4, 1))
    optimizer = nn.SGD(network.trainable_params(), 0.01)
    checked = Model(network, "mse", optimizer, amp_level="O2", loss_scale_manager=DynamicLossScaleManager(8))
    result = checked.check(planted_data())
    assert result.error > 0.1 and max(result.layers, key=lambda layer: layer.added).path == "1"
    assert "most of it from 1: suggest_rules(model, dataset) finds" in str(result)


def test_a_check_needs_an_optimizer_and_a_batch() -> None:
    with pytest.raises(ValueError, match="Model.check"):
        Model(nn.Dense(2, 1), "mse").check([(np.ones((1, 2), np.float32), np.ones((1, 1), np.float32))])
    with pytest.raises(ValueError, match="Model.check: the dataset must have at least one batch"):
        model().check([])


LAYERS: dict[str, Any] = {
    "dropout": lambda: keras.layers.Dropout(0.4),
    "spatial": lambda: keras.layers.SpatialDropout1D(0.4),
    "noise": lambda: keras.layers.GaussianNoise(1.0),
    "gaussian": lambda: keras.layers.GaussianDropout(0.4),
    "lstm": lambda: keras.layers.LSTM(6, dropout=0.4, recurrent_dropout=0.4, return_sequences=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_random_numbers_are_no_deviation(name: str) -> None:
    """TensorFlow draws dropout, JAX noise, in the dtype of the layer: passes in two dtypes dropped different values."""
    keras.utils.set_random_seed(4)
    network = keras.Sequential([
        keras.Input((4, 6)), keras.layers.Dense(6), LAYERS[name](), keras.layers.Flatten(), keras.layers.Dense(1),
    ])
    checked = Model(network, "mse", keras.optimizers.SGD(0.01), amp_level="O2")
    x = np.random.default_rng(0).normal(size=(16, 4, 6)).astype(np.float32)
    with checked._ready_for("test", [(x, x[:, 0, :1])]) as feed:
        networks, batch = checked._networks, feed.first()
        policies = [layer.dtype_policy.name for layer in network._flatten_layers()]
        half = run_pass(networks.examined, networks.with_loss, batch, 64.0)
        assert [layer.dtype_policy.name for layer in network._flatten_layers()] == policies
        with networks.in_float32():
            reference = run_pass(networks.examined, networks.with_loss, batch, 1.0)
    assert half.loss == pytest.approx(reference.loss, rel=2e-3) and gradient_error(half, reference) < 0.01
    # They are drawn: without them, the loss is another one.
    assert abs(half.loss / float(np.mean((backend.to_numpy(checked.predict(x)) - x[:, 0, :1]) ** 2)) - 1) > 0.01
