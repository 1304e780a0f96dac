"""MindSpore's `mindrecord`: `FileWriter` writes files of rows, which `mixtrain.dataset.MindDataset` reads.

The API is MindSpore's, the file format is this library's own: neither reads the files of the other.
"""

from __future__ import annotations

import io
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from mixtrain import checks
from mixtrain.dataset.pickled_batch import read_batch
from mixtrain.dataset.row_files import RowFile, RowSchema, append_rows, file_names, write_header
from mixtrain.lazy_names import serve_names

__all__ = ["Cifar10ToMR", "FileWriter"]

_TYPES: Final = ("int32", "int64", "float32", "float64", "string", "bytes")


class FileWriter:
    """Writes rows to one file or several.

    Args:
        file_name: The file; of several, each name ends in the number of the file.
        shard_num: Number of files that the rows are divided among.
        overwrite: Whether existing files are replaced.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `shard_num` is less than 1, or a file exists.

    Example:
        >>> import os, tempfile
        >>> from mixtrain.dataset import MindDataset
        >>> path = os.path.join(tempfile.mkdtemp(), "rows.mindrecord")
        >>> writer = FileWriter(path)
        >>> writer.add_schema({"name": {"type": "string"}, "x": {"type": "float32", "shape": [-1]}})
        >>> writer.write_raw_data([{"name": "a", "x": [1.0, 2.0]}, {"name": "b", "x": [3.0]}])
        >>> writer.commit()
        >>> [len(x) for _, x in MindDataset(path, shuffle=False).create_tuple_iterator(num_epochs=1)]
        [2, 1]
    """

    def __init__(self, file_name: str, shard_num: int = 1, overwrite: bool = False) -> None:
        checks.instance("FileWriter", "file_name", file_name, (str, os.PathLike), 'file_name="rows.mindrecord"')
        checks.integer("FileWriter", "shard_num", shard_num, at_least=1)
        checks.boolean("FileWriter", "overwrite", overwrite)
        self._paths = [pathlib.Path(name) for name in file_names(os.fspath(file_name), shard_num)]
        self._schema: RowSchema = {}
        self._header_written = False
        for path in self._paths:
            if path.exists() and not overwrite:
                raise checks.fail_value(
                    "FileWriter", "file_name must be the name of a new file", str(path), "overwrite=True"
                )

    @classmethod
    def open_for_append(cls, file_name: str) -> FileWriter:
        """Return a writer that appends rows to existing files.

        Args:
            file_name: The first of the files.
        """
        first = RowFile("FileWriter.open_for_append", file_name)
        writer = cls(file_name, overwrite=True)
        writer._paths = [pathlib.Path(file_name).parent / name for name in first.files]
        writer._schema, writer._header_written = first.schema, True
        return writer

    def add_schema(self, content: RowSchema, desc: str | None = None) -> None:
        """Set the columns of the rows.

        Args:
            content: Descriptions of the columns by name, ``{"type": "int32", "shape": [-1]}``; the types are int32,
                int64, float32, float64, string and bytes. Shapes are those of the rows.
            desc: Description of the rows; not kept.

        Raises:
            ValueError: A type is unknown.
        """
        checks.instance("FileWriter.add_schema", "content", content, dict, '{"label": {"type": "int32"}}')
        for name, column in content.items():
            checks.one_of("FileWriter.add_schema", f"the type of {name!r}", column.get("type"), _TYPES)
        self._schema = content

    def add_index(self, index_fields: Sequence[str]) -> None:
        """Accept index columns, which have no effect: rows are found by position.

        Args:
            index_fields: The names of the columns.
        """

    def set_header_size(self, header_size: int) -> None:
        """Accept the header size of MindSpore's files, which has no effect.

        Args:
            header_size: Size in bytes.
        """

    def set_page_size(self, page_size: int) -> None:
        """Accept the page size of MindSpore's files, which has no effect.

        Args:
            page_size: Size in bytes.
        """

    def write_raw_data(self, raw_data: Sequence[Mapping[str, Any]], parallel_writer: bool = False) -> None:
        """Write rows.

        Args:
            raw_data: The rows: dicts from column name to value.
            parallel_writer: Without effect.

        Raises:
            ValueError: There is no schema, or a row lacks one of its columns.
        """
        checks.instance("FileWriter.write_raw_data", "raw_data", raw_data, list, '[{"label": 1}]')
        for row in raw_data:
            for name in self._schema:
                checks.one_of("FileWriter.write_raw_data", "the schema's columns", name, tuple(row))
        self.commit()
        rows, count = len(raw_data), len(self._paths)
        for shard, path in enumerate(self._paths):
            append_rows(path, self._schema, raw_data[shard * rows // count : (shard + 1) * rows // count])

    def commit(self) -> None:
        """Create the files if they do not exist; rows are written at once.

        Raises:
            ValueError: There is no schema.
        """
        if not self._schema:
            raise checks.fail_value(
                "FileWriter", "add_schema must come before rows", "no schema",
                'writer.add_schema({"label": {"type": "int32"}})',
            )
        if not self._header_written:
            for path in self._paths:
                write_header(path, self._schema, [other.name for other in self._paths])
            self._header_written = True


class Cifar10ToMR:
    """Writes CIFAR-10 as rows of id, label and data, a JPEG image.

    Args:
        source: The folder of the Python version's files, ``data_batch_1`` to ``data_batch_5`` and ``test_batch``.
        destination: The file of the training rows; the test rows are written to ``<destination>_test``.

    Example:
        >>> Cifar10ToMR("no/such/folder", "cifar10.mindrecord").transform()
        Traceback (most recent call last):
        ...
        FileNotFoundError: [Errno 2] No such file or directory: 'no/such/folder/data_batch_1'
    """

    def __init__(self, source: str, destination: str) -> None:
        self._source = pathlib.Path(source)
        self._destination = destination

    def transform(self, fields: Sequence[str] | None = None) -> None:
        """Write both files.

        Args:
            fields: Index columns; accepted for MindSpore scripts.
        """
        self._write(self._destination, [f"data_batch_{number}" for number in range(1, 6)])
        self._write(f"{self._destination}_test", ["test_batch"])

    def _write(self, path: str, names: Sequence[str]) -> None:
        batches = [read_batch("Cifar10ToMR", self._source / name) for name in names]
        images = np.concatenate([images for images, _ in batches]).transpose(0, 2, 3, 1)
        labels = [label for _, batch in batches for label in batch]
        writer = FileWriter(path)
        writer.add_schema({"id": {"type": "int64"}, "label": {"type": "int64"}, "data": {"type": "bytes"}})
        writer.write_raw_data([
            {"id": number, "label": label, "data": _jpeg(image)}
            for number, (image, label) in enumerate(zip(images, labels, strict=True))
        ])


def _jpeg(image: np.ndarray) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG")
    return file.getvalue()


serve_names(__name__)
