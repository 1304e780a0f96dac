"""Find the files of a source, and build the errors about missing or malformed files."""

from __future__ import annotations

import gzip
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from mixtrain import checks

_IDX_BYTES = 8  # The IDX code of unsigned bytes.


def find_folder(where: str, path: Any) -> pathlib.Path:
    """Return the folder `path`.

    Raises:
        TypeError: `path` is not a path.
        ValueError: The folder does not exist.
    """
    checks.instance(where, "dataset_dir", path, (str, pathlib.Path), 'dataset_dir="folder"')
    folder = pathlib.Path(path)
    if not folder.is_dir():
        raise checks.fail_value(
            where, "dataset_dir must be a folder that exists", str(path), "the path of the folder that holds the files"
        )
    return folder


def foreign_file(where: str, path: pathlib.Path | str, expected: str, got: str) -> ValueError:
    """Return the error about a file with another content than expected."""
    return ValueError(f"{where}: expected {expected} in {path}; got {got}. Write the path of the original file.")


def missing_file(where: str, folder: pathlib.Path, expected: str) -> ValueError:
    """Return the error about a file that is not in its folder."""
    names = sorted(entry.name for entry in folder.iterdir())
    got = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") if names else "an empty folder"
    return ValueError(
        f"{where}: expected {expected} in {folder}; got {got}. Write the path of the folder that holds it."
    )


def first_existing(folder: pathlib.Path, names: Iterable[str]) -> pathlib.Path | None:
    """Return the first of the named files that exists in the folder, or None."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_idx(where: str, path: pathlib.Path, rank: int) -> np.ndarray:
    """Return the unsigned bytes of an IDX file, plain or compressed by gzip.

    Args:
        where: The caller, for messages.
        path: The file; compressed if its name ends in .gz.
        rank: The number of dimensions it must have.

    Raises:
        ValueError: The file is not an IDX file of that rank, or it is truncated.
    """
    expected = f"an IDX file of unsigned bytes with {rank} dimensions"
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, OSError) as error:
        raise foreign_file(where, path, expected, f"bytes that gzip cannot read ({error})") from error
    start = 4 + 4 * rank
    if len(data) < start or data[:2] != b"\0\0" or data[2] != _IDX_BYTES or data[3] != rank:
        raise foreign_file(where, path, expected, f"{len(data)} bytes that begin with {data[:4]!r}")
    shape = tuple(np.frombuffer(data, ">u4", count=rank, offset=4).astype(int).tolist())
    end = start + int(np.prod(shape))
    if len(data) != end:
        raise foreign_file(
            where, path, f"{end} bytes, {shape} after its header,", f"{len(data)} bytes: the file is cut off"
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
