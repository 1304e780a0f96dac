"""ImageFolderDataset: order, labels, batches of pixels, the cache, and one sentence for each broken folder or file."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import DatasetCache, ImageFolderDataset
from tests.dataset import samples


@pytest.fixture
def folder(tmp_path):
    for number, path in enumerate(("a/0.png", "a/1.png", "a/2.png", "b/0.png", "b/1.png")):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(samples.png(samples.picture(number)))
    return tmp_path


def numbers(dataset):
    """Return the numbers of the pictures of one epoch."""
    rows = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    return [int(image.reshape(-1)[0]) // 40 for image, _ in rows]


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_pixels_come_in_order_whatever_the_number_of_workers(workers, folder):
    dataset = ImageFolderDataset(folder, shuffle=False, decode=True, num_parallel_workers=workers)
    (images, labels), (last, _) = dataset.batch(3).create_tuple_iterator(num_epochs=1, output_numpy=True)
    assert np.array_equal(images, np.stack([samples.picture(number) for number in range(3)]))
    assert (images.dtype, labels.dtype, labels.tolist()) == (np.uint8, np.int32, [0, 0, 0])
    assert len(last) == 2


def test_bytes_of_the_files_are_given_where_nothing_is_decoded(folder):
    image, _ = next(ImageFolderDataset(str(folder), shuffle=False).create_tuple_iterator(output_numpy=True))
    assert image.tobytes() == (folder / "a" / "0.png").read_bytes()


def test_each_epoch_has_another_order(folder):
    run = ImageFolderDataset(folder, decode=True).create_tuple_iterator(num_epochs=8, output_numpy=True)
    orders = [tuple(int(image.reshape(-1)[0]) // 40 for image, _ in run) for _ in range(8)]
    assert {tuple(sorted(order)) for order in orders} == {(0, 1, 2, 3, 4)}
    assert len(set(orders)) > 1


def test_rows_are_the_readers_own(folder):
    dataset = ImageFolderDataset(folder, shuffle=False, decode=True, cache=DatasetCache(1))
    for _ in range(2):
        for image, _ in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
            image[:] = 0
    assert numbers(dataset) == [0, 1, 2, 3, 4]


def test_classes_can_be_asked_for(folder):
    (folder / "empty").mkdir()
    dataset = ImageFolderDataset(folder)
    assert dataset.get_class_indexing() == {"a": 0, "b": 1, "empty": 2}
    assert (dataset.num_classes(), len(dataset)) == (3, 5)
    chosen = ImageFolderDataset(folder, class_indexing={"b": 7}, shuffle=False, decode=True)
    assert (chosen.get_class_indexing(), chosen.num_classes(), numbers(chosen)) == ({"b": 7}, 1, [3, 4])


def test_split_keeps_shuffling_and_shares_no_row(folder):
    small, large = ImageFolderDataset(folder, decode=True).split([2, 3])
    assert sorted(numbers(small) + numbers(large)) == [0, 1, 2, 3, 4]
    first, again = numbers(large), numbers(large)
    assert sorted(first) == sorted(again)


def test_decrypt_gives_the_bytes_of_a_file(folder):
    calls = []

    def swap(path):
        calls.append(path)
        return samples.png(samples.picture(6))

    assert numbers(ImageFolderDataset(folder, decode=True, shuffle=False, decrypt=swap)) == [6] * 5
    assert calls[0] == str(folder / "a" / "0.png")


@pytest.mark.parametrize("decrypt", [None, lambda path: b"text"])
def test_a_file_that_is_no_image_is_named_in_its_place(decrypt, folder):
    (folder / "a" / "1.png").write_bytes(b"text")
    dataset = ImageFolderDataset(folder, decode=True, shuffle=False, decrypt=decrypt)
    message = rf"expected an image that can be read in {folder}/a/.\.png; got Unknown image [^{{}}]* required\. Write"
    with pytest.raises(ValueError, match=message):
        numbers(dataset)


def test_the_images_before_a_broken_one_are_given(folder):
    (folder / "a" / "2.png").write_bytes(b"text")
    run = ImageFolderDataset(folder, decode=True, shuffle=False).create_tuple_iterator(output_numpy=True)
    assert [next(run)[1], next(run)[1]] == [0, 0]
    with pytest.raises(ValueError, match="a/2.png"):
        next(run)


def test_a_file_that_disappeared_is_named(folder):
    dataset = ImageFolderDataset(folder, shuffle=False)
    (folder / "a" / "0.png").unlink()
    with pytest.raises(ValueError, match="a/0.png; got .*No such file"):
        numbers(dataset)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dataset_dir": "nothing"}, ValueError, "dataset_dir must be a folder that exists; got 'nothing'"),
        ({"extensions": ".png"}, TypeError, "extensions must be a list or tuple"),
        ({"extensions": [".bmp"]}, ValueError, "expected files that end in .bmp in the class folders in"),
        ({"class_indexing": {"c": 0}}, ValueError, "a name in class_indexing must be one of a, b; got 'c'"),
        ({"class_indexing": {"a": "0"}}, TypeError, "labels in class_indexing must be ints; got str '0'"),
        ({"decode": 1}, TypeError, "decode must be True or False"),
        ({"decrypt": "key"}, TypeError, "decrypt must be a function"),
        ({"cache": 1}, TypeError, "cache must be a DatasetCache"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, error, message, folder):
    with pytest.raises(error, match=f"ImageFolderDataset: {message}"):
        ImageFolderDataset(**{"dataset_dir": folder, **arguments})


def test_a_folder_without_classes_and_a_class_with_folders_are_named(folder):
    with pytest.raises(ValueError, match="expected one folder per class in .*/a; got 0.png, 1.png, 2.png"):
        ImageFolderDataset(folder / "a")
    (folder / "a" / "deeper").mkdir()
    with pytest.raises(ValueError, match="expected image files only in .*/a; got the folder deeper"):
        ImageFolderDataset(folder)
    assert len(ImageFolderDataset(folder, extensions=[".png"])) == 5
