"""Check TFRecord files, and count their records by the length in each record's header."""

from __future__ import annotations

import gzip
import io
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Literal

from mixtrain.dataset.source_files import foreign_file

Compression = Literal["", "GZIP", "ZLIB"]

_WHERE = "TFRecordDataset"
_EXPECTED = "records of the TFRecord format"
_HEADER_BYTES = 12  # The length of the record, eight bytes, and its checksum, four bytes.
_FOOTER_BYTES = 4  # The checksum of the record.
_PART_BYTES = 2**20
_MAGIC: Final = {"GZIP": b"\x1f\x8b", "ZLIB": b"\x78"}


def check_start(path: str, compression: Compression) -> None:
    """Raise a ValueError if a file does not start with a record, which is as long as its header says.

    TensorFlow's reader reserves the memory for a record first.
    """
    with open(path, "rb") as file:
        header = file.read(_HEADER_BYTES)
    size = os.path.getsize(path)
    if compression:
        if not header.startswith(_MAGIC[compression]):
            got = f"one that begins with {header[:4]!r}"
            raise foreign_file(_WHERE, path, f"a file compressed by {compression}", got)
        next(_record_ends(path, compression), None)
    elif size < _HEADER_BYTES or _record_bytes(header) > size:
        hint = ' (it looks compressed: compression_type="GZIP")' if header.startswith(_MAGIC["GZIP"]) else ""
        raise foreign_file(_WHERE, path, _EXPECTED, f"{size} bytes that begin with {header[:4]!r}{hint}")


def count_records(path: str, compression: Compression) -> int:
    """Return the number of records in a file."""
    return sum(1 for _ in _record_ends(path, compression))


def _record_ends(path: str, compression: Compression) -> Iterator[int]:
    """Yield where each record of a file ends, expanded in parts: what a few bytes are expanded to has no limit."""
    offset = count = 0
    try:
        with _open(path, compression) as file:
            while header := file.read(_HEADER_BYTES):
                rest = _record_bytes(header) - _HEADER_BYTES if len(header) == _HEADER_BYTES else 1
                skipped = _skip(file, rest) if compression else _seek(file, rest)
                offset += len(header) + skipped
                if skipped < rest:
                    got = f"{offset} bytes that end inside record {count}: it is cut off"
                    raise foreign_file(_WHERE, path, _EXPECTED, got)
                yield offset
                count += 1
    except (EOFError, OSError, zlib.error) as error:
        if not compression:
            raise
        raise foreign_file(_WHERE, path, f"a file compressed by {compression}", str(error)) from error


def _skip(file: BinaryIO, count: int) -> int:
    """Read so many bytes, or to the end of a file; return how many there were."""
    rest = count
    while rest and (part := file.read(min(rest, _PART_BYTES))):
        rest -= len(part)
    return count - rest


def _seek(file: BinaryIO, count: int) -> int:
    """Move so many bytes on, or to the end of a file; return how many there were."""
    start, size = file.tell(), os.fstat(file.fileno()).st_size
    return file.seek(min(start + count, size)) - start


def _record_bytes(header: bytes) -> int:
    """Return the size of a record with its header and footer."""
    return _HEADER_BYTES + int(struct.unpack("<Q", header[:8])[0]) + _FOOTER_BYTES


def _open(path: str, compression: Compression) -> BinaryIO:
    if compression == "ZLIB":
        return io.BufferedReader(_Inflated(path))  # type: ignore[return-value]
    return gzip.open(path) if compression else open(path, "rb")  # type: ignore[return-value]


class _Inflated(io.RawIOBase):
    """The bytes of a file that zlib has compressed."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb")  # noqa: SIM115
        self._inflate = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._inflate.eof:
            part = self._inflate.unconsumed_tail or self._file.read(_PART_BYTES)
            data = self._inflate.decompress(part, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
            if not part:
                raise EOFError("it ended before the end of its compressed bytes")
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()
