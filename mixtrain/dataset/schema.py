"""Schema: the names, dtypes and shapes of the columns in files."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from mixtrain import checks
from mixtrain.dtype import as_dtype
from mixtrain.typing import DTypeLike

_TEXT = ("string", "str")


@dataclasses.dataclass(frozen=True)
class SchemaColumn:
    """One column.

    Attributes:
        name: Its name.
        dtype: The name of its dtype, or "string".
        shape: Its shape, -1 for a dynamic size; None: one dimension of any size.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the column as MindSpore writes it in JSON."""
        shape = {} if self.shape is None else {"shape": list(self.shape)}
        return {"name": self.name, "rank": 1 if self.shape is None else len(self.shape), **shape, "type": self.dtype}


class Schema:
    """The columns of a file, in order.

    Args: schema_file: A JSON file that describes them; by default there are no columns yet.

    Example:
        >>> schema = Schema()
        >>> schema.add_column("image", "uint8", [28, 28])
        >>> schema.columns[0].shape
        (28, 28)
    """

    def __init__(self, schema_file: str | None = None) -> None:
        self.schema_file = schema_file or ""
        self.columns: list[SchemaColumn] = []
        self.num_rows = 0
        self.dataset_type: str | None = None
        if schema_file:
            self.from_json(_read_json(schema_file))

    def add_column(self, name: str, de_type: DTypeLike, shape: Sequence[int] | None = None) -> None:
        """Add a column.

        Args:
            name: Its name.
            de_type: A dtype such as `mixtrain.int32`, or "string".
            shape: Its shape, -1 for a dynamic size; one dimension of any size by default.
        """
        checks.instance("Schema.add_column", "name", name, str, 'add_column("label", "int32")')
        dtype = "string" if de_type in _TEXT else as_dtype(de_type).name
        if shape is not None:
            checks.instance("Schema.add_column", "shape", shape, (list, tuple), "shape=[28, 28]")
            for size in shape:
                checks.integer("Schema.add_column", "each size of shape", size, at_least=-1)
        column = SchemaColumn(name, dtype, None if shape is None else tuple(shape))
        self.columns = [other for other in self.columns if other.name != name] + [column]

    def parse_columns(self, columns: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Add columns from their description in JSON.

        Args: columns: A list of dicts with name, type and optionally shape; or a dict from name to the rest.
        """
        checks.instance("Schema.parse_columns", "columns", columns, (dict, list, tuple), '[{"name": ..., "type": ...}]')
        if isinstance(columns, Mapping):
            columns = [{"name": name, **rest} for name, rest in sorted(columns.items())]
        for column in columns:
            for key in ("name", "type"):
                if key not in column:
                    raise checks.fail_value(
                        "Schema.parse_columns", f"each column must have a {key}", column, f'"{key}": ...'
                    )
            self.add_column(column["name"], column["type"], column.get("shape"))

    def from_json(self, json_obj: Mapping[str, Any]) -> None:
        """Replace the columns by a schema in JSON.

        Args: json_obj: A dict with columns, and optionally datasetType and numRows.
        """
        checks.instance("Schema.from_json", "json_obj", json_obj, Mapping, '{"columns": {...}}')
        unknown = sorted(json_obj.keys() - {"columns", "datasetType", "numRows"})
        if unknown or "columns" not in json_obj:
            raise checks.fail_value(
                "Schema.from_json", "the keys must be columns, datasetType and numRows", list(json_obj),
                '{"columns": {"label": {"type": "int32", "shape": [1]}}}',
            )
        self.columns = []
        self.parse_columns(json_obj["columns"])
        self.dataset_type = json_obj.get("datasetType")
        self.num_rows = checks.integer("Schema.from_json", "numRows", json_obj.get("numRows", 0), at_least=0)

    def to_json(self) -> str:
        """Return the schema as JSON."""
        schema: dict[str, Any] = {"columns": [column.as_dict() for column in self.columns]}
        if self.dataset_type is not None:
            schema["datasetType"] = self.dataset_type
        if self.num_rows:
            schema["numRows"] = self.num_rows
        return json.dumps(schema, indent=2)

    def __str__(self) -> str:
        return self.to_json()

    @staticmethod
    def get_num_rows(schema: Schema | str) -> int:
        """Return the number of rows in a schema; 0 if it has none. `schema`: a schema, or the path of its file."""
        return read_schema("Schema", schema).num_rows


def read_schema(where: str, schema: Any) -> Schema:
    """Return a schema, or the schema in a file."""
    checks.instance(where, "schema", schema, (Schema, str, pathlib.Path), "schema=Schema()")
    return schema if isinstance(schema, Schema) else Schema(str(schema))


def _read_json(path: str) -> Any:
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise checks.fail_value("Schema", "schema_file must be a file that exists", path, "its path") from error
    except ValueError as error:
        raise ValueError(f"Schema: expected JSON in {path}; got {error}. Write the path of a schema file.") from error
