"""From a dataset to the backend's stream: epochs in order, resumed in the middle, and errors as themselves."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import GeneratorDataset, NumpySlicesDataset, config
from mixtrain.seed import set_seed


def labels(pipeline):
    return [np.asarray(row[-1]).tolist() for row in pipeline.iterate()]


def test_a_pipeline_knows_columns_and_size(seven):
    pipeline = seven().batch(3).pipeline
    assert (pipeline.columns, pipeline.size, pipeline.infinite) == (("x", "label"), 3, False)
    assert seven().repeat().pipeline.infinite
    assert seven().filter(lambda x, y: True).pipeline.size is None
    assert [tuple(value.shape) for value in pipeline.first()] == [(3,), (3,)]


def test_each_pass_is_the_next_epoch(seven, epochs):
    set_seed(3)
    dataset = seven(shuffle=True).batch(4)
    expected = epochs(dataset, 3)
    pipeline = dataset.pipeline
    assert [labels(pipeline) for _ in range(3)] == expected
    assert labels(dataset.pipeline.repeat(3)) == sum(expected, [])


def test_a_pipeline_can_begin_at_any_epoch_of_the_run(seven, epochs):
    set_seed(3)
    dataset = seven(shuffle=True).shuffle(3).batch(4)
    assert labels(dataset.pipeline_from(2)) == epochs(dataset, 3)[2]
    with pytest.raises(ValueError, match="initial_epoch must be at least 0"):
        dataset.pipeline_from(-1)


def test_no_row_is_made_twice_and_none_is_lost():
    computed = []

    def rows():
        for i in range(4):
            computed.append(i)
            yield i

    dataset = GeneratorDataset(rows, "x").batch(2)
    assert labels(dataset.pipeline) == [[0, 1], [2, 3]]
    assert computed == [0, 1, 2, 3]


def test_an_exception_of_user_code_arrives_as_itself(seven):
    def broken(label):
        if label == 5:
            raise LookupError("row 5")
        return label

    pipeline = seven().map(broken, "label").batch(2).pipeline
    for stream in (pipeline, pipeline.repeat(2)):
        with pytest.raises(LookupError, match=r"^row 5\n"):
            labels(stream)


def test_an_iterator_that_was_used_up_is_named_in_the_second_epoch():
    class Once:
        rows = iter([1, 2])

        def __iter__(self):
            return self

        def __next__(self):
            return next(self.rows)

    pipeline = GeneratorDataset(Once(), "x").pipeline
    assert labels(pipeline) == [1, 2]
    with pytest.raises(ValueError, match="used up before"):
        labels(pipeline)


def test_a_dataset_without_rows_is_named(seven):
    with pytest.raises(ValueError, match="expected at least one row in an epoch; got none"):
        seven().batch(30, drop_remainder=True).pipeline.size


def test_the_last_seed_set_is_the_one_in_force(epochs):
    dataset = NumpySlicesDataset(np.arange(30), "x")
    set_seed(1)
    first = epochs(dataset, 1)
    config.set_seed(2)
    second = epochs(dataset, 1)
    assert (config.get_seed(), first == second) == (2, False)
    assert epochs(dataset, 1) == second
    set_seed(1)
    assert config.get_seed() == 1
    assert epochs(dataset, 1) == first


def test_the_seed_of_datasets_seeds_numpy_too():
    config.set_seed(7)
    first = np.random.random()
    config.set_seed(7)
    assert np.random.random() == first


@pytest.mark.parametrize(
    ("seed", "error"), [(-1, ValueError), (2**32, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_a_wrong_seed_is_named(seed, error):
    with pytest.raises(error, match="config.set_seed: seed must be"):
        config.set_seed(seed)


def test_settings_for_workers_are_kept():
    config.set_num_parallel_workers(3)
    config.set_prefetch_size(5)
    assert (config.get_num_parallel_workers(), config.get_prefetch_size()) == (3, 5)
