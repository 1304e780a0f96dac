"""Random parts of images brought to one size: the crops that image classifiers are trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import keras

from mixtrain import backend, checks
from mixtrain.dataset.transforms.operation import PictureMode, Seed
from mixtrain.dataset.vision.arguments import interpolation as read_interpolation
from mixtrain.dataset.vision.arguments import limits, pair
from mixtrain.dataset.vision.enums import Inter
from mixtrain.dataset.vision.layout import check_contents
from mixtrain.dataset.vision.resize import Resizing


class RandomResizedCrop(Resizing):
    """A part of the image of random area, shape and place, brought to one size.

    Args:
        size: (height, width), or one int for both.
        scale: The smallest and largest share of the image's area that a part has.
        ratio: The smallest and largest width divided by height of a part; its logarithm is drawn evenly.
        interpolation: How pixels are made.
        max_attempts: How often a part is drawn that may not fit into the image; then the middle is taken.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import numpy as np
        >>> RandomResizedCrop(8)(np.zeros((20, 30, 3), np.uint8)).shape
        (8, 8, 3)

    Source: MindSpore, `mindspore.dataset.vision.RandomResizedCrop`.
    """

    batched = True
    random = True

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        self.size = pair(self.name, "size", size)
        self.scale = limits(self.name, "scale", scale, at_least=0.0, example="(0.08, 1.0)")
        self.ratio = limits(self.name, "ratio", ratio, at_least=0.0, example="(0.75, 1.33)")
        if self.ratio[0] == 0.0 or self.scale[1] == 0.0:
            raise checks.fail_value(self.name, "scale and ratio must not be 0", (scale, ratio), "ratio=(0.75, 1.33)")
        self.interpolation = read_interpolation(self.name, interpolation)
        self.max_attempts = checks.integer(self.name, "max_attempts", max_attempts, at_least=1, example=10)

    def image(self, image: Any, seed: Seed) -> Any:
        """Return the result for a tensor (..., H, W, C)."""
        part = backend.images.crop(image, *self.choose(*backend.images.size_of(image), seed))
        return self.resized(part, self.size, self.interpolation)

    def choose(self, rows: Any, columns: Any, seed: Seed) -> tuple[Any, Any, Any, Any]:
        """Return top, left, height and width of a random part of an image of a size."""
        height, width, drawn = self._part(rows, columns, seed)
        top = backend.row_random.integer(backend.row_random.fold(seed, 2), rows - height + 1)
        left = backend.row_random.integer(backend.row_random.fold(seed, 3), columns - width + 1)
        top = keras.ops.where(drawn, top, (rows - height) // 2)
        left = keras.ops.where(drawn, left, (columns - width) // 2)
        return top, left, height, width

    def _part(self, rows: Any, columns: Any, seed: Seed) -> tuple[Any, Any, Any]:
        """Return height and width of the first drawn part that fits, or of the middle, and whether one was drawn."""
        ops, draws = keras.ops, (self.max_attempts,)
        rows, columns = ops.cast(rows, "float32"), ops.cast(columns, "float32")
        area = rows * columns * backend.row_random.uniform(backend.row_random.fold(seed, 0), *self.scale, shape=draws)
        bounds = (math.log(self.ratio[0]), math.log(self.ratio[1]))
        ratio = ops.exp(backend.row_random.uniform(backend.row_random.fold(seed, 1), *bounds, shape=draws))
        width, height = ops.round(ops.sqrt(area * ratio)), ops.round(ops.sqrt(area / ratio))
        fits = (width <= columns) & (height <= rows) & (width >= 1.0) & (height >= 1.0)
        first, drawn = ops.argmax(fits), ops.any(fits)
        middle_width = ops.minimum(columns, ops.round(rows * self.ratio[1]))
        middle_height = ops.minimum(rows, ops.round(columns / self.ratio[0]))
        height = ops.where(drawn, height[first], ops.maximum(middle_height, 1.0))
        width = ops.where(drawn, width[first], ops.maximum(middle_width, 1.0))
        return ops.cast(height, "int32"), ops.cast(width, "int32"), drawn


class RandomCropDecodeResize(RandomResizedCrop):
    """What `RandomResizedCrop` makes of the image in a file's contents; see `Decode`.

    Args:
        size: (height, width), or one int for both.
        scale: The smallest and largest share of the image's area that a part has.
        ratio: The smallest and largest width divided by height of a part.
        interpolation: How pixels are made.
        max_attempts: How often a part is drawn that may not fit into the image; then the middle is taken.

    Raises:
        ValueError: On use: the value is not a file of a known kind.

    Example:
        >>> RandomCropDecodeResize(224).size
        (224, 224)

    Source: MindSpore, `mindspore.dataset.vision.RandomCropDecodeResize`.
    """

    batched = False
    pictures: ClassVar[PictureMode] = "ends"

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor of bytes."""
        check_contents(self.name, value)
        part = backend.images.decode_part(value, lambda rows, columns: self.choose(rows, columns, seed))
        return self.resized(part, self.size, self.interpolation)
