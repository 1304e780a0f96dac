"""Datasets that MindSpore and mixtrain both build, by one rule: what they hold is compared with the reference."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# The folders that `samples` fills; the reference wants CIFAR's files as long as the official ones.
Case = Callable[[Any, pathlib.Path, int], Any]

_ORDERED = {"shuffle": False}
_FEW = 100


def rows_of(dataset: Any) -> list[list[Any]]:
    """Return the rows of one epoch as lists; of a large array its sum and its ends."""
    return [
        [_short(value) for value in row] for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    ]


def facts_of(dataset: Any) -> str:
    """Return all that is compared, as JSON."""
    return json.dumps({
        "columns": dataset.get_col_names(),
        "size": dataset.get_dataset_size(),
        "types": [str(np.dtype(dtype)) for dtype in dataset.output_types()],
        "shapes": dataset.output_shapes(),
        "classes": dataset.num_classes(),
        "indexing": dataset.get_class_indexing(),
        "rows": rows_of(dataset),
    })


def _short(value: np.ndarray) -> Any:
    if value.size <= _FEW:
        return value.tolist()
    flat = value.reshape(-1)
    return [list(value.shape), int(value.sum(dtype=np.int64)), flat[:5].tolist(), flat[-5:].tolist()]


def _child(parent: Any, child: Any) -> Any:
    parent.add_child(child)
    return parent


def _mnist(ds: Any, folder: pathlib.Path, **options: Any) -> Any:
    return ds.MnistDataset(str(folder / "mnist"), "train", **options)


def _images(ds: Any, folder: pathlib.Path, **options: Any) -> Any:
    return ds.ImageFolderDataset(str(folder / "images"), **{**_ORDERED, **options})


def _records(ds: Any, folder: pathlib.Path, files: str = "*", **options: Any) -> Any:
    path = str(folder / "records" / f"{files}.tfrecord")
    return ds.TFRecordDataset(path, **{"shuffle": False, "num_parallel_workers": 1, **options})


def _ragged() -> Iterator[tuple[np.ndarray, ...]]:
    for i in range(5):
        yield np.arange(i + 1), np.full((2, i + 1), i, np.float32), np.array(i)


def _ragged_data(ds: Any) -> Any:
    return ds.GeneratorDataset(_ragged, ["a", "m", "s"])


def _lines(ds: Any, folder: pathlib.Path, **options: Any) -> Any:
    path = str(folder / "text" / "*.txt")
    return ds.TextFileDataset(path, **{"shuffle": False, "num_parallel_workers": 1, **options})


def _fields(ds: Any, folder: pathlib.Path, files: str = "*.csv", **options: Any) -> Any:
    path = str(folder / "text" / files)
    return ds.CSVDataset(path, **{"shuffle": False, "num_parallel_workers": 1, **options})


def _schema(ds: Any, **columns: tuple[Any, ...]) -> Any:
    schema = ds.Schema()
    for name, arguments in columns.items():
        schema.add_column(name, *arguments)
    return schema


def _shared(ds: Any, count: int, shards: int, shard: int) -> Any:
    padded = ds.PaddedDataset([{"x": np.array(-k - 1)} for k in range(3)])
    dataset = ds.NumpySlicesDataset(np.arange(count), "x", shuffle=False) + padded
    dataset.use_sampler(ds.DistributedSampler(shards, shard, shuffle=False))
    return dataset


def _sampled(make: Callable[[Any], Any]) -> Case:
    return lambda ds, folder, rows: _mnist(ds, folder, sampler=make(ds))


CASES: dict[str, Case] = {
    **{
        f"mnist {usage}": lambda ds, folder, rows, u=usage: ds.MnistDataset(str(folder / "mnist"), u, shuffle=False)
        for usage in (None, "train", "test", "all")
    },
    "fashion": lambda ds, folder, rows: ds.FashionMnistDataset(str(folder / "mnist"), "test", shuffle=False),
    "kmnist": lambda ds, folder, rows: ds.KMnistDataset(str(folder / "mnist"), shuffle=False),
    **{
        f"emnist {usage}": lambda ds, folder, rows, u=usage: ds.EMnistDataset(
            str(folder / "emnist"), "letters", u, shuffle=False
        )
        for usage in (None, "train", "test")
    },
    **{
        f"qmnist {usage} {compat}": lambda ds, folder, rows, u=usage, c=compat: ds.QMnistDataset(
            str(folder / "qmnist"), u, c, shuffle=False
        )
        for usage in (None, "train", "test", "nist") for compat in (True, False)
    },
    "lines": lambda ds, folder, rows: _lines(ds, folder),
    "lines cut": lambda ds, folder, rows: _lines(ds, folder, num_samples=4),
    **{
        f"lines shard {shard} of {shards}": lambda ds, folder, rows, i=shard, n=shards: _lines(
            ds, folder, num_shards=n, shard_id=i
        )
        for shards, shard in ((2, 0), (2, 1), (3, 2), (20, 15))
    },
    "fields": lambda ds, folder, rows: _fields(ds, folder),
    "fields typed": lambda ds, folder, rows: _fields(ds, folder, column_defaults=[0, 0.0, ""]),
    "fields shard": lambda ds, folder, rows: _fields(ds, folder, column_defaults=[0], num_shards=2, shard_id=1),
    "fields named": lambda ds, folder, rows: _fields(
        ds, folder, "plain", field_delim="\t", column_names=["i", "f", "s"], column_defaults=[0, 0.0]
    ),
    "mnist first three": lambda ds, folder, rows: _mnist(ds, folder, shuffle=False, num_samples=3),
    "mnist too many": lambda ds, folder, rows: _mnist(ds, folder, shuffle=False, num_samples=30),
    "mnist no samples": lambda ds, folder, rows: _mnist(ds, folder, shuffle=False, num_samples=0),
    **{
        f"mnist shard {shard} of {shards}": lambda ds, folder, rows, i=shard, n=shards: _mnist(
            ds, folder, shuffle=False, num_shards=n, shard_id=i
        )
        for shards, shard in ((3, 0), (3, 2), (20, 15))
    },
    "sequential": _sampled(lambda ds: ds.SequentialSampler(2, 100)),
    "subset": _sampled(lambda ds: ds.SubsetSampler([3, 1, 5], 2)),
    "list": _sampled(lambda ds: [3, 1]),
    "weighted": _sampled(lambda ds: ds.WeightedRandomSampler([0.0, 0.0, 1.0], 4)),
    "weighted without number": _sampled(lambda ds: ds.WeightedRandomSampler([0.0, 1.0])),
    **{
        f"offset {offset} shard {shard}": _sampled(
            lambda ds, o=offset, i=shard: ds.DistributedSampler(3, i, False, offset=o)
        )
        for offset in (-1, 0, 1, 2, 3) for shard in (0, 1)
    },
    "classes": _sampled(lambda ds: ds.PKSampler(2)),
    "classes cut": _sampled(lambda ds: ds.PKSampler(1, num_samples=3)),
    "child sequential": _sampled(lambda ds: _child(ds.SequentialSampler(1, 3), ds.DistributedSampler(2, 0, False))),
    "child distributed": _sampled(lambda ds: _child(ds.DistributedSampler(2, 1, False), ds.SequentialSampler(2))),
    "child subset": _sampled(lambda ds: _child(ds.SubsetSampler([0, 2]), ds.SequentialSampler(2))),
    "child classes": _sampled(lambda ds: _child(ds.SequentialSampler(0, 3), ds.PKSampler(2))),
    "cifar10": lambda ds, folder, rows: ds.Cifar10Dataset(
        str(folder / "cifar10"), sampler=[rows * file + row for file in range(6) for row in (0, 2)]
    ),
    "cifar100": lambda ds, folder, rows: ds.Cifar100Dataset(
        str(folder / "cifar100"), sampler=[0, 1, 2, rows, rows + 1, rows + 2]
    ),
    "cifar10 test": lambda ds, folder, rows: ds.Cifar10Dataset(
        str(folder / "cifar10"), "test", sampler=ds.SequentialSampler(0, 3)
    ),
    "images": lambda ds, folder, rows: _images(ds, folder),
    "images decoded": lambda ds, folder, rows: _images(ds, folder, decode=True),
    "images png": lambda ds, folder, rows: _images(ds, folder, extensions=[".png"]),
    "images classes": lambda ds, folder, rows: _images(ds, folder, class_indexing={"dog": 5, "cat": 2}),
    "images per class": lambda ds, folder, rows: _images(
        ds, folder, shuffle=None, sampler=ds.PKSampler(1), class_indexing={"bird": 3}
    ),
    "images decrypted": lambda ds, folder, rows: _images(
        ds, folder, decode=True, decrypt=lambda path: pathlib.Path(path).read_bytes()
    ),
    "records": lambda ds, folder, rows: _records(ds, folder),
    "records columns": lambda ds, folder, rows: _records(ds, folder, columns_list=["f", "i"]),
    "records cut": lambda ds, folder, rows: _records(ds, folder, num_samples=6),
    **{
        f"records shard {shard}": lambda ds, folder, rows, i=shard: _records(ds, folder, num_shards=2, shard_id=i)
        for shard in (0, 1)
    },
    **{
        f"records equal shard {shard}": lambda ds, folder, rows, i=shard: _records(
            ds, folder, num_shards=5, shard_id=i, shard_equal_rows=True
        )
        for shard in (0, 3, 4)
    },
    "records equal cut": lambda ds, folder, rows: _records(
        ds, folder, num_shards=2, shard_id=1, num_samples=4, shard_equal_rows=True
    ),
    "records schema": lambda ds, folder, rows: _records(
        ds, folder, "a", schema=_schema(ds, i=("int32",), f=("float64", [1, 2]), b=("uint8",))
    ),
    "records scalar": lambda ds, folder, rows: _records(
        ds, folder, "a", schema=_schema(ds, i=("int64", []), b=("string", []), f=("float16", [-1, 1]))
    ),
    "records schema file": lambda ds, folder, rows: _records(
        ds, folder, "a", schema=str(folder / "records" / "schema.json")
    ),
    **{
        f"records {name}": lambda ds, folder, rows, n=name: ds.TFRecordDataset(
            str(folder / "records" / f"a.{n}"), shuffle=False, compression_type=n, num_parallel_workers=1
        )
        for name in ("GZIP", "ZLIB")
    },
    "records many bytes": lambda ds, folder, rows: ds.TFRecordDataset(
        str(folder / "records" / "bytes"), shuffle=False, num_parallel_workers=1
    ),
    "padded all": lambda ds, folder, rows: _ragged_data(ds).padded_batch(2, pad_info={}),
    "padded some": lambda ds, folder, rows: _ragged_data(ds).padded_batch(
        2, True, pad_info={"a": ([6], -1), "m": ([None, 5], 7)}
    ),
    "padded none": lambda ds, folder, rows: _ragged_data(ds).project("s").padded_batch(2, True),
    "padded changing": lambda ds, folder, rows: _ragged_data(ds).project("a").padded_batch(
        lambda info: info.get_batch_num() + 1, pad_info={"a": (None, 2.7)}
    ),
    "padded cut": lambda ds, folder, rows: ds.NumpySlicesDataset([[1, 2, 3], [4, 5, 6]], "x", shuffle=False)
    .padded_batch(2, pad_info={"x": ([2], 0)}),
    "buckets": lambda ds, folder, rows: _ragged_data(ds).project("a").bucket_batch_by_length(["a"], [3, 5], [2, 1, 2]),
    "buckets dropped": lambda ds, folder, rows: _ragged_data(ds).project("a").bucket_batch_by_length(
        ["a"], [3, 5], [2, 2, 2], drop_remainder=True
    ),
    "buckets to boundary": lambda ds, folder, rows: _ragged_data(ds).project("a").bucket_batch_by_length(
        ["a"], [3, 6], [2, 2, 2], len, {"a": ([None], -1)}, True
    ),
    "flat map": lambda ds, folder, rows: ds.NumpySlicesDataset([[0, 1], [2, 3]], "x", shuffle=False).flat_map(
        lambda row: ds.NumpySlicesDataset(row, "x", shuffle=False).repeat(2)
    ),
    **{
        f"shared {count} shard {shard}": lambda ds, folder, rows, n=count, i=shard: _shared(ds, n, 3, i)
        for count in (5, 7) for shard in (0, 1, 2)
    },
    "listed batches": lambda ds, folder, rows: ds.GeneratorDataset(
        [(i, 2 * i) for i in range(5)], ["x", "y"], batch_sampler=[[0, 1], [4]],
        collate_fn=lambda x, y: (np.array(x), np.array(y) + 100),
    ),
    "generator schema": lambda ds, folder, rows: ds.GeneratorDataset(
        [1, 2], schema=_schema(ds, x=("int64", [])), shuffle=False
    ),
}
