"""CSVDataset: rows of fields from CSV files."""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from mixtrain import checks
from mixtrain.dataset.cache import DatasetCache
from mixtrain.dataset.columns import read_names
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.sharded_files import text_stage
from mixtrain.dataset.shuffle_mode import Shuffle
from mixtrain.dataset.source_files import find_files, foreign_file
from mixtrain.dataset.stage import Row

_WHERE: Final = "CSVDataset"
# A field is read as C's strtol and strtof do, up to the first character that is not of the number.
_NUMBERS: Final[dict[type, re.Pattern[str]]] = {
    np.int32: re.compile(r"\s*([+-]?\d+)", re.ASCII),
    np.float32: re.compile(r"(?i)\s*([+-]?(?:inf|nan|(?!0x)(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))", re.ASCII),
}
_SMALLEST, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


class CSVDataset(Dataset):
    """The rows of CSV files, which are read in the order of their names; empty lines are left out.

    The columns are scalars: strings, int32 or float32. A field in double quotes may have delimiters, line ends and
    doubled quotes in it.

    Args:
        num_samples, num_parallel_workers, shuffle, num_shards, shard_id, cache: As in `TextFileDataset`.
        dataset_files: A path or glob pattern, or a list of them; the files are in UTF-8.
        field_delim: The character between fields; None means ",".
        column_defaults: A value of each column's type: an int for int32, a float for float32, a str for strings.
            Columns without one are strings.
        column_names: Names of the columns; by default the first line of the files, which all begin with it.

    Raises: ValueError: A file is missing, a file begins with another line of names, or an argument has the wrong
        value; on reading, a row has another number of fields, or a field is not a number of its column's type.

    Example:
        >>> CSVDataset("no/such/file")
        Traceback (most recent call last):
        ...
        ValueError: CSVDataset: dataset_files must name files that exist; got 'no/such/file'. Write
        dataset_files="train*.csv".
    """

    def __init__(
        self, dataset_files: str | list[str], field_delim: str | None = ",",
        column_defaults: list[str | int | float] | None = None, column_names: list[str] | None = None,
        num_samples: int | None = None, num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL, num_shards: int | None = None, shard_id: int | None = None,
        cache: DatasetCache | None = None,
    ) -> None:
        delimiter = checks.instance(_WHERE, "field_delim", "," if field_delim is None else field_delim, str, '","')
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise checks.fail_value(_WHERE, "field_delim must be a character, no quote or line end", delimiter, '","')
        files = find_files(_WHERE, dataset_files, "train*.csv")
        if column_names:
            checks.instance(_WHERE, "column_names", column_names, (list, tuple), 'column_names=["x", "label"]')
        columns = read_names(_WHERE, "column_names", column_names) if column_names else _read_header(files, delimiter)
        super().__init__(text_stage(
            _WHERE, columns, files, functools.partial(_records, delimiter=delimiter, header=not column_names),
            functools.partial(_parse, columns=columns, types=_read_types(column_defaults, columns)),
            num_samples=num_samples, num_parallel_workers=num_parallel_workers, shuffle=shuffle,
            num_shards=num_shards, shard_id=shard_id, cache=cache,
        ))


def _read_header(files: Sequence[str], delimiter: str) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    for path in files:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            header = tuple(file.readline().rstrip("\r\n").split(delimiter))
        names = names or header
        if header != names or len(set(names)) != len(names):
            expected = f"the first line of {files[0]} with a name for each column, and no name twice,"
            raise foreign_file(_WHERE, path, expected, checks.join_names(header))
    return names


def _read_types(defaults: list[str | int | float] | None, columns: Sequence[str]) -> list[type]:
    write = 'column_defaults=[0, 0.0, ""]'
    checks.instance(_WHERE, "column_defaults", [] if defaults is None else defaults, list, write)
    types: list[type] = []
    for value in defaults or ():
        checks.instance(_WHERE, "each of column_defaults", value, (str, int, float), write)
        types.append(str if isinstance(value, str) else np.int32 if isinstance(value, int) else np.float32)
    if len(types) > len(columns):
        raise checks.fail_value(
            _WHERE, f"column_defaults must have at most a value for each of {len(columns)} columns", defaults, write
        )
    return types + [str] * (len(columns) - len(types))


def _records(path: str, *, delimiter: str, header: bool) -> Iterator[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            if header:
                file.readline()
            yield from filter(None, reader)
        except (csv.Error, UnicodeDecodeError) as error:
            raise foreign_file(_WHERE, path, "rows of fields in UTF-8", f"row {reader.line_num}: {error}") from error


def _parse(path: str, record: Sequence[str], *, columns: Sequence[str], types: Sequence[type]) -> Row:
    if len(record) != len(columns):
        expected = f"{len(columns)} fields in every row, {checks.join_names(columns)},"
        raise foreign_file(_WHERE, path, expected, f"{len(record)}: {checks.join_names(record)}")
    return tuple(_field(path, *field) for field in zip(record, columns, types, strict=True))


def _field(path: str, text: str, column: str, dtype: type) -> np.ndarray:
    if dtype is str:
        return np.array(text)
    match = _NUMBERS[dtype].match(text)
    if match is None or not _fits(match[1], dtype):
        raise foreign_file(_WHERE, path, f'{dtype.__name__} values in column "{column}"', checks.short_repr(text))
    return np.array(match[1], dtype)


def _fits(number: str, dtype: type) -> bool:
    """Whether the dtype can represent the number of a text; inf and nan are numbers, a number that overflows is not."""
    if dtype is np.int32:
        return -(2**31) <= int(number) < 2**31
    value = abs(float(number))
    return number[-1].isalpha() or value == 0 or _SMALLEST <= value <= _LARGEST
