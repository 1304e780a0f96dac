"""The loop: epochs and calls, host feed against sink feed, stops, histories, and how often a step is compiled."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, nn
from tests.train.planted import Trace, batches, chain_model

SLOW_O2 = pytest.param("O2", marks=pytest.mark.slow)
FEEDS = pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])

_draw = np.random.default_rng(0)
X = _draw.standard_normal((40, 1, 8, 8)).astype(np.float32)
Y = np.eye(4, dtype=np.float32)[_draw.integers(0, 4, 40)]
DATA = [(X[start:start + 8], Y[start:start + 8]) for start in range(0, 40, 8)]


class Small(nn.Cell):
    """A convolution, batch normalization and a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.norm = nn.BatchNorm2d(3)
        self.flatten = nn.Flatten()
        self.head = nn.Dense(192, 4)

    def construct(self, x: Any) -> Any:
        return self.head(self.flatten(self.norm(self.conv(x))))


def _model(manager: Any = None, **options: Any) -> Model:
    mixtrain.set_seed(1)
    net = Small()
    loss = nn.SoftmaxCrossEntropyWithLogits(reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    return Model(net, loss, optimizer, loss_scale_manager=manager, **options)


@pytest.mark.parametrize("level", ["O0", SLOW_O2, pytest.param("O3", marks=pytest.mark.slow)])
def test_host_and_sink_feed_train_the_same_run(level: str) -> None:
    bad = (np.full_like(DATA[0][0], np.inf), DATA[0][1])
    data = [DATA[0], bad, *DATA[1:]]
    runs = []
    for sink in (False, True):
        trace = Trace()
        model = _model(DynamicLossScaleManager(16, 2, 3), amp_level=level)
        options: dict[str, Any] = {"callbacks": trace, "dataset_sink_mode": sink, "verbose": 0}
        with pytest.warns(UserWarning, match="although a smaller loss scale cannot help"):
            history = model.train(2, data, **options)
        runs.append((trace, history, model.predict_network))
    (host, host_history, host_net), (sink_run, sink_history, sink_net) = runs
    np.testing.assert_allclose(sink_run.losses, host.losses, rtol=1e-5)
    assert (sink_run.scales, sink_run.overflows) == (host.scales, host.overflows)
    assert host.overflows == [False, True, False, False, False, False] * 2
    assert host.scales == [16, 16, 8, 8, 8, 16, 16, 16, 8, 8, 8, 16]
    np.testing.assert_allclose(sink_history["loss"], host_history["loss"], rtol=1e-5)
    assert (sink_history["loss_scale"], sink_history["skipped_steps"]) == ([16, 16], [1, 1])
    for one, other in zip(host_net.get_parameters(), sink_net.get_parameters(), strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def host() -> Trace:
    """Return three epochs of host feed."""
    trace = Trace()
    _model().train(3, DATA, callbacks=trace, verbose=0)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sink_size", "epochs", "expected"), [(-1, 2, [5, 10]), (2, 5, [2, 4, 6, 8, 10]), (5, 2, [5, 10]), (7, 2, [7, 14])]
)
def test_a_call_of_sink_feed_runs_sink_size_steps_through_pass_after_pass(
    sink_size: int, epochs: int, expected: list[int], host: Trace
) -> None:
    trace = Trace()
    history = _model().train(epochs, DATA, callbacks=trace, dataset_sink_mode=True, sink_size=sink_size, verbose=0)
    assert trace.steps == expected
    assert len(history["loss"]) == epochs
    np.testing.assert_allclose(trace.losses, host.losses[: expected[-1]], rtol=1e-5)
    np.testing.assert_allclose(history["loss"][0], np.mean(host.losses[: expected[0]]), rtol=1e-5)


@pytest.mark.slow
def test_sink_size_means_nothing_to_host_feed() -> None:
    trace = Trace()
    _model().train(1, DATA, callbacks=trace, sink_size=2, verbose=0)
    assert trace.steps == [1, 2, 3, 4, 5]


@pytest.mark.slow
@FEEDS
def test_what_a_callback_sees_of_a_call(sink: bool) -> None:
    seen: list[Any] = []

    class Watch(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            arguments = run_context.original_args()
            outputs = arguments.net_outputs
            loss = outputs[0] if isinstance(outputs, tuple) else outputs
            assert float(loss) == arguments.step_results.loss[-1]
            seen.append((arguments.cur_epoch_num, arguments.cur_step_num, arguments.batch_num, arguments.epoch_num,
                         len(arguments.step_results), arguments.dataset_sink_mode,
                         arguments.get("train_dataset_element") is None))

    _model().train(2, DATA, callbacks=Watch(), dataset_sink_mode=sink, verbose=0)
    if sink:
        assert seen == [(1, 5, 5, 2, 5, True, True), (2, 10, 5, 2, 5, True, True)]
    else:
        assert seen == [(1 + step // 5, step + 1, 5, 2, 1, False, False) for step in range(10)]


@pytest.mark.slow
@FEEDS
@pytest.mark.parametrize("manager", [None, DynamicLossScaleManager])
def test_net_outputs_are_the_loss_or_with_loss_scaling_the_triple(manager: Any, sink: bool) -> None:
    outputs = []

    class Watch(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            outputs.append(run_context.original_args().net_outputs)

    chain_model(manager() if manager else None).train(
        1, batches("00"), callbacks=Watch(), dataset_sink_mode=sink, verbose=0
    )
    if manager is None:
        assert all(isinstance(loss, mixtrain.Tensor) and tuple(loss.shape) == () for loss in outputs)
    else:
        assert all(isinstance(triple, tuple) for triple in outputs)
        assert [(bool(overflow), float(scale)) for _, overflow, scale in outputs] == [(False, 2.0**24)] * len(outputs)


@pytest.mark.slow
@FEEDS
def test_training_from_an_initial_epoch_runs_the_epochs_after_it(sink: bool) -> None:
    epochs = []

    class Watch(mixtrain.Callback):
        def on_train_epoch_begin(self, run_context: Any) -> None:
            arguments = run_context.original_args()
            epochs.append((arguments.cur_epoch_num, arguments.epoch_num, arguments.cur_step_num))

    history = _model().train(5, DATA, callbacks=Watch(), dataset_sink_mode=sink, initial_epoch=3, verbose=0)
    assert epochs == [(4, 2, 0), (5, 2, 5)]
    assert history.epoch == [4, 5]


@pytest.mark.slow
@FEEDS
def test_a_requested_stop_ends_the_run_after_the_call(sink: bool) -> None:
    hooks = []

    class Stop(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            hooks.append(run_context.original_args().cur_step_num)
            if hooks[-1] >= 7:
                run_context.request_stop()

        def on_train_epoch_end(self, run_context: Any) -> None:
            hooks.append("epoch end")

        def on_train_end(self, run_context: Any) -> None:
            hooks.append("end")

    model = _model()
    history = model.train(9, DATA, callbacks=Stop(), dataset_sink_mode=sink, verbose=0)
    counts = [5, "epoch end", 10, "epoch end"] if sink else [1, 2, 3, 4, 5, "epoch end", 6, 7, "epoch end"]
    assert hooks == [*counts, "end"]
    assert len(history["loss"]) == 2
    assert len(model.train(1, DATA, dataset_sink_mode=sink, verbose=0)["loss"]) == 1


@pytest.mark.slow
def test_a_keras_callback_stops_the_run_too() -> None:
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.model.stop_training = epoch == 1

    assert _model().train(9, DATA, callbacks=Stop(), verbose=0).epoch == [1, 2]


@pytest.mark.slow
@FEEDS
def test_what_a_callback_raises_comes_with_its_name_and_the_weights_stay_usable(sink: bool) -> None:
    class Broken(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            raise KeyError("oh")

    model = _model()
    with pytest.raises(KeyError, match="oh") as caught:
        model.train(1, DATA, callbacks=Broken(), dataset_sink_mode=sink, verbose=0)
    assert caught.value.__notes__ == ["Raised by the callback Broken in on_train_step_end."]
    assert np.isfinite(model.predict(X)).all()


# ---- compiling ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_a_step_is_traced_once_for_each_signature_over_a_run(level: str) -> None:
    model = chain_model(DynamicLossScaleManager(16, 2, 3), amp_level=level)
    stepper = model._compiled.stepper
    model.train(3, batches("000"), verbose=0)
    model.train(2, batches("00"), verbose=0)
    assert stepper.traces() == 1
    model.train(3, batches("000"), dataset_sink_mode=True, verbose=0)
    model.train(1, batches("000"), dataset_sink_mode=True, sink_size=2, verbose=0)
    assert stepper.traces() == 1
    model.train(2, [(np.zeros((3, 1), np.float32), np.zeros((3, 1), np.float32))], verbose=0)
    assert stepper.traces() == 2


@pytest.mark.slow
def test_evaluation_and_prediction_are_traced_once_each() -> None:
    model = _model(metrics={"loss"})
    model.fit(3, DATA, DATA, verbose=0)
    model.eval(DATA)
    for _ in range(3):
        model.predict(X[:8])
    compiled = model._compiled
    assert (compiled.evaluating.traces(), compiled.predicting.traces()) == (1, 1)


@pytest.mark.slow
def test_an_eager_run_is_not_compiled_and_gives_the_same_losses() -> None:
    compiled, eager = Trace(), Trace()
    _model().train(1, DATA, callbacks=compiled, verbose=0)
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    model = _model()
    model.train(1, DATA, callbacks=eager, verbose=0)
    np.testing.assert_allclose(eager.losses, compiled.losses, rtol=1e-5)
    assert model._compiled.stepper.traces() == 0


@pytest.mark.slow
def test_a_change_of_mode_or_jit_level_takes_effect_at_the_next_run() -> None:
    model = _model()
    stepper = model._compiled.stepper
    model.train(1, DATA, verbose=0)
    assert stepper.traces() == 1
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    model.train(1, DATA, verbose=0)
    assert stepper.traces() == 0
    mixtrain.set_context(mode=mixtrain.GRAPH_MODE, jit_level="O1")
    model.train(1, DATA[:1], verbose=0)
    assert stepper.traces() == 1
    assert stepper._training.choice().jit


@pytest.mark.slow
@FEEDS
def test_a_batch_counts_in_the_loss_of_an_epoch_by_its_rows_as_in_keras(sink: bool) -> None:
    rows = X.reshape(40, -1)[:11]
    data = [(rows[start : start + 4], Y[start : min(start + 4, 11)]) for start in (0, 4, 8)]
    losses = []
    for run in ("keras", "mixtrain"):
        keras.utils.set_random_seed(0)
        network = keras.Sequential([keras.Input((64,)), keras.layers.Dense(4)])
        if run == "keras":
            network.compile("sgd", "mse")
            losses.append(network.fit(rows, Y[:11], 4, epochs=1, verbose=0, shuffle=False).history["loss"][0])
        else:
            model = Model(network, "mse", "sgd")
            losses.append(model.train(1, data, dataset_sink_mode=sink, verbose=0)["loss"][0])
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
