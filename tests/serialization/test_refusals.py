"""What a malformed checkpoint says, and that its refusal leaves network, optimizer, scale and seeds as they were."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain import Tensor, seed
from mixtrain.errors import CheckpointError
from mixtrain.serialization import Checkpoint, RunState, load_checkpoint, load_param_into_net, save_checkpoint
from mixtrain.serialization.names import parameters_by_name, states_by_name
from mixtrain.serialization.store import read_file, write_file
from tests.backends import quick_every
from tests.serialization.mutations import sealed

PLACE = {"epoch": 2, "step": 6, "batch_num": 3}


def keras_net() -> keras.Model:
    layers = keras.layers
    return keras.Sequential([keras.Input((2,)), layers.Dense(3), layers.BatchNormalization(), layers.Dropout(0.5)])


def cell_net() -> nn.Cell:
    return nn.SequentialCell([nn.Dense(2, 3), nn.BatchNorm1d(3), nn.Dropout(p=0.5)])


def train_network(kind: str) -> nn.Cell:
    """Return a train cell after one step."""
    manager = mixtrain.DynamicLossScaleManager(2.0**10, 2, 5)
    if kind == "keras":
        net = keras_net()
        optimizer: Any = keras.optimizers.Adam(0.1)
    else:
        net = cell_net()
        optimizer = nn.Adam(net.trainable_params(), 0.1)
    network = mixtrain.amp.build_train_network(net, optimizer, nn.MSELoss(), level="O2", loss_scale_manager=manager)
    network(Tensor(np.ones((4, 2), np.float32)), Tensor(np.zeros((4, 3), np.float32)))
    return network


def everything(network: nn.Cell) -> dict[str, Any]:
    """Return the bits of every variable, and the states of the seeds."""
    named = {**parameters_by_name("test", network), **states_by_name(network)}
    values: dict[str, Any] = {name: mixtrain.backend.to_numpy(value).tobytes() for name, value in named.items()}
    return values | {"seed": json.dumps(seed.seed_state())}


def another_fact(name: str, value: Any) -> Callable[[dict[str, Any], RunState], RunState]:
    return lambda values, state: RunState(state.arrays, {**state.facts, name: value})


def another_state(name: str, value: Any) -> Callable[[dict[str, Any], RunState], RunState]:
    return lambda values, state: RunState({**state.arrays, name: value}, state.facts)


def another_value(name: str, value: np.ndarray) -> Callable[[dict[str, Any], RunState], RunState]:
    def change(values: dict[str, Any], state: RunState) -> RunState:
        values[name] = value
        return state

    return change


def last_weight_misfits(values: dict[str, Any], state: RunState) -> RunState:
    name = list(values)[-1]
    values[name] = np.zeros((9, 9), np.float32)
    return state


SCALE, COUNTS = "scale_sense", "loss_scale.counts"
MALFORMED: dict[str, tuple[Callable[..., RunState], type[Exception], str]] = {
    "epoch": (another_fact("epoch", "three"), CheckpointError, "'epoch'.*an int from 0.*got 'three'"),
    "step": (another_fact("step", -1), CheckpointError, "'step'.*an int from 0.*got -1"),
    "batch": (another_fact("batch_num", 2**70), CheckpointError, "'batch_num'.*an int from 0"),
    "plan": (another_fact("plan", {"level": "O2"}), CheckpointError, "'plan'.*level, half, reason and rows"),
    "seed": (another_fact("seed", 7), CheckpointError, "'seed'.*seed, generator and drawing; got 7"),
    "scale of nan": (another_value(SCALE, np.float32("nan")), CheckpointError, "scale_sense.*above 0; got nan"),
    "scale of 0": (another_value(SCALE, np.float32(0)), CheckpointError, "scale_sense.*above 0; got 0.0"),
    "scale of inf": (another_value(SCALE, np.float32("inf")), CheckpointError, "scale_sense.*above 0; got inf"),
    "negative counts": (another_state(COUNTS, np.full(5, -3, np.int32)), CheckpointError, "counts.*at least 0"),
    "counts of floats": (another_state(COUNTS, np.ones(5, np.float32)), CheckpointError, "to be int32.*got float32"),
    "counts of bfloat16": (
        another_state(COUNTS, (np.zeros(5, np.uint16), "bfloat16")), CheckpointError, "to be int32.*got bfloat16",
    ),
    "shape": (last_weight_misfits, RuntimeError, r"to have shape .*got \(9, 9\)"),
}


def malformed_file(path: pathlib.Path, network: nn.Cell, change: Callable[..., RunState]) -> None:
    """Write a train cell's checkpoint and change it behind the writer's checks, its digest matching."""
    save_checkpoint(network, path)
    values, state = read_file(str(path), lambda name: True)
    state = change(values, RunState(state.arrays, {**state.facts, **PLACE}))
    facts = dict(state.facts)
    write_file(str(path), {name: np.asarray(value) for name, value in values.items()}, RunState(state.arrays, {}))
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, content = json.loads(data[8:8 + length]), data[8 + length:]
    start, end = header["mixtrain:description"]["data_offsets"]
    description = json.loads(content[start:end]) | {"facts": facts}
    path.write_bytes(sealed(header, content, json.dumps(description).encode()))


@quick_every(2)
@pytest.mark.parametrize("kind", ["cell", "keras"])
def test_a_malformed_checkpoint_leaves_everything_as_it_was(tmp_path: pathlib.Path, kind: str) -> None:
    source, network = train_network(kind), train_network(kind)
    path = tmp_path / "bad.ckpt"
    before = everything(network)
    for name, (change, error, says) in MALFORMED.items():
        malformed_file(path, source, change)
        with pytest.raises(error, match=says) as caught:
            load_param_into_net(network, load_checkpoint(path))
        assert error is not CheckpointError or str(path) in str(caught.value), name
        assert everything(network) == before, name
    malformed_file(path, source, lambda values, state: state)
    expected = everything(source)
    assert expected != before
    seed.next_seed()
    load_param_into_net(network, load_checkpoint(path))
    assert everything(network) == expected


def test_a_warning_that_its_user_makes_an_error_leaves_everything_as_it_was(tmp_path: pathlib.Path) -> None:
    save_checkpoint(train_network("cell"), tmp_path / "a.ckpt")
    manager = mixtrain.DynamicLossScaleManager(2.0**10, 2, 5)
    net = cell_net()
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    other = mixtrain.amp.build_train_network(net, optimizer, nn.MSELoss(), level="O0", loss_scale_manager=manager)
    before = everything(other)
    with pytest.raises(UserWarning, match="written at level O2"):
        load_param_into_net(other, load_checkpoint(tmp_path / "a.ckpt"))
    assert everything(other) == before


def test_facts_that_could_not_be_used_are_not_written_either(tmp_path: pathlib.Path) -> None:
    given = Checkpoint({"x": Tensor(1.0)}, run_state=RunState(facts={"epoch": "three"}))
    with pytest.raises(CheckpointError, match="save_checkpoint: expected the fact 'epoch'.*got 'three'"):
        save_checkpoint(given, tmp_path / "a.ckpt")
    assert list(tmp_path.iterdir()) == []


def test_facts_that_are_not_known_are_kept(tmp_path: pathlib.Path) -> None:
    facts = {"note": ["of another version", {"deep": None}], **PLACE}
    save_checkpoint(Checkpoint({"x": Tensor(1.0)}, run_state=RunState(facts=facts)), tmp_path / "a.ckpt")
    assert load_checkpoint(tmp_path / "a.ckpt").run_state.facts == facts
