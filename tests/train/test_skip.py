"""Skip means skip: what a step that overflows leaves as it was, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, backend, nn
from tests.backends import on_jax_only_some, quick_every
from tests.train.planted import Trace

FEEDS = pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
HOPELESS = pytest.mark.filterwarnings("ignore:Model. in epoch .* steps were skipped although")

_draw = np.random.default_rng(0)
DATA, LABEL = _draw.standard_normal((8, 3)).astype(np.float32), _draw.standard_normal((8, 1)).astype(np.float32)
GOOD = (DATA, LABEL)
BAD = (DATA * np.float32(1e38), LABEL)  # in float32 the loss is finite and a gradient is not
INFINITE = (DATA * np.float32(np.inf), LABEL)


class Normalized(nn.Cell):
    """Two dense layers with batch normalization between them, a Cell or Keras's."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.first = nn.Dense(3, 4)
        self.norm = norm
        self.last = nn.Dense(4, 1)

    def construct(self, x: Any) -> Any:
        return self.last(self.norm(self.first(x)))


def _cells() -> Any:
    return Normalized(nn.BatchNorm1d(4))


def _mixed() -> Any:
    norm = keras.layers.BatchNormalization()
    norm.build((None, 4))
    return Normalized(norm)


def _keras() -> Any:
    layers = keras.layers
    return keras.Sequential([keras.Input((3,)), layers.Dense(4), layers.BatchNormalization(), layers.Dense(1)])


def _momentum(net: Any) -> Any:
    params = net.trainable_params() if isinstance(net, nn.Cell) else net.trainable_variables
    return nn.Momentum(params, [0.01, 0.02, 0.03], 0.9, weight_decay=1e-3)


def _adam(net: Any) -> Any:
    return nn.Adam(net.trainable_params(), 0.01)


def _averaging(net: Any) -> Any:
    return keras.optimizers.SGD(0.01, momentum=0.9, use_ema=True, ema_momentum=0.5)


def _keras_adam(net: Any) -> Any:
    return keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 1, 0.9), amsgrad=True)


def _everything(model: Model) -> list[Any]:
    """Return every variable that a step could write: parameters, statistics, slots, counts, learning rates."""
    step = model.train_network
    return [*step.network.get_parameters(), *step.driver.state_variables()]


def _values(variables: list[Any]) -> list[bytes]:
    return [backend.to_numpy(variable).tobytes() for variable in variables]


@quick_every(12)
@pytest.mark.parametrize(
    ("make", "optimizer", "level", "bad", "sink", "mode"),
    on_jax_only_some([
        (_cells, _momentum, "O0", BAD, False, 0),
        (_cells, _momentum, "O2", INFINITE, True, 0),
        (_cells, _adam, "O0", BAD, True, 0),
        (_cells, _adam, "O3", BAD, False, 1),
        (_cells, _averaging, "O0", BAD, False, 0),
        (_mixed, _keras_adam, "O2", BAD, False, 0),
        (_mixed, _averaging, "O0", INFINITE, True, 0),
        (_mixed, _momentum, "O2", BAD, True, 1),
        (_keras, _keras_adam, "O0", BAD, True, 0),
        (_keras, _averaging, "O2", BAD, False, 1),
        (_keras, _momentum, "O3", INFINITE, False, 0),
    ], [0, 1, 5, 8]),
    ids=lambda value: getattr(value, "__name__", None),
)
@HOPELESS
def test_a_skipped_step_leaves_every_variable_bit_for_bit_and_the_next_good_one_goes_on(
    make: Callable[[], Any], optimizer: Callable[[Any], Any], level: str, bad: Any, sink: bool, mode: int
) -> None:
    mixtrain.set_context(mode=mode)
    net = make()
    model = Model(
        net, nn.MSELoss(), optimizer(net), amp_level=level, loss_scale_manager=DynamicLossScaleManager(2**10, 2, 100)
    )
    trace = Trace()
    model.train(1, [GOOD] * 2, callbacks=trace, dataset_sink_mode=sink, verbose=0)
    variables = _everything(model)
    if optimizer is _averaging:  # at the end of a run the averages become the weights
        variables = [variable for variable in variables if not any(variable is w for w in model.train_network.weights)]
    before, iterations = _values(variables), int(model.train_network.driver.iterations)
    history = model.train(1, [bad] * 2, callbacks=trace, dataset_sink_mode=sink, verbose=0)
    assert _values(variables) == before
    assert int(model.train_network.driver.iterations) == iterations == 2
    assert all(np.isfinite(backend.to_numpy(variable)).all() for variable in variables)
    assert np.isfinite(backend.to_numpy(model.predict(DATA))).all()
    finite = bool(np.isfinite(trace.losses[-2:]).any())
    assert (history["skipped_steps"], np.isfinite(history["loss"]).tolist()) == ([2], [finite])
    model.train(1, [GOOD], callbacks=trace, dataset_sink_mode=sink, verbose=0)
    assert trace.overflows == [False, False, True, True, False]
    assert trace.scales == [1024, 1024, 1024, 512, 256]
    assert int(model.train_network.driver.iterations) == 3
    assert _values(variables) != before


@pytest.mark.slow
@pytest.mark.parametrize(("make", "sink"), [(_cells, False), (_mixed, False), (_keras, True)])
def test_a_run_with_bad_batches_ends_where_the_run_without_them_ends(make: Callable[[], Any], sink: bool) -> None:
    ends = []
    for batches in ([GOOD, GOOD, GOOD], [GOOD, BAD, GOOD, BAD, BAD, GOOD]):
        mixtrain.set_seed(5)
        net = make()
        model = Model(net, nn.MSELoss(), _averaging(net), loss_scale_manager=FixedLossScaleManager(2**10))
        history = model.train(2, batches, dataset_sink_mode=sink, verbose=0)
        ends.append([*map(backend.to_numpy, _everything(model)), np.asarray(history["loss"])])
    # Not bit for bit: how many threads share a product, and so the order of its sums, TensorFlow decides at each call.
    for with_bad, without in zip(*ends, strict=True):
        np.testing.assert_allclose(with_bad, without, rtol=1e-5, atol=1e-6)
    assert history["skipped_steps"] == [3, 3]


@pytest.mark.slow
def test_the_moving_average_of_a_keras_optimizer_is_untouched_within_a_run() -> None:
    seen = []

    class Watch(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            seen.append(_values(_everything(model)))

    net = _cells()
    optimizer = keras.optimizers.Adam(0.01, use_ema=True, ema_overwrite_frequency=1)
    model = Model(net, nn.MSELoss(), optimizer, loss_scale_manager=DynamicLossScaleManager(2**10))
    model.train(1, [GOOD, BAD, GOOD], callbacks=Watch(), verbose=0)
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.slow
def test_at_the_end_of_a_run_the_average_becomes_the_weights_as_in_keras() -> None:
    def make() -> tuple[Any, Any]:
        start = keras.initializers.Ones()
        net = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer=start)])
        return net, keras.optimizers.SGD(0.125, use_ema=True, ema_momentum=0.5)

    x, y = np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32)
    theirs, optimizer = make()
    theirs.compile(optimizer, "mse")
    theirs.fit(x, y, batch_size=1, verbose=0)
    ours, optimizer = make()
    Model(ours, "mse", optimizer).train(1, [(x[:1], y[:1])] * 2, verbose=0)
    assert backend.to_numpy(ours.weights[0]).item() == backend.to_numpy(theirs.weights[0]).item() == 0.65625


def test_epoch_loss_and_history_leave_skipped_steps_out() -> None:
    net = _cells()
    optimizer = nn.SGD(net.trainable_params(), 1e-6)
    model = Model(net, nn.MSELoss(), optimizer, loss_scale_manager=FixedLossScaleManager(2**10))
    trace = Trace()
    history = model.train(2, [GOOD, BAD, GOOD], callbacks=trace, verbose=0)
    losses = np.array(trace.losses, np.float32)
    assert history["loss"] == [np.mean(losses[[0, 2]], dtype=np.float64), np.mean(losses[[3, 5]], dtype=np.float64)]
    assert (history["skipped_steps"], history["loss_scale"]) == ([1, 1], [1024, 1024])


@pytest.mark.slow
def test_metrics_between_epochs_are_those_of_the_run_without_the_bad_batch() -> None:
    results = []
    for batches in ([GOOD, GOOD], [BAD, GOOD, BAD, GOOD]):
        mixtrain.set_seed(5)
        net = _cells()
        model = Model(
            net, nn.MSELoss(), _momentum(net), metrics={"mse", "loss"}, loss_scale_manager=FixedLossScaleManager(2**10)
        )
        history = model.fit(2, batches, [GOOD], verbose=0)
        results.append({name: history[name] for name in ("loss", "val_mse", "val_loss")})
    assert results[0] == results[1]
    assert history["skipped_steps"] == [2, 2]


@pytest.mark.slow
def test_a_keras_callback_never_sees_the_loss_of_a_skipped_step() -> None:
    logs = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs_: Any = None) -> None:
            logs.append(logs_["loss"])

    net = _cells()
    model = Model(net, nn.MSELoss(), _momentum(net), loss_scale_manager=FixedLossScaleManager(2**10))
    trace = Trace()
    model.train(1, [GOOD, BAD, GOOD], callbacks=[Watch(), trace], verbose=0)
    assert trace.overflows == [False, True, False]
    mean = (trace.losses[0] + trace.losses[2]) / 2
    assert logs == [trace.losses[0], trace.losses[0], pytest.approx(mean, rel=1e-7)]


@pytest.mark.slow
@pytest.mark.parametrize(("bad", "reported"), [(INFINITE, True), (BAD, False)])
def test_steps_that_a_smaller_scale_cannot_save_are_pointed_out_once(bad: Any, reported: bool) -> None:
    net = nn.Dense(3, 1)
    loss_fn = nn.MSELoss() if reported else nn.L1Loss()
    model = Model(net, loss_fn, _adam(net), loss_scale_manager=DynamicLossScaleManager(8))
    if not reported:
        model.train(2, [GOOD, bad], verbose=0)
        return
    with pytest.warns(UserWarning, match="in epoch 1, 1 of 2 steps were skipped although a smaller") as warned:
        model.train(2, [GOOD, bad], verbose=0)
    assert len(warned) == 1
