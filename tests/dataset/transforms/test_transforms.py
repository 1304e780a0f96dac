"""Transforms of any column: their values, strings, and users' own classes."""

from __future__ import annotations

import numpy as np
import pytest

import mixtrain
from mixtrain.dataset import NumpySlicesDataset, transforms
from mixtrain.dataset.transforms import Relational


def column(dataset):
    return [row[0].tolist() for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


@pytest.mark.parametrize("dtype", [mixtrain.int32, np.int32, "int32", np.dtype("int32")])
def test_type_cast_takes_any_word_for_a_dtype(dtype):
    result = transforms.TypeCast(dtype)(np.array([1.9, -1.9]))
    assert (result.dtype, result.tolist()) == (np.int32, [1, -1])


def test_type_cast_knows_both_names_of_its_argument():
    assert transforms.TypeCast(data_type=np.int8).data_type == transforms.TypeCast(output_type="int8").data_type
    with pytest.raises(TypeError, match="TypeCast: one dtype is needed"):
        transforms.TypeCast()


def test_labels_become_vectors_in_a_pipeline():
    dataset = NumpySlicesDataset(np.array([2, 0]), "label", shuffle=False)
    assert column(dataset.map(transforms.OneHot(3), "label")) == [[0, 0, 1], [1, 0, 0]]
    assert column(dataset.map([transforms.TypeCast(np.int32), transforms.OneHot(3)]).batch(2)) == [
        [[0, 0, 1], [1, 0, 0]]
    ]
    with pytest.raises(ValueError, match='map, column "label": OneHot: expected labels from 0 to below 2'):
        column(dataset.map(transforms.OneHot(2)))


def test_strings_are_for_array_transforms_only():
    words = NumpySlicesDataset(np.array([["a", "bc"], ["d", "e"]]), "word", shuffle=False)
    assert column(words.map(transforms.PadEnd([3], "-"))) == [["a", "bc", "-"], ["d", "e", "-"]]
    assert column(words.map(transforms.Fill("xyz"))) == [["xyz", "xyz"]] * 2
    assert column(words.map(transforms.Mask(Relational.EQ, "d"))) == [[False, False], [True, False]]
    with pytest.raises(TypeError, match='map, column "word": transforms need numbers'):
        column(words.map(transforms.TypeCast("int32")))


def test_one_column_becomes_several():
    dataset = NumpySlicesDataset(np.array([[4, 4, 2]]), "x")
    assert [row[1].tolist() for row in dataset.map(transforms.Duplicate(), "x", ["x", "y"])] == [[4, 4, 2]]
    (row,) = dataset.map(transforms.Unique(), "x", ["u", "i", "n"]).create_tuple_iterator(
        num_epochs=1, output_numpy=True
    )
    assert [part.tolist() for part in row] == [[4, 2], [0, 0, 1], [2, 1]]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [((slice(1, 3),), [2, 3]), ((0,), [1]), (([0, -1],), [1, 4]), ((Ellipsis,), [1, 2, 3, 4]), ((None,), [1, 2, 3, 4])],
)
def test_slices(parts, expected):
    assert transforms.Slice(*parts)(np.array([1, 2, 3, 4])).tolist() == expected


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: transforms.PadEnd([2])(np.zeros((2, 2))), ValueError, "pad_shape must have 2 numbers"),
        (lambda: transforms.Fill("a")(np.zeros(2)), TypeError, "fill_value must fit float64"),
        (lambda: transforms.Concatenate(axis=1), ValueError, "axis must be one of 0, -1"),
        (lambda: transforms.Mask("eq", 1), TypeError, "operator must be a Relational"),
        (lambda: transforms.Slice("a"), TypeError, "slices must be a int or list or slice"),
    ],
)
def test_what_does_not_fit_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_users_write_transforms_in_tensors_or_in_python():
    class Twice(transforms.TensorOperation):
        def graph(self, value, seed):
            return value * 2

    class Half(transforms.PyTensorOperation):
        def __call__(self, value):
            return value // 2

    class Own(transforms.TensorOperation):
        def __call__(self, value):
            return value + 1

    dataset = NumpySlicesDataset(np.array([3, 5]), "x", shuffle=False)
    assert column(dataset.map(Twice())) == [6, 10]
    assert column(dataset.map([Twice(), Half(), Own(), Twice()])) == [8, 12]


def test_compose_runs_functions_and_transforms():
    both = transforms.Compose([transforms.TypeCast(np.float32), lambda x: (x, x + 1), lambda a, b: a * b])
    assert both(np.array([2, 3])).tolist() == [6.0, 12.0]
    dataset = NumpySlicesDataset(np.array([[2, 3]]), "x")
    assert column(dataset.map(both)) == [[6.0, 12.0]]
