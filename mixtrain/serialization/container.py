"""The container: a safetensors file that holds its own SHA-256, which is compared before anything else is read.

A file is the length of the header (8 bytes, little-endian), the header (JSON), and the values, as safetensors
specifies. The header begins with `_SEAL` and 64 hexadecimal digits: the SHA-256 of the whole file with zeros in their
place. So the digest stands at a fixed position and is found without a parser, and any reader of safetensors reads the
file. The parser is the library's: it checks that every tensor lies inside the file, and that none overlap.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import BinaryIO, Final

import numpy as np
from safetensors import SafetensorError, deserialize

from mixtrain.serialization.files import not_a_checkpoint

# As `values.stored` makes it: an array, or the 16 bits of each number as uint16 and "bfloat16".
Stored = np.ndarray | tuple[np.ndarray, str]

VERSION: Final = 2
MAGIC: Final = b'{"__metadata__":{"mixtrain.checkpoint":"version '
_SEAL: Final = MAGIC + f"{VERSION}, sha256 ".encode()
_LENGTH: Final = 8
_DIGEST_START: Final = _LENGTH + len(_SEAL)
_DIGEST_END: Final = _DIGEST_START + 64
_BLOCK: Final = 2**20
# About 60,000 tensors. Parsed, a header takes up to some ten times its length.
MAX_HEADER: Final = 8 * 2**20

_NAMES: Final = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
}
_DTYPES: Final = {short: name for name, short in _NAMES.items()}


def packed(tensors: Mapping[str, Stored]) -> list[bytes | memoryview]:
    """Return the content of a file as buffers, the values not copied.

    The header is written here, for the library's writer does not say where in it the metadata comes to stand, and takes
    addresses of memory in one version and bytes in another.

    Args:
        tensors: Values by name.

    Raises:
        ValueError: The header would be too long to be read again, or a name is not text.
    """
    entries, values, offset = {}, [], 0
    # Widest numbers first, as the library does: so each tensor is aligned for programs that map the file into memory.
    for name, value in sorted(tensors.items(), key=lambda item: -_array(item[1]).itemsize):
        array = _array(value)
        dtype = _NAMES[array.dtype.name if isinstance(value, np.ndarray) else value[1]]
        content = _bytes_of(array)
        entries[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [offset, offset + content.nbytes]}
        values.append(content)
        offset += content.nbytes
    try:
        listed = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            "save_checkpoint: expected names that can be written in UTF-8; got one with a lone surrogate. "
            "Write names of letters, digits and dots."
        ) from error
    header = _SEAL + b"0" * 64 + b'"},' + listed[1:]
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
    sealed = start[:_DIGEST_START] + digest.hexdigest().encode() + start[_DIGEST_END:]
    return [sealed, *values]


def check_start(path: str, start: bytes, size: int) -> None:
    """Check the first bytes of a file, before the rest is read.

    Args:
        path: The file, for errors.
        start: At least its first 128 bytes.
        size: The length of the whole file.

    Raises:
        CheckpointError: It is not a checkpoint, of another version, or its header does not fit into it.
    """
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
    """Compare the digest of a file whose start `check_start` has checked, in constant memory.

    Args:
        path: The file, for errors.
        file: The open file, at its start; afterwards at its end.

    Raises:
        CheckpointError: It differs.
    """
    digest = hashlib.sha256(file.read(_DIGEST_START))
    expected = file.read(64)
    digest.update(b"0" * 64)
    buffer = bytearray(_BLOCK)
    while length := file.readinto(buffer):  # type: ignore[attr-defined]
        digest.update(memoryview(buffer)[:length])
    if digest.hexdigest().encode() != expected:
        raise not_a_checkpoint(path, "a damaged one: its SHA-256 differs from the one it holds")


def unpacked(path: str, data: bytes) -> dict[str, Stored]:
    """Return the tensors of a safetensors file's content.

    Args:
        path: The file, for errors.
        data: Its content.

    Raises:
        CheckpointError: It is malformed, or a tensor has a dtype or shape that mixtrain does not write.
    """
    try:
        found = deserialize(data)
    except SafetensorError as error:
        raise not_a_checkpoint(path, f"a damaged one: {error}") from error
    return {name: _tensor(path, name, len(data), **entry) for name, entry in found}


def _tensor(path: str, name: str, size: int, dtype: str, shape: list[int], data: bytearray) -> Stored:
    if dtype not in _DTYPES:
        raise not_a_checkpoint(path, f"whose {name[:100]!r} has dtype {dtype}, not one of {', '.join(_DTYPES)}")
    if dtype == "BOOL" and data.strip(b"\0\1"):
        raise not_a_checkpoint(path, f"whose {name[:100]!r} has dtype BOOL and bytes other than 0 and 1")
    try:
        # An empty tensor takes no bytes however long its other axes are.
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
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).data
