"""TFRecord files as bytes: finding them, and counting their records by the lengths that stand before each."""

from __future__ import annotations

import glob
import gzip
import io
import os
import pathlib
import struct
import zlib
from typing import Any, BinaryIO, Final, Literal

from mixtrain import checks
from mixtrain.dataset.source_files import foreign_file

Compression = Literal["", "GZIP", "ZLIB"]

_WHERE = "TFRecordDataset"
_EXPECTED = "records of the TFRecord format"
_HEAD = 12  # Eight bytes of length, four of its checksum.
_TAIL = 4  # The checksum of the record.
_MAGIC: Final = {"GZIP": b"\x1f\x8b", "ZLIB": b"\x78"}


def find_files(patterns: Any) -> list[str]:
    """Return the files that paths and glob patterns name, in the order of their names.

    Raises:
        TypeError: `patterns` is no str and no list of them.
        ValueError: A pattern names no file.
    """
    given = [patterns] if isinstance(patterns, (str, pathlib.Path)) else patterns
    write = 'dataset_files="train*.tfrecord"'
    checks.instance(_WHERE, "dataset_files", given, (list, tuple), write)
    if not given:
        raise checks.fail_value(_WHERE, "dataset_files must name a file", given, write)
    found: list[str] = []
    for pattern in given:
        checks.instance(_WHERE, "each of dataset_files", pattern, (str, pathlib.Path), write)
        matches = [match for match in glob.glob(str(pattern), recursive=True) if os.path.isfile(match)]
        if not matches:
            raise checks.fail_value(_WHERE, "dataset_files must name files that exist", str(pattern), write)
        found += matches
    return sorted(found)


def check_start(path: str, compression: Compression) -> None:
    """Raise a ValueError where a file does not begin with a record."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    size = os.path.getsize(path)
    if compression:
        if not head.startswith(_MAGIC[compression]):
            got = f"one that begins with {head[:4]!r}"
            raise foreign_file(_WHERE, path, f"a file compressed by {compression}", got)
    elif size < _HEAD or _length(head) + _HEAD + _TAIL > size:
        hint = ' (it looks compressed: compression_type="GZIP")' if head.startswith(_MAGIC["GZIP"]) else ""
        raise foreign_file(_WHERE, path, _EXPECTED, f"{size} bytes that begin with {head[:4]!r}{hint}")


def count_records(path: str, compression: Compression) -> int:
    """Return how many records a file has.

    Raises:
        ValueError: It ends inside a record.
    """
    with _open(path, compression) as file:
        size = file.seek(0, os.SEEK_END)
        place = count = 0
        while place < size:
            file.seek(place)
            head = file.read(_HEAD)
            place += _HEAD + _TAIL + (_length(head) if len(head) == _HEAD else 0)
            if len(head) < _HEAD or place > size:
                got = f"{size} bytes that end inside record {count}: it is cut off"
                raise foreign_file(_WHERE, path, _EXPECTED, got)
            count += 1
    return count


def _length(head: bytes) -> int:
    return int(struct.unpack("<Q", head[:8])[0])


def _open(path: str, compression: Compression) -> BinaryIO:
    if not compression:
        return open(path, "rb")
    data = pathlib.Path(path).read_bytes()
    try:
        return io.BytesIO(gzip.decompress(data) if compression == "GZIP" else zlib.decompress(data))
    except (EOFError, OSError, zlib.error) as error:
        raise foreign_file(_WHERE, path, f"a file compressed by {compression}", str(error)) from error
