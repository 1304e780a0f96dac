"""Image files read, and decoded where asked, by several threads at once and in order."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from mixtrain.backend.tensorflow.images import decode
from mixtrain.backend.tensorflow.op_errors import reason_of


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
        paths = self._paths
        dataset = tf.data.Dataset.from_tensor_slices(indices).map(
            lambda index: self._convert(tf.io.read_file(tf.gather(paths, index))),
            num_parallel_calls=self.workers,
            deterministic=True,
        )
        try:
            for image in dataset.prefetch(self.workers):
                yield image.numpy()
        except tf.errors.OpError as error:
            raise UnreadableFile(reason_of(error)) from error

    def decoded(self, contents: bytes) -> np.ndarray:
        """Return the image of the bytes of one file.

        Raises:
            UnreadableFile: They cannot be decoded.
        """
        with tf.device("CPU"):
            try:
                return self._convert(tf.constant(contents)).numpy()
            except tf.errors.OpError as error:
                raise UnreadableFile(reason_of(error)) from error

    @functools.cached_property
    def _paths(self) -> tf.Tensor:
        with tf.device("CPU"):
            return tf.constant(list(self.paths))

    def _convert(self, contents: tf.Tensor) -> tf.Tensor:
        data = tf.io.decode_raw(contents, tf.uint8)
        return decode(data) if self.decode else data
