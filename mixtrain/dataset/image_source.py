"""The source of datasets of image files: images, read several at a time, and what is known of each."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset import config
from mixtrain.dataset.cache import DatasetCache, cached
from mixtrain.dataset.image_files import ImageFiles
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.sampler import BuiltinSampler
from mixtrain.dataset.sampling import check_workers, choose_sampler
from mixtrain.dataset.source import IndexedSource
from mixtrain.dataset.stage import Row, Stage

Annotate = Callable[[int], Row]


class ImageSource(IndexedSource):
    """Rows of one image of each of several `ImageFiles`, then of what `annotate` returns for the index of the row."""

    def __init__(
        self, where: str, files: Sequence[ImageFiles], columns: Sequence[str], sampler: BuiltinSampler,
        annotate: Annotate, labels: np.ndarray | None,
    ) -> None:
        super().__init__(where, files, columns, sampler, length=len(files[0].paths), labels=labels)
        self._annotate = annotate

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        indices = self.indices(pass_seed)
        for index, *images in zip(indices.tolist(), *(files.read(indices) for files in self.source), strict=True):
            yield *images, *self._annotate(index)


def image_stage(
    where: str, columns: Sequence[str], paths: Sequence[Sequence[str]], annotate: Annotate, *, decode: bool,
    num_parallel_workers: int | None, cache: DatasetCache | None, decrypt: Callable[[str], bytes] | None,
    extra_metadata: bool = False, labels: np.ndarray | None = None, **order: Any,
) -> Stage:
    """Return the stage of a dataset's images, for its arguments; see `ImageSource`.

    `paths`: For each column of images its files. `order`: The arguments of `choose_sampler`.
    """
    sampler = choose_sampler(where, **order)
    check_workers(where, num_parallel_workers)
    checks.boolean(where, "decode", decode)
    if decrypt is not None and not callable(decrypt):
        raise checks.fail_type(where, "decrypt must be a function", decrypt, "decrypt=None")
    workers = num_parallel_workers or config.get_num_parallel_workers()
    files = [ImageFiles(where, names, decode, workers, decrypt) for names in paths]
    if checks.boolean(where, "extra_metadata", extra_metadata):
        columns, values = (*columns, "_meta-filename"), annotate

        def annotate(index: int) -> Row:
            return *values(index), np.array(pathlib.Path(paths[0][index]).stem)

    return cached(where, ImageSource(where, files, columns, sampler, annotate, labels), cache)
