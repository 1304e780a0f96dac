"""What transforms refuse, in one sentence; what they are called on."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain import backend
from mixtrain.dataset import transforms, vision
from mixtrain.dataset.vision import Inter

IMAGE = np.random.default_rng(1).integers(0, 256, (6, 8, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: vision.Resize(4, "linear"), TypeError, "Resize: interpolation must be one of Inter.NEAREST"),
        (lambda: vision.Resize(0), ValueError, "Resize: size must be at least 1; got 0"),
        (lambda: vision.Resize((1, 2, 3)), ValueError, "Resize: size must be an int or two ints"),
        (lambda: vision.Normalize([1.0], [1.0, 2.0]), ValueError, "mean has 1, std; got 2"),
        (lambda: vision.Normalize([1.0], [0.0]), ValueError, "std must be greater than 0"),
        (lambda: vision.Normalize([300.0], [1.0]), ValueError, "mean must be at most 255"),
        (lambda: vision.Normalize(0.5, 0.5), TypeError, "mean must be a list or tuple or ndarray"),
        (lambda: vision.RandomHorizontalFlip(1.5), ValueError, "prob must be at most 1"),
        (lambda: vision.RandomCrop(4, padding=(1, 2, 3)), ValueError, "padding must be one, two or four ints"),
        (lambda: vision.RandomCrop(4, fill_value=300), ValueError, "fill_value must be at most 255"),
        (lambda: vision.RandomCrop(4, padding_mode="edge"), TypeError, "padding_mode must be one of Border.CONSTANT"),
        (lambda: vision.RandomResizedCrop(4, scale=(1.0, 0.5)), ValueError, "scale must be .min, max., the smaller"),
        (lambda: vision.RandomColorAdjust(hue=0.7), ValueError, "hue must be at most 0.5"),
        (lambda: vision.RandomRotation(30, Inter.AREA), ValueError, "resample must be Inter.NEAREST or Inter.BILINEAR"),
        (lambda: vision.GaussianBlur(4), ValueError, "kernel_size must be odd"),
        (lambda: vision.CenterCrop(2.5), TypeError, "CenterCrop: size must be an int"),
        (lambda: vision.ConvertColor(3), TypeError, "convert_mode must be one of ConvertMode.COLOR_BGR2BGRA"),
        (lambda: transforms.OneHot(0), ValueError, "num_classes must be at least 1"),
        (lambda: transforms.TypeCast("int"), TypeError, "dtype: expected one of"),
        (lambda: transforms.Compose([]), ValueError, "Compose: transforms must have a function"),
        (lambda: transforms.Compose(vision.Invert()), TypeError, "Compose: transforms must be a list or tuple"),
        (lambda: transforms.RandomChoice([vision.Invert]), TypeError, "got the class Invert"),
        (lambda: vision.RandomSelectSubpolicy([[(vision.Invert(), 2.0)]]), ValueError, "prob must be at most 1"),
    ],
)
def test_wrong_arguments_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: vision.Resize(4)(np.zeros(3)), ValueError, r"Resize: expected an image \(H, W\) or \(H, W, C\); got"),
        (lambda: vision.HWC2CHW()(np.zeros((1, 2, 3, 4))), ValueError, "HWC2CHW: expected an image .* 4 dimensions"),
        (lambda: vision.Resize(4)("file.png"), TypeError, "the value must be a NumPy array, a tensor or a Pillow"),
        (lambda: vision.Invert()(), TypeError, "Invert: a value is needed"),
        (lambda: vision.Decode()(np.zeros(30, np.uint8)), ValueError, "Unknown image file format"),
        (lambda: vision.Normalize([1.0] * 2, [1.0] * 2)(IMAGE), ValueError, "Normalize: expected 2 channels; got 3"),
        (lambda: transforms.OneHot(3)(np.array([1, 3])), ValueError, "OneHot: expected labels from 0 to below 3"),
        (lambda: transforms.OneHot(3)(np.array(1.0)), ValueError, "OneHot: expected labels of an integer dtype"),
        (lambda: vision.ToPIL()(np.zeros((2, 2, 3), np.float32)), TypeError, "ToPIL: expected uint8 values"),
        (lambda: transforms.TensorOperation()(1), NotImplementedError, "expected a method graph"),
        (lambda: transforms.PyTensorOperation()(1), NotImplementedError, "expected a method __call__"),
    ],
)
def test_wrong_values_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_tensors_and_lists_of_numbers_are_values_too():
    expected = vision.Rescale(2.0, 1.0)(IMAGE)
    np.testing.assert_array_equal(vision.Rescale(2.0, 1.0)(backend.to_tensor(IMAGE)), expected)
    np.testing.assert_array_equal(vision.Rescale(2.0, 1.0)(IMAGE.tolist()), expected)


def test_several_images_are_treated_alike():
    first, second = vision.RandomCrop(3)(IMAGE, IMAGE)
    np.testing.assert_array_equal(first, second)


def test_axes_before_the_image_are_kept():
    batch = np.stack([IMAGE, 255 - IMAGE])
    for transform in (vision.Resize((3, 3)), vision.HorizontalFlip(), vision.CenterCrop(4), vision.Pad(1)):
        np.testing.assert_array_equal(transform(batch), [transform(image) for image in batch])


def test_pillow_images_stay_pillow_images():
    image = pytest.importorskip("PIL.Image")
    picture = image.fromarray(IMAGE)
    flipped = vision.RandomHorizontalFlip(1.0)(picture)
    assert isinstance(flipped, image.Image)
    np.testing.assert_array_equal(np.asarray(flipped), IMAGE[:, ::-1])
    assert isinstance(vision.ToTensor()(picture), np.ndarray)
    assert isinstance(vision.Rescale(1.0, 0.0)(picture), np.ndarray)
    assert vision.Resize((3, 5))(picture).size == (5, 3)


def test_older_homes_have_their_own_meanings():
    older, python = vision.c_transforms, vision.py_transforms
    assert older.Resize is python.Resize is vision.Resize
    assert older.Decode(True).to_pil is False
    assert python.Decode().to_pil is True
    assert python.Normalize([0.5], [0.5])(np.ones((1, 2, 2), np.float32)).tolist() == [[[1.0, 1.0], [1.0, 1.0]]]
    with pytest.raises(ValueError, match="rgb must be True"):
        older.Decode(rgb=False)
