"""Examples of TFRecord files: kinds of features, dtypes and shapes of rows, parts of passes, and broken records."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain import data_backend
from tests.dataset import samples

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def path(tmp_path):
    """Write seventy rows, more than are parsed at once."""
    rows = [{"i": [k, -k], "f": [k / 2], "b": [b"x%d" % k]} for k in range(70)]
    samples.tfrecord(tmp_path / "file", rows)
    return str(tmp_path / "file")


def read(path, *columns, start=0, count=70):
    return list(data_backend.Examples(columns, "", 2).read([path], start=start, count=count))


def test_the_first_example_tells_names_and_kinds(path):
    assert data_backend.first_example(path, "") == {"b": "bytes", "f": "float", "i": "int"}


@pytest.mark.parametrize(
    ("column", "dtype", "expected"),
    [
        (data_backend.ExampleColumn("i", "int", "int64"), "int64", [3, -3]),
        (data_backend.ExampleColumn("i", "int", "int8", (1, 2)), "int8", [[3, -3]]),
        (data_backend.ExampleColumn("i", "int", "bool"), "bool", [True, True]),
        (data_backend.ExampleColumn("i", "int", "float16", (-1, 1)), "float16", [[3.0], [-3.0]]),
        (data_backend.ExampleColumn("f", "float", "float64", ()), "float64", 1.5),
        (data_backend.ExampleColumn("b", "bytes", "uint8"), "uint8", [120, 51]),
        (data_backend.ExampleColumn("b", "bytes", "string", ()), "<U2", "x3"),
    ],
)
def test_values_have_the_columns_dtype_and_shape(column, dtype, expected, path):
    ((value,),) = read(path, column, start=3, count=1)
    assert (value.dtype, value.tolist()) == (np.dtype(dtype), expected)


def test_a_pass_goes_on_with_the_first_row_after_the_last(path):
    rows = read(path, data_backend.ExampleColumn("i", "int", "int64"), start=68, count=40)
    assert [int(row[0][0]) for row in rows] == [68, 69, *range(38)]


def test_a_row_that_does_not_fit_is_named_after_those_before_it(tmp_path):
    samples.tfrecord(tmp_path / "file", [{"i": [1]}, {"j": [1]}])
    columns = [data_backend.ExampleColumn("i", "int", "int64")]
    run = data_backend.Examples(columns, "", 1).read([str(tmp_path / "file")], count=2)
    assert next(run)[0].tolist() == [1]
    with pytest.raises(data_backend.UnreadableRecord, match='values in column "i"; got none'):
        next(run)


def test_a_feature_of_another_kind_is_named(tmp_path):
    samples.tfrecord(tmp_path / "file", [{"i": [1]}, {"i": [b"text"]}])
    with pytest.raises(data_backend.UnreadableRecord, match="Data types don't match|type"):
        read(str(tmp_path / "file"), data_backend.ExampleColumn("i", "int", "int64"), count=2)


@pytest.mark.parametrize("contents", [b"", b"text that is no record at all"])
def test_a_file_without_a_first_example_is_named(contents, tmp_path):
    (tmp_path / "file").write_bytes(contents)
    with pytest.raises(data_backend.UnreadableRecord, match="no record with features|corrupted record|truncated"):
        data_backend.first_example(str(tmp_path / "file"), "")


def test_a_record_of_something_else_is_named(tmp_path):
    record = b"\xff\xff\xff"
    length = len(record).to_bytes(8, "little")
    checksums = [samples._masked_crc(part).to_bytes(4, "little") for part in (length, record)]
    (tmp_path / "file").write_bytes(length + checksums[0] + record + checksums[1])
    with pytest.raises(data_backend.UnreadableRecord, match="a record that is no tf.train.Example"):
        data_backend.first_example(str(tmp_path / "file"), "")
