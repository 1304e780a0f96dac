"""Image files, read and optionally decoded by several threads, in order."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from mixtrain.data_backend import images
from mixtrain.dataset.parallel import adaptive_map

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_CHUNK_BYTES: Final = 1 << 16


class UnreadableFile(ValueError):
    """Raised for a file that cannot be read or decoded."""


@dataclasses.dataclass(frozen=True, eq=False)
class ImageFiles:
    """Image files that are read by index.

    Attributes:
        paths: The paths of the files.
        decode: Whether to return pixels, uint8 (height, width, 3), instead of the bytes of a file.
        workers: How many files are read at a time.
    """

    paths: Sequence[str]
    decode: bool
    workers: int

    def read(self, indices: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the images of the files with the given indices, in that order.

        Raises: UnreadableFile: The next file cannot be read or decoded.
        """
        return adaptive_map(self._read, iter(indices.tolist()), self.workers)

    def decoded(self, contents: bytes) -> np.ndarray:
        """Return the image in the bytes of one file.

        Raises: UnreadableFile: The bytes cannot be decoded.
        """
        (image,) = self._decoded([contents])
        return image

    def _read(self, indices: Sequence[int]) -> Sequence[np.ndarray]:
        return self._decoded([_contents(self.paths[index]) for index in indices])

    def _decoded(self, files: Sequence[bytes]) -> Sequence[np.ndarray]:
        arrays = [np.frombuffer(contents, np.uint8) for contents in files]
        if not self.decode:
            return [array.copy() for array in arrays]
        try:
            return images.decode_files(arrays)
        except ValueError as error:
            raise UnreadableFile(str(error)) from error


def _contents(path: str) -> bytes:
    """Return the bytes of a file; for small files this takes half as long as `open`."""
    try:
        descriptor = os.open(path, _FLAGS)
        try:
            chunks = [os.read(descriptor, _CHUNK_BYTES)]
            while chunks[-1]:
                chunks.append(os.read(descriptor, _CHUNK_BYTES))
            return b"".join(chunks)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UnreadableFile(f"{path}; {error.strerror}") from error
