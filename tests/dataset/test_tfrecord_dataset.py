"""TFRecordDataset: shuffles and shards epoch by epoch, batches, caches, and one sentence for each broken file."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
import zlib

import numpy as np
import pytest

from mixtrain.dataset import DatasetCache, Schema, Shuffle, TFRecordDataset, record_files
from tests.backends import quick_every
from tests.dataset import samples

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def folder(tmp_path):
    """Write three files whose rows are 0 to 3, 10 to 13 and 20 to 23."""
    for number, name in enumerate("abc"):
        rows = [{"i": [10 * number + k], "image": [bytes(range(k, k + 6))]} for k in range(4)]
        samples.tfrecord(tmp_path / f"{name}.tfrecord", rows)
    return tmp_path


def numbers(dataset, epochs=1):
    run = dataset.project("i").create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[int(row[0][0]) for row in run] for _ in range(epochs)]


def read(folder, **options):
    return TFRecordDataset(str(folder / "*.tfrecord"), **options)


EVERY = [number + k for number in (0, 10, 20) for k in range(4)]


def test_rows_are_mixed_anew_in_each_epoch(folder):
    first, second = numbers(read(folder), 2)
    assert sorted(first) == sorted(second) == EVERY
    assert first != second


@pytest.mark.slow
def test_files_are_mixed_and_their_rows_stay_in_order(folder):
    epochs = numbers(read(folder, shuffle=Shuffle.FILES), 8)
    assert {tuple(sorted(epoch)) for epoch in epochs} == {tuple(EVERY)}
    assert all(epoch[k + 1] == epoch[k] + 1 for epoch in epochs for k in (0, 1, 2, 4, 5, 6, 8, 9, 10))
    assert len({tuple(epoch) for epoch in epochs}) > 1


@pytest.mark.slow
@pytest.mark.parametrize("equal", [False, True])
def test_shuffled_shards_divide_every_epoch_among_them(equal, folder):
    shards = [
        numbers(read(folder, num_shards=3, shard_id=shard, shard_equal_rows=equal, shuffle=Shuffle.FILES), 3)
        for shard in range(3)
    ]
    sizes = {len(epoch) for shard in shards for epoch in shard}
    assert sizes == {4}
    if not equal:
        assert all(sorted(sum((shard[k] for shard in shards), [])) == EVERY for k in range(3))


def test_images_become_batches(folder):
    schema = Schema()
    schema.add_column("image", "uint8", [2, 3])
    schema.add_column("i", "int32", [])
    dataset = read(folder, schema=schema, shuffle=False, num_parallel_workers=2)
    image, label = next(dataset.batch(4, True).create_tuple_iterator(output_numpy=True))
    assert (image.shape, image.dtype, label.dtype, label.tolist()) == ((4, 2, 3), np.uint8, np.int32, [0, 1, 2, 3])
    assert image[1].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert (len(dataset), len(dataset.batch(5, True))) == (12, 2)


@quick_every(2)
@pytest.mark.parametrize("shuffle", [False, True, Shuffle.FILES])
def test_cached_rows_are_read_from_the_files_once(shuffle, folder):
    dataset = read(folder, shuffle=shuffle, cache=DatasetCache(1))
    (first,) = numbers(dataset)
    for path in folder.iterdir():
        path.unlink()
    (second,) = numbers(dataset)
    assert sorted(first) == sorted(second) == EVERY


def test_a_list_of_patterns_names_files_in_the_order_of_their_names(folder):
    dataset = TFRecordDataset([str(folder / "c.*"), str(folder / "[ab].tfrecord")], shuffle=False)
    assert numbers(dataset) == [EVERY]


def test_a_record_without_a_feature_or_of_another_shape_is_named(folder):
    path = folder / "odd"
    samples.tfrecord(path, [{"i": [1, 2]}, {"i": [1, 2, 3]}, {"j": [1]}])
    schema = Schema()
    schema.add_column("i", "int64", [2])
    run = TFRecordDataset(str(path), schema, shuffle=False).create_tuple_iterator(output_numpy=True)
    assert next(run)[0].tolist() == [1, 2]
    with pytest.raises(ValueError, match=r'expected values of shape \(2\) in column "i"; got 3 values. Write a schema'):
        next(run)
    with pytest.raises(ValueError, match=f'expected values in column "i"; got none.*every record of {path}'):
        numbers(TFRecordDataset(str(path), shuffle=False))


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (lambda data: data[:-5], "that end inside record 3: it is cut off"),
        (lambda data: data + b"12", "that end inside record 4"),
        (lambda data: b"", "expected records of the TFRecord format in .*; got 0 bytes"),
        (lambda data: b"\x89PNG this is no such file", "expected records of the TFRecord format in .*; got 25 bytes"),
        (lambda data: data[:30] + b"!" + data[31:], "expected .*; got .*corrupted record"),
    ],
)
def test_a_cut_off_or_foreign_file_is_named_before_training_starts(contents, message, folder):
    path = folder / "a.tfrecord"
    path.write_bytes(contents(path.read_bytes()))
    with pytest.raises(ValueError, match=message) as caught:
        TFRecordDataset(str(path)).get_dataset_size()
    assert str(path) in str(caught.value)


def test_a_damaged_record_further_on_is_named_when_it_is_read(folder):
    path = folder / "b.tfrecord"
    data = path.read_bytes()
    path.write_bytes(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
    message = "expected whole records of the features.*a.tfrecord and 2 more; got corrupted record at 165. Write"
    with pytest.raises(ValueError, match=message):
        numbers(read(folder, shuffle=False))


def test_records_that_are_no_examples_are_named(folder):
    samples.tfrecord(folder / "none", [{}])
    with pytest.raises(ValueError, match="expected tf.train.Example records in .*none; got no record with features"):
        TFRecordDataset(str(folder / "none"))


@pytest.mark.parametrize(
    ("compression", "argument", "message"),
    [
        ("GZIP", None, 'it looks compressed: compression_type="GZIP"'),
        ("", "GZIP", "expected a file compressed by GZIP"),
        ("ZLIB", "GZIP", "expected a file compressed by GZIP"),
        ("GZIP", "ZLIB", "expected a file compressed by ZLIB"),
    ],
)
def test_another_compression_than_was_said_is_named(compression, argument, message, tmp_path):
    samples.tfrecord(tmp_path / "file", [{"i": [1]}], compression=compression)
    with pytest.raises(ValueError, match=message):
        TFRecordDataset(str(tmp_path / "file"), compression_type=argument)


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_cut_off_compressed_file_is_named(compression, tmp_path):
    path = tmp_path / "file"
    samples.tfrecord(path, [{"i": [k]} for k in range(300)], compression=compression)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=f"compressed by {compression} in {path}"):
        TFRecordDataset(str(path), compression_type=compression).get_dataset_size()


def peak_memory(function):
    """Return the largest number of bytes that Python allocates during a call."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@quick_every(2)
@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_compressed_file_is_expanded_in_parts(compression, tmp_path):
    import tensorflow as tf

    path, rows = tmp_path / "file", 64
    image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(2**20)]))
    record = tf.train.Example(features=tf.train.Features(feature={"image": image})).SerializeToString()
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for _ in range(rows):
            writer.write(record)
    assert path.stat().st_size < 2**18
    dataset = TFRecordDataset(str(path), shuffle=False, compression_type=compression, num_samples=2)
    assert peak_memory(lambda: record_files.count_records(str(path), compression)) < 2**23
    assert record_files.count_records(str(path), compression) == rows
    assert len(list(dataset.create_tuple_iterator(output_numpy=True))) == 2


@quick_every(3)
@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
@pytest.mark.parametrize("length", [2**27, 2**62])
def test_a_record_longer_than_its_compressed_file_is_refused_before_memory_is_taken(length, compression, tmp_path):
    path = tmp_path / "file"
    expanded = struct.pack("<Q", length) + bytes(2**26)
    path.write_bytes(gzip.compress(expanded) if compression == "GZIP" else zlib.compress(expanded))

    def refused():
        with pytest.raises(ValueError, match=f"{2**26 + 8} bytes that end inside record 0: it is cut off"):
            TFRecordDataset(str(path), compression_type=compression)

    assert peak_memory(refused) < 2**23


def schema(dtype, name="i"):
    result = Schema()
    result.add_column(name, dtype)
    return result


@quick_every(2)
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dataset_files": "nothing*"}, ValueError, r"dataset_files must name files that exist; got 'nothing\*'"),
        ({"dataset_files": []}, ValueError, "dataset_files must name a file"),
        ({"dataset_files": 3}, TypeError, "dataset_files must be a list or tuple"),
        ({"columns_list": ["x"]}, ValueError, "a name in columns_list must be one of i, image; got 'x'"),
        ({"schema": 3}, TypeError, "schema must be a Schema or str"),
        ({"schema": schema("int8", "x")}, ValueError, "a column of schema must be one of i, image; got 'x'"),
        ({"schema": schema("string")}, ValueError, 'column "i" holds int in .* must have a dtype for it in schema'),
        ({"schema": schema("int8", "image")}, ValueError, 'column "image" holds bytes in'),
        ({"num_samples": -1}, ValueError, "num_samples must be at least 0"),
        ({"num_shards": 4, "shard_id": 0}, ValueError, "there must be at least as many files as num_shards=4; got 3"),
        ({"num_shards": 2}, ValueError, "num_shards and shard_id go together"),
        ({"shuffle": Shuffle.INFILE}, ValueError, "shuffle must be one of Shuffle.FALSE, Shuffle.GLOBAL, Shuffle.FIL"),
        ({"compression_type": "BZ2"}, ValueError, "compression_type must be one of"),
        ({"shard_equal_rows": 1}, TypeError, "shard_equal_rows must be True or False"),
        ({"cache": "memory"}, TypeError, "cache must be a DatasetCache"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, error, message, folder):
    with pytest.raises(error, match=f"TFRecordDataset: {message}"):
        TFRecordDataset(**{"dataset_files": str(folder / "*.tfrecord"), **arguments})
