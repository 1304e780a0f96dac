"""Tone curves of images: inverted, solarized, posterized, equalized or stretched, always or at random."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np

from mixtrain import checks
from mixtrain.data_backend import colors, row_random
from mixtrain.dataset.vision.arguments import limits, pair, probability
from mixtrain.dataset.vision.operation import ImageOperation, Seed, TwofoldOperation
from mixtrain.typing import Tensor


class Invert(ImageOperation):
    """255 minus the image. Example: ``Invert()(image)``."""

    batched = True

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return colors.invert(image)


class AdjustGamma(ImageOperation):
    """``gain * image ** gamma`` with uint8 scaled to [0, 1], ``(gain * image) ** gamma`` for floats; `gamma` is at
    least 0.

    Example:
        >>> AdjustGamma(2.0)(np.array([[0, 51, 255]], np.uint8)).tolist()
        [[0, 10, 255]]
    """

    batched = True
    pictures = "keeps"

    def __init__(self, gamma: float, gain: float = 1.0) -> None:
        self.gamma = checks.number("AdjustGamma", "gamma", gamma, at_least=0.0, example=1.0)
        self.gain = checks.number("AdjustGamma", "gain", gain, example=1.0)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        if keras.backend.standardize_dtype(image.dtype) == "uint8":
            curve = 256.0 * self.gain * (np.arange(256) / 255.0) ** self.gamma
            return keras.ops.take(np.clip(curve, 0, 255).astype(np.uint8), keras.ops.cast(image, "int32"), axis=0)
        return keras.ops.cast(keras.ops.clip((self.gain * image) ** self.gamma, 0.0, 1.0), image.dtype)


class Equalize(TwofoldOperation):
    """A uint8 image with the histogram of each channel equalized. Example: ``Equalize()(image)``."""

    uint8_only = True

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return colors.equalize(image, like_pillow=self.on_pictures)


class AutoContrast(ImageOperation):
    """A uint8 image with the range of each channel stretched to 0 to 255, without the values to `ignore`, one or
    several.

    Args: cutoff: Percentage of the darkest and of the lightest pixels that are ignored; from 0 to 50.

    Example:
        >>> AutoContrast()(np.array([[100, 110]], np.uint8)).tolist()
        [[0, 255]]
    """

    uint8_only = True

    def __init__(self, cutoff: float = 0.0, ignore: int | Sequence[int] | None = None) -> None:
        self.cutoff = checks.number(self.name, "cutoff", cutoff, at_least=0.0, at_most=50.0, example=0.0)
        values = [] if ignore is None else ignore if isinstance(ignore, (list, tuple)) else [ignore]
        self.ignore = [checks.integer(self.name, "ignore", value, at_least=0) for value in values]

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return colors.auto_contrast(image, self.cutoff, self.ignore)


class Solarize(ImageOperation):
    """The image with the values in `threshold` inverted: (min, max), or a number for (number, 255); from 0 to 255.

    Example:
        >>> Solarize(100)(np.array([[99, 100]], np.uint8)).tolist()
        [[99, 155]]
    """

    batched = True
    pictures = "ends"

    def __init__(self, threshold: float | Sequence[float]) -> None:
        bounds = threshold if isinstance(threshold, (list, tuple)) else (threshold, threshold)
        low, high = limits("Solarize", "threshold", bounds, at_least=0.0, at_most=255.0, example="(0, 255)")
        self.threshold = (low, 255.0 if low == high else high)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return colors.solarize(image, *self.threshold)


class RandomSolarize(ImageOperation):
    """The image with the values in a random part of the range `threshold` inverted; if (n, n), those from n to 255.

    Example:
        >>> RandomSolarize((100, 100))(np.array([[99, 100]], np.uint8)).tolist()
        [[99, 155]]
    """

    random = True

    def __init__(self, threshold: Sequence[int] = (0, 255)) -> None:
        low, high = pair("RandomSolarize", "threshold", threshold, at_least=0)
        limits("RandomSolarize", "threshold", (low, high), at_most=255.0, example="(0, 255)")
        self.threshold = (low, high)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        low, high = self.threshold
        if low == high:
            return colors.solarize(image, low, 255)
        seeds = (row_random.fold_in(seed, index) for index in (0, 1))
        first, second = (low + row_random.integer(each, high - low + 1) for each in seeds)
        start, end = keras.ops.minimum(first, second), keras.ops.maximum(first, second)
        return colors.solarize(image, start, keras.ops.where(start == end, 255, end))


class Posterize(ImageOperation):
    """A uint8 image with only the highest bits of each value kept. `bits`: number of bits, from 0 to 8.

    Example:
        >>> Posterize(1)(np.array([[100, 200]], np.uint8)).tolist()
        [[0, 128]]
    """

    batched = True
    uint8_only = True
    pictures = "ends"

    def __init__(self, bits: int) -> None:
        self.bits = checks.integer("Posterize", "bits", bits, at_least=0, example=4)
        checks.number("Posterize", "bits", bits, at_most=8)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return colors.posterize(image, self.bits)


class RandomPosterize(ImageOperation):
    """A uint8 image with a random number, in the range `bits` from 1 to 8 or exactly it, of the highest bits of each
    value kept.

    Example:
        >>> RandomPosterize((1, 1))(np.array([[100, 200]], np.uint8)).tolist()
        [[0, 128]]
    """

    uint8_only = True
    random = True

    def __init__(self, bits: int | Sequence[int] = (8, 8)) -> None:
        self.bits = pair("RandomPosterize", "bits", bits)
        limits("RandomPosterize", "bits", self.bits, at_most=8.0, example="(4, 8)")

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        low, high = self.bits
        return colors.posterize(image, low + row_random.integer(seed, high - low + 1))


class _RandomlyApplied(ImageOperation):
    """Base class of transforms that apply another one with a probability."""

    random = True
    pictures = "ends"

    def __init__(self, transform: ImageOperation, prob: float) -> None:
        self._transform = transform
        self.prob = probability(self.name, prob)

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        return row_random.cond(
            row_random.bernoulli(seed, self.prob), lambda: self._transform.graph(value, seed), lambda: value
        )


class RandomInvert(_RandomlyApplied):
    """255 minus the image, with probability `prob`.

    Example:
        >>> RandomInvert(1.0)(np.array([[0, 55]], np.uint8)).tolist()
        [[255, 200]]
    """

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(Invert(), prob)


class RandomEqualize(_RandomlyApplied):
    """`Equalize`, applied with probability `prob`.

    Example:
        >>> RandomEqualize(0.0)(np.array([[0, 55]], np.uint8)).tolist()
        [[0, 55]]
    """

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(Equalize(), prob)


class RandomAutoContrast(_RandomlyApplied):
    """`AutoContrast` with its `cutoff` and `ignore`, applied with probability `prob`.

    Example:
        >>> RandomAutoContrast(prob=1.0)(np.array([[100, 110]], np.uint8)).tolist()
        [[0, 255]]
    """

    def __init__(self, cutoff: float = 0.0, ignore: int | Sequence[int] | None = None, prob: float = 0.5) -> None:
        super().__init__(AutoContrast(cutoff, ignore), prob)
