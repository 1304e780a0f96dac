"""Image files read, and decoded where asked, by several threads at once and in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from mixtrain import backend
from mixtrain.dataset.parallel import each_in_order


class UnreadableFile(ValueError):
    """A file that could not be read or decoded."""


@dataclasses.dataclass(frozen=True, eq=False)
class ImageFiles:
    """Files of images, of which a pass reads some, in any order.

    Attributes:
        paths: Where the files are.
        decode: Whether to give pixels, uint8 (height, width, 3), instead of the bytes of the file.
        workers: How many files are read at a time.
    """

    paths: Sequence[str]
    decode: bool
    workers: int

    def read(self, indices: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the images of the files `indices`, in that order.

        Raises:
            UnreadableFile: The next file cannot be read or decoded.
        """
        return each_in_order(self._read_one, iter(indices.tolist()), self.workers)

    def decoded(self, contents: bytes) -> np.ndarray:
        """Return the image of the bytes of one file.

        Raises:
            UnreadableFile: They cannot be decoded.
        """
        data = np.frombuffer(contents, np.uint8)
        if not self.decode:
            return data.copy()
        try:
            return np.asarray(backend.images.decode(data))
        except ValueError as error:
            raise UnreadableFile(str(error)) from error

    def _read_one(self, index: int) -> np.ndarray:
        try:
            with open(self.paths[index], "rb") as file:
                contents = file.read()
        except OSError as error:
            raise UnreadableFile(f"{error.filename}; {error.strerror}") from error
        return self.decoded(contents)
