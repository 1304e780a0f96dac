"""Columns of Python dicts go through a pipeline as they do in MindSpore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain.dataset import Dataset, GeneratorDataset


def squares() -> Iterator[Any]:
    for number in range(3):
        yield {"number": number, "inner": {"powers": np.power(number, [1, 2])}}, number


def values(dataset: Dataset, name: str = "d") -> list[Any]:
    return [row[name] for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def test_a_dict_of_numbers_is_one_of_arrays() -> None:
    rows = values(GeneratorDataset(squares, ["d", "n"]))
    assert [row["number"].tolist() for row in rows] == [0, 1, 2]
    assert [row["inner"]["powers"].tolist() for row in rows] == [[0, 0], [1, 1], [2, 4]]


def test_iterators_give_tensors_in_it() -> None:
    ((first, number), *_) = iter(GeneratorDataset(squares, ["d", "n"]))
    assert isinstance(first["inner"]["powers"], mixtrain.Tensor) and isinstance(number, mixtrain.Tensor)


def test_functions_take_and_return_dicts() -> None:
    data = GeneratorDataset(squares, ["d", "n"]).filter(lambda d: d["number"] > 0, ["d"])
    assert [row["powers"].tolist() for row in values(data.map(lambda d: d["inner"], ["d"]))] == [[1, 1], [2, 4]]
    flat = data.map(lambda d: (d["number"], d["inner"]["powers"]), ["d"], ["number", "powers"])
    assert [value.tolist() for value in values(flat, "powers")] == [[1, 1], [2, 4]]


def test_batches_stack_what_is_in_them() -> None:
    (batch,) = values(GeneratorDataset(squares, ["d", "n"]).batch(3, drop_remainder=True))
    assert batch["number"].tolist() == [0, 1, 2] and batch["inner"]["powers"].tolist() == [[0, 0], [1, 1], [2, 4]]


def test_a_function_of_a_batch_may_return_dicts() -> None:
    data = GeneratorDataset(lambda: iter(range(4)), ["x"]).batch(
        2, per_batch_map=lambda x, info: ({"x": x, "index": np.arange(2)}, {"copied": x}), output_columns=["a", "b"]
    )
    assert [row["index"].tolist() for row in values(data, "a")] == [[0, 1], [0, 1]]
    assert [[int(item) for item in row["copied"]] for row in values(data, "b")] == [[0, 1], [2, 3]]


def test_dicts_of_other_keys_are_not_stacked() -> None:
    data = GeneratorDataset([({"a": 1},), ({"b": 1},)], ["d"], shuffle=False).batch(2)
    with pytest.raises(ValueError, match='expected dicts with the keys a in column "d".*got b. Write the same keys'):
        values(data)


def test_an_object_that_is_no_dict_is_refused() -> None:
    with pytest.raises(TypeError, match='an array or a dict of them in column "d"; got set'):
        values(GeneratorDataset([({1},)], ["d"]))
