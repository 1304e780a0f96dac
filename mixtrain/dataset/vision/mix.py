"""Images of a batch mixed with each other, and their one-hot labels with them: MixUp and CutMix."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.transforms.operation import TensorOperation, read_value
from mixtrain.dataset.vision.arguments import probability, word
from mixtrain.dataset.vision.boxes import generator
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


def _mean(first: np.ndarray, second: np.ndarray, share: Any) -> np.ndarray:
    """Return a weighted mean, in the first array's dtype."""
    return (share * first + (1 - share) * second).astype(first.dtype)


class MixUpBatch(TensorOperation):
    """Each image of a batch as a weighted mean of itself and another, labels likewise; one weight for the batch.

    Args:
        alpha: The weight is drawn from a Beta distribution with this for both parameters.

    Raises:
        ValueError: On use: there is no batch of images with one-hot labels.

    Example:
        >>> import numpy as np
        >>> MixUpBatch(0.5)(np.zeros((2, 4, 4, 3), np.uint8), np.eye(2))[1].sum().item()
        2.0

    Source: MindSpore, `mindspore.dataset.vision.MixUpBatch`.
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = checks.number("MixUpBatch", "alpha", alpha, above=0.0, example=1.0)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Pair:
        """Return the mixed images, in their dtype, and the mixed labels, in float32."""
        images, labels = _read_batch("MixUpBatch", values)
        chance = generator(seed)
        share, other = chance.beta(self.alpha, self.alpha), chance.permutation(len(images))
        return _mean(images, images[other], share), _mean(labels, labels[other], share)


class CutMixBatch(TensorOperation):
    """Images of a batch with a rectangle of another image in them; labels are mixed by the areas.

    Args:
        image_batch_format: Where the channels are.
        alpha: The area is drawn from a Beta distribution with this for both parameters.
        prob: The probability that an image gets a rectangle.

    Raises:
        ValueError: On use: there is no batch of images with one-hot labels.

    Example:
        >>> import numpy as np
        >>> cut = CutMixBatch(ImageBatchFormat.NHWC, 1.0, 0.5)
        >>> cut(np.zeros((2, 4, 4, 3), np.uint8), np.eye(2))[1].sum().item()
        2.0

    Source: MindSpore, `mindspore.dataset.vision.CutMixBatch`.
    """

    def __init__(self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0) -> None:
        self.layout = word("CutMixBatch", "image_batch_format", image_batch_format, ImageBatchFormat)
        self.alpha = checks.number("CutMixBatch", "alpha", alpha, above=0.0, example=1.0)
        self.prob = probability("CutMixBatch", prob)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Pair:
        """Return the images, in their dtype, and the mixed labels, in float32."""
        images, labels = _read_batch("CutMixBatch", values)
        chance = generator(seed)
        share, other = chance.beta(self.alpha, self.alpha), chance.permutation(len(images))
        mixed, mixed_labels = images.copy(), labels.copy()
        first = 2 if self.layout is ImageBatchFormat.NCHW else 1
        sizes = images.shape[first : first + 2]
        for number in np.flatnonzero(chance.random(len(images)) < self.prob):
            half = [size * np.sqrt(1.0 - share) / 2 for size in sizes]
            middle = [chance.integers(size) for size in sizes]
            start = [max(int(place - side), 0) for place, side in zip(middle, half, strict=True)]
            end = [min(int(place + side), size) for place, side, size in zip(middle, half, sizes, strict=True)]
            part = (..., slice(start[0], end[0]), slice(start[1], end[1]))
            where = part if first == 2 else (*part[1:], slice(None))
            mixed[number][where] = images[other[number]][where]
            kept = 1.0 - (end[0] - start[0]) * (end[1] - start[1]) / (sizes[0] * sizes[1])
            mixed_labels[number] = _mean(labels[number], labels[other[number]], kept)
        return mixed, mixed_labels


class MixUp(TensorOperation):
    """Images of a batch as weighted means, in float64: of neighbors, or of the batch and the one before.

    Args:
        batch_size: How many images there are; a single image, or label, counts as so many.
        alpha: The weights are drawn from a Beta distribution with this for both parameters.
        is_single: Whether images are mixed with their neighbors in the batch; otherwise with those at their places in
            the previous batch, and the first batch stays as it is.

    Example:
        >>> import numpy as np
        >>> MixUp(2, 0.2)(np.zeros((2, 4, 4, 3)), np.eye(2))[1].sum().item()
        2.0

    Source: MindSpore, `mindspore.dataset.vision.MixUp`.
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
        share = generator(seed).beta(self.alpha, self.alpha, len(images))
        if not self.is_single:
            self._previous = images, labels
        if others is None or others[0].shape != images.shape:
            return images, labels
        weights = [share.reshape(-1, *[1] * (value.ndim - 1)) for value in (images, labels)]
        return _mean(images, others[0], weights[0]), _mean(labels, others[1], weights[1])
