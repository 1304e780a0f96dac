"""TFRecordDataset: rows from files of tf.train.Example records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mixtrain import checks, data_backend
from mixtrain.dataset import config
from mixtrain.dataset.cache import DatasetCache, cached
from mixtrain.dataset.columns import read_names
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.order import Shuffle as ShuffleStage
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.record_files import Compression, check_start, count_records
from mixtrain.dataset.sampling import check_shards, check_workers
from mixtrain.dataset.schema import Schema, SchemaColumn, read_schema
from mixtrain.dataset.sharded_files import BUFFER_SIZE, ShardedFiles
from mixtrain.dataset.shuffle_mode import Shuffle, read_shuffle
from mixtrain.dataset.source_files import find_files, foreign_file
from mixtrain.dataset.stage import Row

_WHERE = "TFRecordDataset"
_DTYPES = {"bytes": "uint8", "float": "float32", "int": "int64"}


class TFRecordDataset(Dataset):
    """Rows from TFRecord files, which are read in the order of their names.

    Args:
        dataset_files: A path or glob pattern, or a list of them.
        schema: The dtypes and shapes of the columns, a `Schema` or the path of its JSON file. By default each feature
            of the first record is a column, in the order of their names: bytes as uint8, floats as float32, ints as
            int64, of one dimension.
        columns_list: Which columns to read, in that order; all by default.
        num_samples: Maximum number of rows of each shard in an epoch; by default the schema's numRows, or all.
        num_parallel_workers: How many records are parsed at a time; by default `config.get_num_parallel_workers()`.
        shuffle: True or `Shuffle.GLOBAL`: files in random order and rows sampled from a buffer of 10000;
            `Shuffle.FILES`: files in random order; False: neither.
        num_shards: Number of shards that the files are divided into; needs `shard_id`.
        shard_id: Which shard to read, from 0.
        shard_equal_rows: Whether rows are divided instead of files, the same number for each shard.
        cache: Stores the rows in memory after the first epoch.
        compression_type: "GZIP" or "ZLIB" if the files are compressed.

    Raises: ValueError: A file is missing, truncated or not a TFRecord file; a column is unknown; on reading, a record
        does not fit the schema.

    Example:
        >>> TFRecordDataset("no/such/file")
        Traceback (most recent call last):
        ...
        ValueError: TFRecordDataset: dataset_files must name files that exist; got 'no/such/file'. Write
        dataset_files="train*.tfrecord".
    """

    def __init__(
        self, dataset_files: str | list[str], schema: Schema | str | None = None, columns_list: list[str] | None = None,
        num_samples: int | None = None, num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle = Shuffle.GLOBAL, num_shards: int | None = None, shard_id: int | None = None,
        shard_equal_rows: bool = False, cache: DatasetCache | None = None, compression_type: str | None = None,
    ) -> None:
        mode = read_shuffle(_WHERE, shuffle, files=True)
        check_shards(_WHERE, num_shards, shard_id)
        check_workers(_WHERE, num_parallel_workers)
        checks.boolean(_WHERE, "shard_equal_rows", shard_equal_rows)
        compression: Compression = checks.one_of(
            _WHERE, "compression_type", compression_type or "", ("", "GZIP", "ZLIB")
        )
        schema = None if schema is None else read_schema(_WHERE, schema)
        rows = 0 if num_samples is None else checks.integer(_WHERE, "num_samples", num_samples, at_least=0)
        files = find_files(_WHERE, dataset_files, "train*.tfrecord")
        for path in files:
            check_start(path, compression)
        source = RecordSource(
            files,
            _read_columns(files[0], compression, schema, columns_list),
            compression,
            workers=num_parallel_workers or config.get_num_parallel_workers(),
            max_rows=rows or (schema.num_rows if schema else 0),
            shards=(num_shards or 1, shard_id or 0),
            equal_rows=shard_equal_rows,
            shuffle_files=mode is not Shuffle.FALSE and cache is None,
        )
        stage = cached(_WHERE, source, cache)
        super().__init__(ShuffleStage(stage, BUFFER_SIZE) if mode is Shuffle.GLOBAL else stage)


class RecordSource(ShardedFiles):
    """The rows of one shard of TFRecord files; see `ShardedFiles`.

    `workers`: How many records are parsed at a time. `equal_rows`: Whether rows are divided among shards instead of
    files.
    """

    def __init__(
        self, files: Sequence[str], columns: Sequence[data_backend.ExampleColumn], compression: Compression, *,
        workers: int, max_rows: int, shards: tuple[int, int], equal_rows: bool, shuffle_files: bool,
    ) -> None:
        count, shard = shards
        if not equal_rows and len(files) < count:
            raise checks.fail_value(
                _WHERE, f"there must be at least as many files as num_shards={count}", len(files),
                "shard_equal_rows=True",
            )
        super().__init__(
            [column.name for column in columns], files if equal_rows else files[shard::count], max_rows=max_rows,
            shards=shards if equal_rows else (1, 0), shuffle_files=shuffle_files,
        )
        self._examples = data_backend.Examples(columns, compression, workers)
        self._compression = compression

    def count(self, path: str) -> int:
        return count_records(path, self._compression)

    def rows(self, pass_seed: PassSeed) -> Iterator[Row]:
        files = self.ordered(pass_seed)
        try:
            yield from self._examples.read(files, start=self.start, count=self.size)
        except data_backend.UnreadableRecord as error:
            raise _damaged(files, str(error)) from error


def _read_columns(
    path: str, compression: Compression, schema: Schema | None, columns_list: list[str] | None
) -> list[data_backend.ExampleColumn]:
    try:
        kinds = data_backend.first_example(path, compression)
    except data_backend.UnreadableRecord as error:
        raise foreign_file(_WHERE, path, "tf.train.Example records", str(error)) from error
    listed = [SchemaColumn(name, _DTYPES[kind]) for name, kind in kinds.items()] if schema is None else schema.columns
    columns = {column.name: column for column in listed}
    names = tuple(columns) if not columns_list else read_names(_WHERE, "columns_list", columns_list)
    for name in names:
        checks.one_of(_WHERE, "a name in columns_list", name, columns)
        checks.one_of(_WHERE, "a column of schema", name, kinds)
        dtype = columns[name].dtype
        fits = dtype in ("string", "uint8") if kinds[name] == "bytes" else dtype != "string"
        if not fits:
            raise checks.fail_value(
                _WHERE, f'column "{name}" holds {kinds[name]} in {path} and must have a dtype for it in schema',
                dtype, '"uint8" or "string" for bytes, and a dtype of numbers for numbers',
            )
    return [data_backend.ExampleColumn(name, kinds[name], columns[name].dtype, columns[name].shape) for name in names]


def _damaged(files: Sequence[str], reason: str) -> ValueError:
    names = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    if "; got" in reason:  # The backend's message about one column.
        return ValueError(f"{_WHERE}: expected {reason}. Write a schema that fits every record of {names}.")
    return foreign_file(_WHERE, names, "whole records of the features that the first one has", reason)
