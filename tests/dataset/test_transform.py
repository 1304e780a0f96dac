"""Map, project, rename, zip, concat, apply: which columns come out, in what order, with what values."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mixtrain.dataset import Dataset, NumpySlicesDataset, vision, zip
from mixtrain.seed import set_seed


@pytest.mark.parametrize(
    ("arguments", "columns", "first"),
    [
        ((lambda x: x + 0.5,), ["x", "label"], [0.5, 0]),
        ((lambda y: y + 5, "label"), ["x", "label"], [0, 5]),
        (([lambda y: y + 5, lambda y: y * 2], ["label"]), ["x", "label"], [0, 10]),
        ((lambda y: y, "label", "z"), ["x", "z"], [0, 0]),
        ((lambda x, y: x + y + 1, ["x", "label"], "sum"), ["sum"], [1]),
        ((lambda x: (x, x + 1), "x", ["p", "q"]), ["p", "q", "label"], [0, 1, 0]),
        ((lambda y: (y, y + 1), ["label"], ["label", "next"]), ["label", "next", "x"], [0, 1, 0]),
        (([lambda y: (y, y + 1), lambda a, b: a + b], "label"), ["x", "label"], [0, 1]),
        ((lambda y: 7, "label"), ["x", "label"], [0, 7]),
        ((lambda y: [7, 8], "label"), ["x", "label"], [0, [7, 8]]),
    ],
)
def test_map_replaces_columns(arguments, columns, first, seven):
    dataset = seven().map(*arguments)
    row = next(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))
    assert dataset.get_col_names() == columns
    assert [value.tolist() for value in row] == first
    assert len(dataset) == 7


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((lambda y: y, "z"), ValueError, "map: input_columns must be one of x, label; got 'z'"),
        ((5,), TypeError, "operations must be functions; got int 5"),
        (([],), ValueError, "operations must have a function"),
        ((lambda x: x, "x", "label"), ValueError, "output_columns must not name a column that stays; got 'label'"),
    ],
)
def test_wrong_arguments_of_map_are_named_at_once(arguments, error, message, seven):
    with pytest.raises(error, match=message):
        seven().map(*arguments)


def test_a_function_with_another_number_of_results_is_named(seven, values):
    with pytest.raises(ValueError, match=r"map: expected 1 columns from the function \(x\); got 2"):
        values(seven().map(lambda x: (x, x), "x"))


def test_a_function_without_a_result_is_named(seven, values):
    with pytest.raises(TypeError, match='in column "x"; got NoneType'):
        values(seven().map(lambda x: None, "x"))


def test_an_exception_of_a_function_passes_as_itself(seven, values):
    def broken(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match=r"^mine\n"):
        values(seven().map(broken))


def test_a_function_may_write_into_its_argument(values):
    data = np.zeros((2, 1))

    def add_one(x):
        x += 1
        return x

    assert values(NumpySlicesDataset(data, "x").map(add_one)) == [[1], [1]]
    assert data.tolist() == [[0], [0]]


def test_a_step_leaves_the_dataset_it_was_called_on_as_it_was(seven, values):
    dataset = seven()
    dataset.map(lambda x: x + 1, "label")
    dataset.batch(2)
    assert values(dataset) == [0, 1, 2, 3, 4, 5, 6]


def test_project_and_rename(seven):
    assert seven().project(["label", "x"]).get_col_names() == ["label", "x"]
    assert seven().project("label").get_col_names() == ["label"]
    assert seven().rename(["x"], ["data"]).get_col_names() == ["data", "label"]
    assert seven().rename(["x", "label"], ["label", "x"]).get_col_names() == ["label", "x"]


def test_select_keeps_whole_batches_whole(values):
    dataset = NumpySlicesDataset((np.arange(5), np.arange(5) * 10), ["a", "b"], shuffle=False)
    assert values(dataset.project(["b", "a"]).batch(2), 0) == [[0, 10], [20, 30], [40]]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda d: d.project("z"), "project: columns must be one of x, label; got 'z'"),
        (lambda d: d.rename("z", "y"), "rename: input_columns must be one of x, label; got 'z'"),
        (lambda d: d.rename("x", "label"), "must name each column once"),
        (lambda d: d.rename("x", ["a", "b"]), "output_columns must have 1 names"),
        (lambda d: d.zip(d), "the datasets must have different columns; got 'x'"),
        (lambda d: d.concat(d.project("x")), "the datasets must have the same columns, x, label; got 'x'"),
        (lambda d: zip((d,)), "datasets must be two or more"),
    ],
)
def test_columns_that_do_not_fit_are_named(step, message, seven):
    with pytest.raises(ValueError, match=message):
        step(seven())


@pytest.mark.parametrize("step", [lambda d: d.zip([d]), lambda d: d.concat([1]), lambda d: zip([d, d])])
def test_what_is_no_dataset_is_a_type_error(step, seven):
    with pytest.raises(TypeError, match="must be a"):
        step(seven())


def test_zip_puts_columns_side_by_side_until_the_shortest_ends(seven, values):
    other = NumpySlicesDataset([10, 20, 30], "y", shuffle=False)
    for dataset in (zip((seven(), other)), seven().zip(other), seven().zip((other,)), zip((seven().repeat(), other))):
        assert dataset.get_col_names() == ["x", "label", "y"]
        assert (values(dataset, 1), values(dataset, 2)) == ([0, 1, 2], [10, 20, 30])
        assert len(dataset) == 3


def test_zip_keeps_shuffled_sources_aligned(epochs):
    pair = zip((NumpySlicesDataset(np.arange(20), "x"), NumpySlicesDataset(np.arange(20) * 10, "y")))
    for row in pair.create_tuple_iterator(num_epochs=1, output_numpy=True):
        assert row[1] == row[0] * 10


def test_concat_gives_one_after_the_other(seven, values):
    assert values(seven().take(2) + seven().skip(5)) == [0, 1, 5, 6]
    assert len(seven().concat([seven(), seven()])) == 21


def test_concat_shuffles_each_part_by_itself(seven, values):
    set_seed(0)
    both = values(seven(shuffle=True).concat(seven(shuffle=True)))
    assert both[:7] != both[7:]
    assert sorted(both[:7]) == sorted(both[7:]) == list(range(7))


def test_apply_returns_what_the_function_makes(seven, values):
    assert values(seven().apply(lambda dataset: dataset.take(2))) == [0, 1]
    assert type(seven().apply(lambda dataset: dataset.take(2))) is Dataset
    with pytest.raises(TypeError, match="the result of apply_func must be a Dataset"):
        seven().apply(lambda dataset: None)


def fails(image):
    """A user's function with a mistake."""
    return image.nothing


@pytest.mark.parametrize(("operation", "name"), [
    (fails, "fails (map)"),
    (vision.Solarize((1, 5)), 'Solarize (map, column "image")'),
])
def test_an_error_in_map_says_in_which_operation_and_with_what(operation, name):
    dataset = NumpySlicesDataset([np.ones((2, 3, 4, 3), bool)], ["image"]).map(operation, "image")
    with pytest.raises((AttributeError, TypeError)) as raised:
        list(dataset.create_tuple_iterator(num_epochs=1))
    (note,) = [note for note in raised.value.__notes__ if note.startswith("Raised in ")]
    assert re.fullmatch(rf"Raised in {re.escape(name)}, called with \w+ of shape .*3, 4, 3\) and dtype bool\.", note)


def test_an_error_of_a_transform_that_is_called_says_with_what():
    with pytest.raises((TypeError, ValueError), match="Raised in Solarize, called with ndarray of shape \\(3, 4, 3\\)"):
        vision.Solarize((1, 5))(np.ones((3, 4, 3), bool))
