"""Find TFRecord files, and count their records by the length in each record's header."""

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
_HEADER_BYTES = 12  # The length of the record, eight bytes, and its checksum, four bytes.
_FOOTER_BYTES = 4  # The checksum of the record.
_MAGIC: Final = {"GZIP": b"\x1f\x8b", "ZLIB": b"\x78"}


def find_files(patterns: Any) -> list[str]:
    """Return the files that match paths and glob patterns, in the order of their names."""
    if isinstance(patterns, (str, pathlib.Path)):
        patterns = [patterns]
    write = 'dataset_files="train*.tfrecord"'
    checks.instance(_WHERE, "dataset_files", patterns, (list, tuple), write)
    if not patterns:
        raise checks.fail_value(_WHERE, "dataset_files must name a file", patterns, write)
    files: list[str] = []
    for pattern in patterns:
        checks.instance(_WHERE, "each of dataset_files", pattern, (str, pathlib.Path), write)
        matches = [match for match in glob.glob(str(pattern), recursive=True) if os.path.isfile(match)]
        if not matches:
            raise checks.fail_value(_WHERE, "dataset_files must name files that exist", str(pattern), write)
        files += matches
    return sorted(files)


def check_start(path: str, compression: Compression) -> None:
    """Raise a ValueError if a file does not start with a record."""
    with open(path, "rb") as file:
        header = file.read(_HEADER_BYTES)
    size = os.path.getsize(path)
    if compression:
        if not header.startswith(_MAGIC[compression]):
            got = f"one that begins with {header[:4]!r}"
            raise foreign_file(_WHERE, path, f"a file compressed by {compression}", got)
    elif size < _HEADER_BYTES or _record_bytes(header) > size:
        hint = ' (it looks compressed: compression_type="GZIP")' if header.startswith(_MAGIC["GZIP"]) else ""
        raise foreign_file(_WHERE, path, _EXPECTED, f"{size} bytes that begin with {header[:4]!r}{hint}")


def count_records(path: str, compression: Compression) -> int:
    """Return the number of records in a file."""
    with _open(path, compression) as file:
        size = file.seek(0, os.SEEK_END)
        offset = count = 0
        while offset < size:
            file.seek(offset)
            header = file.read(_HEADER_BYTES)
            if len(header) < _HEADER_BYTES or offset + _record_bytes(header) > size:
                got = f"{size} bytes that end inside record {count}: it is cut off"
                raise foreign_file(_WHERE, path, _EXPECTED, got)
            offset += _record_bytes(header)
            count += 1
    return count


def _record_bytes(header: bytes) -> int:
    """Return the size of a record with its header and footer."""
    return _HEADER_BYTES + int(struct.unpack("<Q", header[:8])[0]) + _FOOTER_BYTES


def _open(path: str, compression: Compression) -> BinaryIO:
    if not compression:
        return open(path, "rb")
    data = pathlib.Path(path).read_bytes()
    try:
        return io.BytesIO(gzip.decompress(data) if compression == "GZIP" else zlib.decompress(data))
    except (EOFError, OSError, zlib.error) as error:
        raise foreign_file(_WHERE, path, f"a file compressed by {compression}", str(error)) from error
