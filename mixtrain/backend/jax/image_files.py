"""Image files read, and decoded where asked, by several threads at once and in order."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np

from mixtrain.backend.jax.images import decode


class UnreadableFile(ValueError):
    """A file that could not be read or decoded."""


@dataclasses.dataclass(frozen=True, eq=False)
class ImageFiles:
    """Files of images, of which a pass reads some, in any order.

    Attributes:
        paths: Where the files are.
        decode: Whether to give pixels, uint8 (height, width, 3), instead of the bytes of the file; needs Pillow.
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
        waiting: collections.deque[concurrent.futures.Future[np.ndarray]] = collections.deque()
        pool = concurrent.futures.ThreadPoolExecutor(self.workers, thread_name_prefix="mixtrain-files")
        try:
            for index in indices:
                waiting.append(pool.submit(self._read_one, self.paths[index]))
                if len(waiting) > self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def decoded(self, contents: bytes) -> np.ndarray:
        """Return the image of the bytes of one file.

        Raises:
            UnreadableFile: They cannot be decoded.
        """
        data = np.frombuffer(contents, np.uint8)
        if not self.decode:
            return data.copy()
        try:
            return np.asarray(decode(data))
        except ValueError as error:
            raise UnreadableFile(str(error)) from error

    def _read_one(self, path: str) -> np.ndarray:
        try:
            contents = pathlib.Path(path).read_bytes()
        except OSError as error:
            raise UnreadableFile(f"{error.filename}; {error.strerror}") from error
        return self.decoded(contents)
