"""VOCDataset: pairs of images, boxes and classes of objects, and one sentence for each broken file."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import VOCDataset
from tests.dataset import samples

BOX = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>4.5</xmax><ymax>3</ymax></bndbox>"


def xml(*names):
    objects = [f"<object><name>{name}</name><truncated>1</truncated>{BOX}</object>" for name in names]
    return f"<annotation><filename>x</filename>{''.join(objects)}</annotation>"


@pytest.fixture
def folder(tmp_path):
    for name in ("JPEGImages", "SegmentationClass", "Annotations", "ImageSets/Main", "ImageSets/Segmentation"):
        (tmp_path / name).mkdir(parents=True)
    for number, (name, classes) in enumerate({"d": ["dog", "cat"], "a": ["cat"], "b": ["ant"]}.items()):
        (tmp_path / "JPEGImages" / f"{name}.jpg").write_bytes(samples.png(samples.picture(number)))
        (tmp_path / "SegmentationClass" / f"{name}.png").write_bytes(samples.png(samples.picture(number + 3)))
        (tmp_path / "Annotations" / f"{name}.xml").write_text(xml(*classes))
    (tmp_path / "ImageSets" / "Segmentation" / "train.txt").write_text("d\r\na\r\n")
    (tmp_path / "ImageSets" / "Main" / "train.txt").write_text("d\na\nb\n")
    return tmp_path


def rows(dataset):
    return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))


def labels(dataset):
    return [row[2].ravel().tolist() for row in rows(dataset)]


def test_each_image_has_its_segmentation(folder):
    dataset = VOCDataset(str(folder), decode=True, shuffle=False)
    assert (dataset.get_col_names(), len(dataset)) == (["image", "target"], 2)
    for number, (image, target) in enumerate(rows(dataset)):
        assert np.array_equal(image, samples.picture(number))
        assert np.array_equal(target, samples.picture(number + 3))
    (image, target), _ = rows(VOCDataset(folder, shuffle=False))
    assert target.tobytes() == (folder / "SegmentationClass" / "d.png").read_bytes()
    with pytest.raises(NotImplementedError, match='VOCDataset: expected task="Detection"'):
        dataset.get_class_indexing()


def test_each_image_has_its_objects(folder):
    dataset = VOCDataset(folder, "Detection", decode=True, shuffle=False)
    assert dataset.get_col_names() == ["image", "bbox", "label", "difficult", "truncate"]
    assert dataset.get_class_indexing() == {"ant": 0, "cat": 1, "dog": 2}
    assert [str(dtype) for dtype in dataset.output_types()] == ["uint8", "float32", "uint32", "uint32", "uint32"]
    image, *columns = rows(dataset)[0]
    assert np.array_equal(image, samples.picture(0))
    assert [column.tolist() for column in columns] == [
        [[1, 2, 3.5, 1], [1, 2, 3.5, 1]], [[2], [1]], [[0], [0]], [[1], [1]]
    ]
    named = VOCDataset(folder, "Detection", extra_metadata=True, shuffle=False).rename("_meta-filename", "name")
    assert [str(row[-1]) for row in rows(named)] == ["d", "a", "b"]


def test_classes_that_are_not_asked_for_are_left_out(folder):
    dataset = VOCDataset(folder, "Detection", "train", {"cat": 5, "cow": 1}, shuffle=False)
    assert (labels(dataset), len(dataset), dataset.get_class_indexing()) == ([[5], [5]], 2, {"cat": 5, "cow": 1})


def test_samplers_and_shards_choose_rows(folder):
    assert labels(VOCDataset(folder, "Detection", sampler=[2, 0])) == [[0], [2, 1]]
    assert labels(VOCDataset(folder, "Detection", num_shards=3, shard_id=1, shuffle=False)) == [[1]]
    assert labels(VOCDataset(folder, "Detection", num_samples=1, shuffle=False)) == [[2, 1]]
    assert sorted(labels(VOCDataset(folder, "Detection"))) == [[0], [1], [2, 1]]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("text", "syntax error"),
        (None, ".*No such file"),
        (xml(), "no object"),
        (xml(""), 'the name ""'),
        (xml("x").replace("4.5", "1"), 'the name "x" and the box .1.0, 2.0, 1.0, 3.0.'),
        (xml("x").replace("<xmin>1</xmin>", "<xmin>0</xmin>"), "the name"),
        (xml("x").replace("<xmin>1</xmin>", ""), "could not convert string to float"),
    ],
)
def test_a_broken_annotation_is_named(contents, message, folder):
    path = folder / "Annotations" / "a.xml"
    path.unlink()
    if contents is not None:
        path.write_text(contents)
    expected = f"VOCDataset: expected objects with a name and a box in {path}; got {message}"
    with pytest.raises(RuntimeError, match=expected):
        VOCDataset(folder, "Detection")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dataset_dir": "nothing"}, ValueError, "dataset_dir must be a folder that exists"),
        ({"task": "Foo"}, ValueError, "task must be one of Segmentation, Detection; got 'Foo'"),
        ({"usage": "val"}, ValueError, "usage must name a list .*ImageSets/Main/val.txt that exists"),
        ({"class_indexing": ["cat"]}, TypeError, "class_indexing must be"),
        ({"class_indexing": {"cat": 0.5}}, TypeError, "labels in class_indexing must be"),
        ({"class_indexing": {"cow": 1}}, ValueError, "expected the names of images, with objects of known classes in"),
        ({"task": "Segmentation", "class_indexing": {}}, ValueError, 'class_indexing is for "Detection"'),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, error, message, folder):
    with pytest.raises(error, match=f"VOCDataset: {message}"):
        VOCDataset(**{"dataset_dir": folder, "task": "Detection", **arguments})
