"""Random transforms: never at probability 0, always at 1, as often as said in between, and repeatable."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.dataset import NumpySlicesDataset, transforms, vision
from mixtrain.dataset.vision import Border
from mixtrain.seed import set_seed
from tests.backends import quick_every

IMAGE = np.random.default_rng(1).integers(0, 256, (10, 12, 3), dtype=np.uint8)


def draws(transform, count=400, image=IMAGE):
    """Return what a transform makes of one image again and again."""
    data = NumpySlicesDataset(np.repeat(image[None], count, 0), "image", shuffle=False)
    return np.stack([row[0] for row in data.map(transform).create_tuple_iterator(num_epochs=1, output_numpy=True)])


@quick_every(8)
@pytest.mark.parametrize(
    ("make", "operation"),
    [
        (vision.RandomHorizontalFlip, lambda image: image[:, ::-1]),
        (vision.RandomVerticalFlip, lambda image: image[::-1]),
        (vision.RandomInvert, lambda image: 255 - image),
        (vision.RandomGrayscale, vision.Grayscale(3)),
        (vision.RandomEqualize, vision.Equalize()),
        (lambda prob: vision.RandomAutoContrast(prob=prob), vision.AutoContrast()),
        (lambda prob: vision.RandomAdjustSharpness(2.0, prob), vision.AdjustSharpness(2.0)),
        (
            lambda prob: transforms.RandomApply([vision.Invert(), vision.HorizontalFlip()], prob),
            lambda image: 255 - image[:, ::-1],
        ),
    ],
)
def test_a_probability_is_kept(make, operation):
    always = operation(IMAGE)
    assert all((make(0.0)(IMAGE) == IMAGE).all() for _ in range(5))
    assert all((make(1.0)(IMAGE) == always).all() for _ in range(5))
    set_seed(0)
    applied = (draws(make(0.25)) == always).all(axis=(1, 2, 3))
    assert 70 <= applied.sum() <= 130  # Expected 100, standard deviation 8.7.


def test_a_seed_repeats_what_single_calls_draw():
    transform = vision.RandomResizedCrop(6)
    set_seed(5)
    first = [transform(IMAGE) for _ in range(3)]
    set_seed(5)
    np.testing.assert_array_equal(first, [transform(IMAGE) for _ in range(3)])
    assert not np.array_equal(first[0], first[1])


def test_crops_are_parts_and_every_place_comes():
    positions = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
    set_seed(1)
    crops = draws(vision.RandomCrop((2, 2)), 300, positions)
    corners = crops[:, 0, 0, 0]
    assert set(corners) == {0, 1, 2, 4, 5, 6}
    assert np.bincount(corners)[[0, 1, 2, 4, 5, 6]].min() > 25  # Expected 50, standard deviation 6.5.
    assert (crops[..., 0] == corners[:, None, None] + np.array([[0, 1], [4, 5]])).all()


def test_padding_of_random_crops_has_its_value():
    crops = draws(vision.RandomCrop((10, 12), padding=10, fill_value=7, padding_mode=Border.CONSTANT), 20)
    assert (crops == 7).any(axis=(1, 2, 3)).mean() > 0.5


@pytest.mark.slow
def test_resized_crops_keep_area_and_shape():
    ramp = np.broadcast_to(np.arange(200, dtype=np.float32)[None, :, None], (200, 200, 1)).copy()
    transform = vision.RandomResizedCrop((8, 8), scale=(0.25, 0.25), ratio=(1.0, 1.0))
    set_seed(0)
    crops = draws(transform, 30, ramp)
    widths = (crops[:, 0, -1, 0] - crops[:, 0, 0, 0]) * 8 / 7
    np.testing.assert_allclose(widths, 100, atol=1.0)
    assert np.ptp(crops[:, 0, 0, 0]) > 40


def test_a_crop_that_never_fits_is_the_middle():
    wide = np.broadcast_to(np.arange(40, dtype=np.float32)[None, :, None], (4, 40, 1)).copy()
    crops = draws(vision.RandomResizedCrop((4, 4), scale=(1.0, 1.0), ratio=(1.0, 1.0)), 5, wide)
    np.testing.assert_allclose(crops[:, 0, :, 0], [[18, 19, 20, 21]] * 5)


@pytest.mark.slow
def test_cut_out_leaves_the_rest():
    ones = np.ones((20, 20, 3), np.float32)
    set_seed(0)
    cut = draws(vision.CutOut(6, 2), 50, ones)
    zeros = (cut == 0).all(axis=-1).sum(axis=(1, 2))
    assert zeros.max() <= 72
    assert zeros.min() >= 9
    np.testing.assert_array_equal(cut[..., 0], cut[..., 2])
    first = draws(vision.CutOut(6, is_hwc=False), 5, ones.transpose(2, 0, 1).copy())
    assert first.shape == (5, 3, 20, 20)
    assert ((first == 0).sum(axis=(1, 2, 3)) >= 27).all()


@pytest.mark.slow
def test_erasing_replaces_a_part_of_the_wanted_area():
    ones = np.ones((3, 40, 40), np.float32)
    set_seed(0)
    erased = draws(vision.RandomErasing(1.0, scale=(0.1, 0.2), value=5), 50, ones)
    shares = (erased[:, 0] == 5).mean(axis=(1, 2))
    assert shares.min() > 0.08
    assert shares.max() < 0.22
    noise = draws(vision.RandomErasing(1.0, value="random"), 3, ones)
    assert len(np.unique(noise)) > 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transform", "changed"),
    [
        (vision.RandomColorAdjust(0.4, 0.4, 0.4, 0.1), True),
        (vision.RandomColorAdjust(), False),
        (vision.RandomColor(), True),
        (vision.RandomSharpness(), True),
        (vision.RandomSolarize(), True),
        (vision.RandomPosterize((1, 4)), True),
        (vision.RandomPosterize(), False),
        (vision.RandomLighting(0.1), True),
        (vision.RandomRotation(40), True),
        (vision.RandomAffine(30, (-0.2, 0.2, -0.1, 0.1), (0.8, 1.2), 10), True),
        (vision.RandomSelectSubpolicy([[(vision.Invert(), 0.5)], [(vision.VerticalFlip(), 1.0)]]), True),
        (vision.UniformAugment([vision.Invert(), vision.HorizontalFlip()]), True),
        (transforms.RandomChoice([vision.Invert(), vision.VerticalFlip()]), True),
        (transforms.RandomOrder([vision.Invert(), vision.Solarize(128)]), True),
    ],
)
def test_results_vary_and_keep_dtype_and_size(transform, changed):
    set_seed(0)
    results = draws(transform, 12)
    assert (results.dtype, results.shape) == (np.uint8, (12, 10, 12, 3))
    assert (len({image.tobytes() for image in results}) > 1) is changed


@pytest.mark.slow
def test_random_resize_uses_several_interpolations():
    results = draws(vision.RandomResize((7, 9)), 40)
    assert results.shape == (40, 7, 9, 3)
    assert 3 <= len({image.tobytes() for image in results}) <= 4


def test_expanded_rotations_hold_the_whole_image():
    shapes = {vision.RandomRotation((angle, angle), expand=True)(IMAGE).shape for angle in (0, 90)}
    assert shapes == {(10, 12, 3), (12, 10, 3)}


def test_python_functions_are_chosen_repeatably_too():
    transform = transforms.RandomChoice([lambda x: x + np.uint8(1), lambda x: x + np.uint8(2)])
    set_seed(2)
    first = draws(transform, 50)
    set_seed(2)
    np.testing.assert_array_equal(first, draws(transform, 50))
    assert {int(part) for part in np.unique(first[:, 0, 0, 0] - IMAGE[0, 0, 0])} == {1, 2}
