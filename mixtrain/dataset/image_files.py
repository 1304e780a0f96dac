"""Image files, read and optionally decoded by several threads, in order."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from mixtrain import checks
from mixtrain.data_backend import images
from mixtrain.dataset.parallel import adaptive_map
from mixtrain.dataset.source_files import foreign_file

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_CHUNK_BYTES: Final = 1 << 16


@dataclasses.dataclass(frozen=True, eq=False)
class ImageFiles:
    """Image files that are read by index.

    Attributes:
        where: The dataset, for messages.
        paths: The paths of the files.
        decode: Whether to return pixels, uint8 (height, width, 3), instead of the bytes of a file.
        workers: How many files are read at a time.
        decrypt: A function from a path to the bytes to use instead of the contents; it is not called from threads.
    """

    where: str
    paths: Sequence[str]
    decode: bool
    workers: int
    decrypt: Callable[[str], bytes] | None = None

    def read(self, indices: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the images of the files with the given indices, in that order.

        Raises: ValueError: The next file cannot be read or decoded.
        """
        return adaptive_map(self._read, iter(indices.tolist()), 1 if self.decrypt else self.workers)

    def _read(self, indices: Sequence[int]) -> Sequence[np.ndarray]:
        arrays = [np.frombuffer(self._contents(self.paths[index]), np.uint8) for index in indices]
        if not self.decode:
            return [array.copy() for array in arrays]
        try:
            return images.decode_files(arrays)
        except ValueError as error:  # Of several files, each is then decoded alone.
            raise self._unreadable(self.paths[indices[0]], str(error)) from error

    def _contents(self, path: str) -> bytes:
        if self.decrypt is not None:
            contents = self.decrypt(path)
            return checks.instance(self.where, "the result of decrypt", contents, bytes, "return bytes")  # type: ignore[no-any-return]
        try:
            return _contents(path)
        except OSError as error:
            raise self._unreadable(path, str(error.strerror)) from error

    def _unreadable(self, path: str, reason: str) -> ValueError:
        return foreign_file(self.where, path, "an image that can be read", reason)


def _contents(path: str) -> bytes:
    """Return the bytes of a file; for small files this takes half as long as `open`."""
    descriptor = os.open(path, _FLAGS)
    try:
        chunks = [os.read(descriptor, _CHUNK_BYTES)]
        while chunks[-1]:
            chunks.append(os.read(descriptor, _CHUNK_BYTES))
        return b"".join(chunks)
    finally:
        os.close(descriptor)
