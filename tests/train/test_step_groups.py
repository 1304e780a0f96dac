"""Steps that run together in one call have the numbers of steps that run one by one; observers hear of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, LossMonitor, LossScaleExhausted, Model, RangeMonitor, backend, nn
from mixtrain.backend import GroupInfo
from mixtrain.dataset import NumpySlicesDataset
from mixtrain.train.feed import Feed
from mixtrain.train.step_groups import grouped
from mixtrain.train.stepper import Stepper
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import on_gpu, quick_every
from tests.train.planted import Trace, batches, chain_model

_draw = np.random.default_rng(0)
DATA = [
    (_draw.standard_normal((4, 6)).astype(np.float32), _draw.standard_normal((4, 2)).astype(np.float32))
    for _ in range(11)
]


class Watching(Trace):
    """A trace that only looks."""

    observes_only = True


class Controlling(Trace):
    """The same, which could do more."""

    observes_only = False


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a call run four steps; the sizes of the groups that are run."""
    sizes: list[int] = []
    several = Stepper.several

    def counted(self: Stepper, group: Any, **options: Any) -> Any:
        sizes.append(len(group))
        return several(self, group, **options)

    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 4)
    monkeypatch.setattr(Stepper, "several", counted)
    return sizes


def dropping() -> keras.Model:
    """Return a network with randomness and moving statistics."""
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((6,)), layers.Dense(8), layers.BatchNormalization(), layers.Dropout(0.5, seed=3), layers.Dense(2)]
    )


def trained(
    callbacks: Any, *, epochs: int = 2, data: Any = DATA, scale: int | None = None, **options: Any
) -> tuple[Any, list[np.ndarray]]:
    """Return the history of a run and all that it leaves: weights, statistics, slots."""
    keras.utils.set_random_seed(5)
    network, optimizer = dropping(), keras.optimizers.Adam(0.01)
    manager = None if scale is None else DynamicLossScaleManager(scale)
    model = Model(network, "mse", optimizer, loss_scale_manager=manager, **options)
    history = model.train(epochs, data, callbacks=callbacks, verbose=0)
    return history, [np.asarray(value) for value in (*network.get_weights(), *optimizer.variables)]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    """Whether two runs left the same, bit for bit."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@quick_every(2)
@pytest.mark.parametrize("options", [{}, {"amp_level": "O2", "scale": 2**10}])
def test_observers_see_the_values_of_steps_that_run_one_by_one(groups: list[int], options: dict[str, Any]) -> None:
    watching, controlling = Watching(), Controlling()
    together, left = trained(watching, **options)
    assert groups == [4, 4, 3] * 2
    alone, left_alone = trained(controlling, **options)
    assert groups == [4, 4, 3] * 2
    assert watching.losses == controlling.losses and watching.steps == controlling.steps == list(range(1, 23))
    assert dict(together) == dict(alone)
    assert same(left, left_alone)


@pytest.mark.slow
def test_nobody_listening_is_enough(groups: list[int]) -> None:
    assert same(trained(None)[1], trained(Controlling())[1])
    assert groups == [4, 4, 3] * 2


@pytest.mark.slow
def test_sums_of_three_are_added_in_the_same_order_alone_and_together(groups: list[int]) -> None:
    ends = []
    for callbacks in (None, Controlling()):
        keras.utils.set_random_seed(5)
        network = keras.Sequential([keras.Input((6,)), keras.layers.Dense(4), keras.layers.Dense(2)])
        optimizer = nn.Momentum(network.trainable_variables, 0.01, 0.9, weight_decay=1e-2)
        Model(network, "mse", optimizer).train(2, DATA, callbacks, verbose=0)
        ends.append(network.get_weights())
    assert groups == [4, 4, 3] * 2
    assert same(*ends)


@pytest.mark.slow
@pytest.mark.parametrize("callbacks", [None, Watching()], ids=["nobody told", "told"])
def test_batches_of_the_backend_own_are_read_together_too(groups: list[int], callbacks: Any) -> None:
    data = arrays()
    assert same(trained(callbacks, data=data)[1], trained(Controlling(), data=data)[1])
    assert groups in ([4, 4, 3] * 2, [4, 4, 2] * 2), "a backend may give powers of two"


@pytest.mark.slow
def test_of_a_group_that_nobody_looks_at_no_batch_and_no_results_are_cut_out(
    groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut: list[Any] = []
    at = backend.Stacked.__getitem__

    def counted(self: Any, index: Any) -> Any:
        cut.append(index)
        return at(self, index)

    monkeypatch.setattr(backend.Stacked, "__getitem__", counted)
    trained(None, data=arrays())
    # Where groups are powers of two, the last batch is alone.
    assert groups and (not cut or on_gpu() and not any(cut))
    trained(Watching(), data=arrays())
    assert cut or not backend.INLINES_COMPILED


@pytest.mark.slow
def test_steps_between_those_that_are_sampled_run_together(groups: list[int]) -> None:
    data = arrays()
    monitor = RangeMonitor(every=5)
    sampled = trained([monitor, Watching()], epochs=1, data=data)[1]
    assert groups in ([4, 4], [4, 3, 2], [4, 2, 2]), "those that are sampled too, as the first of a group"
    assert monitor.samples == 3
    assert same(sampled, trained(Controlling(), epochs=1, data=data)[1])
    ranges = RangeMonitor(every=5)
    trained([ranges, Controlling()], epochs=1, data=data)
    rows = zip(ranges.records, monitor.records, strict=True)
    assert all(one.as_dict() == other.as_dict() | {"path": one.path} for one, other in rows)


def arrays() -> NumpySlicesDataset:
    """Return the batches as a dataset of arrays."""
    x, y = (np.concatenate(column) for column in zip(*DATA, strict=True))
    return NumpySlicesDataset((x, y), shuffle=False).batch(4, drop_remainder=True)


def tf_data(data: Any = DATA, of: Any = lambda dataset: dataset) -> Any:
    """Return batches as a dataset of TensorFlow's, whose elements a compiled call may read itself."""
    tf = pytest.importorskip("tensorflow")
    x, y = (np.concatenate(column) for column in zip(*data, strict=True))
    return of(tf.data.Dataset.from_tensor_slices((x, y))).batch(4, drop_remainder=True)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the groups whose batches the compiled call reads itself."""
    sizes: list[int] = []
    loop = Stepper.loop

    def counted(self: Stepper, iterator: Any, count: int) -> Any:
        sizes.append(count)
        return loop(self, iterator, count)

    monkeypatch.setattr(Stepper, "loop", counted)
    return sizes


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("scale", [2**10, None])
def test_where_nobody_is_told_of_steps_a_call_reads_all_batches_but_the_last_itself(
    groups: list[int], read: list[int], scale: int | None
) -> None:
    data = tf_data()
    seen: list[Any] = []

    class AtTheEnd(mixtrain.Callback):
        def on_train_epoch_end(self, run_context: Any) -> None:
            arguments = run_context.original_args()
            seen.extend([arguments.train_dataset_element[0], float(arguments.net_outputs if scale is None else 0)])

    history, left = trained(AtTheEnd(), data=data, scale=scale)
    assert read == [4, 4, 2] * 2 and groups == []
    assert np.array_equal(seen[-2], DATA[-1][0])
    alone, left_alone = trained(Controlling(), data=data, scale=scale)
    assert same(left, left_alone) and history.history == alone.history


@pytest.mark.slow
@pytest.mark.tensorflow
def test_calls_that_read_their_batches_are_learned_from(groups: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[int] = []
    monkeypatch.setattr(StepsPerCall, "learn", lambda self, seconds, steps: learned.append(steps))
    trained(None, data=tf_data(), epochs=1)
    assert learned == [4, 4, 2, 1]


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("ours", [False, True])
def test_a_dataset_that_raises_inside_a_call_does_so_after_the_steps_before_it(
    groups: list[int], read: list[int], ours: bool
) -> None:
    tf = pytest.importorskip("tensorflow")

    def checked(dataset: Any) -> Any:
        def look(place: Any, row: Any) -> Any:
            with tf.control_dependencies([tf.debugging.assert_less(place, tf.constant(28, tf.int64), "row 28")]):
                return tuple(map(tf.identity, row))

        return dataset.enumerate().map(look)

    network = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)])
    optimizer = nn.SGD(network.trainable_variables, 0.1) if ours else keras.optimizers.SGD(0.1)
    with pytest.raises(Exception, match="row 28") as caught:
        Model(network, "mse", optimizer).train(1, tf_data(of=checked), verbose=0)
    counter = optimizer.global_step if ours else optimizer.iterations
    assert read == [4, 4] and backend.to_numpy(counter).item() == 7
    assert "Raised 3 steps after the first of the 4 that run together." in caught.value.__notes__


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["00110010000", "11111100000"])
def test_the_scale_moves_as_in_steps_that_run_one_by_one(groups: list[int], flags: str) -> None:
    runs = []
    for trace in (Watching(), Controlling()):
        chain_model(DynamicLossScaleManager(16, 2, 3)).train(1, batches(flags), callbacks=trace, verbose=0)
        runs.append((trace.scales, trace.overflows, trace.losses))
    assert groups == [4, 4, 3]
    assert runs[0] == runs[1]


@pytest.mark.slow
def test_monitors_print_the_same_lines(groups: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    trained(LossMonitor())
    together = capsys.readouterr().out
    trained([LossMonitor(), Controlling()])
    assert capsys.readouterr().out == together
    assert together.count("loss is") == 22 and groups == [4, 4, 3] * 2


@pytest.mark.slow
@pytest.mark.parametrize("last", [2, 1, 5, 8])
def test_a_stop_that_an_observer_requests_takes_effect_after_its_group(groups: list[int], last: int) -> None:
    class Stopping(mixtrain.Callback):
        def __init__(self, step: int, observes: bool) -> None:
            self.step, self.observes_only, self.last_step = step, observes, 0  # type: ignore[misc]

        def on_train_step_end(self, run_context: Any) -> None:
            self.last_step = run_context.original_args().cur_step_num
            if self.last_step == self.step:
                run_context.request_stop()

    end_of_group = -(-last // 4) * 4
    observing, controlling = Stopping(last, True), Stopping(end_of_group, False)
    stopped, one_by_one = trained(observing)[1], trained(controlling)[1]
    assert groups == [4] * (end_of_group // 4)
    assert observing.last_step == controlling.last_step == end_of_group
    assert same(stopped, one_by_one)


@pytest.mark.slow
def test_an_observer_that_raises_leaves_the_weights_of_its_group(groups: list[int]) -> None:
    class Raising(mixtrain.Callback):
        observes_only = True

        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == 6:
                raise KeyError("six")

    model, expected = (chain_model(DynamicLossScaleManager(16, 2, 3)) for _ in range(2))
    with pytest.raises(KeyError, match="six"):
        model.train(1, batches("0010000000"), callbacks=Raising(), verbose=0)
    expected.train(1, batches("00100000"), callbacks=Controlling(), verbose=0)
    assert groups == [4, 4]
    networks = (model.predict_network, expected.predict_network)
    for one, other in zip(*(network.get_parameters() for network in networks), strict=True):
        assert one.asnumpy() == other.asnumpy()
    counts = [backend.to_numpy(each.train_network.state.counts).tolist() for each in (model, expected)]
    assert counts[0] == counts[1]


@pytest.mark.slow
def test_a_dataset_that_raises_does_so_after_the_steps_before_it(groups: list[int]) -> None:
    class Broken:
        def __iter__(self) -> Iterator[Any]:
            yield from DATA[:6]
            raise OSError("the disk is gone")

    watching = Watching()
    with pytest.raises(OSError, match="gone") as caught:
        trained(watching, data=Broken())
    assert watching.steps == [1, 2, 3, 4, 5, 6] and groups == [4, 2]
    assert "in epoch 1, after step 6" in caught.value.__notes__[0]


@pytest.mark.slow
@pytest.mark.tensorflow  # On JAX a place that is out of bounds is no error, nor is anything else in a compiled step.
def test_a_step_that_fails_does_so_in_its_place(groups: list[int]) -> None:
    tf = pytest.importorskip("tensorflow")
    wrong = (DATA[0][0], np.zeros((4, 2), np.float32))

    class Choosy(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(6, 2)

        def construct(self, x: Any, y: Any) -> Any:
            places = keras.ops.cast(keras.ops.where(keras.ops.any(y), 0, 7), "int32")
            return tf.gather(self.dense(x), tf.reshape(places, [1]))

    network = Choosy()
    step = nn.TrainOneStepCell(network, nn.SGD(network.trainable_params(), 0.1))
    watching = Watching()
    with pytest.raises(ValueError, match="Choosy|run time"):
        Model(step).train(1, [*DATA[:2], wrong, DATA[3]], callbacks=watching, verbose=0)
    assert watching.steps == [1, 2] and groups == [4]


@pytest.mark.slow
def test_an_endless_overflow_ends_the_run_at_its_step(groups: list[int]) -> None:
    with pytest.raises(LossScaleExhausted) as caught:
        chain_model(DynamicLossScaleManager(16, 2, 3), bad_step_max=5).train(1, batches("1" * 12), verbose=0)
    assert caught.value.step == 6 and groups[0] == 4


@pytest.mark.slow
def test_batches_of_another_size_run_in_another_group(groups: list[int]) -> None:
    small = [(x[:3], y[:3]) for x, y in DATA]
    data = [*DATA[:3], *small[:2], *DATA[:6]]
    assert same(trained(Watching(), data=data)[1], trained(Controlling(), data=data)[1])
    assert groups == [3, 2, 4, 2] * 2


@pytest.mark.slow
def test_a_checkpoint_holds_the_weights_of_its_step(groups: list[int], tmp_path: Any) -> None:
    for name, more in (("together", []), ("alone", [Controlling()])):
        files = mixtrain.ModelCheckpoint("x", str(tmp_path / name), mixtrain.CheckpointConfig(save_checkpoint_steps=3))
        trained([files, *more], epochs=1)
    assert groups == [3, 3, 3, 2]
    for file in sorted((tmp_path / "alone").glob("*.ckpt")):
        one, other = (mixtrain.load_checkpoint(str(tmp_path / name / file.name)) for name in ("together", "alone"))
        assert all(np.array_equal(one[key].asnumpy(), other[key].asnumpy()) for key in other)


def test_what_cannot_be_stacked_runs_alone() -> None:
    assert list(grouped(iter([("a",), ("a",)]), lambda size: 4)) == [[("a",)], [("a",)]]


def test_a_call_runs_as_many_steps_as_fit_into_its_seconds() -> None:
    per_call = StepsPerCall(GroupInfo(after=2))
    per_call.learn(3.0, 1)  # compiling
    per_call.learn(0.02, 1)
    assert per_call.estimate(1) == 15
    per_call.learn(0.03, 2)
    assert per_call.estimate(1) == 20 and per_call.estimate(2**25) == 2 and per_call.estimate(2**30) == 1
    per_call.learn(0.0, 2)
    assert per_call.estimate(1) == 32


def test_calls_that_return_early_are_waited_for_a_few_times_and_learned_from_then_alone() -> None:
    per_call = StepsPerCall(GroupInfo(after=10, size=8, early=True))
    waited = []
    for call in range(10):
        waited.append(per_call.waits)
        per_call.learn(0.09 if per_call.waits else 0.0001, 1)
    assert waited == [False] * 6 + [True] * 4 and not per_call.waits
    assert per_call.estimate(1) == 1
    quick = StepsPerCall(GroupInfo(after=1, size=8, early=True))
    quick.learn(3.0, 1)
    assert quick.estimate(1) == 1


@pytest.mark.slow
def test_groups_are_read_from_what_the_feed_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    # Wrapped, the backend's batches would be read and stacked one by one.
    given: list[Any] = []
    read: list[Any] = []
    batches_of = Feed.batches

    def spied(batches: Any, limit: Any, **options: Any) -> Any:
        given.append(batches)
        return grouped(batches, limit, **options)

    monkeypatch.setattr("mixtrain.train.loop.grouped", spied)
    monkeypatch.setattr(Feed, "batches", lambda feed, **options: read.append(batches_of(feed, **options)) or read[-1])
    rows = np.ones((32, 3), np.float32)
    dataset = NumpySlicesDataset((rows, rows[:, :1]), ["x", "y"], shuffle=False).batch(4)
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    Model(network, "mse", "sgd").train(2, dataset, verbose=0)
    assert len(given) == 2 and all(one is other for one, other in zip(given, read[-2:], strict=True))
