"""MixUp, CutMix, random crops with boxes and random perspective: what holds of them whatever is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain import dataset as ds, set_seed
from mixtrain.dataset import vision
from mixtrain.dataset.vision import ImageBatchFormat, Inter

IMAGES = np.arange(4 * 6 * 8 * 3, dtype=np.float32).reshape(4, 6, 8, 3)
LABELS = np.eye(4, dtype=np.float32)


@pytest.mark.parametrize("mix", [vision.MixUpBatch(0.7), vision.MixUp(4, 0.7)])
def test_labels_are_the_shares_of_the_images(mix):
    for _ in range(5):
        images, labels = mix(IMAGES, LABELS)
        np.testing.assert_allclose(images, np.tensordot(labels, IMAGES, 1), rtol=1e-5)
        np.testing.assert_allclose(labels.sum(1), 1.0, rtol=1e-6)
        assert labels.min() >= 0


def test_mixup_with_the_batch_before():
    mix = vision.MixUp(2, 0.5, is_single=False)
    assert mix(np.zeros((6, 8, 3)), np.array([[1, 0]]))[0].shape == (2, 6, 8, 3)
    images, labels = mix(np.ones((6, 8, 3)), np.array([[0, 1]]))
    np.testing.assert_allclose(images[:, 0, 0, 0], labels[:, 1])


@pytest.mark.parametrize("layout", list(ImageBatchFormat))
def test_cutmix_labels_are_areas(layout):
    cut = vision.CutMixBatch(layout, 1.0, 0.8)
    numbers = np.arange(4, dtype=np.uint8).repeat(6 * 8 * 3)
    seen = set()
    for _ in range(5):
        shape = (4, 6, 8, 3) if layout is ImageBatchFormat.NHWC else (4, 3, 6, 8)
        images, labels = cut(numbers.reshape(shape), LABELS)
        for image, label in zip(images, labels, strict=True):
            shares = [np.mean(image == number) for number in range(4)]
            np.testing.assert_allclose(label, shares, atol=1e-6)
            seen.add(tuple(shares))
    assert len(seen) > 6


def test_cutmix_in_a_pipeline_comes_again_under_a_seed():
    def rows():
        set_seed(3)
        data = ds.NumpySlicesDataset((IMAGES, LABELS), ["image", "label"], shuffle=False).batch(4)
        data = data.map(vision.CutMixBatch(ImageBatchFormat.NHWC), ["image", "label"])
        return [row for _ in range(2) for row in data.create_tuple_iterator(output_numpy=True)]

    first, again = rows(), rows()
    assert all(np.array_equal(*pair) for row in zip(first, again, strict=True) for pair in zip(*row, strict=True))


def test_a_random_crop_keeps_boxes_on_their_pixels():
    image = np.arange(60).reshape(6, 10)
    crop = vision.RandomCropWithBBox((4, 5))
    for _ in range(20):
        part, boxes = crop(image, np.array([[2, 1, 4, 3], [9, 5, 1, 1]], np.float64))
        top, left = divmod(int(part[0, 0]), 10)
        assert np.array_equal(part, image[top : top + 4, left : left + 5])
        for x, y, width, height in boxes.astype(int):
            if width and height:
                assert part[y, x] in (image[max(1, top), max(2, left)], 59)


def test_a_transform_inside_boxes():
    image, boxes = np.zeros((6, 10), np.uint8), np.array([[2, 1, 4, 3]], np.float32)
    changed, same = vision.BoundingBoxAugment(vision.Invert(), 1.0)(image, boxes)
    assert changed[1:4, 2:6].min() == 255 and changed.sum() == 12 * 255 and np.array_equal(same, boxes)
    assert vision.BoundingBoxAugment(vision.Invert(), 0.0)(image, boxes)[0].sum() == 0
    with pytest.raises(ValueError, match="keeps the size"):
        vision.BoundingBoxAugment(vision.Resize((1, 1)), 1.0)(image, boxes)


def test_random_perspective_moves_corners_inwards():
    image = np.full((20, 30), 200, np.uint8)
    results = [vision.RandomPerspective(0.5, 1.0, Inter.BILINEAR)(image) for _ in range(5)]
    assert all(result[10, 15] == 200 and result.shape == image.shape for result in results)
    assert any((result == 0).any() for result in results)
    assert vision.RandomPerspective(0.5, 0.0)(image) is image


@pytest.mark.parametrize(("run", "message"), [
    (lambda: vision.RandomVerticalFlipWithBBox()(IMAGES[0]), "two values are needed"),
    (lambda: vision.RandomVerticalFlipWithBBox()(IMAGES[0], np.array([[0.0, 0, 9, 1]])), "boxes inside an image"),
    (lambda: vision.RandomVerticalFlipWithBBox()(IMAGES[0], np.array([[0, 0, 1, 1]])), "in floats"),
    (lambda: vision.RandomCropWithBBox(9)(IMAGES[0], np.array([[0.0, 0, 1, 1]])), "a smaller size"),
    (lambda: vision.MixUpBatch()(IMAGES, LABELS[:2]), "as many one-hot labels"),
    (lambda: vision.FiveCrop(9)(IMAGES[0]), "at least"),
    (lambda: vision.SlicePatches(9)(IMAGES[0]), "at least"),
    (lambda: vision.Perspective([[0, 0]], [[0, 0]]), "four points"),
    (lambda: vision.Perspective([[0, 0], [1, 0], [2, 0], [0, 1]], [[0, 0]] * 4)(IMAGES[0]), "on one line"),
    (lambda: vision.LinearTransformation(np.eye(3), np.zeros(4)), "must be"),
])
def test_what_does_not_fit_is_an_error(run, message):
    with pytest.raises((TypeError, ValueError), match=message):
        run()
