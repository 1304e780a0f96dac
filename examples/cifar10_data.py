"""The pictures that cifar10_resnet.py trains on: CIFAR-10's files, Keras's copy of them, or a labelled stand-in."""

from __future__ import annotations

import dataclasses
import os
import pathlib

import keras
import numpy as np

import mixtrain.dataset as ds
from mixtrain.dataset import transforms, vision

MEAN = (0.4914, 0.4822, 0.4465)
DEVIATION = (0.2470, 0.2435, 0.2616)
# The archive in Keras's cache, and its size in bytes: a complete archive is not downloaded again.
KERAS_ARCHIVE = ("datasets", "cifar-10-batches-py-target_archive")
KERAS_ARCHIVE_BYTES = 170_498_071
SYNTHETIC_ROWS = (2000, 500)


@dataclasses.dataclass(frozen=True)
class Pictures:
    """Rows for training and for the test, with the words that say what they are.

    Attributes:
        said: What is printed.
        train: Columns image, uint8 (32, 32, 3), and label; in another order in each epoch.
        test: The same columns.
    """

    said: str
    train: ds.Dataset
    test: ds.Dataset


def find_pictures(data_dir: str | None, *, download: bool, limit: int | None) -> Pictures:
    """Return CIFAR-10 if it is found, else synthetic pictures that are labeled as such.

    Args:
        data_dir: The folder of the official binary batches, or None.
        download: Whether Keras may fetch CIFAR-10.
        limit: The most rows of each part, or None for all.
    """
    if data_dir is not None:
        train, test = _of_folder(data_dir, "train", limit), _of_folder(data_dir, "test", limit)
        return Pictures(_said(f"CIFAR-10 from {data_dir}", train, test), train, test)
    if download or keras_has_it():
        (images, labels), (test_images, test_labels) = keras.datasets.cifar10.load_data()
        said, parts = "CIFAR-10 from keras.datasets", ((images, labels[:, 0]), (test_images, test_labels[:, 0]))
    else:
        said = "SYNTHETIC pictures, NOT CIFAR-10 (give --data-dir, or --download); their accuracy says nothing of it"
        parts = (synthetic(SYNTHETIC_ROWS[0], seed=0), synthetic(SYNTHETIC_ROWS[1], seed=1))
    train, test = (
        ds.NumpySlicesDataset((images[:limit], labels[:limit]), ["image", "label"], shuffle=shuffle)
        for (images, labels), shuffle in zip(parts, (True, False), strict=True)
    )
    return Pictures(_said(said, train, test), train, test)


def keras_has_it() -> bool:
    """Whether Keras's cache holds all of CIFAR-10."""
    home = pathlib.Path(os.environ.get("KERAS_HOME") or pathlib.Path.home() / ".keras")
    archive = home.joinpath(*KERAS_ARCHIVE)
    return archive.is_file() and archive.stat().st_size == KERAS_ARCHIVE_BYTES


def synthetic(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures, uint8 (rows, 32, 32, 3), of ten kinds of colored stripes under noise, and their kinds."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 10, rows)
    down, across = np.mgrid[0:32, 0:32] / 32.0
    angle = np.pi * labels[:, None, None] / 10.0
    wave = np.sin(2 * np.pi * (3.0 * (down * np.cos(angle) + across * np.sin(angle)) + draw.random((rows, 1, 1))))
    color = np.stack([np.cos(labels), np.sin(labels), np.cos(2.0 * labels)], -1)[:, None, None]
    images = 128.0 + 50.0 * wave[..., None] + 30.0 * color + draw.normal(0.0, 20.0, (rows, 32, 32, 3))
    return images.clip(0, 255).astype(np.uint8), labels.astype(np.int32)


def make_batches(pictures: Pictures, batch_size: int, *, channels_first: bool) -> tuple[ds.Dataset, ds.Dataset]:
    """Return the batches for training, augmented, and for the test: image, float32, and label, int32.

    Args:
        pictures: The rows.
        batch_size: Rows of a batch.
        channels_first: Whether images are (N, 3, 32, 32), else (N, 32, 32, 3).
    """
    scaling = [vision.Rescale(1.0 / 255.0, 0.0), vision.Normalize(MEAN, DEVIATION)]
    scaling += [vision.HWC2CHW()] if channels_first else []
    augmenting = [vision.RandomCrop(32, padding=4), vision.RandomHorizontalFlip()]
    parts = []
    for rows, operations in ((pictures.train, augmenting + scaling), (pictures.test, scaling)):
        rows = rows.map(operations, "image").map(transforms.TypeCast(np.int32), "label")
        parts.append(rows.batch(batch_size, drop_remainder=rows.get_dataset_size() >= batch_size and not parts))
    return parts[0], parts[1]


def _of_folder(folder: str, part: str, limit: int | None) -> ds.Dataset:
    shuffle = part == "train"
    rows = ds.Cifar10Dataset(folder, part, shuffle=shuffle)
    if limit is None or limit >= rows.get_dataset_size():
        return rows
    kind = ds.SubsetRandomSampler if shuffle else ds.SubsetSampler
    return ds.Cifar10Dataset(folder, part, sampler=kind(range(limit)))


def _said(what: str, train: ds.Dataset, test: ds.Dataset) -> str:
    return f"data: {what}: {train.get_dataset_size()} rows to train on, {test.get_dataset_size()} to test"
