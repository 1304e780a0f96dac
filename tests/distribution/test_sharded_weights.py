"""Weights that `keras.distribution` divides over devices train as on one device, and stay divided."""

from __future__ import annotations

import contextlib
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, process_group
from mixtrain.distribution import data_parallel, fully_sharded
from tests.backends import ON_TENSORFLOW, quick_every
from tests.devices import COUNT
from tests.distribution.compiled import texts
from tests.distribution.networks import batches, values_of

FAULTY = 3
SHAPES: dict[str, tuple[int, int]] = {"fully": (COUNT, 1), "tensors": (1, COUNT), "both": (2, COUNT // 2)}
KINDS = [kind for kind in SHAPES if kind != "both" or COUNT > 2]
pytestmark = pytest.mark.skipif(ON_TENSORFLOW, reason="Keras divides weights with JAX alone")


@contextlib.contextmanager
def divided(kind: str | None) -> Iterator[None]:
    """Divide the weights that are made inside; None for one device."""
    with contextlib.nullcontext() if kind is None else distribution(kind).scope():
        yield


def distribution(kind: str) -> Any:
    """Return a distribution over rows, over parts of the kernels, or over both."""
    if kind == "fully":
        return fully_sharded(COUNT)
    rows, parts = SHAPES[kind]
    devices = np.array([f"cpu:{index}" for index in range(rows * parts)])
    layout = keras.distribution.LayoutMap(keras.distribution.DeviceMesh((rows, parts), ["batch", "model"], devices))
    layout[".*wide/kernel"], layout[".*wide/bias"], layout[".*narrow/kernel"] = (None, "model"), ("model",), ("model",)
    return keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch")


def network(*more: keras.Layer) -> keras.Model:
    """Return a classifier of vectors of 6 numbers into 4 classes; every call returns the same weights."""
    keras.utils.set_random_seed(0)
    layers = keras.layers
    wide, narrow = layers.Dense(16, "tanh", name="wide"), layers.Dense(8, "relu", name="narrow")
    last = layers.Dense(4, name="last")
    return keras.Sequential([keras.Input((6,)), wide, layers.LayerNormalization(), narrow, *more, last])


def model(net: keras.Model, optimizer: Any = None, **options: Any) -> Model:
    options.setdefault("loss_scale_manager", DynamicLossScaleManager(1024, 2, 3))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return Model(net, loss, optimizer or keras.optimizers.Adam(0.01), metrics=["accuracy"], **options)


def data(*, bad: bool = True) -> list[Any]:
    """Return batches, one of which overflows in its last row alone."""
    result = batches(*[8] * 6)
    if bad:
        result[FAULTY][0][7, 0] = np.inf
    return result


def axes(variable: Any) -> tuple[Any, ...]:
    """Return the axes of the mesh by which a variable's array is divided."""
    return tuple(getattr(variable.value.sharding, "spec", ()))


def is_divided(kind: str, net: keras.Model, optimizer: Any) -> None:
    """Check that the large weights and their slots are divided as the distribution says."""
    over = "batch" if kind == "fully" else "model"
    kernels = [weight for weight in net.weights if weight.name == "kernel" and weight.shape[-1] != 4]
    slots = [slot for slot in optimizer.variables if slot.name.endswith("kernel_momentum") and slot.shape[-1] != 4]
    assert len(kernels) == 2 == len(slots)
    assert all(over in axes(variable) for variable in (*kernels, *slots))
    parts = COUNT if kind == "fully" else SHAPES[kind][1]
    assert {shard.data.size * parts for shard in kernels[0].value.addressable_shards} == {kernels[0].value.size}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("level", ["O0", "O2"])
@quick_every(3)
def test_training_is_that_of_one_device_and_what_overflows_on_one_is_skipped_by_all(
    kind: str, sink: bool, level: str
) -> None:
    runs = []
    for each in (None, kind):
        with divided(each):
            net = network()
            trained = model(net, amp_level=level)
            history = trained.train(2, data(), dataset_sink_mode=sink, verbose=0)
            evaluated, predicted = trained.eval(data(bad=False)), np.asarray(trained.predict(data()[0][0]))
        runs.append((history, values_of(net), evaluated, predicted))
        if each is not None:
            is_divided(kind, net, trained.optimizer)
    one, ours = runs
    assert one[0]["skipped_steps"] == ours[0]["skipped_steps"] == [1, 1]
    assert one[0]["loss_scale"] == ours[0]["loss_scale"]
    close = 1e-5 if level == "O0" else 2e-2
    assert ours[0]["loss"] == pytest.approx(one[0]["loss"], rel=close)
    assert ours[0]["accuracy"] == pytest.approx(one[0]["accuracy"], abs=0.05)
    assert ours[2]["loss"] == pytest.approx(one[2]["loss"], rel=close)
    np.testing.assert_allclose(ours[3], one[3], atol=close)
    for mine, theirs in zip(ours[1], one[1], strict=True):
        np.testing.assert_allclose(mine, theirs, atol=close)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["accumulated", "averaged", "clipped", "halves", "copies", "dropout"])
def test_ways_to_update_work_on_divided_weights(kind: str, how: str) -> None:
    options: dict[str, Any] = {
        "accumulated": {"accumulate_steps": 2}, "halves": {"amp_level": "O3", "master_weights": False},
        "copies": {"amp_level": "O3"},
    }.get(how, {})
    results = []
    for each in (None, kind):
        with divided(each):
            net = network(*([keras.layers.Dropout(0.0)] if how == "dropout" else []))
            settings = {"averaged": {"use_ema": True}, "clipped": {"global_clipnorm": 0.1}}.get(how, {})
            trained = model(net, keras.optimizers.Adam(0.01, **settings), **options)
            history = trained.train(2, data(), verbose=0)
            if each is not None:
                is_divided(kind, net, trained.optimizer)
            results.append((history["loss"], [np.asarray(value, np.float32) for value in values_of(net)]))
    (one, weights), (ours, mine) = results
    close = 2e-2 if "amp_level" in options else 1e-5
    assert ours == pytest.approx(one, rel=close)
    for left, right in zip(mine, weights, strict=True):
        np.testing.assert_allclose(left, right, atol=close)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_overflows_is_named(kind: str) -> None:
    results = []
    for each in (None, kind):
        with divided(each):
            monitor = mixtrain.OverflowMonitor(verbose=False)
            trained = model(network(), amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2.0**24, 2, 1000))
            trained.train(1, data(), callbacks=[monitor], verbose=0)
        results.append([(found.kind, found.layer, found.scale) for found in (row.finding for row in monitor.records)])
    one, ours = results
    assert ours == one and {found[0] for found in ours} >= {"input"} and ours[0][1] and ours[0][2] < 2.0**24


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("back", [False, True])
def test_checkpoints_are_read_with_other_devices(kind: str, back: bool, tmp_path: pathlib.Path) -> None:
    start, end = (kind, None) if back else (None, kind)
    path = tmp_path / "run"
    with divided(start):
        net = network()
        model(net).train(1, data(), callbacks=[mixtrain.ModelCheckpoint(directory=str(path))], verbose=0)
    with divided(end):
        other = network()
        again = model(other)
        again.train(2, data(), resume=str(path), verbose=0)
        if end is not None:
            is_divided(kind, other, again.optimizer)
    with divided(start):
        whole = network()
        model(whole).train(2, data(), verbose=0)
    for mine, theirs in zip(values_of(other), values_of(whole), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_is_an_undisturbed_one(kind: str, tmp_path: pathlib.Path) -> None:
    def run(epochs: int, **options: Any) -> tuple[keras.Model, Any]:
        with divided(kind):
            net = network(keras.layers.Dropout(0.5, seed=1))
            trained = model(net, amp_level="O2")
            trained.train(epochs, data(), verbose=0, **options)
            is_divided(kind, net, trained.optimizer)
        return net, trained

    undisturbed, _ = run(3)
    run(1, callbacks=[mixtrain.ModelCheckpoint(directory=str(tmp_path))])
    resumed, _ = run(3, resume=str(tmp_path))
    for mine, theirs in zip(values_of(resumed), values_of(undisturbed), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.slow
def test_gradients_are_added_up_in_float32() -> None:
    """JAX's partitioner would add up half gradients (jax 27496)."""
    with divided("fully"):
        net = network()
        step = model(net, amp_level="O2").train_network.set_train()
    _, text = texts(step)
    assert "f16[" in text and "all-gather(" in text
    lines = [line for line in text.splitlines() if re.search(r" (all-reduce|reduce-scatter)\(", line)]
    results = [re.findall(r"(\w+)\[", re.split(r" (?:all-reduce|reduce-scatter)\(", line)[0]) for line in lines]
    # Kernels, biases, scale and shift; eight devices do not divide the bias of the last layer.
    of_parts = sum(any(axes(weight)) for weight in net.trainable_weights)
    assert sum("reduce-scatter(" in line for line in lines) == of_parts == (8 if COUNT <= 4 else 7)
    assert {kind for kinds in results for kind in kinds} <= {"f32", "pred"}


@pytest.mark.slow
def test_a_device_holds_its_share_of_weights_and_slots() -> None:
    def held(kind: str | None) -> int:
        with divided(kind):
            trained = model(network())
            trained.train(1, data(), verbose=0)
        values = [variable.value for variable in (*trained.train_network.weights, *trained.optimizer.variables)]
        return sum(value.addressable_shards[0].data.nbytes for value in values if value.size >= 8)

    assert held("fully") * COUNT == held(None)


def test_the_plan_says_what_is_sharded() -> None:
    with divided("fully"):
        plan = model(network(), amp_level="O2").precision_report()
    assert "sharded over" in str(plan) and plan.row("wide").sharded_over == "batch"
    assert "sharded over" not in str(model(network(), amp_level="O2").precision_report())


def test_the_largest_axis_that_divides_is_divided() -> None:
    chosen = fully_sharded(2)
    shapes = {(6, 16): (None, "batch"), (16, 6): ("batch", None), (7, 3): (None, None), (): (), (5, 4): (None, "batch")}
    for shape, expected in shapes.items():
        variable = keras.Variable(np.zeros(shape, np.float32))
        assert tuple(chosen.get_variable_layout(variable).axes) == expected


def test_data_parallel_contradicts() -> None:
    with divided("fully"), pytest.raises(ValueError, match="devices must be chosen in one way"), data_parallel(2):
        pass


def test_devices_are_checked() -> None:
    with pytest.raises(TypeError, match="fully_sharded: devices must be a number"):
        fully_sharded("cpu:0")
    with pytest.raises(ValueError, match="fully_sharded: devices must be from 1 to"):
        fully_sharded(1000)


@pytest.mark.parametrize("kind", KINDS[:1])
def test_a_mesh_in_several_processes_needs_their_group_and_devices_of_each(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with divided(kind):
        net = network()
        monkeypatch.setattr("jax.process_count", lambda: 2)
        with pytest.raises(RuntimeError, match=r"has not joined it. Write mixtrain.communication.init\(\)"):
            model(net)
        monkeypatch.setattr(process_group, "current", lambda: process_group.ProcessGroup(size=2))
        with pytest.raises(ValueError, match=r"have devices of each of the 2 processes, .*; got \[\[0, 1.*\], \[\]\]"):
            model(net)
