"""Image files: read in the order that is asked for, and named by what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset.image_files import ImageFiles
from tests.dataset import samples


@pytest.fixture
def paths(tmp_path):
    for number in range(4):
        (tmp_path / f"{number}.png").write_bytes(samples.png(samples.picture(number, 3 + number)))
    return [str(tmp_path / f"{number}.png") for number in range(4)]


@pytest.mark.parametrize("workers", [1, 4])
def test_files_come_in_the_order_of_the_indices_and_as_often(workers, paths):
    files = ImageFiles("Images", paths, decode=True, workers=workers)
    images = list(files.read(np.array([2, 0, 2, 3])))
    for image, number in zip(images, (2, 0, 2, 3), strict=True):
        assert image.dtype == np.uint8 and np.array_equal(image, samples.picture(number, 3 + number))


def test_bytes_are_given_without_decoding(paths):
    files = ImageFiles("Images", paths, decode=False, workers=2)
    (data,) = files.read(np.array([1]))
    with open(paths[1], "rb") as file:
        assert data.tobytes() == file.read()


@pytest.mark.parametrize(("contents", "message"), [(None, "No such file"), (b"text", "Unknown image file format")])
def test_what_is_wrong_is_said_in_one_line(contents, message, paths, tmp_path):
    bad = tmp_path / "bad.png"
    if contents is not None:
        bad.write_bytes(contents)
    run = ImageFiles("Images", [*paths, str(bad)], decode=True, workers=1).read(np.array([0, 4]))
    assert next(run).shape == (3, 5, 3)
    expected = f"Images: expected an image that can be read in {bad}; got {message}"
    with pytest.raises(ValueError, match=expected) as caught:
        next(run)
    assert "\n" not in str(caught.value) and "{{" not in str(caught.value)


def test_files_before_one_that_is_missing_are_given(paths):
    order = np.array([0, 1, 2, 3] * 5 + [4])
    run = ImageFiles("Images", [*paths, "no such file"], decode=True, workers=2).read(order)
    for number in order[:20]:
        assert np.array_equal(next(run), samples.picture(number, 3 + number))
    with pytest.raises(ValueError, match="no such file; got No such file"):
        next(run)
