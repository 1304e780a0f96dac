"""The container format: a safetensors file with its own SHA-256, which is checked before anything else is read.

As in safetensors, a file is the length of the header (8 bytes, little-endian), the header (JSON), and the values. The
header begins with `_SEAL` and 64 hexadecimal digits: the SHA-256 of the whole file with zeros in their place. The
digest is thus at a fixed position, where it is found without a parser, and any safetensors reader can read the file.
The parser is that of the safetensors library, which checks that tensors lie inside the file and do not overlap.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import BinaryIO, Final

import numpy as np
from safetensors import SafetensorError, deserialize

from mixtrain.serialization.files import not_a_checkpoint

# As returned by `values.stored`: an array, or a uint16 array of the 16 bits of each number and "bfloat16".
Stored = np.ndarray | tuple[np.ndarray, str]

VERSION: Final = 2
MAGIC: Final = b'{"__metadata__":{"mixtrain.checkpoint":"version '
_SEAL: Final = MAGIC + f"{VERSION}, sha256 ".encode()
_LENGTH: Final = 8
_DIGEST_START: Final = _LENGTH + len(_SEAL)
_DIGEST_END: Final = _DIGEST_START + 64
_BLOCK: Final = 2**20
# About 60,000 tensors. A parsed header takes up to about ten times its length in memory.
MAX_HEADER: Final = 8 * 2**20

_SAFETENSORS_NAMES: Final = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
}
_DTYPES: Final = {short: name for name, short in _SAFETENSORS_NAMES.items()}


def pack(tensors: Mapping[str, Stored]) -> list[bytes | memoryview]:
    """Return the content of a file as buffers, without copying the values.

    The header is written here, because the library's writer does not fix the position of the metadata, and takes memory
    addresses in one version and bytes in another.
    """
    entries, values, offset = {}, [], 0
    # Widest dtypes first, as in the library, so that each tensor is aligned for programs that map the file into memory.
    for name, value in sorted(tensors.items(), key=lambda item: -_array(item[1]).itemsize):
        array = _array(value)
        dtype = _SAFETENSORS_NAMES.get(array.dtype.name if isinstance(value, np.ndarray) else value[1])
        if dtype is None:
            raise TypeError(
                f"save_checkpoint: expected {name!r} to be of a dtype of files ({', '.join(_SAFETENSORS_NAMES)}); got "
                f"{array.dtype.name}. Write its real and imaginary parts."
            )
        content = _bytes_of(array)
        entries[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [offset, offset + content.nbytes]}
        values.append(content)
        offset += content.nbytes
    try:
        entries_json = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            "save_checkpoint: expected names that can be written in UTF-8; got one with a lone surrogate. "
            "Write names of letters, digits and dots."
        ) from error
    header = _SEAL + b"0" * 64 + b'"},' + entries_json[1:]
    # Padding aligns the values to 8 bytes.
    header += b" " * (-len(header) % 8)
    if len(header) > MAX_HEADER:
        raise ValueError(
            f"save_checkpoint: expected at most {MAX_HEADER} bytes of names and shapes; got {len(header)} for "
            f"{len(tensors)} tensors. Write several files, or shorter names."
        )
    start = len(header).to_bytes(_LENGTH, "little") + header
    digest = hashlib.sha256(start)
    for content in values:
        digest.update(content)
    with_digest = start[:_DIGEST_START] + digest.hexdigest().encode() + start[_DIGEST_END:]
    return [with_digest, *values]


def check_start(path: str, start: bytes, size: int) -> None:
    """Check the first bytes of a file, at least 128 where it has them, before the rest of its `size` is read."""
    if not start[_LENGTH:].startswith(MAGIC):
        raise not_a_checkpoint(path, "not a checkpoint, or a damaged one")
    if not start[_LENGTH:].startswith(_SEAL):
        version = start[_LENGTH + len(MAGIC):].split(b",")[0][:20].decode("ascii", "replace")
        raise not_a_checkpoint(path, f"version {version!r}, of a newer mixtrain (this one reads up to {VERSION})")
    length = int.from_bytes(start[:_LENGTH], "little")
    if not _DIGEST_END - _LENGTH < length <= min(size - _LENGTH, MAX_HEADER):
        raise not_a_checkpoint(
            path, f"a damaged one: its header has {length} bytes, where {min(size - _LENGTH, MAX_HEADER)} are possible"
        )


def check_digest(path: str, file: BinaryIO) -> None:
    """Check the digest of an open file, read to its end in constant memory, whose start `check_start` has checked."""
    digest = hashlib.sha256(file.read(_DIGEST_START))
    expected = file.read(64)
    digest.update(b"0" * 64)
    buffer = bytearray(_BLOCK)
    while length := file.readinto(buffer):  # type: ignore[attr-defined]
        digest.update(memoryview(buffer)[:length])
    if digest.hexdigest().encode() != expected:
        raise not_a_checkpoint(path, "a damaged one: its SHA-256 differs from the one it holds")


def unpack(path: str, data: bytes) -> dict[str, Stored]:
    """Return the tensors of a safetensors file's content."""
    try:
        entries = deserialize(data)
    except SafetensorError as error:
        raise not_a_checkpoint(path, f"a damaged one: {error}") from error
    return {name: _tensor(path, name, len(data), **entry) for name, entry in entries}


def _tensor(path: str, name: str, size: int, dtype: str, shape: list[int], data: bytearray) -> Stored:
    if dtype not in _DTYPES:
        raise not_a_checkpoint(path, f"whose {name[:100]!r} has dtype {dtype}, not one of {', '.join(_DTYPES)}")
    if dtype == "BOOL" and data.strip(b"\0\1"):
        raise not_a_checkpoint(path, f"whose {name[:100]!r} has dtype BOOL and bytes other than 0 and 1")
    try:
        # The library checks the number of bytes, which is 0 for an empty tensor however long its other axes are.
        if any(length > size for length in shape):
            raise ValueError
        array = np.ndarray(shape, "uint16" if dtype == "BF16" else _DTYPES[dtype], data)
    except ValueError as error:  # More axes than an array can have.
        axes = f"{len(shape)} axes, the longest {max(shape)}"
        raise not_a_checkpoint(path, f"whose {name[:100]!r} has an impossible shape: {axes}") from error
    return (array, "bfloat16") if dtype == "BF16" else array


def _array(value: Stored) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else value[0]


def _bytes_of(array: np.ndarray) -> memoryview:
    little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little_endian.reshape(-1).view(np.uint8).data
