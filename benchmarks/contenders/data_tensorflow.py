"""The input pipeline written by hand in `tf.data`."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from benchmarks.contender import Contender, Round
from benchmarks.pictures import DEVIATION, FILES, MEAN, PICTURES, epochs_of, folder_of
from benchmarks.workloads import Workload


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build the files; return a function that creates the pipeline."""
    folders = sorted(pathlib.Path(folder_of(workload)).iterdir())
    files = [(str(file), label) for label, folder in enumerate(folders) for file in sorted(folder.iterdir())]
    paths, labels = (list(column) for column in zip(*files, strict=True))
    resized = PICTURES[workload.network].resized
    mean, deviation = (tf.constant(value) * 255.0 for value in (MEAN, DEVIATION))

    def read(path: Any, label: Any) -> tuple[Any, Any]:
        image = tf.io.decode_png(tf.io.read_file(path), 3)
        image = tf.image.resize(image, (resized, resized))
        image = tf.image.random_flip_left_right(tf.image.random_crop(image, workload.shape))
        return (image - mean) / deviation, label

    def prepare() -> Round:
        data = tf.data.Dataset.from_tensor_slices((paths, tf.constant(labels, tf.int32))).shuffle(FILES)
        data = data.map(read, tf.data.AUTOTUNE).batch(workload.batch, drop_remainder=True)
        data = data.repeat(epochs_of(workload, steps)).take(steps).prefetch(tf.data.AUTOTUNE)

        def run() -> None:
            for images, _ in data:
                assert images.shape == (workload.batch, *workload.shape)

        return run

    return prepare
