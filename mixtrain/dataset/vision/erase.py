"""Parts of images replaced by other values: CutOut, RandomErasing and Erase."""

from __future__ import annotations

import math
from collections.abc import Sequence

import keras

from mixtrain import checks, data_backend
from mixtrain.data_backend import colors, images, row_random
from mixtrain.dataset.vision.arguments import limits, probability
from mixtrain.dataset.vision.operation import ImageOperation, Seed, TensorOperation
from mixtrain.typing import Tensor


class CutOut(TensorOperation):
    """The image with squares at random positions set to 0; a square may extend beyond the image.

    Args:
        length, num_patches: The side of a square, and the number of squares.
        is_hwc: Whether images are (H, W, C); otherwise (C, H, W).

    Example:
        >>> import numpy as np
        >>> CutOut(8)(np.ones((4, 4, 3), np.uint8)).shape
        (4, 4, 3)
    """

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        self.length = checks.integer("CutOut", "length", length, at_least=1, example=16)
        self.num_patches = checks.integer("CutOut", "num_patches", num_patches, at_least=1)
        self.is_hwc = checks.boolean("CutOut", "is_hwc", is_hwc)

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        rank = len(value.shape)
        data_backend.require(
            rank == 3, "CutOut: expected an image of three dimensions; got {}. Write images with channels.", rank
        )
        image = value if self.is_hwc else keras.ops.transpose(value, (1, 2, 0))
        rows, columns = images.size_of(image)
        for index in range(self.num_patches):
            patch_seed = row_random.fold_in(seed, index)
            top = row_random.integer(row_random.fold_in(patch_seed, 0), rows) - self.length // 2
            left = row_random.integer(row_random.fold_in(patch_seed, 1), columns) - self.length // 2
            image = colors.fill_box(image, top, left, top + self.length, left + self.length, 0)
        return image if self.is_hwc else keras.ops.transpose(image, (2, 0, 1))


class RandomErasing(TensorOperation):
    """An image (C, H, W) with a random part replaced, with probability `prob`.

    Args:
        scale: The range (min, max) of the area of the part, as a fraction of the image.
        ratio: The range (min, max) of height divided by width of the part; its logarithm is sampled uniformly.
        value: The replacement: one number, one per channel, or "random" for normally distributed numbers.
        inplace: Without effect: the given image is never modified.
        max_attempts: How many parts are sampled until one fits in the image; after that, the image is unchanged.

    Example:
        >>> import numpy as np
        >>> RandomErasing(prob=0.0)(np.ones((3, 1, 1), np.float32)).tolist()
        [[[1.0]], [[1.0]], [[1.0]]]
    """

    def __init__(
        self, prob: float = 0.5, scale: Sequence[float] = (0.02, 0.33), ratio: Sequence[float] = (0.3, 3.3),
        value: int | str | Sequence[int] = 0, inplace: bool = False, max_attempts: int = 10,
    ) -> None:
        self.prob = probability("RandomErasing", prob)
        self.scale = limits("RandomErasing", "scale", scale, at_least=0.0, example="(0.02, 0.33)")
        self.ratio = limits("RandomErasing", "ratio", ratio, at_least=1e-6, example="(0.3, 3.3)")
        self.value = value
        if isinstance(value, str):
            checks.one_of("RandomErasing", "value", value, ("random",))
        else:
            for number in value if isinstance(value, (tuple, list)) else (value,):
                checks.integer("RandomErasing", "value", number, at_least=0)
        self.max_attempts = checks.integer("RandomErasing", "max_attempts", max_attempts, at_least=1, example=10)
        checks.boolean("RandomErasing", "inplace", inplace)

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        rank = len(value.shape)
        data_backend.require(
            rank == 3, "RandomErasing: expected an image (C, H, W); got {} dimensions. Write ToTensor() before.", rank
        )
        ops = keras.ops
        image = ops.transpose(value, (1, 2, 0))
        rows, columns = images.size_of(image)
        area = row_random.uniform(row_random.fold_in(seed, 1), *self.scale, shape=(self.max_attempts,))
        area = area * ops.cast(rows * columns, "float32")
        bounds = (math.log(self.ratio[0]), math.log(self.ratio[1]))
        ratio = ops.exp(row_random.uniform(row_random.fold_in(seed, 2), *bounds, shape=(self.max_attempts,)))
        height = ops.cast(ops.round(ops.sqrt(area * ratio)), "int32")
        width = ops.cast(ops.round(ops.sqrt(area / ratio)), "int32")
        fits = (height < rows) & (width < columns)
        first = ops.argmax(fits)
        height, width = ops.minimum(height[first], rows), ops.minimum(width[first], columns)
        top = row_random.integer(row_random.fold_in(seed, 3), rows - height + 1)
        left = row_random.integer(row_random.fold_in(seed, 4), columns - width + 1)
        erased = colors.fill_box(
            image, top, left, top + height, left + width, self._replacement(image, row_random.fold_in(seed, 5))
        )
        applied = row_random.bernoulli(row_random.fold_in(seed, 0), self.prob) & ops.any(fits)
        return ops.where(applied, ops.transpose(erased, (2, 0, 1)), value)

    def _replacement(self, image: Tensor, seed: Seed) -> Tensor:
        if self.value == "random":
            return row_random.normal(seed, 1.0, keras.ops.shape(image))
        return self.value


class Erase(ImageOperation):
    """The image with the part from (`top`, `left`) on, of `height` and `width`, replaced by `value`.

    Args: value, inplace: One number from 0 to 255, or one per channel; the given image itself is never modified.

    Example:
        >>> import numpy as np
        >>> Erase(0, 0, 1, 1, value=9)(np.array([[1, 2]], np.uint8)).tolist()
        [[9, 2]]
    """

    pictures = "ends"

    def __init__(
        self, top: int, left: int, height: int, width: int, value: float | Sequence[float] = 0.0, inplace: bool = False
    ) -> None:
        names = ("top", "left", "height", "width")
        self.box = [
            checks.integer("Erase", name, number, at_least=int(name in ("height", "width")))
            for name, number in zip(names, (top, left, height, width), strict=True)
        ]
        values = value if isinstance(value, (list, tuple)) else (value,)
        self.value = [checks.number("Erase", "value", item, at_least=0.0, at_most=255.0) for item in values]
        checks.boolean("Erase", "inplace", inplace)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        top, left, height, width = self.box
        return colors.fill_box(image, top, left, top + height, left + width, self.value)
