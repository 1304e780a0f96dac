"""The stream of JAX's backend: elements stacked for a compiled loop, in chunks that are made ahead and stay small."""

from __future__ import annotations

import gc
import threading
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend, data_backend
from tests.backends import on_gpu

pytestmark = pytest.mark.skipif(keras.backend.backend() != "jax", reason="about the JAX backend")
if keras.backend.backend() == "jax":
    import jax

    from mixtrain.backend import JitChoice
    from mixtrain.backend.jax.steps import CompiledSteps
    from mixtrain.data_backend.jax import passes


def _rows(count: int, width: int = 2) -> list[Any]:
    return [(np.full(width, number, np.float32), np.array(number, np.int32)) for number in range(count)]


def _pipeline(rows: list[Any], **options: Any) -> Any:
    return data_backend.pipeline_from_rows(lambda: iter(rows), rows[0], **options)


def _labels(columns: Any) -> list[Any]:
    return np.asarray(columns[-1]).tolist()


def _taken(iterator: Any, count: int) -> list[Any]:
    """Return the labels of the next elements that are ready, at most so many."""
    columns, first, given = iterator.peek_chunk(count)
    iterator.consume(given)
    return _labels(columns)[first : first + given]


def _ends(results: Any) -> Any:
    """Whether a step is the last of its loop, by its label."""
    return (results[1] == np.array([37, 87, 200, 290, 333, 480, 555])).any()


def _all_taken(iterator: Any, count: int) -> list[Any]:
    results = []
    with pytest.raises(StopIteration):
        while True:
            results.append(_taken(iterator, count))
    return results


def test_elements_come_stacked_and_fewer_at_the_end() -> None:
    assert _all_taken(_pipeline(_rows(7)).graph_iterator(), 3) == [[0, 1, 2], [3, 4, 5], [6]]


def test_a_chunk_ends_before_an_element_of_another_shape_and_at_the_end_of_nothing_else() -> None:
    rows = [(np.zeros(size, np.float32), np.array(number)) for number, size in enumerate((2, 2, 1, 2))]
    assert _all_taken(_pipeline(rows, size=4).repeat(2).graph_iterator(), 5) == [[0, 1], [2], [3, 0, 1], [2], [3]]


def test_what_was_prepared_is_given_whatever_is_asked_for_next() -> None:
    iterator = _pipeline(_rows(12)).graph_iterator()
    results = [_taken(iterator, 4), _taken(iterator, 2), int(next(iterator)[1]), int(next(iterator)[1])]
    assert [*results, _taken(iterator, 3), _taken(iterator, 9)] == [[0, 1, 2, 3], [4, 5], 6, 7, [8, 9, 10], [11]]


def test_an_element_can_be_seen_before_it_is_used() -> None:
    iterator = _pipeline(_rows(5)).graph_iterator()
    assert [int(iterator.peek(3)[1]), *_taken(iterator, 3), int(iterator.peek(3)[1])] == [0, 0, 1, 2, 3]
    assert next(iterator)[1] == 3


def test_chunks_have_one_length_however_many_of_their_elements_are_used_at_a_time() -> None:
    iterator = _pipeline(_rows(30)).graph_iterator()
    results = []
    for count in (10, 4, 6, 7, 3):
        columns, first, given = iterator.peek_chunk(count)
        iterator.consume(given)
        results.append((len(columns[0]), first, given))
    assert results == [(10, 0, 10), (10, 0, 4), (10, 4, 6), (10, 0, 7), (10, 7, 3)]


def test_chunks_stay_below_a_size_and_have_one_length_where_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "MAX_BYTES", 12 * 5)
    iterator = _pipeline(_rows(12)).repeat().graph_iterator()
    lengths, left = [], 12
    while left:
        lengths.append(len(_taken(iterator, left)))
        left -= lengths[-1]
    assert lengths == [4, 4, 4]


@pytest.mark.parametrize(
    "count, lengths",
    [
        (200, [50] * 4), (99, [33] * 3), (66, [33] * 2),
        (62, [62]),  # Halves of it would have too few steps,
        (137, [137]),  # and of this, two lengths.
    ],
)
def test_what_a_long_loop_reads_comes_in_parts_of_one_length_in_the_same_order(count: int, lengths: list[int]) -> None:
    iterator = _pipeline(_rows(count)).repeat(2).graph_iterator()
    for _ in range(2):
        results: list[Any] = []
        parts = []
        while len(results) < count:
            parts.append(_taken(iterator, count - len(results)))
            results += parts[-1]
        assert results == list(range(count))
        assert [len(part) for part in parts] == lengths


def test_the_next_part_is_read_while_the_one_before_it_is_used() -> None:
    following = threading.Event()

    def rows() -> Any:
        for number, row in enumerate(_rows(128)):
            if number == 63:
                following.set()
            yield row

    iterator = data_backend.pipeline_from_rows(rows, _rows(1)[0]).graph_iterator()
    columns, *_ = iterator.peek_chunk(128)
    assert len(_labels(columns)) == 32
    assert following.wait(30)  # Nobody has used the first part yet.
    iterator.consume(32)
    assert _taken(iterator, 96) == list(range(32, 64))


def test_a_loop_that_ends_after_another_number_of_steps_each_time_is_compiled_no_more() -> None:
    steps = CompiledSteps(lambda x, label: (x.sum(), label), choice=JitChoice(True, "a test"))
    iterator = _pipeline(_rows(720)).graph_iterator()
    compiled: list[str] = []

    def run() -> list[int]:
        columns, (_, label) = steps.run_stream_until(iterator, 160, _ends)
        assert _labels(columns)[-1] == int(label)
        return _labels(columns)

    def note(event: str, seconds: float, **facts: Any) -> None:
        del seconds, facts
        compiled.extend([event] * ("backend_compile" in event))

    results = [run() for _ in range(3)]
    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        results += [run() for _ in range(5)]
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert [labels[-1] for labels in results] == [37, 87, 200, 290, 333, 480, 555, 715]
    assert sum(results, []) == list(range(716))
    assert compiled == []


def test_batches_of_arrays_are_stacked_in_one_piece() -> None:
    arrays = [np.arange(40, dtype=np.float32).reshape(20, 2), np.arange(20)]
    iterator = data_backend.pipeline_from_arrays(arrays).batch(4).repeat().graph_iterator()
    (x, label), *_ = iterator.peek_chunk(5)
    assert (x.shape, label.shape) == ((5, 4, 2), (5, 4))
    np.testing.assert_array_equal(x, arrays[0].reshape(5, 4, 2))


def test_the_last_batch_may_be_smaller() -> None:
    pipeline = data_backend.pipeline_from_arrays([np.arange(7)]).batch(3)
    assert _all_taken(pipeline.graph_iterator(), 8) == [[[0, 1, 2], [3, 4, 5]], [[6]]]
    assert _all_taken(pipeline.repeat(2).graph_iterator(), 8) == [
        [[0, 1, 2], [3, 4, 5]], [[6]], [[0, 1, 2], [3, 4, 5]], [[6]]
    ]


def test_a_batch_of_rows_of_two_shapes_is_refused_after_the_batches_before_it() -> None:
    rows = [(np.zeros(size),) for size in (2, 2, 2, 3)]
    elements = data_backend.pipeline_from_rows(lambda: iter(rows), rows[0]).batch(2).iterate()
    assert next(elements)[0].shape == (2, 2)
    with pytest.raises(ValueError, match="expected rows of one shape in a batch"):
        next(elements)


def test_columns_come_in_the_structure_that_was_asked_for() -> None:
    columns, *_ = _pipeline(_rows(4)).graph_iterator(like=({"x": 0}, 0)).peek_chunk(4)
    assert columns[0]["x"].shape == (4, 2) and _labels(columns) == [0, 1, 2, 3]


def _lengths(counts: list[int], usual: int, rows: int) -> list[int]:
    """Return how many elements come together where so many are asked for, one after the other."""
    elements, results, labels = _pipeline(_rows(rows)).iterate(), [], []
    for count in counts:
        group = elements.take_stacked(count, usual)
        assert isinstance(group, passes.Stacked)
        labels += [int(label) for _, label in group]
        results.append(len(group))
    assert labels == list(range(len(labels)))
    return results


@pytest.mark.skipif(on_gpu(), reason="there a group of each length is compiled")
def test_a_group_has_as_many_elements_as_are_asked_for_and_lie_ready() -> None:
    assert _lengths([8, 8], usual=8, rows=13) == [8, 5]
    # What is left of a group that was made ready comes first; the next has the usual length again.
    assert _lengths([1, 19, 11, 1, 19], usual=8, rows=64) == [1, 8, 8, 1, 7]


def test_on_a_gpu_a_group_has_a_power_of_two_elements() -> None:
    elements = _pipeline(_rows(13)).iterate()
    elements._any_length = False
    groups = []
    while (group := elements.take_stacked(8, 8)) is not None:
        groups.append([int(label) for _, label in group])
    assert groups == [list(range(8)), [8, 9, 10, 11], [12]]


def test_a_group_is_a_sequence_of_elements() -> None:
    group = _pipeline(_rows(4)).iterate().take_stacked(4, 4)
    assert [int(label) for _, label in group[1:3]] == [1, 2]
    assert np.asarray(group[-1][0]).tolist() == [3.0, 3.0]
    with pytest.raises(IndexError):
        group[4]


@pytest.mark.skipif(on_gpu(), reason="there a group has its elements alone")
def test_groups_of_elements_that_are_ready_share_their_columns_and_train_as_copies_of_them_do() -> None:
    elements = _pipeline(_rows(66)).iterate()
    elements.take_stacked(2, 32)
    groups = [elements.take_stacked(count, 32) for count in (18, 14, 32)]
    assert groups[0].columns is groups[1].columns and groups[2].columns is not groups[0].columns
    assert [(group.first, len(group)) for group in groups] == [(0, 18), (18, 14), (0, 32)]
    total = keras.Variable(0.0)

    def step(x: Any, label: Any) -> Any:
        total.assign(total + x.sum() * label)
        return (total + 0.0,)

    results = []
    for copied in (False, True):
        steps = CompiledSteps(step, choice=JitChoice(True, "a test"))
        total.assign(0.0)
        results.append([])
        for group in groups:
            results[-1] += np.asarray(steps.run_batches([*group] if copied else group)[0][0]).tolist()
    expected = np.cumsum([2.0 * number * number for number in range(2, 66)])
    assert results[0] == results[1] == expected.tolist()


@pytest.mark.skipif(on_gpu(), reason="there a group has its elements alone")
def test_a_label_out_of_range_is_found_in_the_elements_of_a_group_alone() -> None:
    group = _pipeline(_rows(32)).iterate().take_stacked(32, 32)
    first, last = passes.StackedPart(group.columns, 0, 20), passes.StackedPart(group.columns, 20, 12)

    labels = backend.ClassLabels()

    def step(x: Any, label: Any) -> Any:
        with labels.noting((x, label)):
            backend.note_class_labels(label, 25)
            return (x.sum(),)

    steps = CompiledSteps(step, choice=JitChoice(True, "a test"), labels=labels)
    assert len(steps.run_batches(first)[0][0]) == 20
    with pytest.raises(backend.LabelOutOfRange) as caught:
        steps.run_batches(last)
    assert caught.value.index == 5


def test_what_the_source_raises_comes_after_the_elements_before_it() -> None:
    def broken() -> Any:
        yield from _rows(3)
        raise KeyError("the row is bad")

    pipeline = data_backend.pipeline_from_rows(broken, _rows(1)[0])
    iterator = pipeline.graph_iterator()
    assert _taken(iterator, 8) == [0, 1, 2]
    with pytest.raises(KeyError, match="the row is bad"):
        iterator.peek_chunk(8)
    with pytest.raises(KeyError, match="the row is bad"):
        pipeline.raise_pending()


def test_a_source_may_write_into_its_arrays_again() -> None:
    def rows() -> Any:
        memory = np.zeros(64, np.float32)
        for number in range(6):
            memory[:] = number
            yield (memory,)

    pipeline = data_backend.pipeline_from_rows(rows, (np.zeros(64, np.float32),))
    assert [float(row[0][0]) for row in pipeline.iterate()] == [0, 1, 2, 3, 4, 5]
    assert np.asarray(pipeline.graph_iterator().peek_chunk(6)[0][0])[:, 0].tolist() == [0, 1, 2, 3, 4, 5]


def test_an_iterator_that_nobody_has_any_more_ends_its_source() -> None:
    closed = threading.Event()

    def endless() -> Any:
        try:
            while True:
                yield _rows(1)[0]
        finally:
            closed.set()

    iterator = data_backend.pipeline_from_rows(endless, _rows(1)[0]).graph_iterator()
    iterator.peek_chunk(2)
    del iterator
    gc.collect()
    assert closed.wait(10)


def test_no_dataset_is_the_backend_own() -> None:
    assert not data_backend.is_pipeline_source([1, 2])
    with pytest.raises(TypeError, match="got list. Write mixtrain.dataset.GeneratorDataset"):
        data_backend.wrap_pipeline([1, 2])


def test_single_elements_come_as_they_were_whatever_the_form_of_the_one_before() -> None:
    rows = [(np.full(size, number, np.float32), np.array(number)) for number, size in enumerate((2, 2, 2, 1, 2, 2))]
    results = list(_pipeline(rows).iterate())
    assert [np.asarray(x).tolist() for x, _ in results] == [x.tolist() for x, _ in rows]
    assert [int(label) for _, label in results] == list(range(6))


@pytest.mark.parametrize(("most", "ahead"), [(2**26, 8), (1, 2)], ids=["small", "large"])
def test_fewer_single_elements_are_made_ahead_where_they_are_large(
    most: int, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "MAX_BYTES", most)
    asked: list[int] = []
    request = passes.Pass._request

    def noting(self: Any, count: int) -> None:
        asked.append(count)
        request(self, count)

    monkeypatch.setattr(passes.Pass, "_request", noting)
    iterator = _pipeline(_rows(40)).iterate()
    waiting = []
    for given in range(20):
        assert int(next(iterator)[1]) == given
        waiting.append(len(asked) - given - 1)
    assert max(waiting) == ahead - 1 and min(waiting) >= ahead // 2 - 1
    assert set(asked) == {0}
