"""CocoDataset: the columns of each task, the hidden column of names, and one sentence for each broken file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mixtrain.dataset import CocoDataset
from tests.dataset import samples

IMAGES = [{"id": 10 + k, "file_name": f"{name}.png"} for k, name in enumerate("dacb")]
CATEGORIES = [{"id": 7, "name": "cat", "isthing": 1}, {"id": 3, "name": "sky", "isthing": 0}]
OBJECTS = [
    {"image_id": 11, "category_id": 7, "bbox": [1, 2, 3.5, 4], "iscrowd": 0, "area": 12.5,
     "segmentation": [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10]], "keypoints": [1, 2, 0], "num_keypoints": 1, "caption": "one"},
    {"image_id": 10, "category_id": 3, "bbox": [0, 0, 1, 1], "area": 1, "segmentation": {"counts": [3, 4, 5]},
     "keypoints": [3, 4, 2], "num_keypoints": 1, "caption": "d\u00f6g"},
    {"image_id": 11, "category_id": 3, "bbox": [5, 6, 7, 8], "iscrowd": 1, "area": 56, "segmentation": [[2, 2]],
     "keypoints": [5, 6, 1], "num_keypoints": 0, "caption": "another"},
]


@pytest.fixture
def folder(tmp_path):
    for number, image in enumerate(IMAGES):
        (tmp_path / image["file_name"]).write_bytes(samples.png(samples.picture(number)))
    return tmp_path


@pytest.fixture
def read(folder):
    def read(task="Detection", *, changes=None, **options):
        contents = {"images": IMAGES, "categories": CATEGORIES, "annotations": OBJECTS, **(changes or {})}
        (folder / "a.json").write_text(json.dumps({key: value for key, value in contents.items() if value is not None}))
        return CocoDataset(str(folder), str(folder / "a.json"), task, **{"shuffle": False, "decode": True, **options})

    return read


def rows(dataset):
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("Detection", {"bbox": [[1, 2, 3.5, 4], [5, 6, 7, 8]], "category_id": [[7], [3]], "iscrowd": [[0], [1]]}),
        ("Stuff", {"segmentation": [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, -1, -1], [2, 2, -1, -1, -1, -1]],
                   "iscrowd": [[0], [1]]}),
        ("Keypoint", {"keypoints": [[1, 2, 0], [5, 6, 1]], "num_keypoints": [[1], [0]]}),
        ("Captioning", {"captions": [["one"], ["another"]]}),
    ],
)
def test_each_image_with_annotations_is_a_row(task, expected, read):
    dataset = read(task)
    assert dataset.get_col_names() == ["image", *expected]
    assert len(dataset) == len(rows(dataset)) == 2
    image, *columns = rows(dataset)[1]
    assert np.array_equal(image, samples.picture(1))
    assert [column.tolist() for column in columns] == list(expected.values())
    assert {column.dtype.name for column in columns if task != "Captioning"} <= {"float32", "uint32"}


def test_panoptic_annotations_have_segments(read):
    segments = [{"category_id": 7, "bbox": [1, 2, 3, 4], "iscrowd": 0, "area": 12}]
    dataset = read("Panoptic", changes={"annotations": [{"image_id": 12, "segments_info": segments}]})
    ((image, *columns),) = rows(dataset)
    assert np.array_equal(image, samples.picture(2))
    assert [column.tolist() for column in columns] == [[[1, 2, 3, 4]], [[7]], [[0]], [[12]]]
    assert dataset.get_class_indexing() == {"cat": [7, 1], "sky": [3, 0]}


def test_categories_have_indices_where_objects_have_categories(read):
    assert read().get_class_indexing() == {"cat": [7], "sky": [3]}
    with pytest.raises(NotImplementedError, match='CocoDataset: expected task="Detection" or "Panoptic"; got "Stuff"'):
        read("Stuff").get_class_indexing()


def test_names_of_files_are_a_column_once_it_is_renamed(read):
    dataset = read(extra_metadata=True)
    assert dataset.get_col_names()[-1] == "_meta-filename"
    assert {len(row) for row in rows(dataset)} == {4}
    assert "_meta-filename" not in next(dataset.create_dict_iterator(output_numpy=True))
    assert [str(row[-1]) for row in rows(dataset.rename("_meta-filename", "name"))] == ["d", "a"]


def test_samplers_and_shards_choose_rows_which_are_the_readers_own(read):
    dataset = read(shuffle=None, sampler=[1])
    for row in rows(dataset):
        for value in row:
            value[:] = 0
    assert rows(dataset)[0][1].tolist() == [[1, 2, 3.5, 4], [5, 6, 7, 8]]
    assert [rows(read(num_shards=2, shard_id=k))[0][2].tolist() for k in range(2)] == [[[3]], [[7], [3]]]
    assert len(rows(read(num_samples=1, decode=False, decrypt=lambda path: b"bytes"))) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": None}, "KeyError: 'images'"),
        ({"categories": None}, "KeyError: 'categories'"),
        ({"annotations": []}, "ValueError: no annotations"),
        ({"annotations": [{**OBJECTS[0], "image_id": 99}]}, "KeyError: 99"),
        ({"annotations": [{**OBJECTS[0], "category_id": 99}]}, "ValueError: an annotation of category_id 99"),
        ({"annotations": [{"image_id": 10, "category_id": 7}]}, "KeyError: 'bbox'"),
        ({"categories": [{"id": 7}, {"id": 3}]}, "KeyError: 'name'"),
    ],
)
def test_what_a_file_lacks_is_named(changes, message, read):
    with pytest.raises(RuntimeError, match=f'for task="Detection" in .*a.json; got {message}'):
        read(changes=changes)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dataset_dir": "nothing"}, ValueError, "dataset_dir must be a folder that exists"),
        ({"annotation_file": "nothing"}, ValueError, "annotation_file must be a file that exists; got 'nothing'"),
        ({"task": "Foo"}, ValueError, "task must be one of Detection, Stuff, Keypoint, Panoptic, Cap"),
        ({"decode": 1}, TypeError, "decode must be True or False"),
        ({"extra_metadata": 1}, TypeError, "extra_metadata must be True or False"),
        ({"decrypt": 1}, TypeError, "decrypt must be a function"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, error, message, read, folder):
    read()
    with pytest.raises(error, match=f"CocoDataset: {message}"):
        CocoDataset(**{"dataset_dir": folder, "annotation_file": folder / "a.json", **arguments})


def test_a_file_that_is_no_json_is_named(folder):
    (folder / "a.json").write_text("{")
    with pytest.raises(ValueError, match="a.json; got JSONDecodeError"):
        CocoDataset(folder, folder / "a.json")
