"""ImageFolderDataset: one folder of image files per class."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mixtrain import checks
from mixtrain.dataset.cache import DatasetCache
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.image_source import image_stage
from mixtrain.dataset.sampling import SamplerLike
from mixtrain.dataset.source_files import find_folder, missing_file

_WHERE = "ImageFolderDataset"


class ImageFolderDataset(Dataset):
    """Images from a folder with one subfolder per class.

    The columns are image, uint8 of one dimension (the bytes of the file) or with `decode` (height, width, 3), and
    label, int32. Classes, and the files of each class, are in the order of their names.

    Args:
        num_samples, shuffle, sampler, num_shards, shard_id: As in `Cifar10Dataset`.
        dataset_dir: The folder of the class folders.
        num_parallel_workers: How many files are read at a time; by default `config.get_num_parallel_workers()`.
        extensions: The case-sensitive extensions of the files to read, such as [".png"]; all files by default.
        class_indexing: The folders to read and their labels, from name to int; by default all, numbered in the order of
            their names.
        decode: Whether to return pixels instead of the bytes of the file.
        cache: Stores the rows in memory after the first epoch.
        decrypt: A function from the path of a file to the bytes to use instead of its contents.

    Raises: ValueError: The folder is missing or has no such files; on reading, a file cannot be read or decoded.

    Example:
        >>> ImageFolderDataset("no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: ImageFolderDataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path
        of the folder that holds the files.
    """

    def __init__(
        self, dataset_dir: str | pathlib.Path, num_samples: int | None = None, num_parallel_workers: int | None = None,
        shuffle: bool | None = None, sampler: SamplerLike | None = None, extensions: list[str] | None = None,
        class_indexing: Mapping[str, int] | None = None, decode: bool = False, num_shards: int | None = None,
        shard_id: int | None = None, cache: DatasetCache | None = None, decrypt: Callable[[str], bytes] | None = None,
    ) -> None:
        suffixes = _read_extensions(extensions)
        folder = find_folder(_WHERE, dataset_dir)
        self._classes = _read_classes(folder, class_indexing)
        paths, classes = _find_files(folder, self._classes, suffixes)
        labels = np.array(classes, np.int32)
        super().__init__(image_stage(
            _WHERE, ("image", "label"), [paths], lambda index: (np.array(labels[index]),), decode=decode,
            num_parallel_workers=num_parallel_workers, cache=cache, decrypt=decrypt, labels=labels, sampler=sampler,
            shuffle=shuffle, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id,
        ))

    def get_class_indexing(self) -> dict[str, int]:
        """Return the label of each class folder."""
        return dict(self._classes)

    def num_classes(self) -> int:
        """Return the number of class folders."""
        return len(self._classes)


def _read_extensions(extensions: list[str] | None) -> tuple[str, ...]:
    if extensions is None:
        return ()
    checks.instance(_WHERE, "extensions", extensions, (list, tuple), 'extensions=[".png"]')
    for extension in extensions:
        checks.instance(_WHERE, "each of extensions", extension, str, 'extensions=[".png"]')
    return tuple(extensions)


def _read_classes(folder: pathlib.Path, class_indexing: Mapping[str, int] | None) -> dict[str, int]:
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    if not class_indexing:
        if not names:
            raise missing_file(_WHERE, folder, "one folder per class")
        return {name: label for label, name in enumerate(names)}
    checks.instance(_WHERE, "class_indexing", class_indexing, Mapping, 'class_indexing={"cat": 0, "dog": 1}')
    for name, label in class_indexing.items():
        checks.one_of(_WHERE, "a name in class_indexing", name, names)
        if isinstance(label, bool) or not isinstance(label, int):
            raise checks.fail_type(_WHERE, "labels in class_indexing must be ints", label, 'class_indexing={"cat": 0}')
    return dict(class_indexing)


def _find_files(
    folder: pathlib.Path, classes: Mapping[str, int], suffixes: tuple[str, ...]
) -> tuple[Sequence[str], Sequence[int]]:
    paths: list[str] = []
    labels: list[int] = []
    for name in sorted(classes):
        for entry in sorted((folder / name).iterdir()):
            if suffixes and entry.suffix not in suffixes:
                continue
            if entry.is_dir():
                raise ValueError(
                    f"{_WHERE}: expected image files only in {folder / name}; got the folder {entry.name}. "
                    'Write extensions=[".png"], or remove it.'
                )
            paths.append(str(entry))
            labels.append(classes[name])
    if not paths:
        expected = f"files that end in {' or '.join(suffixes)}" if suffixes else "image files"
        raise missing_file(_WHERE, folder, f"{expected} in the class folders")
    return paths, labels
