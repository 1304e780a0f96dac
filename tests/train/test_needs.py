"""What callbacks ask of each step beside scalars: gradients by name and predictions; and one step a call."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model, nn
from mixtrain.dataset import NumpySlicesDataset
from mixtrain.train.callback import Callback

FEEDS = ["host", "groups", "sink"]
X = np.random.default_rng(0).standard_normal((12, 3)).astype(np.float32)
Y = X.sum(1, keepdims=True)


def data() -> Any:
    return NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(4)


class Watch(Callback):
    """Keeps what steps tell; observes only where the feed is to run groups."""

    needs = frozenset({"gradients", "predictions"})

    def __init__(self) -> None:
        super().__init__()
        self.gradients: list[dict[str, np.ndarray]] = []
        self.norms: list[float] = []
        self.predictions: list[Any] = []
        self.calls = 0

    def on_train_step_end(self, run_context: Any) -> None:
        steps = run_context.original_args().step_results
        self.calls += 1
        self.norms += steps.grad_norm.tolist()
        for index in range(len(steps)):
            self.gradients.append({name: values[index] for name, values in steps.gradients.items()})
            self.predictions.append(keras.tree.map_structure(lambda values: values[index], steps.predictions))


class Observe(Watch):
    observes_only = True

    def on_train_step_end(self, run_context: Any) -> None:
        super().on_train_step_end(run_context)


def of_cells(**options: Any) -> tuple[Model, Any]:
    net = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), **options), net


def of_keras(**options: Any) -> tuple[Model, Any]:
    net = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones", name="out")])
    return Model(net, "mse", keras.optimizers.SGD(0.1), **options), net


def watched(make: Any, feed: str, **options: Any) -> Watch:
    model, _ = make(**options)
    watch = Observe() if feed == "groups" else Watch()
    model.train(2, data(), callbacks=watch, dataset_sink_mode=feed == "sink", verbose=0)
    return watch


@pytest.mark.slow
@pytest.mark.parametrize("make", [of_cells, of_keras])
@pytest.mark.parametrize("feed", FEEDS)
def test_gradients_and_predictions_are_those_of_each_step(make: Any, feed: str) -> None:
    watch = watched(make, feed, amp_level="O0")
    weight, bias = np.ones((3, 1), np.float32), np.zeros(1, np.float32)
    assert len(watch.gradients) == len(watch.predictions) == 6
    for number, (gradients, predicted) in enumerate(zip(watch.gradients, watch.predictions, strict=True)):
        batch = slice(number % 3 * 4, number % 3 * 4 + 4)
        outputs = X[batch] @ weight + bias
        error = 2 * (outputs - Y[batch]) / 4
        result = {name.rpartition("/")[2]: values for name, values in gradients.items()}
        kernel = result["weight"].T if "weight" in result else result["kernel"]
        np.testing.assert_allclose(predicted, outputs, atol=1e-5)
        np.testing.assert_allclose(kernel, X[batch].T @ error, atol=1e-5)
        np.testing.assert_allclose(result["bias"], error.sum(0), atol=1e-5)
        weight, bias = weight - 0.1 * kernel, bias - 0.1 * result["bias"]


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
def test_gradients_are_unscaled_and_grad_norm_is_theirs(feed: str) -> None:
    # The first step overflows.
    watch = watched(of_keras, feed, amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2.0**127, 2**117, 100))
    flat = [np.concatenate([values.ravel() for values in gradients.values()]) for gradients in watch.gradients]
    assert [bool(np.isfinite(vector).all()) for vector in flat] == [False] + [True] * 5
    norms = [float(np.linalg.norm(vector)) for vector in flat]
    np.testing.assert_allclose(watch.norms[1:], norms[1:], rtol=1e-5)
    assert {vector.dtype for vector in flat} == {np.dtype(np.float32)}


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
def test_a_run_that_tells_more_trains_as_one_that_does_not(feed: str) -> None:
    weights = []
    for callbacks in ([], [Observe() if feed == "groups" else Watch()]):
        model, net = of_keras(amp_level="O0")
        model.train(2, data(), callbacks=callbacks, dataset_sink_mode=feed == "sink", verbose=0)
        model.train(1, data(), dataset_sink_mode=feed == "sink", verbose=0)
        weights.append([np.asarray(value) for value in net.get_weights()])
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_predictions_keep_the_structure_of_several_outputs() -> None:
    inputs = keras.Input((3,))
    dense = keras.layers.Dense
    net = keras.Model(inputs, {"a": dense(1, name="a")(inputs), "b": dense(1, name="b")(inputs)})
    watch = Watch()
    Model(net, {"a": "mse", "b": "mse"}, "sgd").train(1, [(X, {"a": Y, "b": Y})], callbacks=watch, verbose=0)
    assert {name: values.shape for name, values in watch.predictions[0].items()} == {"a": (12, 1), "b": (12, 1)}


@pytest.mark.slow
def test_records_of_an_epoch_hold_no_tensors() -> None:
    seen = []

    class Epoch(Observe):
        def on_train_epoch_end(self, run_context: Any) -> None:
            arguments = run_context.original_args()
            assert len(arguments.epoch_results.loss) == 3
            with pytest.raises(AttributeError, match=r'Write needs = \{"gradients"\} in its class'):
                arguments.epoch_results.gradients  # noqa: B018
            seen.append(arguments.cur_epoch_num)

    model, _ = of_cells()
    model.train(2, data(), callbacks=Epoch(), verbose=0)
    assert seen == [1, 2]


def test_who_asks_for_nothing_is_told_what_to_write() -> None:
    class Forgot(Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            run_context.original_args().step_results.predictions  # noqa: B018

    model, _ = of_cells()
    with pytest.raises(AttributeError, match=r'step_results.predictions: .* Write needs = \{"predictions"\}'):
        model.train(1, data(), callbacks=Forgot(), verbose=0)


@pytest.mark.parametrize("needs", [{"losses"}, "gradients"])
def test_an_unknown_need_is_named(needs: Any) -> None:
    watch = Watch()
    watch.needs = needs  # type: ignore[misc]
    model, _ = of_cells()
    with pytest.raises(ValueError, match=r"Watch: needs must be a set with some of gradients, predictions; got"):
        model.train(1, data(), callbacks=watch, verbose=0)


def test_a_train_step_of_the_user_s_own_cannot_tell_gradients() -> None:
    class Own(nn.TrainOneStepCell):
        def construct(self, *inputs: Any) -> Any:
            return super().construct(*inputs)

    net = nn.Dense(3, 1)
    model = Model(Own(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1)))
    with pytest.raises(ValueError, match=r"not of a Own with a construct of its own; got"):
        model.train(1, data(), callbacks=Watch(), verbose=0)


@pytest.mark.slow
@pytest.mark.parametrize("sink_size", [-1, 2])
def test_a_callback_gets_one_step_a_call_in_sink_feed_where_it_asks(sink_size: int) -> None:
    class Stream(Callback):
        one_step_calls = True

        def __init__(self) -> None:
            super().__init__()
            self.steps: list[tuple[int, int]] = []

        def on_train_step_end(self, run_context: Any) -> None:
            arguments = run_context.original_args()
            self.steps.append((arguments.cur_step_num, len(arguments.step_results)))

    stream, (model, net), (control, other) = Stream(), of_cells(), of_cells()
    history = model.train(3, data(), callbacks=stream, dataset_sink_mode=True, sink_size=sink_size, verbose=0)
    expected = control.train(3, data(), dataset_sink_mode=True, sink_size=sink_size, verbose=0)
    assert stream.steps == [(number, 1) for number in range(1, 1 + 3 * (3 if sink_size == -1 else sink_size))]
    assert history["loss"] == pytest.approx(expected["loss"], rel=1e-6)
    np.testing.assert_array_equal(net.weight.asnumpy(), other.weight.asnumpy())


def test_a_stop_takes_effect_after_a_step_where_one_runs_a_call() -> None:
    class Stop(Callback):
        one_step_calls = True

        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == 2:
                run_context.request_stop()

    model, _ = of_cells()
    history = model.train(3, data(), callbacks=Stop(), dataset_sink_mode=True, verbose=0)
    assert len(history["loss"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
def test_predictions_of_a_smaller_last_batch_are_told_in_every_feed(feed: str) -> None:
    rows = NumpySlicesDataset((X[:10], Y[:10]), ["x", "y"], shuffle=False).batch(4)
    (model, _), watch = of_keras(), Observe() if feed == "groups" else Watch()
    model.train(2, rows, callbacks=watch, dataset_sink_mode=feed == "sink", verbose=0)
    assert [predicted.shape for predicted in watch.predictions] == [(4, 1), (4, 1), (2, 1)] * 2
