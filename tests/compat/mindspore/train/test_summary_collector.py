"""SummaryCollector: the event file of a run, read back."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
import mixtrain.ops as ops
from mixtrain.train.callback import SummaryCollector
from tests.backends import quick_every
from tests.train.events import events, numbers
from tests.train.planted import batches, chain_model


class Watched(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 1, weight_init="zeros", has_bias=False)
        self.summary = ops.TensorSummary()

    def construct(self, x: Any) -> Any:
        y = self.fc(x)
        self.summary("y", y)
        return y


BATCHES = [(np.full((1, 2), float(n), np.float32), np.full((1, 1), float(n), np.float32)) for n in range(6)]


def model(learning_rate: Any = 0.0) -> mixtrain.Model:
    net = Watched()
    return mixtrain.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), learning_rate), metrics={"mae"})


@quick_every(2, 1)
@pytest.mark.parametrize("sink", [False, True])
def test_numbers_are_written_at_the_first_step_and_each_multiple(tmp_path: pathlib.Path, sink: bool) -> None:
    model().train(2, BATCHES, SummaryCollector(str(tmp_path), collect_freq=5), dataset_sink_mode=sink, verbose=0)
    # The weights stay 0, so the loss of a step is its label squared.
    assert numbers(tmp_path, "loss") == {1: 0.0, 5: 16.0, 10: 9.0}


@pytest.mark.slow
def test_the_learning_rate_is_that_of_the_coming_step(tmp_path: pathlib.Path) -> None:
    rates = [0.5, 0.25, 0.125, 0.0625, 0.0, 0.0]
    model(rates).train(1, BATCHES, SummaryCollector(str(tmp_path), collect_freq=2), verbose=0)
    assert numbers(tmp_path, "learning_rate") == {1: 0.25, 2: 0.125, 4: 0.0, 6: 0.0}


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
def test_loss_scaling_is_written_step_by_step(tmp_path: pathlib.Path, sink: bool) -> None:
    training = chain_model(mixtrain.DynamicLossScaleManager(16, 2, 3))
    collector = SummaryCollector(str(tmp_path), collect_freq=1)
    training.train(1, batches("0011001"), collector, dataset_sink_mode=sink, verbose=0)
    assert list(numbers(tmp_path, "loss_scale").values()) == [16, 16, 16, 8, 4, 4, 4]
    assert list(numbers(tmp_path, "overflow").values()) == [0, 0, 1, 1, 0, 0, 1]
    assert numbers(tmp_path, "skipped_steps") == {1: 0, 2: 0, 3: 1, 4: 2, 5: 2, 6: 2, 7: 3}


def test_operations_parameters_metrics_and_lineage_are_written(tmp_path: pathlib.Path) -> None:
    collector = SummaryCollector(str(tmp_path), 3, custom_lineage_data={"dataset": "six"}, collect_tensor_freq=6)
    training = model()
    training.fit(1, BATCHES, BATCHES, callbacks=collector, verbose=0)
    result = events(tmp_path)
    assert [(step, value.tolist()) for _, tag, step, value in result if tag == "y"] == [(1, [[0.0]]), (6, [[0.0]])]
    histograms = {(tag, step) for plugin, tag, step, _ in result if plugin == "histograms"}
    assert histograms == {("fc.weight", 1), ("fc.weight", 3), ("fc.weight", 6)}
    assert numbers(tmp_path, "eval/mae") == {1: 2.5}
    texts = {tag: json.loads(value[0]) for plugin, tag, _, value in result if plugin == "text"}
    assert texts["custom_lineage_data"] == {"dataset": "six"}
    assert texts["train_lineage"]["optimizer"] == "SGD" and texts["train_lineage"]["batch_num"] == 6


def test_only_what_is_specified_is_collected_where_that_is_wanted(tmp_path: pathlib.Path) -> None:
    images = [(np.ones((2, 1, 4, 4), np.float32), np.ones((2, 1), np.float32))]
    net = nn.SequentialCell([nn.Flatten(), nn.Dense(16, 1), nn.Dense(1, 1)])
    training = mixtrain.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.0))
    expected = {"collect_input_data": True, "histogram_regular": "^2.*"}
    training.train(1, images, SummaryCollector(str(tmp_path), 1, 32, expected, False), verbose=0)
    assert [(plugin, tag) for plugin, tag, _, _ in events(tmp_path)] == [
        ("histograms", "2.weight"), ("histograms", "2.bias"), ("images", "input_data"),
    ]


def test_a_keras_network_and_optimizer_are_collected_too(tmp_path: pathlib.Path) -> None:
    net = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    training = mixtrain.Model(net, nn.MSELoss(), keras.optimizers.SGD(0.25))
    training.train(1, BATCHES, SummaryCollector(str(tmp_path), 6), verbose=0)
    assert numbers(tmp_path, "learning_rate") == {1: 0.25, 6: 0.25}


@pytest.mark.slow
def test_collecting_changes_no_number(tmp_path: pathlib.Path) -> None:
    plain, watched = model(0.01), model(0.01)
    assert plain.train(2, BATCHES, verbose=0) == watched.train(2, BATCHES, SummaryCollector(str(tmp_path)), verbose=0)


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"summary_dir": 3}, TypeError, "directory must be a str"),
        ({"collect_freq": 0}, ValueError, "collect_freq must be at least 1"),
        ({"collect_freq": "a"}, TypeError, "collect_freq must be an int"),
        ({"max_file_size": 0}, ValueError, "max_file_size"),
        ({"collect_specified_data": {"foo": 1}}, ValueError, "collect_metric"),
        ({"collect_specified_data": {"collect_metric": 3}}, TypeError, "True or False"),
        ({"collect_specified_data": {"collect_landscape": {}}}, ValueError, "not supported"),
        ({"collect_specified_data": 3}, TypeError, "must be a dict"),
        ({"keep_default_action": 3}, TypeError, "keep_default_action"),
        ({"custom_lineage_data": {"a": [1]}}, TypeError, "custom_lineage_data"),
        ({"export_options": {"x": 1}}, ValueError, "tensor_format"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: pathlib.Path, arguments: dict[str, Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says):
        SummaryCollector(**{"summary_dir": str(tmp_path), **arguments})
