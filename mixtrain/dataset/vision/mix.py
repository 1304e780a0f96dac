"""Images of a batch mixed with each other, together with their one-hot labels: MixUp and CutMix."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.transforms.operation import TensorOperation, read_value
from mixtrain.dataset.transforms.transform_chain import numpy_generator
from mixtrain.dataset.vision.arguments import enum_member, probability
from mixtrain.dataset.vision.enums import ImageBatchFormat

Pair = tuple[np.ndarray, np.ndarray]


def _read(where: str, values: tuple[Any, ...]) -> Pair:
    if len(values) != 2:
        raise checks.fail_type(where, "two values are needed, images and one-hot labels", len(values),
                               'input_columns=["image", "label"]')
    images, labels = (read_value(where, value) for value in values)
    return images, labels


def _read_batch(where: str, values: tuple[Any, ...]) -> Pair:
    images, labels = _read(where, values)
    if images.ndim != 4 or labels.ndim not in (2, 3) or len(images) != len(labels):
        raise ValueError(
            f"{where}: expected a batch of images of four dimensions, and as many one-hot labels (N, classes) or (N, "
            f"rows, classes); got shapes {images.shape} and {labels.shape}. Write OneHot and batch before {where}."
        )
    return images, labels.astype(np.float32)


def _mean(first: np.ndarray, second: np.ndarray, weight: float | np.ndarray) -> np.ndarray:
    """Return the weighted mean of two arrays, in the dtype of the first."""
    return (weight * first + (1 - weight) * second).astype(first.dtype)


class MixUpBatch(TensorOperation):
    """Weighted means of the images of a batch and other ones, and of their labels; with one weight for the batch.

    Args: alpha: Both parameters of the Beta distribution of the weight.

    Example:
        >>> MixUpBatch(0.5)(np.zeros((2, 4, 4, 3), np.uint8), np.eye(2))[1].sum().item()
        2.0
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = checks.number("MixUpBatch", "alpha", alpha, above=0.0, example=1.0)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Pair:
        """Return the mixed images, in their dtype, and the mixed labels, in float32."""
        images, labels = _read_batch("MixUpBatch", values)
        generator = numpy_generator(seed)
        weight, order = generator.beta(self.alpha, self.alpha), generator.permutation(len(images))
        return _mean(images, images[order], weight), _mean(labels, labels[order], weight)


class CutMixBatch(TensorOperation):
    """Images of a batch with a rectangle replaced by that of another image; labels are mixed by the areas.

    Args:
        image_batch_format, prob: The position of the channel axis, and the probability for each image.
        alpha: Both parameters of the Beta distribution of the area.

    Example:
        >>> cut = CutMixBatch(ImageBatchFormat.NHWC, 1.0, 0.5)
        >>> cut(np.zeros((2, 4, 4, 3), np.uint8), np.eye(2))[1].sum().item()
        2.0
    """

    def __init__(self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0) -> None:
        self.layout = enum_member("CutMixBatch", "image_batch_format", image_batch_format, ImageBatchFormat)
        self.alpha = checks.number("CutMixBatch", "alpha", alpha, above=0.0, example=1.0)
        self.prob = probability("CutMixBatch", prob)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Pair:
        """Return the images, in their dtype, and the mixed labels, in float32."""
        images, labels = _read_batch("CutMixBatch", values)
        generator = numpy_generator(seed)
        weight, order = generator.beta(self.alpha, self.alpha), generator.permutation(len(images))
        mixed, mixed_labels = images.copy(), labels.copy()
        channels_first = self.layout is ImageBatchFormat.NCHW
        height, width = images.shape[2:4] if channels_first else images.shape[1:3]
        half_height, half_width = (size * np.sqrt(1.0 - weight) / 2 for size in (height, width))
        for index in np.flatnonzero(generator.random(len(images)) < self.prob):
            row, column = generator.integers(height), generator.integers(width)
            top, bottom = max(int(row - half_height), 0), min(int(row + half_height), height)
            left, right = max(int(column - half_width), 0), min(int(column + half_width), width)
            rectangle: tuple[Any, ...] = (slice(top, bottom), slice(left, right))
            if channels_first:
                rectangle = (slice(None), *rectangle)
            mixed[index][rectangle] = images[order[index]][rectangle]
            remaining = 1.0 - (bottom - top) * (right - left) / (height * width)
            mixed_labels[index] = _mean(labels[index], labels[order[index]], remaining)
        return mixed, mixed_labels


class MixUp(TensorOperation):
    """Weighted means of the images of a batch and their neighbors, or those of the previous batch, in float64.

    Args:
        batch_size: Number of images in a batch; a single image, or label, is repeated as often.
        alpha: Both parameters of the Beta distribution of the weights.
        is_single: Whether images are mixed with their neighbors in the batch; otherwise with those at the same index
            in the previous batch, and the first batch is unchanged.

    Example:
        >>> MixUp(2, 0.2)(np.zeros((2, 4, 4, 3)), np.eye(2))[1].sum().item()
        2.0
    """

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True) -> None:
        self.batch_size = checks.integer("MixUp", "batch_size", batch_size, at_least=1, example=32)
        self.alpha = checks.number("MixUp", "alpha", alpha, above=0.0, example=0.2)
        self.is_single = checks.boolean("MixUp", "is_single", is_single)
        self._previous: Pair | None = None

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Pair:
        """Return the mixed images and labels, in float64."""
        images, labels = (value.astype(np.float64) for value in _read("MixUp", values))
        if images.ndim == 3:
            images = np.repeat(images[None], self.batch_size, axis=0)
        if len(labels) == 1:
            labels = np.repeat(labels, len(images), axis=0)
        others = (np.roll(images, -1, axis=0), np.roll(labels, -1, axis=0)) if self.is_single else self._previous
        weights = numpy_generator(seed).beta(self.alpha, self.alpha, len(images))
        if not self.is_single:
            self._previous = images, labels
        if others is None or others[0].shape != images.shape:
            return images, labels
        image_weights, label_weights = (weights.reshape(-1, *[1] * (value.ndim - 1)) for value in (images, labels))
        return _mean(images, others[0], image_weights), _mean(labels, others[1], label_weights)
