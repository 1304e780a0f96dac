"""VOCDataset: images with segmentation images, or with boxes in XML files."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from xml.etree import ElementTree

import numpy as np

from mixtrain import checks
from mixtrain.dataset.cache import DatasetCache
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.image_source import image_stage
from mixtrain.dataset.sampling import SamplerLike
from mixtrain.dataset.source_files import find_folder, foreign_file
from mixtrain.dataset.stage import Row

_WHERE: Final = "VOCDataset"
# An object's name, its box (left, top, right, bottom), and the flags difficult and truncated.
_Object = tuple[str, tuple[float, ...], tuple[int, ...]]


class VOCDataset(Dataset):
    """Images of PASCAL VOC that a list of the folder names, in its order.

    The columns are image and target for "Segmentation", uint8 of one dimension (the bytes of the files) or with
    `decode` (height, width, 3). For "Detection" they are image, then, of n objects, bbox (left, top, width, height),
    float32 (n, 4), and label, difficult and truncate, uint32 (n, 1).

    Args:
        num_samples, num_parallel_workers, shuffle, decode, sampler, num_shards, shard_id, cache, decrypt: As in
            `ImageFolderDataset`.
        dataset_dir: The folder of JPEGImages, ImageSets and, for the task, SegmentationClass or Annotations.
        task: "Segmentation" or "Detection".
        usage: The list to read: ImageSets/Segmentation/train.txt or ImageSets/Main/train.txt for "train".
        class_indexing: The labels of the objects to read, from name to int, for "Detection"; by default all, numbered
            in the order of their names. Images without such objects are left out.
        extra_metadata: As in `CocoDataset`.

    Raises: ValueError: The folder or the list is missing, or an XML file is missing or malformed; on reading, an image
        cannot be read or decoded.

    Example:
        >>> VOCDataset("no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: VOCDataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path of
        the folder that holds the files.
    """

    def __init__(
        self, dataset_dir: str | pathlib.Path, task: str = "Segmentation", usage: str = "train",
        class_indexing: Mapping[str, int] | None = None, num_samples: int | None = None,
        num_parallel_workers: int | None = None, shuffle: bool | None = None, decode: bool = False,
        sampler: SamplerLike | None = None, num_shards: int | None = None, shard_id: int | None = None,
        cache: DatasetCache | None = None, extra_metadata: bool = False,
        decrypt: Callable[[str], bytes] | None = None,
    ) -> None:
        folder = find_folder(_WHERE, dataset_dir)
        self._task = checks.one_of(_WHERE, "task", task, ("Segmentation", "Detection"))
        checks.instance(_WHERE, "usage", usage, str, 'usage="train"')
        path = folder / "ImageSets" / ("Main" if task == "Detection" else task) / f"{usage}.txt"
        if not path.is_file():
            raise checks.fail_value(_WHERE, f"usage must name a list {path} that exists", usage, 'usage="train"')
        if class_indexing is not None:
            checks.instance(_WHERE, "class_indexing", class_indexing, Mapping, 'class_indexing={"cat": 0, "dog": 1}')
            for label in class_indexing.values():
                checks.instance(_WHERE, "labels in class_indexing", label, int, 'class_indexing={"cat": 0}')
            if task == "Segmentation":
                raise checks.fail_value(_WHERE, 'class_indexing is for "Detection"', task, "class_indexing=None")
        names = [line.strip() for line in path.read_text().splitlines() if line.strip()]
        columns: tuple[str, ...] = ("image", "target")
        rows: list[Row] = [()] * len(names)
        if task == "Detection":
            columns = ("image", "bbox", "label", "difficult", "truncate")
            names, rows, self._labels = _read_annotations(folder / "Annotations", names, class_indexing)
        if not names:
            raise foreign_file(_WHERE, path, "the names of images, with objects of known classes", "none")
        paths = [[str(folder / "JPEGImages" / f"{name}.jpg") for name in names]]
        if task == "Segmentation":
            paths.append([str(folder / "SegmentationClass" / f"{name}.png") for name in names])
        super().__init__(image_stage(
            _WHERE, columns, paths, lambda index: tuple(value.copy() for value in rows[index]), decode=decode,
            num_parallel_workers=num_parallel_workers, cache=cache, decrypt=decrypt, extra_metadata=extra_metadata,
            sampler=sampler, shuffle=shuffle, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id,
        ))

    def get_class_indexing(self) -> dict[str, int]:
        """Return the label of each class."""
        if self._task != "Detection":
            raise NotImplementedError(f'{_WHERE}: expected task="Detection"; got "{self._task}".')
        return dict(self._labels)


def _read_annotations(
    folder: pathlib.Path, names: Sequence[str], class_indexing: Mapping[str, int] | None
) -> tuple[list[str], list[Row], dict[str, int]]:
    """Return the names of the images with objects, their columns, and the labels of classes."""
    objects = [_read_objects(folder / f"{name}.xml") for name in names]
    known = sorted({item[0] for listed in objects for item in listed})
    labels = dict(class_indexing or {name: label for label, name in enumerate(known)})
    kept = [(name, [item for item in listed if item[0] in labels]) for name, listed in zip(names, objects, strict=True)]
    kept = [(name, listed) for name, listed in kept if listed]
    return [name for name, _ in kept], [_row(listed, labels) for _, listed in kept], labels


def _row(objects: Sequence[_Object], labels: Mapping[str, int]) -> Row:
    names, boxes, flags = zip(*objects, strict=True)
    corners = np.array(boxes, np.float32)
    box = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], axis=1)
    difficult, truncated = np.split(np.array(flags), 2, axis=1)
    numbers = (np.array([[labels[name]] for name in names]), difficult, truncated)
    return box, *(column.astype(np.uint32) for column in numbers)


def _read_objects(path: pathlib.Path) -> list[_Object]:
    try:
        objects = [_read_object(item) for item in ElementTree.parse(path).getroot().findall("object")]
        if not objects:
            raise ValueError("no object")
    except (OSError, ElementTree.ParseError, ValueError) as error:
        raise foreign_file(_WHERE, path, "objects with a name and a box", str(error)) from error
    return objects


def _read_object(item: ElementTree.Element) -> _Object:
    name = item.findtext("name", "").strip()
    left, top, right, bottom = box = tuple(
        float(item.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax")
    )
    if not name or left <= 0 or top <= 0 or right <= left or bottom <= top:
        raise ValueError(f'the name "{name}" and the box {box}')
    return name, box, tuple(int(item.findtext(flag, "0")) for flag in ("difficult", "truncated"))
