"""CSVDataset: fields, types, names, training on them, and one sentence for each broken row."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from mixtrain import Model
from mixtrain.dataset import CSVDataset
from mixtrain.seed import set_seed

NAMES = ["i", "f", "s"]
TYPES = [0, 0.0, ""]


@pytest.fixture
def write(tmp_path):
    def write(contents, name="x.csv"):
        (tmp_path / name).write_bytes(contents.encode())
        return str(tmp_path / name)

    return write


def rows(dataset):
    return [[value.item() for value in row] for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def test_the_first_line_of_every_file_names_the_columns(write, tmp_path):
    write("i,f,s\n1,2.5,cat\n3,4,dog\n", "a.csv")
    write("i,f,s\r\n5,6,\r\n", "b.csv")
    dataset = CSVDataset(str(tmp_path / "*.csv"), shuffle=False)
    assert (dataset.get_col_names(), dataset.get_dataset_size()) == (NAMES, 3)
    assert rows(dataset) == [["1", "2.5", "cat"], ["3", "4", "dog"], ["5", "6", ""]]
    typed = CSVDataset(str(tmp_path / "*.csv"), column_defaults=TYPES[:2], shuffle=False)
    assert [dtype.kind + str(dtype.itemsize) for dtype in typed.output_types()] == ["i4", "f4", "U0"]
    assert rows(typed) == [[1, 2.5, "cat"], [3, 4.0, "dog"], [5, 6.0, ""]]
    assert rows(CSVDataset(str(tmp_path / "*.csv"), num_shards=2, shard_id=1, shuffle=False))[0] == ["5", "6", ""]


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ("1,2,3\n\n\r\n4,5,6", [["1", "2", "3"], ["4", "5", "6"]]),
        ("1,2,3\r4,5,6\r", [["1", "2", "3"], ["4", "5", "6"]]),
        (",,\n", [["", "", ""]]),
        ('"a,b","c ""d""","e\nf"\n"",\'g\', h \n', [["a,b", 'c "d"', "e\nf"], ["", "'g'", " h "]]),
        ("é,ß,\u2028\n", [["é", "ß", "\u2028"]]),
    ],
)
def test_fields_are_read_as_in_the_reference(contents, expected, write):
    assert rows(CSVDataset(write(contents), column_names=NAMES, shuffle=False)) == expected


@pytest.mark.parametrize("delimiter", ["\t", ";", " "])
def test_another_character_may_divide_fields(delimiter, write):
    path = write(f"1,0{delimiter}2{delimiter}3\n")
    assert rows(CSVDataset(path, delimiter, column_names=NAMES, shuffle=False)) == [["1,0", "2", "3"]]


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ("1.5, 2 ,3", [1, 2.0, "3"]),
        (" +4x,-.5e1x,3", [4, -5.0, "3"]),
        ('"-2147483648","1.",3', [-2147483648, 1.0, "3"]),
        ("1e3,-inf,", [1, -np.inf, ""]),
        ("7,1e,", [7, 1.0, ""]),
    ],
)
def test_numbers_are_read_up_to_the_first_character_of_another_kind(contents, expected, write):
    assert rows(CSVDataset(write(contents), column_names=NAMES, column_defaults=TYPES)) == [expected]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("1,2\n", "expected 3 fields in every row, i, f, s, in .*x.csv; got 2: 1, 2"),
        ("1,2,3,\n", "expected 3 fields in every row.*; got 4"),
        ("x,2,3\n", "expected int32 values in column \"i\" in .*; got 'x'"),
        (",2,3\n", 'expected int32 values in column "i"'),
        ("2147483648,2,3\n", 'expected int32 values in column "i"'),
        ("1,0x10,3\n", 'expected float32 values in column "f"'),
        ("1,1e39,3\n", 'expected float32 values in column "f"'),
        ("1,1e400,3\n", 'expected float32 values in column "f"'),
        ("1,1e-50,3\n", 'expected float32 values in column "f"'),
        ('1,2,"3\n', "expected rows of fields in UTF-8 in .*; got row 1: unexpected end of data"),
        ('1,"2"x,3\n', "expected rows of fields in UTF-8"),
        ("", "expected at least one row"),
    ],
)
def test_a_broken_row_is_named(contents, message, write):
    dataset = CSVDataset(write(contents), column_names=NAMES, column_defaults=TYPES)
    for error in (ValueError, RuntimeError):
        with pytest.raises(error, match=f"CSVDataset: {message}"):
            rows(dataset)


def test_another_first_line_is_named(write):
    first, second = write("i,f,s\n1,2,3\n", "a.csv"), write("i,s,f\n1,2,3\n", "b.csv")
    with pytest.raises(ValueError, match="CSVDataset: expected the first line of .*a.csv with a name .* in .*b.csv"):
        CSVDataset([first, second])
    with pytest.raises(ValueError, match="no name twice, in .*; got i, i"):
        CSVDataset(write("i,i\n1,2\n"))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dataset_files": "nothing"}, ValueError, "dataset_files must name files that exist; got 'nothing'"),
        ({"field_delim": 3}, TypeError, "field_delim must be a str"),
        ({"field_delim": ""}, ValueError, "field_delim must be a character"),
        ({"field_delim": '"'}, ValueError, "field_delim must be a character"),
        ({"field_delim": ";;"}, ValueError, "field_delim must be a character"),
        ({"column_defaults": (1, 2)}, TypeError, "column_defaults must be a list"),
        ({"column_defaults": [int]}, TypeError, "each of column_defaults must be"),
        ({"column_defaults": [""] * 4}, ValueError, "column_defaults must have at most a value for each of 3 columns"),
        ({"column_names": "ifs"}, TypeError, "column_names must be a list or tuple"),
        ({"column_names": [1, 2, 3]}, TypeError, "column_names must be a str or a list of str"),
        ({"column_names": ["i", "i", "s"]}, ValueError, "column_names must name each column once"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, error, message, write):
    with pytest.raises(error, match=f"CSVDataset: {message}"):
        CSVDataset(**{"dataset_files": write("i,f,s\n1,2,3\n"), **arguments})


@pytest.mark.parametrize("sink", [False, True])
def test_a_model_trains_on_the_rows(sink, write):
    set_seed(5)
    path = write("x,y\n" + "".join(f"{k / 8},{k / 4}\n" for k in range(8)))
    data = CSVDataset(path, column_defaults=[0.0, 0.0]).map(lambda x: x[np.newaxis], "x").batch(4)
    network = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model = Model(network, keras.losses.MeanSquaredError(), keras.optimizers.SGD(0.5), amp_level="O2")
    model.train(30, data, dataset_sink_mode=sink)
    assert abs(float(network.get_weights()[0][0, 0]) - 2) < 0.5
