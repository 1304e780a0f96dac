"""Sources: what counts as one, the rows it gives epoch by epoch, their dtypes, and what is said of a broken one."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import GeneratorDataset, Sampler


class Indexed:
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        return self.rows[index]

    def __len__(self):
        return len(self.rows)


class Restarting:
    def __iter__(self):
        self.next = 0
        return self

    def __next__(self):
        if self.next == 3:
            raise StopIteration
        self.next += 1
        return (self.next,)


class NotRestarting(Restarting):
    def __init__(self):
        self.next = 0

    def __iter__(self):
        return self


def counting():
    for i in range(3):
        yield (np.array(i),)


@pytest.mark.parametrize(
    "source",
    [[(0,), (1,), (2,)], ((0,), (1,), (2,)), [0, 1, 2], np.arange(3), Indexed([0, 1, 2]), counting, lambda: range(3),
     range(3), {0: 0, 1: 1, 2: 2}],
)
def test_every_kind_of_source_gives_its_rows_in_every_epoch(source, epochs):
    assert epochs(GeneratorDataset(source, "x", shuffle=False), 2) == [[0, 1, 2]] * 2


@pytest.mark.parametrize("make", [counting, lambda: iter([0, 1, 2]), lambda: map(int, "012"), lambda: zip(range(3))])
def test_an_iterator_that_can_be_read_once_is_kept_for_later_epochs(make, epochs):
    dataset = GeneratorDataset(make(), "x")
    assert next(dataset.create_tuple_iterator(output_numpy=True))[0] == 0
    assert epochs(dataset, 2) == [[0, 1, 2]] * 2


def test_kept_rows_do_not_change_with_the_buffer_they_came_in(epochs):
    def refill():
        buffer = np.zeros(1)
        for i in range(3):
            buffer[:] = i
            yield buffer

    assert epochs(GeneratorDataset(refill(), "x").batch(3), 2) == [[[[0], [1], [2]]]] * 2


def test_an_iterator_of_a_users_class_starts_again_by_its_iter(epochs):
    assert epochs(GeneratorDataset(Restarting(), "x"), 2) == [[1, 2, 3]] * 2


def test_an_iterator_that_was_used_up_is_named_in_the_second_epoch(epochs):
    with pytest.raises(ValueError, match="expected rows in every epoch; got none.*Write a function"):
        epochs(GeneratorDataset(NotRestarting(), "x"), 2)


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (1, "int64", ()), (2.0, "float64", ()), (True, "bool", ()), (np.float32(3), "float32", ()),
        ([1, 2], "int64", (2,)), (np.ones((2, 2)), "float64", (2, 2)), (np.uint8(1), "uint8", ()),
        (np.float16([1]), "float16", (1,)), ("text", "<U4", ()), (b"raw", "|S3", ()),
    ],
)
def test_dtypes_are_those_of_the_source(value, dtype, shape):
    (row,) = GeneratorDataset([(value,)], "x").create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert (row[0].dtype, row[0].shape) == (np.dtype(dtype), shape)


def test_rows_are_the_readers_own():
    data = np.zeros((2, 1))
    for row in GeneratorDataset(data, "x").create_tuple_iterator(num_epochs=1, output_numpy=True):
        row[0] += 1
    assert data.tolist() == [[0], [0]]


def test_a_list_row_has_one_column_per_item_and_an_array_row_one_column(values):
    assert values(GeneratorDataset([[1, 2], [3, 4]], ["a", "b"], shuffle=False), 0) == [1, 3]
    assert values(GeneratorDataset(np.array([[1, 2], [3, 4]]), ["a"], shuffle=False)) == [[1, 2], [3, 4]]


def test_num_samples_ends_an_epoch_early(epochs, seven):
    assert epochs(seven(num_samples=3), 2) == [[0, 1, 2]] * 2
    assert epochs(GeneratorDataset(counting, "x", num_samples=2), 2) == [[0, 1]] * 2
    assert seven(num_samples=30).get_dataset_size() == 7


def test_shuffle_of_a_source_without_index_is_warned_of(values):
    with pytest.warns(UserWarning, match=r"shuffle=True needs a source.*Write .shuffle\(buffer_size\)"):
        dataset = GeneratorDataset(counting, "x", shuffle=True)
    assert values(dataset) == [0, 1, 2]


@pytest.mark.parametrize(
    ("source", "names", "message"),
    [
        ([(1, 2)], ["a"], r"expected 1 columns in every row, as column_names \(a\); got a row of 2"),
        ([(1, 2)], ["a", "b", "c"], r"expected 3 columns in every row.*got a row of 2"),
        ([(1, 2), (1,)], ["a", "b"], "got a row of 1"),
        ([], ["a"], "expected at least one row in the source; got none"),
        (lambda: [], ["a"], "expected at least one row in the source; got none"),
    ],
)
def test_a_row_that_does_not_fit_its_names_is_a_value_error(source, names, message, values):
    with pytest.raises(ValueError, match=message):
        values(GeneratorDataset(source, names, shuffle=False if hasattr(source, "__getitem__") else None))


@pytest.mark.parametrize("value", [{"a": None}, None, object(), [[1], [1, 2]]])
def test_a_value_that_is_no_array_is_a_type_error(value, values):
    with pytest.raises(TypeError, match='expected numbers, strings, an array or a dict of them in column "x"'):
        values(GeneratorDataset([(value,)], "x"))


def test_an_exception_of_the_source_passes_as_itself(values):
    class Broken(Indexed):
        def __getitem__(self, index):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        values(GeneratorDataset(Broken([1]), "x"))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"source": 5, "column_names": "x"}, TypeError, "source must have __getitem__ and __len__"),
        ({"source": [1]}, TypeError, "column_names must be a str or a list of str; got NoneType"),
        ({"source": [1], "column_names": []}, ValueError, "must have names"),
        ({"source": [1], "column_names": ["a", "a"]}, ValueError, "must name each column once"),
        ({"source": [1], "column_names": "x", "num_samples": -1}, ValueError, "num_samples must be at least 0"),
        ({"source": [1], "column_names": "x", "shuffle": 1}, TypeError, "shuffle must be True or False"),
        ({"source": counting, "column_names": "x", "sampler": [0]}, ValueError, "sampler needs a source with"),
        ({"source": counting, "column_names": "x", "num_shards": 2, "shard_id": 0}, ValueError, "num_shards needs"),
        ({"source": [1], "column_names": "x", "schema": "file"}, ValueError, "schema_file must be a file that exists"),
        ({"source": [1], "column_names": "x", "collate_fn": len}, ValueError, "collate_fn needs batch_sampler"),
        ({"source": [1], "column_names": "x", "batch_sampler": [[0]], "shuffle": True}, ValueError,
         "batch_sampler takes the place of shuffle"),
        ({"source": counting, "column_names": "x", "batch_sampler": [[0]]}, TypeError, "batch_sampler needs a source"),
        ({"source": [1], "column_names": "x", "num_parallel_workers": 0}, ValueError, "num_parallel_workers must be"),
        ({"source": [1], "column_names": "x", "column_types": ["int8", "int8"]}, ValueError, "must have 1 dtypes"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, error, message):
    with pytest.raises(error, match=message):
        GeneratorDataset(**arguments)


def test_a_source_function_that_returns_no_rows_object_is_named(values):
    with pytest.raises(TypeError, match="source function that returns an iterable of rows; got one that returns int"):
        values(GeneratorDataset(lambda: 3, "x"))


def test_column_types_are_checked_row_by_row(values):
    assert values(GeneratorDataset([1, 2], "x", ["int64"], shuffle=False)) == [1, 2]
    with pytest.raises(TypeError, match='expected int32 in column "x", its column_types; got int64'):
        values(GeneratorDataset([1, 2], "x", ["int32"]))


def test_a_batch_sampler_may_be_a_users_sampler_of_lists(epochs):
    class Pairs(Sampler):
        def __iter__(self):
            yield from ([i, i + 1] for i in range(0, self.dataset_size, 2))

    dataset = GeneratorDataset([10, 11, 12, 13], "x", batch_sampler=Pairs())
    assert epochs(dataset, 2) == [[[10, 11], [12, 13]]] * 2
    assert dataset.get_dataset_size() == 2


@pytest.mark.parametrize(
    ("collate", "error", "message"),
    [(lambda x: (x, x), ValueError, "collate_fn must return 1 columns; got 2"),
     (lambda x: (object(),), TypeError, "expected numbers, strings, an array or a dict")],
)
def test_what_collate_fn_returns_is_checked(collate, error, message, values):
    with pytest.raises(error, match=message):
        values(GeneratorDataset([1, 2], "x", batch_sampler=[[0, 1]], collate_fn=collate))


def test_column_types_are_checked_in_listed_batches_too(values):
    with pytest.raises(TypeError, match='column "x" must be float32, its column_types'):
        values(GeneratorDataset([1, 2], "x", ["float32"], batch_sampler=[[0, 1]]))


def test_a_row_may_be_a_generator_of_its_values() -> None:
    class Pairs:
        def __getitem__(self, index: int) -> object:
            return (values[index] for values in ([1, 2], [3, 4]))

        def __len__(self) -> int:
            return 2

    rows = GeneratorDataset(Pairs(), ["x", "y"], shuffle=False).create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert [(int(x), int(y)) for x, y in rows] == [(1, 3), (2, 4)]
