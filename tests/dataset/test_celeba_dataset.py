"""CelebADataset: attributes, parts, training on them, and one sentence for each broken file."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from mixtrain import Model
from mixtrain.dataset import CelebADataset
from mixtrain.seed import set_seed
from tests.dataset import samples

ATTRIBUTES = "4\nBald Smiling Young\n0.jpg -1  1 -1\n1.jpg  1 -1 -1\n2.png 1 1 1 \n\n3.jpg -1 -1 -1\n"
VALUES = [[0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0]]


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(("0.jpg", "1.jpg", "2.png", "3.jpg")):
        (tmp_path / name).write_bytes(samples.png(samples.picture(number)))
    (tmp_path / "list_attr_celeba.txt").write_text(ATTRIBUTES)
    (tmp_path / "list_eval_partition.txt").write_text("0.jpg 0\n1.jpg 1\n2.png 2\n3.jpg 0\n")
    return tmp_path


def attributes(dataset):
    return [row[1].tolist() for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)]


def test_each_image_has_its_attributes(folder):
    dataset = CelebADataset(str(folder), shuffle=False, decode=True)
    assert (dataset.get_col_names(), len(dataset), attributes(dataset)) == (["image", "attr"], 4, VALUES)
    images, values = next(dataset.batch(4).create_tuple_iterator(output_numpy=True))
    assert np.array_equal(images, np.stack([samples.picture(number) for number in range(4)]))
    assert values.dtype == np.uint32
    image, _ = next(CelebADataset(folder, shuffle=False).create_tuple_iterator(output_numpy=True))
    assert image.tobytes() == (folder / "0.jpg").read_bytes()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"usage": "train"}, [0, 3]),
        ({"usage": "valid"}, [1]),
        ({"usage": "test"}, [2]),
        ({"usage": None}, [0, 1, 2, 3]),
        ({"usage": "train", "num_samples": 1}, [0]),
        ({"extensions": [".jpg"]}, [0, 1, 3]),
        ({"num_shards": 3, "shard_id": 1}, [1, 0]),
        ({"shuffle": None, "sampler": [3, 0]}, [3, 0]),
    ],
)
def test_parts_samplers_and_shards_choose_rows(options, expected, folder):
    dataset = CelebADataset(folder, **{"shuffle": False, **options})
    assert attributes(dataset) == [VALUES[index] for index in expected]
    assert len(dataset) == len(expected)


@pytest.mark.parametrize(("old", "new"), [(ATTRIBUTES, ""), ("1.jpg  1 -1", "1.jpg  1"), ("1 1 1", "1 x 1")])
def test_a_broken_file_of_attributes_is_named(old, new, folder):
    (folder / "list_attr_celeba.txt").write_text(ATTRIBUTES.replace(old, new))
    with pytest.raises(RuntimeError, match="CelebADataset: expected .* in .*list_attr_celeba.txt; got"):
        CelebADataset(folder)


@pytest.mark.parametrize(("name", "usage"), [("list_attr_celeba.txt", "all"), ("list_eval_partition.txt", "train")])
def test_a_missing_file_is_named(name, usage, folder):
    (folder / name).unlink()
    with pytest.raises(RuntimeError, match=f"CelebADataset: expected the file {name} in {folder}; got 0.jpg"):
        CelebADataset(folder, usage=usage)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dataset_dir": "nothing"}, ValueError, "dataset_dir must be a folder that exists"),
        ({"usage": "val"}, ValueError, "usage must be one of all, train, valid, test; got 'val'"),
        ({"extensions": ".jpg"}, TypeError, "extensions must be a list"),
        ({"extensions": [".bmp"]}, ValueError, "expected images for"),
        ({"decode": 1}, TypeError, "decode must be True or False"),
    ],
)
def test_wrong_arguments_are_named_at_once(arguments, error, message, folder):
    with pytest.raises(error, match=f"CelebADataset: {message}"):
        CelebADataset(**{"dataset_dir": folder, **arguments})


@pytest.mark.parametrize("sink", [False, True])
def test_a_model_trains_on_the_rows(sink, folder):
    set_seed(5)
    data = CelebADataset(folder, decode=True).map(lambda image: image / np.float32(255), "image")
    data = data.map(lambda attr: attr.astype(np.float32), "attr").batch(2)
    network = keras.Sequential([keras.layers.Input((4, 5, 3)), keras.layers.Flatten(), keras.layers.Dense(3)])
    before = network.get_weights()[0].copy()
    model = Model(network, keras.losses.MeanSquaredError(), keras.optimizers.SGD(0.1), amp_level="O2")
    model.train(2, data, dataset_sink_mode=sink)
    assert not np.array_equal(before, network.get_weights()[0])
