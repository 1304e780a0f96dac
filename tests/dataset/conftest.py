"""Every test here starts without a seed; the fixtures are short ways to make and read a dataset."""

from __future__ import annotations

import pytest

from mixtrain import seed as common_seed
from mixtrain.dataset import GeneratorDataset, config


@pytest.fixture(autouse=True)
def no_seed(monkeypatch):
    monkeypatch.setattr(common_seed._Streams, "seed", None)
    monkeypatch.setattr(config, "_settings", config._Settings())


@pytest.fixture
def seven():
    """Make seven rows (i as a float, i), in order unless options say otherwise."""

    def make(**options):
        return GeneratorDataset([(float(i), i) for i in range(7)], ["x", "label"], **{"shuffle": False, **options})

    return make


@pytest.fixture
def epochs():
    """Read one column of `count` epochs of one run as lists."""

    def read(dataset, count, column=-1):
        iterator = dataset.create_tuple_iterator(num_epochs=count, output_numpy=True)
        return [[row[column].tolist() for row in iterator] for _ in range(count)]

    return read


@pytest.fixture
def values(epochs):
    """Read one column of one epoch as a list."""
    return lambda dataset, column=-1: epochs(dataset, 1, column)[0]
