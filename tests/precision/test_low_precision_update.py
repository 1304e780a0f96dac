"""Weights stored in half learn as float32 ones do: they move, in the mean by the update, and as exactly as ever."""

from __future__ import annotations

import gc
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, ModelCheckpoint, backend, nn
from mixtrain.dataset import NumpySlicesDataset
from mixtrain.dtype import bfloat16, float32
from mixtrain.network.walk import variables_of
from mixtrain.precision.master_weights import full_value, has_master, rest_of
from mixtrain.seed import seed_state
from mixtrain.train.callback import Callback, CheckpointConfig
from tests.backends import quick_every, quick_only_some

UPDATES = ("stochastic", "compensated", "nearest")
FEEDS = [pytest.param(False, id="host"), pytest.param(True, id="sink")]
WIDTH = 24
R = np.random.default_rng(0)
X = R.standard_normal((48, WIDTH)).astype(np.float32)
Y = R.integers(0, 3, 48).astype(np.int32)


def cells() -> nn.Cell:
    mixtrain.set_seed(5)
    return nn.SequentialCell(nn.Dense(WIDTH, WIDTH), nn.LayerNorm((WIDTH,)), nn.ReLU(), nn.Dense(WIDTH, 3))


def keras_network(dtype: str | None = None) -> keras.Model:
    mixtrain.set_seed(5)
    layers = keras.layers
    return keras.Sequential([
        keras.Input((WIDTH,)), layers.Dense(WIDTH, dtype=dtype), layers.LayerNormalization(), layers.Dropout(0.2),
        layers.ReLU(), layers.Dense(3, dtype=dtype),
    ])


def optimizer_of(network: Any, kind: str, rate: float) -> Any:
    if kind == "nn.Adam":
        return nn.Adam(network.trainable_params(), rate)
    if kind == "nn.Momentum":
        return nn.Momentum(network.trainable_params(), rate, 0.9)
    return keras.optimizers.Adam(rate) if kind == "Adam" else keras.optimizers.SGD(rate, momentum=0.9)


class Planted(nn.Cell):
    """A cross-entropy whose gradient overflows float32 at a label of 100 or more."""

    def construct(self, outputs: Any, label: Any) -> Any:
        planted = keras.ops.cast(keras.ops.any(label >= 100), "float32")
        losses = keras.losses.sparse_categorical_crossentropy(label % 100, outputs, from_logits=True)
        return keras.ops.mean(losses) * (1.0 + planted * 1e37)


def model_of(
    network: Any, kind: str = "Adam", rate: float = 1e-4, *, loss: Any = None, **options: Any
) -> Model:
    half = {"amp_level": "O2", "cast_model_type": "bfloat16", "master_weights": False, "explain_overflow": False}
    kind = f"nn.{kind}" if not isinstance(network, keras.Model) and not kind.startswith("nn.") else kind
    return Model(network, loss or Planted(), optimizer_of(network, kind, rate), **(half | options))


def batches(steps: int = 6, planted: tuple[int, ...] = ()) -> list[tuple[np.ndarray, np.ndarray]]:
    rows = [(X[8 * (step % 6) :][:8], Y[8 * (step % 6) :][:8].copy()) for step in range(steps)]
    for step in planted:
        rows[step][1][0] += 100
    return rows


def in_half(network: Any) -> list[Any]:
    return [each for each in variables_of(network) if keras.backend.standardize_dtype(each.dtype) == "bfloat16"]


def values(variables: list[Any]) -> list[np.ndarray]:
    return [backend.to_numpy(full_value(each)).astype(np.float32) for each in variables]


def state(model: Model) -> dict[str, Any]:
    """Return all that training writes, by a number, and the random states."""
    result = {str(place): backend.to_numpy(each) for place, each in enumerate(model._networks.step.variables())}
    return result | {"seed": np.array(str(seed_state()))}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert list(one) == list(other)
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


# ---- updates --------------------------------------------------------------------------------------------------------
@quick_every(12, 7)
@pytest.mark.parametrize("kind", ["Adam", "SGD"])
@pytest.mark.parametrize("make", [keras_network, cells])
@pytest.mark.parametrize("update", UPDATES)
def test_a_step_changes_the_weights_in_the_mean_as_in_float32(
    update: Any, make: Callable[[], Any], kind: str
) -> None:
    kind = "Momentum" if kind == "SGD" and make is cells else kind
    rate, shares, ratios = (1e-4 if kind == "Adam" else 1e-2), [], []
    for choice in (update, "compensated"):
        network = make()
        model = model_of(network, kind, rate, low_precision_update=choice)
        weights = [each for each in in_half(network) if len(each.shape) == 2]
        before = values(weights)
        model.train(1, batches(1), verbose=0)
        change = np.concatenate([np.ravel(new - old) for new, old in zip(values(weights), before, strict=True)])
        shares.append((change != 0).mean())
        ratios.append(change)
    exact = ratios[1]
    assert shares[1] > 0.97
    along = (ratios[0] * np.sign(exact)).sum() / np.abs(exact).sum()
    if update == "nearest":
        assert shares[0] < 0.4 or kind != "Adam"
    else:
        # The share of weights that moves is their update in units of the last place.
        assert abs(along - 1) < 0.15 and shares[0] > (0.97 if update == "compensated" else 0.1)


@pytest.mark.parametrize("kind", quick_only_some(["bfloat16", "float16"]))
def test_updates_that_nearest_loses_add_up(kind: str) -> None:
    ends = {}
    for update in UPDATES:
        mixtrain.set_seed(1)
        network = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, use_bias=False, dtype=kind)])
        network.layers[0].kernel.assign(np.ones((64, 64)))
        model = Model(
            network, lambda label, outputs: -keras.ops.mean(outputs) * 64.0, keras.optimizers.SGD(2.0**-14 / 64),
            low_precision_update=update, loss_scale_manager=None, explain_overflow=False,
        )
        model.train(1, [(np.full((1, 64), 64.0, np.float32), np.zeros((1, 1), np.float32))] * 64, verbose=0)
        ends[update] = values([network.layers[0].kernel])[0]
        assert str(network.layers[0].kernel.dtype) == kind
    assert (ends["nearest"] == 1).all()
    exact = 1 + 64 * 2.0**-14
    np.testing.assert_allclose(ends["compensated"], exact, atol=2.0**-16)
    assert abs(ends["stochastic"].mean() - exact) < 4 * 2.0**-7 / 64
    unit = 2.0 ** (-7 if kind == "bfloat16" else -10)
    assert set(np.unique(ends["stochastic"])) <= {1 + place * unit for place in range(99)}


def test_the_optimizer_of_weights_in_half_has_float32_variables_and_the_rests_are_half() -> None:
    network = keras_network()
    model = model_of(network, low_precision_update="compensated")
    step = model._networks.step
    floats = [str(each.dtype) for each in step.driver.state_variables() if "float" in str(each.dtype)]
    assert set(floats) == {"float32"}
    assert [str(rest_of(weight).dtype) for weight in in_half(network)] == ["bfloat16"] * 4
    assert len(step.optimizer_state()) == len(step.driver.state_variables()) + 4


# ---- exact ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("sink", FEEDS)
@pytest.mark.parametrize("make", [keras_network, cells])
@pytest.mark.parametrize("update", ["stochastic", "compensated"])
def test_a_skipped_step_leaves_weights_rests_and_random_state_alone(
    update: Any, make: Callable[[], Any], sink: bool
) -> None:
    ends = []
    for planted in ((), (0, 2, 3, 7)):
        model = model_of(
            make(), rate=1e-3, low_precision_update=update,
            loss_scale_manager=mixtrain.FixedLossScaleManager(1024.0, True),
        )
        data = batches(6)
        for step in planted:
            data.insert(step, batches(1, (0,))[0])
        history = model.train(1, data, dataset_sink_mode=sink, verbose=0)
        assert history["skipped_steps"] == [len(planted)]
        ends.append({name: value for name, value in state(model).items() if value.dtype != np.int32})
    assert_same(*ends)


@pytest.mark.slow
@pytest.mark.parametrize("update", ["stochastic", "compensated"])
@pytest.mark.parametrize("make", [keras_network, cells])
def test_both_feeds_give_the_same_bits_and_a_seed_repeats_them(update: Any, make: Callable[[], Any]) -> None:
    ends = []
    for sink in (False, True, False):
        network = make()
        model = model_of(network, rate=1e-3, low_precision_update=update)
        model.train(2, NumpySlicesDataset((X, Y), shuffle=False).batch(8), dataset_sink_mode=sink, verbose=0)
        ends.append(values(in_half(network)))
    for other in ends[1:]:
        for one, two in zip(ends[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


class Stop(Callback):
    """Ends the run after a step, as if it were killed."""

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == 9:
            raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("make", [keras_network, cells])
@pytest.mark.parametrize("storage", ["stochastic", "compensated", "copies"])
def test_a_resumed_run_equals_one_that_was_not_interrupted(
    storage: Any, make: Callable[[], Any], accumulate: int, tmp_path: pathlib.Path
) -> None:
    def model() -> Model:
        options = {"master_weights": True} if storage == "copies" else {"low_precision_update": storage}
        manager = DynamicLossScaleManager(2.0**20, 2, 4)
        return model_of(make(), rate=1e-3, loss_scale_manager=manager, accumulate_steps=accumulate, **options)

    data = batches(6, (1, 4))
    whole, first = model(), model()
    whole.train(3, data, verbose=0)
    end, again = state(whole), None
    mixtrain.set_seed(5)
    first = model()
    saver = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(1, keep_checkpoint_max=99))
    with pytest.raises(KeyboardInterrupt):
        first.train(3, data, [saver, Stop()], verbose=0)
    again = model()
    again.train(3, data, verbose=0, resume=tmp_path)
    assert_same(end, state(again))


@pytest.mark.slow
@pytest.mark.parametrize("update", ["stochastic", "compensated"])
def test_batches_that_are_accumulated_are_rounded_once(update: Any) -> None:
    network = keras_network()
    model = model_of(network, low_precision_update=update, accumulate_steps=3)
    before = values(in_half(network))
    moves = []

    class Moves(Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            now = values(in_half(network))
            moves.append(any((one != two).any() for one, two in zip(before, now, strict=True)))
            before[:] = now

    model.train(1, batches(6), [Moves()], verbose=0)
    assert moves == [False, False, True] * 2


# ---- storage --------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("make", [keras_network, cells])
@pytest.mark.parametrize("storage", ["copies", *UPDATES])
def test_the_network_is_stored_in_float32_again_when_the_model_ends(storage: Any, make: Callable[[], Any]) -> None:
    network = make()
    options = {"master_weights": True} if storage == "copies" else {"low_precision_update": storage}
    variables, names = variables_of(network), [each.name for each in variables_of(network)]
    model = model_of(network, rate=1e-3, **options)
    # Normalization stays in float32.
    kept = in_half(network)
    assert len(kept) == 4 and [has_master(each) for each in kept] == [storage == "copies"] * 4
    model.train(1, batches(6), verbose=0)
    outputs, trained = model.predict(X[:4]), values(variables)
    assert isinstance(network, nn.Cell) or np.isfinite(np.asarray(outputs)).all()
    del model
    gc.collect()
    assert in_half(network) == [] and not any(map(has_master, variables))
    assert [id(each) for each in variables_of(network)] == [id(each) for each in variables]
    assert [each.name for each in variables_of(network)] == names
    for one, two in zip(values(variables), trained, strict=True):
        np.testing.assert_array_equal(one, two)
    again = model_of(network, rate=1e-3, master_weights=None)
    assert again.train(1, batches(6), verbose=0)["loss"][0] < 2 and in_half(network) == []


def in_a_custom_gradient(end: Callable[[], None]) -> None:
    @keras.ops.custom_gradient
    def double(x: Any) -> Any:
        end()
        return x * 2, lambda *args, upstream=None: (args[0] if upstream is None else upstream) * 2

    assert float(double(keras.ops.ones(()))) == 2


def in_a_layer_of_float16(end: Callable[[], None]) -> None:
    class Ends(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            end()
            return x

    Ends(dtype="mixed_float16")(keras.ops.ones((1, 1)))


def in_a_stateless_scope(end: Callable[[], None]) -> None:
    with keras.StatelessScope():
        end()


@pytest.mark.parametrize("amid", [in_a_custom_gradient, in_a_layer_of_float16, in_a_stateless_scope])
@pytest.mark.parametrize("update", quick_only_some(["compensated", "stochastic"]))
def test_the_collector_may_end_a_model_amid_any_code(amid: Callable[[Callable[[], None]], None], update: Any) -> None:
    network = keras_network()
    network.layers[0].kernel.assign(np.full((WIDTH, WIDTH), 2.0**20))  # Beyond float16.
    models, expected = [model_of(network, rate=0.0, low_precision_update=update)], values(network.variables)
    assert len(in_half(network)) == 4

    def end() -> None:
        models.clear()
        gc.collect()

    amid(end)
    assert in_half(network) == []
    for one, two in zip(values(network.variables), expected, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_models_that_take_turns_store_as_each_has_planned() -> None:
    network = keras_network()
    half = model_of(network, rate=1e-3, low_precision_update="compensated")
    half.train(1, batches(6), verbose=0)
    trained = values(network.weights)
    full = model_of(network, rate=0.0, master_weights=None)
    full.train(1, batches(6), verbose=0)
    assert in_half(network) == []
    for one, two in zip(values(network.weights), trained, strict=True):
        np.testing.assert_array_equal(one, two)
    half.train(1, batches(6), verbose=0)
    assert len(in_half(network)) == 4
    assert any((one != two).any() for one, two in zip(values(network.weights), trained, strict=True))


@pytest.mark.parametrize(("options", "sentence"), quick_only_some([
    ({}, "weights in bfloat16 are updated with stochastic rounding"),
    ({"low_precision_update": "compensated"}, "weights in bfloat16 are updated with compensated summation"),
    ({"master_weights": True}, "weights in bfloat16 have float32 copies, which are updated"),
]))
def test_the_plan_says_how_weights_are_stored_and_updated(options: dict[str, Any], sentence: str) -> None:
    model = model_of(keras_network(), **options)
    for _ in range(2):
        plan = model.precision_report()
        assert plan.notes == (sentence,) and str(plan).endswith(f"\n{sentence}")
        assert plan.row("dense").parameter_dtype == bfloat16
        assert plan.row("layer_normalization").parameter_dtype == float32


@pytest.mark.slow
def test_layers_in_half_of_the_user_s_own_are_left_to_keras_unless_a_choice_is_made() -> None:
    network = keras_network("bfloat16")
    plain = Model(network, Planted(), keras.optimizers.Adam(1e-4))
    assert plain.precision_report().notes == ("weights in bfloat16 are updated with rounding to nearest",)
    assert "bfloat16" in {str(each.dtype) for each in plain._networks.step.driver.state_variables()}
    chosen = Model(network, Planted(), keras.optimizers.Adam(1e-4), low_precision_update="stochastic")
    before = values(in_half(network))
    chosen.train(1, batches(6), verbose=0)
    assert all((one != two).any() for one, two in zip(values(in_half(network)), before, strict=True))
    with pytest.raises(ValueError, match="variables of the optimizer must be float32.*Write a new optimizer"):
        Model(network, Planted(), plain.optimizer, low_precision_update="stochastic")


@pytest.mark.parametrize(("options", "kind", "words"), [
    ({"amp_level": "O0", "cast_model_type": None}, ValueError, "master_weights needs level O2 or O3.*got 'O0'"),
    ({"amp_level": "O1"}, ValueError, "master_weights needs level O2 or O3.*got 'O1'"),
    ({"master_weights": None, "low_precision_update": "nearest"}, ValueError, "stored in half without copies"),
    ({"master_weights": True, "low_precision_update": "stochastic"}, ValueError, "stored in half without copies"),
    ({"master_weights": 1}, TypeError, "master_weights"),
    ({"low_precision_update": "random"}, ValueError, "low_precision_update.*stochastic"),
])
def test_what_does_not_go_together_is_refused(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    network = keras_network()
    with pytest.raises(kind, match=words):
        model_of(network, **options)
    gc.collect()
    assert in_half(network) == []


@pytest.mark.parametrize("options", quick_only_some([{"use_ema": True}, {"gradient_accumulation_steps": 2}]))
def test_an_optimizer_that_writes_weights_at_other_times_is_refused(options: dict[str, Any]) -> None:
    half = {"amp_level": "O2", "cast_model_type": "bfloat16", "master_weights": False}
    with pytest.raises(ValueError, match=f"must not have {next(iter(options))}"):
        Model(keras_network(), Planted(), keras.optimizers.SGD(0.1, **options), **half)
    with pytest.raises(ValueError, match="master_weights needs an optimizer"):
        Model(keras_network(), Planted(), **half)


@pytest.mark.slow
def test_files_hold_the_values_of_training(tmp_path: pathlib.Path) -> None:
    for options in ({"master_weights": True}, {"low_precision_update": "compensated"}):
        network = keras_network()
        model = model_of(network, rate=1e-3, **options)
        model.train(1, batches(6), verbose=0)
        model.save_weights(tmp_path / "net.weights.h5")
        plain = keras_network()
        plain.load_weights(tmp_path / "net.weights.h5")
        for one, two in zip(values(network.weights), values(plain.weights), strict=True):
            np.testing.assert_array_equal(one, two)
        model.set_weights([np.full(each.shape, 0.1, np.float32) for each in network.weights])
        assert abs(np.concatenate([np.ravel(each) for each in values(network.weights)]) - 0.1).max() < 1e-3
