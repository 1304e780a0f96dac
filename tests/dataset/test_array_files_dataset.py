"""MNIST and CIFAR: compressed and partial folders, rows of the reader's own, and one sentence for each broken file."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from mixtrain.dataset import (
    Cifar10Dataset,
    Cifar100Dataset,
    DatasetCache,
    EMnistDataset,
    FashionMnistDataset,
    KMnistDataset,
    MnistDataset,
    PKSampler,
    QMnistDataset,
)
from mixtrain.seed import set_seed
from tests.dataset import samples

SOURCES = [MnistDataset, FashionMnistDataset, KMnistDataset, Cifar10Dataset, Cifar100Dataset]


def labels(dataset):
    return [int(row[-1]) for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


@pytest.fixture
def mnist(tmp_path):
    samples.mnist(tmp_path)
    return tmp_path


@pytest.fixture
def cifar10(tmp_path):
    samples.cifar10(tmp_path)
    return tmp_path


def test_compressed_files_are_read_as_plain_ones_are(tmp_path):
    samples.mnist(tmp_path / "plain")
    samples.mnist(tmp_path / "compressed", suffix=".gz")
    plain, compressed = (
        MnistDataset(tmp_path / name, shuffle=False).batch(20).create_tuple_iterator(num_epochs=1, output_numpy=True)
        for name in ("plain", "compressed")
    )
    for first, second in zip(next(plain), next(compressed), strict=True):
        assert first.dtype == second.dtype and np.array_equal(first, second)


@pytest.mark.parametrize("name", ["balanced", "letters", "mnist"])
def test_the_name_chooses_the_files_of_emnist(name, tmp_path):
    samples.emnist(tmp_path, "digits")
    samples.emnist(tmp_path, name)
    assert labels(EMnistDataset(tmp_path, name, "test", shuffle=False)) == [0, 3, 6, 9]
    assert labels(EMnistDataset(tmp_path, name, shuffle=False)) == [0, 3, 6, 9, *(3 * k % 10 for k in range(7))]
    with pytest.raises(ValueError, match="expected the file emnist-byclass-train-images-idx3-ubyte or .* got emnist-"):
        EMnistDataset(tmp_path, "byclass")


def test_the_parts_of_qmnist_are_train_test_and_nist(tmp_path):
    samples.qmnist(tmp_path)
    parts = {"train": [0, 2400, 4800], "test": [1, 2401, 4801, 7201], "nist": [2, 2402]}
    for usage, expected in parts.items():
        assert labels(QMnistDataset(tmp_path, usage, shuffle=False)) == expected
    assert labels(QMnistDataset(tmp_path, shuffle=False)) == sum(parts.values(), [])
    assert labels(QMnistDataset(tmp_path, "test10k", shuffle=False)) == parts["test"]
    assert labels(QMnistDataset(tmp_path, "train", True, 2, 1, False)) == [0, 2400]


def test_qmnist_gives_all_that_a_label_says(tmp_path):
    samples.qmnist(tmp_path)
    dataset = QMnistDataset(tmp_path, "nist", False, sampler=PKSampler(1))
    rows = [row[1] for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert [row.tolist() for row in rows] == [[2 + 300 * (8 * row + k) for k in range(8)] for row in range(2)]
    assert rows[0].dtype == np.uint32
    (tmp_path / "xnist-labels-idx2-int").unlink()
    with pytest.raises(ValueError, match="QMnistDataset: expected the file xnist-labels-idx2-int"):
        QMnistDataset(tmp_path)


def test_the_test_rows_of_qmnist_are_divided_after_10000(tmp_path):
    samples.qmnist(tmp_path)
    samples.write_idx(tmp_path / "qmnist-test-images-idx3-ubyte", np.zeros((10_002, 28, 28)))
    samples.write_idx(tmp_path / "qmnist-test-labels-idx2-int", np.arange(8 * 10_002).reshape(-1, 8), ">i4")
    assert len(QMnistDataset(tmp_path, "test10k")) == 10_000
    assert labels(QMnistDataset(tmp_path, "test50k", shuffle=False)) == [80_000, 80_008]


def test_the_name_with_a_dot_is_known(mnist):
    for path in list(mnist.iterdir()):
        path.rename(mnist / path.name.replace("-idx", ".idx"))
    assert labels(MnistDataset(mnist, "test", shuffle=False)) == [0, 3, 6, 9]


def test_a_folder_of_one_part_gives_that_part_where_usage_is_not_said(tmp_path):
    samples.mnist(tmp_path)
    samples.cifar10(tmp_path)
    samples.cifar100(tmp_path)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "train.bin"):
        (tmp_path / name).unlink()
    for number in range(1, 6):
        (tmp_path / f"data_batch_{number}.bin").unlink()
    assert [len(source(tmp_path)) for source in (MnistDataset, Cifar10Dataset, Cifar100Dataset)] == [4, 3, 3]


def test_shuffled_batches_hold_every_row_once_in_another_order_each_epoch(mnist):
    set_seed(1)
    run = MnistDataset(mnist, "train").batch(7).create_tuple_iterator(num_epochs=2, output_numpy=True)
    first, second = next(run)[0], (next(run, None), next(run))[1][0]
    assert first.dtype == np.uint8 and first.shape == (7, 28, 28, 1)
    assert not np.array_equal(first, second)
    assert sorted(image.tobytes() for image in first) == sorted(image.tobytes() for image in second)


def test_rows_are_the_readers_own(mnist):
    dataset = MnistDataset(mnist, "test", shuffle=False)
    for image, label in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
        image += 1
        label += 1
    assert labels(dataset) == [0, 3, 6, 9]


def test_split_divides_the_rows_by_index(cifar10):
    first, second = Cifar10Dataset(cifar10, "train", shuffle=False).split([0.4, 0.6], randomize=False)
    assert labels(first) + labels(second) == labels(Cifar10Dataset(cifar10, "train", shuffle=False))
    assert len(first) == 6


def test_a_cache_is_accepted_and_only_a_cache(mnist):
    assert len(MnistDataset(mnist, cache=DatasetCache(1))) == 11
    with pytest.raises(TypeError, match="MnistDataset: cache must be a DatasetCache"):
        MnistDataset(mnist, cache="memory")


@pytest.mark.parametrize("source", SOURCES)
def test_a_missing_folder_and_an_empty_one_are_named(source, tmp_path):
    with pytest.raises(ValueError, match=f"{source.__name__}: dataset_dir must be a folder that exists.*nothing"):
        source(tmp_path / "nothing")
    for usage in (None, "train", "test"):
        with pytest.raises(ValueError, match=rf"{source.__name__}: expected .* in {tmp_path}; got an empty folder"):
            source(tmp_path, usage)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"usage": "val"}, ValueError, 'usage must be one of train, test, all; got \'val\'. Write usage="all"'),
        ({"num_shards": 2}, ValueError, "num_shards and shard_id go together"),
        ({"num_parallel_workers": 0}, ValueError, "num_parallel_workers must be at least 1"),
        ({"shuffle": "yes"}, TypeError, "shuffle must be True or False"),
        ({"dataset_dir": 3}, TypeError, "dataset_dir must be a str or "),
    ],
)
def test_wrong_arguments_are_named_at_once(source, arguments, error, message, tmp_path):
    with pytest.raises(error, match=f"{source.__name__}: {message}"):
        source(**{"dataset_dir": tmp_path, **arguments})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: EMnistDataset(".", "latin"), ValueError, "EMnistDataset: name must be one of byclass.*latin"),
        (lambda: EMnistDataset(".", "mnist", "val"), ValueError, "EMnistDataset: usage must be one of train, test"),
        (lambda: QMnistDataset(".", "val"), ValueError, "QMnistDataset: usage must be one of .*test10k, test50k, nist"),
        (lambda: QMnistDataset(".", compat=1), TypeError, "QMnistDataset: compat must be True or False"),
    ],
)
def test_wrong_arguments_of_one_reader_are_named_at_once(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_what_is_missing_beside_other_files_is_named(mnist):
    (mnist / "train-labels-idx1-ubyte").unlink()
    message = "expected the file train-labels-idx1-ubyte or train-labels-idx1-ubyte.gz in .*; got t10k-images-idx3"
    with pytest.raises(ValueError, match=message):
        MnistDataset(mnist)
    assert len(MnistDataset(mnist, "test")) == 4


def test_a_batch_left_out_of_cifar10_is_named(cifar10):
    (cifar10 / "data_batch_3.bin").unlink()
    with pytest.raises(ValueError, match="expected data_batch_3.bin beside data_batch_4.bin in"):
        Cifar10Dataset(cifar10)
    assert len(Cifar10Dataset(cifar10, "test")) == 3


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (lambda data: data[:-1], r"expected 5504 bytes, \(7, 28, 28\) after its header, in .*; got 5503 bytes"),
        (lambda data: data + b"x", "got more bytes"),
        (lambda data: b"", "an IDX file of unsigned bytes with 3 dimensions in .*; got bytes that begin with b''"),
        (lambda data: b"<html>" + data, r"got bytes that begin with b'<htm'"),
        (lambda data: data[:2] + b"\x0d" + data[3:], "expected an IDX file of unsigned bytes"),
        (lambda data: data[:3] + b"\1" + data[4:], "expected an IDX file of unsigned bytes with 3 dimensions"),
        (lambda data: gzip.compress(data), r"begin with b'\\x1f\\x8b"),
    ],
)
def test_a_cut_off_or_foreign_idx_file_is_named(contents, message, mnist):
    path = mnist / "train-images-idx3-ubyte"
    path.write_bytes(contents(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        MnistDataset(mnist, "train")


@pytest.mark.parametrize("cut", [lambda data: data[:-9], lambda data: b"not gzip at all"])
def test_a_cut_off_or_foreign_compressed_file_is_named(cut, tmp_path):
    samples.mnist(tmp_path, suffix=".gz")
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(cut(path.read_bytes()))
    with pytest.raises(ValueError, match="got bytes that gzip cannot read"):
        MnistDataset(tmp_path, "train")


def test_another_number_of_labels_than_of_images_is_named(mnist):
    samples.write_idx(mnist / "t10k-labels-idx1-ubyte", np.zeros(3))
    with pytest.raises(ValueError, match="expected 4 labels, one for each image, in .*; got 3 labels"):
        MnistDataset(mnist, "test")


@pytest.mark.parametrize("size", [0, 3072, 3073 * 2 + 1])
def test_a_cut_off_or_foreign_cifar_file_is_named(size, cifar10):
    (cifar10 / "data_batch_2.bin").write_bytes(bytes(size))
    with pytest.raises(ValueError, match=f"expected rows of 3073 bytes.*data_batch_2.bin; got {size} bytes"):
        Cifar10Dataset(cifar10)
