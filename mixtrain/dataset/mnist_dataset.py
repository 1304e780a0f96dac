"""MnistDataset and data sets in files of its format: small gray images in IDX files."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mixtrain import checks
from mixtrain.dataset.array_files_dataset import ArrayFilesDataset, join
from mixtrain.dataset.cache import DatasetCache
from mixtrain.dataset.sampling import SamplerLike
from mixtrain.dataset.source_files import first_existing, foreign_file, missing_file, read_idx


class MnistDataset(ArrayFilesDataset):
    """The handwritten digits of MNIST, from the four IDX files, plain or as .gz.

    The columns are image, uint8 (28, 28, 1), and label, uint32. "all" means the test rows, then the training rows; if
    the folder has only one of the two parts, that one.

    Args:
        usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: As in `Cifar10Dataset`.
        dataset_dir: The folder of train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
            t10k-labels-idx1-ubyte, or of the part that `usage` names.

    Example:
        >>> MnistDataset("no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: MnistDataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path of
        the folder that holds the files.
    """

    _COLUMNS = ("image", "label")
    # The beginnings of the names of files, in the order of the rows of "all".
    _prefixes: Mapping[str, str] = {"test": "t10k", "train": "train"}

    def _read(self, where: str, folder: pathlib.Path, usage: str) -> Sequence[np.ndarray]:
        prefixes = self._prefixes
        parts = [usage]
        if usage == "all":
            parts = [part for part in prefixes if first_existing(folder, _all_names(prefixes[part]))] or ["train"]
        images, labels = zip(*(_read_part(where, folder, prefixes[part]) for part in parts), strict=True)
        return join(images), join(labels)


class FashionMnistDataset(MnistDataset):
    """The articles of clothing of Fashion-MNIST, from files with the names and the format of MNIST's.

    The columns are image, uint8 (28, 28, 1), and label, uint32.

    Args: dataset_dir, usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: As in
        `MnistDataset`.

    Example:
        >>> FashionMnistDataset.__mro__[1] is MnistDataset
        True
    """


class KMnistDataset(MnistDataset):
    """The Kuzushiji characters of KMNIST, from files with the names and the format of MNIST's.

    The columns are image, uint8 (28, 28, 1), and label, uint32.

    Args: dataset_dir, usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: As in
        `MnistDataset`.

    Example:
        >>> KMnistDataset.__mro__[1] is MnistDataset
        True
    """


class EMnistDataset(MnistDataset):
    """The letters and digits of EMNIST, from files of MNIST's format; images are as in the files, transposed.

    The columns are image, uint8 (28, 28, 1), and label, uint32.

    Args:
        usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: As in `MnistDataset`.
        dataset_dir: The folder of files such as emnist-letters-train-images-idx3-ubyte.
        name: Which of the data sets: "byclass", "bymerge", "balanced", "letters", "digits" or "mnist".

    Raises: ValueError: As in `MnistDataset`, or there is no data set of that name.

    Example:
        >>> EMnistDataset("no/such/folder", "latin")
        Traceback (most recent call last):
        ...
        ValueError: EMnistDataset: name must be one of byclass, bymerge, balanced, letters, digits, mnist; got 'latin'.
        Write name="balanced".
    """

    def __init__(
        self, dataset_dir: str | pathlib.Path, name: str, usage: str | None = None, num_samples: int | None = None,
        num_parallel_workers: int | None = None, shuffle: bool | None = None, sampler: SamplerLike | None = None,
        num_shards: int | None = None, shard_id: int | None = None, cache: DatasetCache | None = None,
    ) -> None:
        names = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
        checks.one_of("EMnistDataset", "name", name, names)
        self._prefixes = {part: f"emnist-{name}-{part}" for part in ("test", "train")}
        super().__init__(
            dataset_dir, usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache
        )


class QMnistDataset(ArrayFilesDataset):
    """The digits of QMNIST, MNIST with more test images and more about each digit.

    The columns are image, uint8 (28, 28, 1), and label, uint32: the class, or with `compat=False` (8,), the class and
    what else the file says. "all" means the training, the test, then the NIST rows.

    Args:
        num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: As in `MnistDataset`.
        dataset_dir: The folder of qmnist-train-images-idx3-ubyte, qmnist-train-labels-idx2-int and their like.
        usage: "train", "test", "test10k" (the first 10000 of test), "test50k" (the others), "nist" or "all"; None means
            "all".
        compat: Whether a label is the class alone.

    Raises: ValueError: As in `MnistDataset`.

    Example:
        >>> QMnistDataset("no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: QMnistDataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path of
        the folder that holds the files.
    """

    _COLUMNS = ("image", "label")
    _USAGES = ("train", "test", "test10k", "test50k", "nist", "all")

    def __init__(
        self, dataset_dir: str | pathlib.Path, usage: str | None = None, compat: bool = True,
        num_samples: int | None = None, num_parallel_workers: int | None = None, shuffle: bool | None = None,
        sampler: SamplerLike | None = None, num_shards: int | None = None, shard_id: int | None = None,
        cache: DatasetCache | None = None,
    ) -> None:
        self._compat = checks.boolean("QMnistDataset", "compat", compat)
        super().__init__(
            dataset_dir, usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache
        )

    def _read(self, where: str, folder: pathlib.Path, usage: str) -> Sequence[np.ndarray]:
        prefixes = {"train": "qmnist-train", "test": "qmnist-test", "nist": "xnist"}
        rows = {"test10k": slice(10_000), "test50k": slice(10_000, None)}.get(usage, slice(None))
        parts = prefixes if usage == "all" else [usage.removesuffix("10k").removesuffix("50k")]
        files = [_read_part(where, folder, prefixes[part], "idx2-int") for part in parts]
        images, labels = (join(arrays)[rows] for arrays in zip(*files, strict=True))
        return images, labels[:, 0] if self._compat else labels


def _names(prefix: str, kind: str, suffix: str) -> Iterator[str]:
    for dot in ("-", "."):
        for compression in ("", ".gz"):
            yield f"{prefix}-{kind}{dot}{suffix}{compression}"


def _all_names(prefix: str) -> Iterator[str]:
    yield from _names(prefix, "images", "idx3-ubyte")
    yield from _names(prefix, "labels", "idx1-ubyte")


def _read_part(
    where: str, folder: pathlib.Path, prefix: str, label_suffix: str = "idx1-ubyte"
) -> tuple[np.ndarray, np.ndarray]:
    arrays = []
    for kind, suffix in (("images", "idx3-ubyte"), ("labels", label_suffix)):
        names = list(_names(prefix, kind, suffix))
        path = first_existing(folder, names)
        if path is None:
            raise missing_file(where, folder, f"the file {names[0]} or {names[1]}")
        arrays.append(read_idx(where, path, int(suffix[3]), "u1" if suffix.endswith("ubyte") else ">i4"))
    images, labels = arrays
    if len(images) != len(labels):
        expected = f"{len(images)} labels, one for each image,"
        raise foreign_file(where, folder / names[0], expected, f"{len(labels)} labels")
    return images[..., np.newaxis], labels.astype(np.uint32)
