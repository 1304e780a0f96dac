"""MindDataset: a name that scripts import, and the error that says what to read instead of MindRecord files."""

from __future__ import annotations

from typing import Any

from mixtrain import checks
from mixtrain.dataset.dataset import Dataset


class MindDataset(Dataset):
    """Raises: MindRecord files are not read here.

    Args:
        dataset_files: Not used, as all other arguments: `columns_list`, `num_parallel_workers`, `shuffle`,
            `num_shards`, `shard_id`, `sampler`, `padded_sample`, `num_padded`, `num_samples`, `cache`.

    Raises:
        NotImplementedError: Always.

    Example:
        >>> MindDataset("train.mindrecord")
        Traceback (most recent call last):
        ...
        NotImplementedError: MindDataset: expected no MindRecord file; got 'train.mindrecord'. Write the rows as
        TFRecord files and read them with TFRecordDataset, or as .npz and read them with NumpySlicesDataset.

    Source: MindSpore, `mindspore.dataset.MindDataset`.
    """

    def __init__(
        self,
        dataset_files: str | list[str],
        columns_list: list[str] | None = None,
        num_parallel_workers: int | None = None,
        shuffle: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        sampler: Any = None,
        padded_sample: dict[str, Any] | None = None,
        num_padded: int | None = None,
        num_samples: int | None = None,
        cache: Any = None,
    ) -> None:
        raise NotImplementedError(
            f"MindDataset: expected no MindRecord file; got {checks.shown(dataset_files)}. Write the rows as TFRecord "
            "files and read them with TFRecordDataset, or as .npz and read them with NumpySlicesDataset."
        )
