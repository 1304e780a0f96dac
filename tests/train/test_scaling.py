"""Loss scaling in real training runs: golden sequences, live scales, managers of every kind, and underflow."""

from __future__ import annotations

import math
import warnings
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager, Model, backend, nn
from tests.backends import quick_every
from tests.train.planted import GOLDEN, Trace, batches, chain_model, train_chain

FEEDS = pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
MODES = pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE], ids=["graph", "eager"])


def _check(trace: Trace, first: float, flags: str, expected: list[float]) -> None:
    assert trace.overflows == [flag == "1" for flag in flags]
    assert trace.scales == [first, *expected[:-1]]
    assert trace.live[-1] == expected[-1]


@pytest.mark.slow
@FEEDS
@pytest.mark.parametrize(("first", "factor", "window", "flags", "expected"), GOLDEN)
def test_a_training_run_follows_every_golden_sequence(
    first: float, factor: float, window: int, flags: str, expected: list[float], sink: bool
) -> None:
    trace = train_chain(flags, DynamicLossScaleManager(first, factor, window), sink=sink)
    _check(trace, first, flags, expected)


@quick_every(4)
@FEEDS
@pytest.mark.parametrize("case", [2, 3])
def test_an_eager_run_follows_the_golden_sequences(case: int, sink: bool) -> None:
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    first, factor, window, flags, expected = GOLDEN[case]
    _check(train_chain(flags, DynamicLossScaleManager(first, factor, window), sink=sink), first, flags, expected)


@pytest.mark.slow
@FEEDS
@pytest.mark.parametrize("level", ["O2", "O3"])
@pytest.mark.filterwarnings("ignore:Model. in epoch 1, 3 of 10 steps were skipped")
def test_a_half_run_follows_a_golden_sequence(level: str, sink: bool) -> None:
    first, factor, window, flags, expected = GOLDEN[2]
    manager = DynamicLossScaleManager(first, factor, window)
    _check(train_chain(flags, manager, sink=sink, amp_level=level), first, flags, expected)


@pytest.mark.slow
def test_the_manager_shows_the_live_scale_after_every_call() -> None:
    first, factor, window, flags, expected = GOLDEN[2]
    assert train_chain(flags, DynamicLossScaleManager(first, factor, window)).live == expected
    trace, model = Trace(), chain_model(DynamicLossScaleManager(first, factor, window))
    model.train(5, batches(flags), callbacks=trace, dataset_sink_mode=True, sink_size=2, verbose=0)
    assert trace.live == expected[1::2]
    assert model.loss_scale_manager.get_loss_scale() == expected[-1]


@pytest.mark.slow
def test_the_scale_goes_on_over_epochs_runs_and_feeds() -> None:
    trace, model = Trace(), chain_model(DynamicLossScaleManager(16, 2, 3))
    model.train(2, batches("00"), callbacks=trace, verbose=0)
    model.train(1, batches("00"), callbacks=trace, dataset_sink_mode=True, verbose=0)
    model.train(1, batches("0"), callbacks=trace, verbose=0)
    assert trace.scales == [16, 16, 16, 32, 32, 32, 64]


@pytest.mark.slow
@pytest.mark.parametrize(("flag", "expected"), [("1", 1.0), ("0", 2.0**127)])
def test_5000_bad_or_good_steps_never_reach_zero_infinity_or_nan(flag: str, expected: float) -> None:
    manager = DynamicLossScaleManager(2**24, 2, 1)
    trace, model = Trace(), chain_model(manager, bad_step_max=10_000)
    data, label = batches(flag)[0]
    network = model.predict_network
    # Gradients so small, on their way through the network too, that even the largest scale leaves them finite.
    scaled = data if flag == "1" else np.float32(2.0**-20) * data
    if flag == "0":
        network.second.set_data(mixtrain.Tensor(np.float32(2.0**-10)))
    model.train(1, [(scaled, label)] * 5000, callbacks=trace, dataset_sink_mode=True, verbose=0)
    assert all(1 <= scale < math.inf for scale in trace.scales)
    assert trace.overflows == [flag == "1"] * 5000
    assert (manager.get_loss_scale(), max(trace.scales)) == (expected, 2.0**24 if flag == "1" else expected)
    assert np.isfinite(network.first.asnumpy())


@pytest.mark.slow
@FEEDS
def test_the_loss_is_reported_unscaled(sink: bool) -> None:
    losses = [train_chain("0000", manager, sink=sink).losses for manager in (
        None, DynamicLossScaleManager(2**16, 2, 1), FixedLossScaleManager(1024),
    )]
    assert losses[0] == losses[1] == losses[2]


@pytest.mark.slow
def test_default_managers_are_not_shared_between_models() -> None:
    x, y = np.full((1, 2), 1e4, np.float32), np.zeros((1, 1), np.float32)

    def make() -> Model:
        net = nn.Dense(2, 1, weight_init="ones")
        return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 1e-6), amp_level="O2")

    one, other = make(), make()
    assert one.loss_scale_manager is not other.loss_scale_manager
    one.train(1, [(x, y)] * 3, verbose=0)
    assert one.loss_scale_manager.get_loss_scale() == 2.0**21
    assert other.loss_scale_manager.get_loss_scale() == 2.0**24


@pytest.mark.parametrize(
    ("level", "half", "kind"),
    [
        ("O0", None, type(None)), ("O1", None, type(None)), ("O2", None, DynamicLossScaleManager),
        ("O2", "bfloat16", type(None)), ("O3", None, type(None)),
    ],
)
@pytest.mark.filterwarnings("ignore:Model. layers compute in float16 and the loss is not scaled")
def test_only_o2_in_float16_scales_by_default(level: str, half: Any, kind: type) -> None:
    net = nn.Dense(2, 1)
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), amp_level=level, cast_model_type=half)
    assert isinstance(model.loss_scale_manager, kind)
    assert Model(net, nn.MSELoss(), "sgd", amp_level=level, loss_scale_manager=None).loss_scale_manager is None


@pytest.mark.slow
def test_a_manager_handed_to_two_models_warns_and_each_keeps_its_own_scale() -> None:
    manager = DynamicLossScaleManager(16, 2, 3)
    first, trace = chain_model(manager), Trace()
    first.train(1, batches("1"), verbose=0)
    with pytest.warns(UserWarning, match="already drives a Model"):
        second = chain_model(manager)
    assert manager.get_loss_scale() == 16
    second.train(1, batches("11"), callbacks=trace, verbose=0)
    first.train(1, batches("0"), callbacks=trace, verbose=0)
    assert trace.scales == [16, 8, 8]
    assert manager.get_loss_scale() == 4


class Stepwise(LossScaleManager):
    """Quarters the scale after an overflow and adds 1 otherwise; driven from Python."""

    def __init__(self) -> None:
        self.scale = 64.0
        self.seen: list[bool] = []

    def get_loss_scale(self) -> float:
        return self.scale

    def update_loss_scale(self, overflow: Any) -> None:
        self.seen.append(overflow)
        self.scale = self.scale / 4 if overflow else self.scale + 1


class Recorded(DynamicLossScaleManager):
    """The dynamic rule, watched."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.seen: list[bool] = []

    def update_loss_scale(self, overflow: Any) -> None:
        self.seen.append(overflow)
        super().update_loss_scale(overflow)


@quick_every(3)
@FEEDS
@MODES
def test_a_manager_of_ones_own_is_asked_after_every_step(sink: bool, mode: int) -> None:
    mixtrain.set_context(mode=mode)
    manager = Stepwise()
    trace = train_chain("00100", manager, sink=sink)
    assert trace.scales == [64, 65, 66, 16.5, 17.5]
    assert manager.seen == [False, False, True, False, False]
    assert trace.live[-1] == 18.5


@pytest.mark.slow
@FEEDS
def test_a_dynamic_manager_whose_rule_is_overridden_is_asked_too(sink: bool) -> None:
    first, factor, window, flags, expected = GOLDEN[2]
    manager = Recorded(first, factor, window)
    _check(train_chain(flags, manager, sink=sink), first, flags, expected)
    assert manager.seen == [flag == "1" for flag in flags]


@pytest.mark.slow
@FEEDS
def test_a_subclass_that_overrides_nothing_runs_compiled(sink: bool) -> None:
    manager = type("Plain", (DynamicLossScaleManager,), {})(16, 2, 1)
    assert train_chain("0010", manager, sink=sink).scales == [16, 32, 64, 32]


@pytest.mark.slow
@FEEDS
def test_a_manager_may_bring_an_update_cell_of_ones_own(sink: bool) -> None:
    class Quadruple(nn.Cell):
        def get_loss_scale(self) -> float:
            return 32.0

        def construct(self, scale: Any, overflow: Any) -> Any:
            scale.assign(keras.ops.where(overflow, scale / 2, scale * 4))
            return overflow

    class WithCell(Stepwise):
        def get_update_cell(self) -> Any:
            return Quadruple()

    manager = WithCell()
    assert train_chain("0010", manager, sink=sink).scales == [32, 128, 512, 256]
    assert manager.seen == []


# ---- fixed scales ------------------------------------------------------------------------------------------------
X, LABEL = np.array([[1.0, 2.0]], np.float32), np.array([[0.0]], np.float32)


def _one_step(manager: Any, *, loss_scale: float = 1.0, optimizer: str = "mixtrain", sink: bool = False) -> list[Any]:
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    made = nn.SGD(net.trainable_params(), 0.125, loss_scale=loss_scale)
    model = Model(
        net, nn.MSELoss(), keras.optimizers.SGD(0.125) if optimizer == "keras" else made, loss_scale_manager=manager
    )
    model.train(1, [(X, LABEL)], dataset_sink_mode=sink, verbose=0)
    return net.weight.asnumpy().tolist()


@pytest.mark.slow
@FEEDS
@MODES
def test_a_fixed_scale_that_the_optimizer_divides_moves_a_weight_by_exactly_the_unscaled_step(
    sink: bool, mode: int
) -> None:
    mixtrain.set_context(mode=mode)
    plain = _one_step(None, sink=sink)
    assert plain == [[1 - 6 * 0.125, 1 - 12 * 0.125]]
    assert _one_step(FixedLossScaleManager(8, False), loss_scale=8.0, sink=sink) == plain
    assert _one_step(FixedLossScaleManager(8), sink=sink) == plain
    assert _one_step(FixedLossScaleManager(8, False), optimizer="keras", sink=sink) == plain


def test_a_fixed_scale_that_does_not_drop_applies_an_overflow() -> None:
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    model = Model(
        net, nn.L1Loss(), nn.SGD(net.trainable_params(), 0.1, loss_scale=8.0),
        loss_scale_manager=FixedLossScaleManager(8, False),
    )
    with pytest.warns(UserWarning, match="1 of 1 weights are not finite since epoch 1, .*every step is applied"):
        model.train(1, [(np.full((1, 1), 3e38, np.float32), LABEL)], verbose=0)
    assert net.weight.asnumpy().tolist() == [[-np.inf]]


# ---- underflow ---------------------------------------------------------------------------------------------------
def _underflow_chain(kind: str) -> tuple[Any, Any, Any, Any]:
    """Return five layers that multiply by 2**-6 each, their first and last weight, and an optimizer."""
    if kind == "cells":
        net: Any = nn.SequentialCell(*[nn.Dense(1, 1, weight_init=2.0**-6, has_bias=False) for _ in range(5)])
        return net, net[0].weight, net[4].weight, nn.SGD(net.trainable_params(), 2.0**20)
    layers = keras.layers
    start = keras.initializers.Constant(2.0**-6)
    net = keras.Sequential(
        [keras.Input((1,)), *(layers.Dense(1, use_bias=False, kernel_initializer=start) for _ in range(5))]
    )
    return net, net.layers[0].kernel, net.layers[4].kernel, keras.optimizers.SGD(2.0**20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "mode", "sink"),
    [("cells", 0, False), ("cells", 0, True), ("cells", 1, False), ("keras", 0, False), ("keras", 1, False)],
)
def test_without_scaling_float16_leaves_the_first_of_a_chain_of_layers_unchanged_and_with_it_trains_it(
    kind: str, mode: int, sink: bool
) -> None:
    mixtrain.set_context(mode=mode)
    data = [(np.ones((2, 1), np.float32), np.ones((2, 1), np.float32))]
    moved = 2.0**-6 + 2.0**20 * 2.0**-24  # the gradient is 2**-24 in every layer
    for manager, expected in ((None, 2.0**-6), (FixedLossScaleManager(2**10), moved)):
        net, first, last, optimizer = _underflow_chain(kind)
        model = Model(net, nn.L1Loss(), optimizer, amp_level="O3", loss_scale_manager=manager)
        model.train(1, data, dataset_sink_mode=sink, verbose=0)
        assert backend.to_numpy(first).item() == expected
        assert backend.to_numpy(last).item() == moved


def test_a_run_with_a_manager_raises_no_warning_of_its_own() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train_chain("0100", DynamicLossScaleManager(16, 2, 3))
