"""Schema: columns added one by one or read from JSON, written as JSON, and what is said of a wrong one."""

from __future__ import annotations

import json

import pytest

import mixtrain
from mixtrain.dataset import Schema
from mixtrain.dataset.schema import SchemaColumn


def test_columns_keep_their_order_and_the_last_of_one_name_holds():
    schema = Schema()
    schema.add_column("b", mixtrain.float32)
    schema.add_column("a", "string", [])
    schema.add_column("b", "uint8", [2, -1])
    assert schema.columns == [SchemaColumn("a", "string", ()), SchemaColumn("b", "uint8", (2, -1))]


def test_json_is_written_as_the_reference_writes_it():
    schema = Schema()
    schema.add_column("a", "int32", [2])
    schema.add_column("b", "float32")
    assert json.loads(str(schema)) == {
        "columns": [
            {"name": "a", "rank": 1, "shape": [2], "type": "int32"},
            {"name": "b", "rank": 1, "type": "float32"},
        ]
    }


def test_a_file_a_dict_and_a_list_mean_the_same(tmp_path):
    facts = {"x": {"type": "int8", "shape": [3]}, "y": {"type": "float32", "rank": 1}}
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"datasetType": "TF", "numRows": 5, "columns": facts}))
    read = Schema(str(path))
    listed = Schema()
    listed.parse_columns([{"name": name, **rest} for name, rest in facts.items()])
    assert read.columns == listed.columns == [SchemaColumn("x", "int8", (3,)), SchemaColumn("y", "float32")]
    assert Schema.get_num_rows(read) == Schema.get_num_rows(str(path)) == 5
    again = Schema()
    again.from_json(json.loads(read.to_json()))
    assert (again.columns, again.num_rows, again.dataset_type) == (read.columns, 5, "TF")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.add_column("x", "floot"), TypeError, "dtype: expected one of"),
        (lambda s: s.add_column(3, "int8"), TypeError, "name must be a str"),
        (lambda s: s.add_column("x", "int8", 3), TypeError, "shape must be a list or tuple"),
        (lambda s: s.add_column("x", "int8", [-2]), ValueError, "each size of shape must be at least -1"),
        (lambda s: s.parse_columns([{"name": "x"}]), ValueError, "each column must have a type"),
        (lambda s: s.parse_columns("x"), TypeError, "columns must be a dict or list or tuple"),
        (lambda s: s.from_json({"rows": 3}), ValueError, "the keys must be columns, datasetType and numRows"),
        (lambda s: s.from_json({}), ValueError, "the keys must be columns"),
    ],
)
def test_what_is_wrong_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call(Schema())


def test_a_missing_file_and_one_that_is_no_json_are_named(tmp_path):
    with pytest.raises(ValueError, match="schema_file must be a file that exists; got 'nothing.json'"):
        Schema("nothing.json")
    (tmp_path / "text").write_text("{")
    with pytest.raises(ValueError, match=f"Schema: expected JSON in {tmp_path}/text"):
        Schema(str(tmp_path / "text"))
