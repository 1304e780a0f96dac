"""What sources, samplers, shards and batches give, against MindSpore 2.10's own readers on the same files."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from mixtrain import dataset as ds
from tests.backends import quick_every
from tests.dataset import samples
from tests.dataset.reference_cases import CASES, facts_of

ROWS = 3
REFERENCE = np.load(pathlib.Path(__file__).parents[1] / "data" / "dataset_reference.npz")

# Where the reference is not followed, and why.
DIFFERENT = {
    "size": {"images classes": "it counts the files of folders too that class_indexing leaves out"},
    "shapes": {
        "buckets": "it reports shape (2, 1) for batches of shape (2, 2)",
        "buckets dropped": "the same",
        "buckets to boundary": "the same",
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("samples")
    samples.fill(path, rows=ROWS)
    return path


NAMES = [
    pytest.param(name, marks=pytest.mark.tensorflow) if name.startswith("records") else name for name in CASES
]


@quick_every(13)
@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_holds_what_it_holds_in_the_reference(name, folder):
    expected = json.loads(str(REFERENCE[name]))
    facts = json.loads(facts_of(CASES[name](ds, folder, ROWS)))
    for fact, value in expected.items():
        if name not in DIFFERENT.get(fact, ()):
            assert facts[fact] == value, fact


def test_a_jpeg_file_decodes_to_the_references_pixels(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jpg").write_bytes(REFERENCE["jpeg_file"].tobytes())
    ((image, label),) = ds.ImageFolderDataset(str(tmp_path), decode=True).create_tuple_iterator(
        num_epochs=1, output_numpy=True
    )
    assert (label, image.dtype) == (0, np.uint8)
    assert np.array_equal(image, REFERENCE["jpeg_pixels"])
