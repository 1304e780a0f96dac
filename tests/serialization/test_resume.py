"""A run that is interrupted and resumed equals the uninterrupted one bit for bit."""

from __future__ import annotations

import pathlib

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain.serialization import Checkpoint, RunState, load_checkpoint, load_param_into_net, save_checkpoint
from mixtrain.train.callback import CheckpointConfig, ModelCheckpoint
from tests.backends import on_jax_only_some
from tests.serialization.runs import Net, Setting, everything, keras_net, uninterrupted_and_resumed


def momentum(network: nn.Cell) -> nn.Optimizer:
    return nn.Momentum(network.trainable_params(), 0.05, 0.9)


def adam(network: nn.Cell) -> nn.Optimizer:
    return nn.Adam(network.trainable_params(), 0.01)


def keras_adam(network: keras.Model) -> keras.optimizers.Optimizer:
    return keras.optimizers.Adam(0.01)


def dynamic() -> mixtrain.DynamicLossScaleManager:
    return mixtrain.DynamicLossScaleManager(2.0**20, 2, 7)


SINK = {"dataset_sink_mode": True}
SETTINGS = {
    "momentum": Setting(Net, momentum),
    "adam-dynamic": Setting(Net, adam, dynamic),
    "momentum-dynamic-sink": Setting(Net, momentum, dynamic, SINK),
    "adam-dynamic-sink-of-4": Setting(Net, adam, dynamic, {**SINK, "sink_size": 4}),
    "keras": Setting(keras_net, keras_adam),
    "keras-dynamic-sink": Setting(keras_net, keras_adam, dynamic, SINK),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", on_jax_only_some(SETTINGS, some=[0, 3, 5]))
def test_a_resumed_run_equals_the_uninterrupted_one_bit_for_bit(name: str, tmp_path: pathlib.Path) -> None:
    setting = SETTINGS[name]
    whole, resumed, history, rest = uninterrupted_and_resumed(setting, tmp_path)
    expected, result = everything(whole), everything(resumed)
    assert list(expected) == list(result)
    for variable, value in expected.items():
        np.testing.assert_array_equal(result[variable], value, err_msg=variable)
    assert {name: values[2:] for name, values in history.items()} == dict(rest)
    if setting.manager() is not None:
        assert sum(history["skipped_steps"][:2]) >= 1, "planted before the break"
        assert sum(history["skipped_steps"][2:]) >= 1, "planted after the break"


@pytest.mark.slow
def test_loading_network_and_optimizer_alone_restores_them_but_not_the_random_state(tmp_path: pathlib.Path) -> None:
    setting = SETTINGS["momentum"]
    trained = setting.model()
    saver = ModelCheckpoint("run", str(tmp_path), CheckpointConfig(save_checkpoint_steps=100))
    trained.train(1, setting.data(), callbacks=saver, verbose=0)
    checkpoint = load_checkpoint(saver.latest_ckpt_file_name)
    resumed = setting.model()
    optimizer = resumed.train_network.optimizer
    assert load_param_into_net(resumed.predict_network, checkpoint)[0] == []
    assert load_param_into_net(optimizer, checkpoint)[0] == []
    expected, result = everything(trained), everything(resumed)
    differing = [name for name in expected if not np.array_equal(expected[name], result[name])]
    assert differing == ["dropout.seed_generator"]
    assert optimizer.global_step.asnumpy().tolist() == [6]


def test_a_checkpoint_of_one_level_loads_into_another_with_a_warning(tmp_path: pathlib.Path) -> None:
    def train_network(level: str) -> nn.Cell:
        network = nn.SequentialCell([nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)])
        optimizer = momentum(network)
        return mixtrain.Model(network, nn.MSELoss(), optimizer, amp_level=level).train_network

    half, path = train_network("O2"), str(tmp_path / "half.ckpt")
    half.state.loss_scale.assign(4096.0)
    save_checkpoint(half, path)
    checkpoint = load_checkpoint(path)
    assert {parameter.dtype for parameter in checkpoint.values()} == {"float32", "int32"}
    assert checkpoint.run_state.facts["plan"]["level"] == "O2"
    other = train_network("O0")
    with pytest.warns(UserWarning, match="written at level O2.*trains at O0"):
        missing, unused = load_param_into_net(other, checkpoint)
    assert (missing, unused) == ([], ["scale_sense"])
    np.testing.assert_array_equal(other.network.get_parameters().__next__(), half.network.get_parameters().__next__())
    again = train_network("O2")
    load_param_into_net(again, checkpoint)
    assert float(again.scale_sense) == 4096.0


def test_the_place_in_the_run_tells_the_epoch_to_go_on_from() -> None:
    def place(epoch: int, step: int) -> Checkpoint:
        return Checkpoint(run_state=RunState(facts={"epoch": epoch, "step": step, "batch_num": 4}))

    assert [place(1, 4).initial_epoch, place(2, 8).initial_epoch, place(2, 7).initial_epoch] == [1, 2, 1]
    assert (Checkpoint().epoch, Checkpoint().step, Checkpoint().initial_epoch) == (None, None, 0)
