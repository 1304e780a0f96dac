"""Image files: what is written is read again, with the size and channels of what was written."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from mixtrain.dataset import vision
from mixtrain.dataset.vision import ImageReadMode

pytest.importorskip("PIL")
IMAGE = (np.arange(5 * 6 * 3) * 7 % 256).astype(np.uint8).reshape(5, 6, 3)


def test_png_files_keep_every_pixel(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "a.png")
    vision.write_png(path, IMAGE)
    assert np.array_equal(vision.read_image(path), IMAGE)
    assert np.array_equal(vision.Decode()(vision.read_file(path)), IMAGE)
    # The first numbers that MindSpore reads, up to a level: it rounds them down.
    gray = vision.read_image(path, ImageReadMode.GRAYSCALE)
    np.testing.assert_allclose(gray.reshape(-1)[:4], [5, 26, 47, 68], atol=1)
    vision.write_png(path, IMAGE[..., 0], 9)
    assert np.array_equal(vision.read_image(path)[..., 0], IMAGE[..., 0])
    assert np.array_equal(vision.read_image(path, ImageReadMode.COLOR), IMAGE[..., :1].repeat(3, -1))


def test_jpeg_files_keep_flat_colors(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "a.jpg")
    vision.write_jpeg(path, np.full((16, 16, 3), [200, 100, 50], np.uint8))
    assert vision.read_image(path).reshape(-1)[:3].tolist() == [200, 100, 50]
    assert len(vision.encode_jpeg(IMAGE.repeat(9, 0), 10)) < len(vision.encode_jpeg(IMAGE.repeat(9, 0), 95))


def test_sizes_and_channels() -> None:
    picture = vision.ToPIL()(IMAGE)
    assert vision.get_image_size(IMAGE) == vision.get_image_size(picture) == [5, 6]
    assert vision.get_image_size(IMAGE[None]) == vision.get_image_size(IMAGE[..., 0]) == [5, 6]
    assert vision.get_image_num_channels(IMAGE) == vision.get_image_num_channels(picture) == 3
    assert vision.get_image_num_channels(IMAGE[..., 0]) == 1


@pytest.mark.parametrize(("call", "message"), [
    (lambda: vision.encode_png(IMAGE.astype(np.float32)), "must be uint8"),
    (lambda: vision.encode_png(IMAGE[..., :2]), "must be uint8"),
    (lambda: vision.encode_png(IMAGE, 10), "at most 9"),
    (lambda: vision.encode_jpeg(IMAGE, 101), "at most 100"),
    (lambda: vision.write_file("a", IMAGE), "vector of uint8"),
    (lambda: vision.get_image_size(np.zeros(3)), "two axes"),
    (lambda: vision.get_image_num_channels(np.zeros(3)), "two axes"),
])
def test_what_is_no_image_is_an_error(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
