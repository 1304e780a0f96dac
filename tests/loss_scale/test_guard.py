"""Endless overflow stops a run at the right step, and the error says where the numbers go wrong."""

from __future__ import annotations

import re
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, LossScaleExhausted, LossScaleManager, Model, nn
from tests.backends import quick_every
from tests.train.planted import BAD, GOOD, Trace, batches, chain_model, stream

FEEDS = pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])


def _exhaust(model: Model, data: Any, *, epochs: int = 1, **options: Any) -> LossScaleExhausted:
    with pytest.raises(LossScaleExhausted) as caught:
        model.train(epochs, data, verbose=0, **options)
    return caught.value


@pytest.mark.slow
@FEEDS
def test_the_1001st_overflow_in_a_row_stops_the_run(sink: bool) -> None:
    model = chain_model(DynamicLossScaleManager(2**24, 2, 2000))
    error = _exhaust(model, stream("000" + "1" * 1500), dataset_sink_mode=sink)
    assert (error.step, error.loss_scale, error.layer) == (1004, 1.0, "")
    assert str(error).startswith(
        "Model: gradients must be finite now and then; 1001 steps in a row overflowed, the last of them step 1004 at "
        "loss scale 1 (the smallest there is). Found: gradient of a parameter of the network itself: "
    )
    assert isinstance(error, mixtrain.MixtrainError) and isinstance(error, RuntimeError)


@pytest.mark.slow
@FEEDS
def test_1000_overflows_in_a_row_are_borne(sink: bool) -> None:
    model = chain_model(DynamicLossScaleManager(2**24, 2, 2000))
    history = model.train(1, stream("1" * 1000 + "0" + "1" * 5), dataset_sink_mode=sink, verbose=0)
    assert history["skipped_steps"] == [1005]


@pytest.mark.slow
@FEEDS
@pytest.mark.parametrize(
    ("flags", "step", "scale"),
    [
        ("00" + "1" * 20, 8, 2.0**19),  # ends within a call of sink feed
        ("00" + "1" * 6 + "0" * 20, 8, 2.0**19),  # good steps follow in the same call
        ("11111011111" + "0" + "1" * 6, 18, 2.0**9),  # rows of five are tolerated
        ("1" * 6, 6, 2.0**19),
    ],
)
def test_bad_step_max_is_how_many_overflows_in_a_row_are_borne(flags: str, step: int, scale: float, sink: bool) -> None:
    model = chain_model(DynamicLossScaleManager(2**24, 2, 2000), bad_step_max=5)
    error = _exhaust(model, batches(flags), dataset_sink_mode=sink)
    assert (error.step, error.loss_scale) == (step, scale)
    assert f"6 steps in a row overflowed, the last of them step {step} at loss scale {scale:g}" in str(error)


@pytest.mark.slow
@FEEDS
def test_a_row_goes_on_over_epochs_and_calls(sink: bool) -> None:
    model = chain_model(DynamicLossScaleManager(2**24), bad_step_max=5)
    error = _exhaust(model, batches("111"), epochs=6, dataset_sink_mode=sink, sink_size=2 if sink else -1)
    assert error.step == 6
    model = chain_model(DynamicLossScaleManager(2**24), bad_step_max=5)
    model.train(2, batches("11"), dataset_sink_mode=sink, verbose=0)
    assert _exhaust(model, batches("11"), dataset_sink_mode=sink).step == 2


@pytest.mark.slow
@FEEDS
def test_overflow_at_the_smallest_scale_again_and_again_stops_although_good_steps_lie_between(sink: bool) -> None:
    model = chain_model(DynamicLossScaleManager(2, 2, 10), bad_step_max=5)
    error = _exhaust(model, batches("10" * 20), dataset_sink_mode=sink)
    # The first overflow is at scale 2; those of steps 3, 5, ... 13 are at 1.
    assert (error.step, error.loss_scale) == (13, 1.0)
    assert "6 steps at the smallest loss scale overflowed, the last of them step 13 at loss scale 1" in str(error)


@pytest.mark.slow
@FEEDS
def test_overflows_at_the_smallest_scale_with_full_windows_between_them_are_borne(sink: bool) -> None:
    model = chain_model(DynamicLossScaleManager(1, 2, 2), bad_step_max=2)
    history = model.train(1, batches("100" * 8), dataset_sink_mode=sink, verbose=0)
    assert history["skipped_steps"] == [8]


@pytest.mark.slow
@FEEDS
def test_a_fixed_scale_of_one_stops_for_overflows_in_a_row_alone(sink: bool) -> None:
    model = chain_model(FixedLossScaleManager(1), bad_step_max=3)
    assert model.train(1, batches("110" * 5), dataset_sink_mode=sink, verbose=0)["skipped_steps"] == [10]
    assert _exhaust(model, batches("01111"), dataset_sink_mode=sink).step == 5


@quick_every(2, 1)
@FEEDS
def test_a_manager_driven_from_python_is_stopped_with_the_scale_that_was_used(sink: bool) -> None:
    class Halving(LossScaleManager):
        scale = 1024.0

        def get_loss_scale(self) -> float:
            return self.scale

        def update_loss_scale(self, overflow: Any) -> None:
            self.scale = self.scale / 2 if overflow else self.scale

    error = _exhaust(chain_model(Halving(), bad_step_max=3), batches("0" + "1" * 9), dataset_sink_mode=sink)
    assert (error.step, error.loss_scale) == (5, 128.0)


@pytest.mark.slow
@FEEDS
def test_the_weights_are_intact_afterwards_and_training_can_go_on(sink: bool) -> None:
    trace = Trace()
    model = chain_model(DynamicLossScaleManager(1, 2, 100), bad_step_max=5)
    network = model.predict_network
    model.train(1, batches("00"), verbose=0)
    before = [parameter.asnumpy().item() for parameter in network.get_parameters()]
    _exhaust(model, batches("1" * 9), dataset_sink_mode=sink, callbacks=trace)
    assert [parameter.asnumpy().item() for parameter in network.get_parameters()] == before
    assert np.isfinite(model.predict(np.full((1, 1), GOOD, np.float32))).all()
    # The count starts again: clean data are not stopped for what came before.
    history = model.train(1, batches("01" * 4), dataset_sink_mode=sink, verbose=0)
    assert history["skipped_steps"] == [4]


@pytest.mark.slow
def test_an_eager_run_stops_at_the_same_step() -> None:
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    for sink in (False, True):
        model = chain_model(DynamicLossScaleManager(2**24), bad_step_max=5)
        error = _exhaust(model, batches("0" + "1" * 9), dataset_sink_mode=sink)
        assert (error.step, error.loss_scale) == (7, 2.0**19)


# ---- what is found -----------------------------------------------------------------------------------------------
class Deep(nn.Cell):
    """Three named layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Dense(2, 2, weight_init="ones", has_bias=False)
        self.block = nn.SequentialCell(nn.Dense(2, 2, weight_init="ones", has_bias=False), nn.ReLU())
        self.head = nn.Dense(2, 1, weight_init="ones", has_bias=False)

    def construct(self, x: Any) -> Any:
        return self.head(self.block(self.stem(x)))


def _deep_keras() -> Any:
    layers = keras.layers
    return keras.Sequential([
        keras.Input((2,)),
        *(layers.Dense(n, use_bias=False, kernel_initializer="ones", name=name) for n, name in
          ((2, "stem"), (2, "block"), (1, "head"))),
    ])


def _found(network: Any, value: float, sink: bool, **options: Any) -> LossScaleExhausted:
    """Exhaust a run whose first batch is clean and whose others hold `value`."""
    clean, label = np.zeros((1, 2), np.float32), np.zeros((1, 1), np.float32)
    data = [(clean, label), *[(np.full((1, 2), value, np.float32), label)] * 5]
    optimizer = keras.optimizers.SGD(2.0**-40)
    settings = {"loss_scale_manager": DynamicLossScaleManager(16), "bad_step_max": 3, **options}
    return _exhaust(Model(network, nn.L1Loss(), optimizer, **settings), data, dataset_sink_mode=sink)


@quick_every(2)
@FEEDS
def test_an_input_that_is_not_finite_is_reported_as_such(sink: bool) -> None:
    error = _found(Deep(), np.inf, sink)
    assert error.layer is None
    assert "Found: column 0 of the batch: 2 of 2 values not finite (2 inf); a smaller loss scale cannot" in str(error)


@pytest.mark.slow
@FEEDS
def test_a_forward_pass_that_overflows_is_reported_with_the_layer(sink: bool) -> None:
    error = _found(Deep(), 2e38, sink)  # 2e38 + 2e38 is not finite
    assert error.layer == "stem"
    assert re.search(
        r"output of layer stem: 2 of 2 values not finite \(2 inf\), first in its \w+; a smaller loss scale", str(error)
    )
    assert _found(Deep(), 1e38, sink).layer == "block.0"


@pytest.mark.slow
def test_a_half_forward_pass_that_overflows_is_reported_with_the_layer() -> None:
    assert _found(Deep(), 2.0**14, False, amp_level="O3").layer == "block.0"
    assert _found(_deep_keras(), 2.0**14, False, amp_level="O3").layer == "block"


@quick_every(2, 1)
@FEEDS
def test_a_gradient_alone_that_overflows_is_reported_with_the_layer(sink: bool) -> None:
    network = Deep()
    for cell, value in ((network.head, 2.0**100), (network.block[0], 2.0**40), (network.stem, 2.0**-120)):
        cell.weight.set_data(np.full(cell.weight.shape, value, np.float32))
    error = _found(network, 1.0, sink)
    assert error.layer == "stem"
    assert "gradient of layer stem's output: 2 of 2 values not finite (2 inf), first in the deriv" in str(error)
    assert "; forward finite; no scale helps" in str(error)


@pytest.mark.slow
def test_a_gradient_of_a_parameter_alone_is_reported_with_its_layer() -> None:
    network = Deep()
    network.stem.weight.set_data(np.full((2, 2), 2.0**-100, np.float32))
    network.head.weight.set_data(np.full((1, 2), 2.0**20, np.float32))
    error = _found(network, 2.0**120, False)
    assert error.layer == "stem"
    assert "gradient of a parameter of layer stem: 4 of 4 values not finite (4 inf), first in the deriv" in str(error)
    assert "; forward finite; no scale helps" in str(error)


def test_the_loss_alone_is_reported_as_such() -> None:
    network = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    model = Model(
        network, nn.MSELoss(), "sgd", loss_scale_manager=DynamicLossScaleManager(16), bad_step_max=1
    )
    error = _exhaust(model, [(np.full((1, 1), 1e30, np.float32), np.zeros((1, 1), np.float32))] * 3)
    assert "the loss: 1 of 1 values not finite (1 inf), every layer's output is finite" in str(error)


@pytest.mark.slow
@FEEDS
def test_the_batch_that_is_looked_into_is_the_one_that_ended_the_run(sink: bool) -> None:
    # Only one batch of four is bad, so the end comes in a later epoch, in the middle of a call.
    model = chain_model(DynamicLossScaleManager(1, 2, 100), bad_step_max=4)
    error = _exhaust(model, batches("0010"), epochs=9, dataset_sink_mode=sink)
    assert (error.step, error.layer) == (19, "")
    assert "of a parameter of the network itself" in str(error)


def test_a_train_step_of_ones_own_is_looked_into_below_its_loss() -> None:
    network = nn.SequentialCell(nn.Dense(1, 1, weight_init="ones", has_bias=False), nn.ReLU())
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(network, nn.L1Loss()), nn.SGD(network.trainable_params(), 0.1),
        nn.DynamicLossScaleUpdateCell(16, 2, 100),
    )
    error = _exhaust(
        Model(step, bad_step_max=2), [(np.full((1, 1), BAD, np.float32), np.zeros((1, 1), np.float32))] * 4
    )
    assert (error.step, error.layer) == (3, "0")
