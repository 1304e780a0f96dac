"""CelebADataset: images of faces, and their attributes in a text file."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Final

import numpy as np

from mixtrain import checks
from mixtrain.dataset.cache import DatasetCache
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.image_source import image_stage
from mixtrain.dataset.sampling import SamplerLike
from mixtrain.dataset.source_files import find_folder, foreign_file, missing_file

_WHERE: Final = "CelebADataset"
_PARTS: Final = {"all": "", "train": "0", "valid": "1", "test": "2"}


class CelebADataset(Dataset):
    """The faces of CelebA, in the order of the file of their attributes.

    The columns are image, uint8 of one dimension (the bytes of the file) or with `decode` (height, width, 3), and
    attr, uint32 (attributes,): 1 for each attribute that the face has, else 0.

    Args:
        num_parallel_workers, shuffle, sampler, decode, num_samples, num_shards, shard_id, cache, decrypt: As in
            `ImageFolderDataset`.
        dataset_dir: The folder of the images, list_attr_celeba.txt and, for a part, list_eval_partition.txt.
        usage: "train", "valid", "test" or "all"; None means "all".
        extensions: The extensions of the files to read, such as [".jpg"]; all files by default.

    Raises: ValueError: The folder or a file is missing, or the file of attributes is malformed; on reading, an image
        cannot be read or decoded.

    Example:
        >>> CelebADataset("no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: CelebADataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path of
        the folder that holds the files.
    """

    def __init__(
        self, dataset_dir: str | pathlib.Path, num_parallel_workers: int | None = None, shuffle: bool | None = None,
        usage: str | None = "all", sampler: SamplerLike | None = None, decode: bool = False,
        extensions: list[str] | None = None, num_samples: int | None = None, num_shards: int | None = None,
        shard_id: int | None = None, cache: DatasetCache | None = None,
        decrypt: Callable[[str], bytes] | None = None,
    ) -> None:
        folder = find_folder(_WHERE, dataset_dir)
        usage = "all" if usage is None else checks.one_of(_WHERE, "usage", usage, _PARTS)
        checks.instance(_WHERE, "extensions", extensions or [], list, 'extensions=[".jpg"]')
        path = folder / "list_attr_celeba.txt"
        lines = _lines(path)[2:]  # The first two are the number of images and the names of the attributes.
        if usage != "all":
            parts = {line[0]: line[-1] for line in _lines(folder / "list_eval_partition.txt")}
            lines = [line for line in lines if parts.get(line[0]) == _PARTS[usage]]
        lines = [line for line in lines if not extensions or pathlib.Path(line[0]).suffix in extensions]
        try:
            attributes = np.array([[value == 1 for value in map(int, line[1:])] for line in lines], np.uint32)
        except ValueError as error:
            raise foreign_file(_WHERE, path, "equally many ints after each name", str(error)) from error
        if not lines:
            raise foreign_file(_WHERE, path, f'images for usage="{usage}", extensions={extensions}', "none")
        super().__init__(image_stage(
            _WHERE, ("image", "attr"), [[str(folder / line[0]) for line in lines]],
            lambda index: (attributes[index].copy(),), decode=decode, num_parallel_workers=num_parallel_workers,
            cache=cache, decrypt=decrypt, sampler=sampler, shuffle=shuffle, num_samples=num_samples,
            num_shards=num_shards, shard_id=shard_id,
        ))


def _lines(path: pathlib.Path) -> list[list[str]]:
    if not path.is_file():
        raise missing_file(_WHERE, path.parent, f"the file {path.name}")
    return [line.split() for line in path.read_text().splitlines() if line.strip()]
