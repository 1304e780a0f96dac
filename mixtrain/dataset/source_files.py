"""Find the files of a source, and build the errors about missing or malformed files."""

from __future__ import annotations

import glob
import gzip
import math
import os
import pathlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.text_table import printable

_IDX_TYPES = {"u1": 8, ">i4": 12}  # The IDX codes of dtypes.
_PART_BYTES = 2**20


class DataFileError(ValueError, RuntimeError):
    """Raised for a data file that is missing or malformed; MindSpore raises a RuntimeError for it."""


def find_files(where: str, patterns: Any, example: str) -> list[str]:
    """Return the files that match paths and glob patterns, in the order of their names. `example`: such a pattern."""
    if isinstance(patterns, (str, pathlib.Path)):
        patterns = [patterns]
    write = f'dataset_files="{example}"'
    checks.instance(where, "dataset_files", patterns, (list, tuple), write)
    if not patterns:
        raise checks.fail_value(where, "dataset_files must name a file", patterns, write)
    files: list[str] = []
    for pattern in patterns:
        checks.instance(where, "each of dataset_files", pattern, (str, pathlib.Path), write)
        matches = [match for match in glob.glob(str(pattern), recursive=True) if os.path.isfile(match)]
        if not matches:
            raise checks.fail_value(where, "dataset_files must name files that exist", str(pattern), write)
        files += matches
    return sorted(files)


def find_folder(where: str, path: Any) -> pathlib.Path:
    """Return the folder `path`."""
    checks.instance(where, "dataset_dir", path, (str, pathlib.Path), 'dataset_dir="folder"')
    folder = pathlib.Path(path)
    if not folder.is_dir():
        raise checks.fail_value(
            where, "dataset_dir must be a folder that exists", str(path), "the path of the folder that holds the files"
        )
    return folder


def foreign_file(where: str, path: pathlib.Path | str, expected: str, got: str) -> DataFileError:
    """Return the error about a file with another content than expected."""
    got = printable(got)  # It may quote the file.
    return DataFileError(f"{where}: expected {expected} in {path}; got {got}. Write the path of the original file.")


def missing_file(where: str, folder: pathlib.Path, expected: str) -> DataFileError:
    """Return the error about a file that is not in its folder."""
    names = sorted(entry.name for entry in folder.iterdir())
    got = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") if names else "an empty folder"
    return DataFileError(
        f"{where}: expected {expected} in {folder}; got {got}. Write the path of the folder that holds it."
    )


def first_existing(folder: pathlib.Path, names: Iterable[str]) -> pathlib.Path | None:
    """Return the first of the named files that exists in the folder, or None."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_idx(where: str, path: pathlib.Path, rank: int, dtype: str = "u1") -> np.ndarray:
    """Return the array in an IDX file of `rank` dimensions, compressed by gzip if its name ends in .gz.

    `dtype`: "u1" or ">i4".
    """
    expected = f"an IDX file of {'unsigned bytes' if dtype == 'u1' else 'int32'} with {rank} dimensions"
    start = 4 + 4 * rank
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header = file.read(start)
            if len(header) < start or header[:2] != b"\0\0" or header[2] != _IDX_TYPES[dtype] or header[3] != rank:
                raise foreign_file(where, path, expected, f"bytes that begin with {header[:4]!r}")
            shape = tuple(int(size) for size in np.frombuffer(header, ">u4", offset=4))
            size = math.prod(shape) * np.dtype(dtype).itemsize
            # Read to the promised end and no further, in parts: what a few bytes are expanded to has no limit.
            data = b"".join(_parts(file, size + 1))
    except (EOFError, OSError, zlib.error) as error:
        raise foreign_file(where, path, expected, f"bytes that gzip cannot read ({error})") from error
    if len(data) != size:
        got = "more bytes" if len(data) > size else f"{start + len(data)} bytes: the file is cut off"
        raise foreign_file(where, path, f"{start + size} bytes, {shape} after its header,", got)
    return np.frombuffer(data, dtype).reshape(shape)


def _parts(file: Any, size: int) -> Iterator[bytes]:
    """Yield what a file has, `size` bytes at most."""
    while size and (part := file.read(min(size, _PART_BYTES))):
        size -= len(part)
        yield part
