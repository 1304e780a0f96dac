"""CocoDataset: images, and their annotations in a JSON file."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from mixtrain import checks
from mixtrain.dataset.cache import DatasetCache
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.image_source import image_stage
from mixtrain.dataset.sampling import SamplerLike
from mixtrain.dataset.source_files import find_folder, foreign_file
from mixtrain.dataset.stage import Row

_WHERE: Final = "CocoDataset"
_TASKS: Final = {  # The columns of each task after the image.
    "Detection": {"bbox": "float32", "category_id": "uint32", "iscrowd": "uint32"},
    "Stuff": {"segmentation": "float32", "iscrowd": "uint32"},
    "Keypoint": {"keypoints": "float32", "num_keypoints": "uint32"},
    "Panoptic": {"bbox": "float32", "category_id": "uint32", "iscrowd": "uint32", "area": "uint32"},
    "Captioning": {"captions": "str"},
}


class CocoDataset(Dataset):
    """Images of COCO that have annotations, in the order of the annotation file.

    The columns are image, uint8 of one dimension (the bytes of the file) or with `decode` (height, width, 3), then, of
    n objects: for "Detection" bbox, float32 (n, 4), category_id and iscrowd, uint32 (n, 1); for "Panoptic" area, uint32
    (n, 1), too; for "Keypoint" keypoints, float32 (n, 3 per point), and num_keypoints, uint32 (n, 1); for "Stuff"
    segmentation, float32, a row for each polygon, padded with -1, and iscrowd; for "Captioning" captions, (n, 1).

    Args:
        num_samples, num_parallel_workers, shuffle, decode, sampler, num_shards, shard_id, cache, decrypt: As in
            `ImageFolderDataset`.
        dataset_dir: The folder of the images.
        annotation_file: The JSON file.
        task: "Detection", "Stuff", "Panoptic", "Keypoint" or "Captioning".
        extra_metadata: Whether there is a column _meta-filename, which iterators return once it is renamed: the name
            without extension.

    Raises: ValueError: The folder or the file is missing, or the file has not what the task needs; on reading, an image
        cannot be read or decoded.

    Example:
        >>> CocoDataset("no/such/folder", "annotations.json")
        Traceback (most recent call last):
        ...
        ValueError: CocoDataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path of
        the folder that holds the files.
    """

    def __init__(
        self, dataset_dir: str | pathlib.Path, annotation_file: str | pathlib.Path, task: str = "Detection",
        num_samples: int | None = None, num_parallel_workers: int | None = None, shuffle: bool | None = None,
        decode: bool = False, sampler: SamplerLike | None = None, num_shards: int | None = None,
        shard_id: int | None = None, cache: DatasetCache | None = None, extra_metadata: bool = False,
        decrypt: Callable[[str], bytes] | None = None,
    ) -> None:
        folder = find_folder(_WHERE, dataset_dir)
        self._task = checks.one_of(_WHERE, "task", task, _TASKS)
        checks.instance(_WHERE, "annotation_file", annotation_file, (str, pathlib.Path), 'annotation_file="a.json"')
        if not os.path.isfile(annotation_file):
            raise checks.fail_value(
                _WHERE, "annotation_file must be a file that exists", str(annotation_file), "the path of the JSON file"
            )
        try:
            names, rows, self._categories = _read_file(annotation_file, task)
            if not rows:
                raise ValueError("no annotations")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            expected = f'images, categories and annotations for task="{task}"'
            raise foreign_file(_WHERE, annotation_file, expected, f"{type(error).__name__}: {error}") from error
        super().__init__(image_stage(
            _WHERE, ("image", *_TASKS[task]), [[str(folder / name) for name in names]],
            lambda index: tuple(value.copy() for value in rows[index]), decode=decode,
            num_parallel_workers=num_parallel_workers, cache=cache, decrypt=decrypt, extra_metadata=extra_metadata,
            sampler=sampler, shuffle=shuffle, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id,
        ))

    def get_class_indexing(self) -> dict[str, list[int]]:  # type: ignore[override]
        """Return the id of each category in a list, for "Panoptic" with 1 for a thing and 0 for stuff."""
        if self._task not in ("Detection", "Panoptic"):
            raise NotImplementedError(f'{_WHERE}: expected task="Detection" or "Panoptic"; got "{self._task}".')
        return {name: list(ids) for name, ids in self._categories.items()}


def _read_file(path: str | pathlib.Path, task: str) -> tuple[list[str], list[Row], dict[str, list[int]]]:
    """Return the names of the images with annotations, the columns of each, and the categories."""
    data = json.loads(pathlib.Path(path).read_bytes())
    categories = data["categories"] if task != "Captioning" else []
    flags = ("id", "isthing") if task == "Panoptic" else ("id",)
    known = {category["id"] for category in categories}
    objects: dict[int, list[Mapping[str, Any]]] = {image["id"]: [] for image in data["images"]}
    for annotation in data["annotations"]:
        parts = annotation["segments_info"] if task == "Panoptic" else [annotation]
        objects[annotation["image_id"]] += parts
        for part in parts:
            if "category_id" in _TASKS[task] and part["category_id"] not in known:
                raise ValueError(f"an annotation of category_id {part['category_id']}, which categories has not")
    images = [image for image in data["images"] if objects[image["id"]]]
    rows = [
        tuple(_column(objects[image["id"]], column, dtype) for column, dtype in _TASKS[task].items())
        for image in images
    ]
    indexing = {category["name"]: [int(category[flag]) for flag in flags] for category in categories}
    return [image["file_name"] for image in images], rows, indexing


def _column(objects: Sequence[Mapping[str, Any]], column: str, dtype: str) -> np.ndarray:
    """Return the values of an image's objects, a row each; shorter rows are padded with -1."""
    rows: list[Any] = []
    for item in objects:
        if column == "segmentation":  # Polygons, or the counts of a run-length encoding.
            rows += [item[column]["counts"]] if isinstance(item[column], dict) else item[column]
        else:
            value = item.get(column, 0) if column == "iscrowd" else item["caption" if column == "captions" else column]
            rows.append(value if isinstance(value, list) else [value])
    if dtype == "str":
        return np.array(rows)
    array = np.full((len(rows), max(map(len, rows))), -1 if dtype == "float32" else 0, dtype)
    for index, row in enumerate(rows):
        array[index, : len(row)] = row
    return array
