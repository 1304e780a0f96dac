"""Random crops resized to one size, as for training image classifiers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import keras

from mixtrain import checks
from mixtrain.data_backend import images, row_random
from mixtrain.dataset.transforms.operation import Seed
from mixtrain.dataset.vision.arguments import interpolation as read_interpolation, limits, pair
from mixtrain.dataset.vision.enums import Inter
from mixtrain.dataset.vision.layout import check_contents
from mixtrain.dataset.vision.resize import Resizing
from mixtrain.typing import Tensor


class RandomResizedCrop(Resizing):
    """A part of the image of random area, aspect ratio and position, resized.

    Args:
        size: (height, width), or one int for both.
        scale: The range (min, max) of the area of the part, as a fraction of the image.
        ratio: The range (min, max) of width divided by height of the part; its logarithm is sampled uniformly.
        interpolation: The interpolation.
        max_attempts: How many parts are sampled until one fits in the image; after that, the center is used.

    Example:
        >>> import numpy as np
        >>> RandomResizedCrop(8)(np.zeros((20, 30, 3), np.uint8)).shape
        (8, 8, 3)
    """

    batched = True
    random = True

    def __init__(
        self, size: int | Sequence[int], scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0), interpolation: Inter = Inter.BILINEAR, max_attempts: int = 10,
    ) -> None:
        self.size = pair(self.name, "size", size)
        self.scale = limits(self.name, "scale", scale, at_least=0.0, example="(0.08, 1.0)")
        self.ratio = limits(self.name, "ratio", ratio, at_least=0.0, example="(0.75, 1.33)")
        if self.ratio[0] == 0.0 or self.scale[1] == 0.0:
            raise checks.fail_value(self.name, "scale and ratio must not be 0", (scale, ratio), "ratio=(0.75, 1.33)")
        self.interpolation = read_interpolation(self.name, interpolation)
        self.max_attempts = checks.integer(self.name, "max_attempts", max_attempts, at_least=1, example=10)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        part = images.crop(image, *self.sample(*images.size_of(image), seed))
        return self.resized(part, self.size, self.interpolation)

    def sample(self, rows: Tensor | int, columns: Tensor | int, seed: Seed) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return top, left, height and width of a random part of an image with the given size."""
        height, width, found = self._sample_size(rows, columns, seed)
        top = row_random.integer(row_random.fold_in(seed, 2), rows - height + 1)
        left = row_random.integer(row_random.fold_in(seed, 3), columns - width + 1)
        top = keras.ops.where(found, top, (rows - height) // 2)
        left = keras.ops.where(found, left, (columns - width) // 2)
        return top, left, height, width

    def _sample_size(self, rows: Tensor | int, columns: Tensor | int, seed: Seed) -> tuple[Tensor, Tensor, Tensor]:
        """Return height and width of the first sample that fits, or of a center crop, and whether a sample fits."""
        # All attempts are sampled at once, without a loop, and the first that fits is used.
        ops, shape = keras.ops, (self.max_attempts,)
        rows, columns = ops.cast(rows, "float32"), ops.cast(columns, "float32")
        share = row_random.uniform(row_random.fold_in(seed, 0), *self.scale, shape=shape)
        area = rows * columns * share
        bounds = (math.log(self.ratio[0]), math.log(self.ratio[1]))
        ratio = ops.exp(row_random.uniform(row_random.fold_in(seed, 1), *bounds, shape=shape))
        width, height = ops.round(ops.sqrt(area * ratio)), ops.round(ops.sqrt(area / ratio))
        fits = (width <= columns) & (height <= rows) & (width >= 1.0) & (height >= 1.0)
        first, found = ops.argmax(fits), ops.any(fits)
        center_width = ops.minimum(columns, ops.round(rows * self.ratio[1]))
        center_height = ops.minimum(rows, ops.round(columns / self.ratio[0]))
        height = ops.where(found, height[first], ops.maximum(center_height, 1.0))
        width = ops.where(found, width[first], ops.maximum(center_width, 1.0))
        return ops.cast(height, "int32"), ops.cast(width, "int32"), found


class RandomCropDecodeResize(RandomResizedCrop):
    """`RandomResizedCrop` of the image in the contents of a file; see `Decode`.

    Args: size, scale, ratio, interpolation, max_attempts: As in `RandomResizedCrop`.

    Example:
        >>> RandomCropDecodeResize(224).size
        (224, 224)
    """

    batched = False
    pictures = "ends"

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        check_contents(self.name, value)
        part = images.decode_part(value, lambda rows, columns: self.sample(rows, columns, seed))
        return self.resized(part, self.size, self.interpolation)
