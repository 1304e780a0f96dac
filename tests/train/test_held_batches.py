"""Batches of Python code are held as they were given, and are tensors when they run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Callback, Model, backend
from mixtrain.backend import DevicePut
from mixtrain.train.feed import Feed
from mixtrain.train.step_groups import grouped
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import quick_every

_draw = np.random.default_rng(0)
X = _draw.standard_normal((10, 4, 3))
Y = _draw.integers(0, 2, (10, 4))


class OneArray:
    """Batches that are all written into the same two arrays."""

    def __len__(self) -> int:
        return len(X)

    def __iter__(self) -> Iterator[Any]:
        x, y = np.empty_like(X[0]), np.empty_like(Y[0])
        for rows, labels in zip(X, Y, strict=True):
            x[:], y[:] = rows, labels
            yield x, y
        x[:], y[:] = np.nan, -1


class Looking(Callback):
    """Notes the loss and the batch of each step, and does nothing else."""

    observes_only = True

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []
        self.batches: list[Any] = []

    def on_train_step_end(self, run_context: Any) -> None:
        """Note them."""
        arguments = run_context.original_args()
        self.losses += arguments.step_results.loss.tolist()
        self.batches.append(arguments.train_dataset_element)


class FarMemory:
    """In place of what puts batches on the device, one whose copies end when they are waited for."""

    ahead = True

    def __init__(self, events: list[str]) -> None:
        self._events = events
        self._put = DevicePut()

    def __call__(self, columns: Any) -> Any:
        return self._put(columns)

    def lend(self, columns: Any) -> Any:
        """Note it."""
        self._events.append("lend")
        return self._put(tuple(map(np.array, columns)))

    def take_back(self) -> None:
        """Note it."""
        self._events.append("take back")


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order, where the device has a memory of its own and steps run one by one."""
    results: list[str] = []
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 1)
    monkeypatch.setattr("mixtrain.train.held_batches.backend.DevicePut", lambda: FarMemory(results))
    return results


class Noted(OneArray):
    """Batches in the same two arrays; it notes each that is asked for, and the third may fail."""

    def __init__(self, events: list[str], *, fails: bool = False) -> None:
        self._events = events
        self._fails = fails

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(super().__iter__()):
            self._events.append("read")
            if self._fails and number == 2:
                raise OSError("the disk is gone")
            yield batch


def groups_of(dataset: Any, count: int) -> list[Any]:
    """Return the batches of a dataset in groups of at most `count`."""
    return list(grouped(Feed(dataset, "here").batches(held=True), lambda size: count))


def trained(dataset: Any, looking: Looking | None = None, *, epochs: int = 2) -> Looking:
    """Train a small network; return what saw each step."""
    keras.utils.set_random_seed(0)
    looking = looking or Looking()
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    Model(network, loss, keras.optimizers.SGD(0.1)).train(epochs, dataset, callbacks=[looking], verbose=0)
    return looking


@quick_every(2)
@pytest.mark.parametrize("together", [1, 4])
def test_an_array_that_its_owner_writes_again_trains_as_arrays_of_their_own(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: together)
    assert trained(OneArray()).losses == trained(list(zip(X, Y, strict=True))).losses


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 4])
def test_a_callback_that_looks_is_given_each_batch_as_tensors(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: together)
    seen = trained(OneArray()).batches
    assert len(seen) == 20
    for (x, y), rows, labels in zip(seen, [*X, *X], [*Y, *Y], strict=True):
        assert backend.is_tensor(x) and backend.is_tensor(y)
        np.testing.assert_array_equal(backend.to_numpy(x), rows.astype(backend.to_numpy(x).dtype))
        np.testing.assert_array_equal(backend.to_numpy(y), labels)


def test_a_group_is_one_tensor_for_each_column_in_the_format_of_tensors() -> None:
    first, last = groups_of(OneArray(), 6)
    assert isinstance(first, backend.Stacked) and (len(first), len(last)) == (6, 4)
    x, y = first.columns
    assert str(backend.to_numpy(x).dtype) == backend.canonical_dtype("float64")
    assert str(backend.to_numpy(y).dtype) == backend.canonical_dtype("int64")
    np.testing.assert_array_equal(backend.to_numpy(x), X[:6].astype(backend.canonical_dtype("float64")))
    np.testing.assert_array_equal(backend.to_numpy(last[-1][1]), Y[9])
    np.testing.assert_array_equal(backend.to_numpy(last[1][1]), Y[7])


def test_columns_in_parts_stay_in_them_through_a_group() -> None:
    batches = [({"a": x, "b": 2 * x}, y) for x, y in zip(X, Y, strict=True)]
    (group,) = groups_of(batches, 16)
    expected = (2 * X[3]).astype(backend.canonical_dtype("float64"))
    np.testing.assert_array_equal(backend.to_numpy(group[3][0]["b"]), expected)


def test_batches_of_other_shapes_or_formats_end_a_group() -> None:
    batches = [(X[0], Y[0]), (X[1], Y[1]), (X[2][:3], Y[2][:3]), (X[3].astype(np.float32), Y[3])]
    batches.append((X[4], Y[4]))
    sizes = [len(group) for group in groups_of(batches, 16)]
    assert sizes == ([2, 1, 1, 1] if backend.canonical_dtype("float64") == "float64" else [2, 1, 2])
    assert all(backend.is_tensor(part) for group in groups_of(batches, 16) for part in group[0])


def test_tensors_beside_arrays_are_left_as_they_are() -> None:
    labels = [backend.to_tensor(label) for label in Y]
    (group,) = groups_of(list(zip(X, labels, strict=True)), 16)
    assert len(group) == 10 and all(given[1] is label for given, label in zip(group, labels, strict=True))
    assert all(backend.is_tensor(given[0]) for given in group)


def stepped(events: list[str], dataset: Any, *, observes: bool = True) -> Looking:
    """Train on a dataset, with the steps among the events, which begin with the pass that is trained on."""

    class Stepping(Looking):
        observes_only = observes

        def on_train_epoch_begin(self, run_context: Any) -> None:
            events.clear()

        def on_train_step_begin(self, run_context: Any) -> None:
            events.append("step")

    return trained(dataset, Stepping(), epochs=1)


def test_where_the_device_has_memory_of_its_own_a_batch_is_on_its_way_before_the_step_of_the_one_before_it(
    events: list[str]
) -> None:
    result = stepped(events, Noted(events))
    following = ["take back", "read", "lend", "step"]
    assert events == ["read", "lend", *following * 9, "take back", "step"]
    assert result.losses == stepped([], list(zip(X, Y, strict=True))).losses


def test_no_batch_is_read_before_a_step_whose_callback_may_want_to_change_it(events: list[str]) -> None:
    stepped(events, Noted(events), observes=False)
    assert events == ["read", "lend", "step"] * 10


def test_what_reading_a_batch_ahead_raises_comes_after_the_steps_before_it(events: list[str]) -> None:
    with pytest.raises(OSError, match="the disk is gone") as caught:
        stepped(events, Noted(events, fails=True))
    assert events.count("step") == 2 and events[-1] == "step"
    assert caught.value.__notes__ == ["Raised by the training dataset in epoch 1, after step 2."]


def test_a_group_begins_with_the_batch_that_was_read_ahead(events: list[str]) -> None:
    batches = Feed(OneArray(), "here").batches(held=True, ahead=True)
    most = iter((1, 4, 1, 8))
    groups = [[*group] for group in grouped(batches, lambda size: next(most, 1))]
    assert [len(group) for group in groups] == [1, 4, 1, 4]
    for (x, y), rows, labels in zip((batch for group in groups for batch in group), X, Y, strict=True):
        np.testing.assert_array_equal(backend.to_numpy(x), rows.astype(backend.canonical_dtype("float64")))
        np.testing.assert_array_equal(backend.to_numpy(y), labels)
