"""Files of rows: a header with the columns, then each row as safetensors; an index file lists where rows start."""

from __future__ import annotations

import array
import contextlib
import itertools
import json
import mmap
import pathlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import safetensors.numpy

from mixtrain import checks
from mixtrain.dataset.source_files import foreign_file

# From a column's name to its description, such as {"type": "int32", "shape": [-1]}.
RowSchema = Mapping[str, Mapping[str, Any]]

_MAGIC: Final = b"mixtrain rows 1\n"
_EXPECTED: Final = "rows that mixtrain.mindrecord.FileWriter or Dataset.save wrote"
_LENGTH: Final = struct.Struct("<Q")
_CHUNK_ROWS: Final = 256


def index_path(path: str | pathlib.Path) -> pathlib.Path:
    """Return the path of the index of a file of rows."""
    return pathlib.Path(f"{path}.db")


class RowFile:
    """One file of rows, read by index. `where`: the caller, for messages; `path`: the file.

    Attributes:
        schema: Its columns.
        files: The names of all files that the rows were divided among.

    Raises: ValueError: The file or its index is missing, truncated, or of another format.
    """

    def __init__(self, where: str, path: str | pathlib.Path) -> None:
        path = pathlib.Path(path)
        for required in (path, index_path(path)):
            if not required.is_file():
                raise checks.fail_value(
                    where, "dataset_files must name files that exist", str(required), 'dataset_files="rows.mindrecord"'
                )
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
            if magic != _MAGIC:
                got = f"a file that begins with {magic[:8]!r}; MindRecord files of MindSpore are not read"
                raise foreign_file(where, path, _EXPECTED, got)
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._where, self._path = where, path
        index = index_path(path).read_bytes()
        if len(index) % _LENGTH.size:
            got = f"{len(index)} bytes: it is cut off"
            raise foreign_file(where, index_path(path), "positions of 8 bytes each", got)
        self._starts = array.array("Q", index)
        if len(self._data) != (self._end(self._starts[-1]) if self._starts else self._end(len(_MAGIC))):
            got = f"{len(self._data)} bytes and an index that ends elsewhere: one of the two is cut off"
            raise foreign_file(where, path, _EXPECTED, got)
        with self._naming_file("its header"):
            header = json.loads(self._record(len(_MAGIC)))
            self.schema: RowSchema = {name: {"type": "", **column} for name, column in header["schema"].items()}
            self.files: list[str] = [pathlib.PurePath(name).name for name in header["files"]]

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        with self._naming_file(f"row {index}"):
            arrays = safetensors.numpy.load(self._record(self._starts[index]))
            return {
                name: np.array(arrays[name].tobytes().decode()) if column["type"] == "string" else arrays[name]
                for name, column in self.schema.items()
            }

    @contextlib.contextmanager
    def _naming_file(self, part: str) -> Iterator[None]:
        """Turn an error about malformed content into one that names the file."""
        try:
            yield
        except (ValueError, KeyError, TypeError, AttributeError, safetensors.SafetensorError) as error:
            got = f"{part}, which cannot be read ({type(error).__name__}: {str(error)[:200]})"
            raise foreign_file(self._where, self._path, _EXPECTED, got) from error

    def _end(self, start: int) -> int:
        length = self._data[start : start + _LENGTH.size]
        return start + _LENGTH.size + (_LENGTH.unpack(length)[0] if len(length) == _LENGTH.size else 0)

    def _record(self, start: int) -> bytes:
        return self._data[start + _LENGTH.size : self._end(start)]


def write_header(path: pathlib.Path, schema: RowSchema, files: Sequence[str]) -> None:
    """Create a file of rows and its index, both without rows; `files` are all that the rows are divided among."""
    header = json.dumps({"schema": schema, "files": list(files)}).encode()
    path.write_bytes(_MAGIC + _LENGTH.pack(len(header)) + header)
    index_path(path).write_bytes(b"")


def append_rows(path: pathlib.Path, schema: RowSchema, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a file, and their positions to its index."""
    starts = array.array("Q")
    with path.open("ab") as file:
        for row in rows:
            starts.append(file.tell())
            record = safetensors.numpy.save({
                name: _to_array(row[name], column["type"]) for name, column in schema.items()
            })
            file.write(_LENGTH.pack(len(record)) + record)
    with index_path(path).open("ab") as file:
        starts.tofile(file)


def file_names(file_name: str, count: int) -> list[str]:
    """Return the names of the files that rows are divided among: the name itself, or several numbered from 0."""
    if count == 1:
        return [file_name]
    digits = len(str(count - 1))
    return [f"{file_name}{number:0{digits}d}" for number in range(count)]


def save_rows(file_name: str, count: int, rows: Iterable[Mapping[str, np.ndarray]]) -> None:
    """Write rows, all with the columns of the first, to one file or in turn to several."""
    paths = [pathlib.Path(name) for name in file_names(file_name, count)]
    schema: RowSchema = {}
    remaining = (row for row in rows)  # A dataset's iterator starts the next epoch if it is read past its end.
    while chunk := list(itertools.islice(remaining, _CHUNK_ROWS * count)):
        if not schema:
            schema = {name: {"type": _type_of(value.dtype)} for name, value in chunk[0].items()}
            names = [path.name for path in paths]
            for path in paths:
                write_header(path, schema, names)
        for index, path in enumerate(paths):
            append_rows(path, schema, chunk[index::count])


def _type_of(dtype: np.dtype) -> str:
    if dtype.kind in "US":
        return "string"
    small, large = ("float32", "float64") if dtype.kind == "f" else ("int32", "int64")
    return small if np.can_cast(dtype, small) else large


def _to_array(value: Any, type_name: str) -> np.ndarray:
    if type_name == "string":
        return np.frombuffer(str(value).encode(), np.uint8)
    if type_name == "bytes":
        return np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value, np.uint8)
    return np.array(value, type_name, order="C")
