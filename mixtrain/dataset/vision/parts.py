"""Several parts of an image: corners and center, optionally flipped, or a grid of patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain import checks
from mixtrain.dataset.transforms.operation import TensorOperation, read_value
from mixtrain.dataset.transforms.picture import is_picture, to_picture
from mixtrain.dataset.vision.arguments import color, enum_member, pair
from mixtrain.dataset.vision.enums import SliceMode


class FiveCrop(TensorOperation):
    """The four corners and the center of the image, of `size` (an int, or height and width): top left, top right,
    bottom left, bottom right, center.

    Example:
        >>> [part.tolist() for part in FiveCrop(1)(np.arange(9).reshape(3, 3))]
        [[[0]], [[2]], [[6]], [[8]], [[4]]]
    """

    same_size = False

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = pair(type(self).__name__, "size", size)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> tuple[Any, ...]:
        """Return the parts of one image, as Pillow images for a Pillow image."""
        where = type(self).__name__
        if len(values) != 1:
            raise checks.fail_type(where, "one image is needed", len(values), f"{where}(...)(image)")
        picture = is_picture(values[0])
        image = np.asarray(values[0]) if picture else read_value(where, values[0])
        if image.ndim not in (2, 3) or image.shape[0] < self.size[0] or image.shape[1] < self.size[1]:
            raise ValueError(
                f"{where}: expected an image (H, W) or (H, W, C) of at least {self.size}; got shape {image.shape}. "
                f"Write a smaller size for {where}, or Resize or Pad before it."
            )
        parts = (np.ascontiguousarray(part) for part in self._parts(image))
        return tuple(to_picture(where, part) for part in parts) if picture else tuple(parts)

    def _parts(self, image: np.ndarray) -> list[np.ndarray]:
        height, width = self.size
        bottom, right = image.shape[0] - height, image.shape[1] - width
        center = round(bottom / 2), round(right / 2)
        corners = [(0, 0), (0, right), (bottom, 0), (bottom, right), center]
        return [image[top : top + height, left : left + width] for top, left in corners]


class TenCrop(FiveCrop):
    """The parts of `FiveCrop` of the same `size`, followed by those of the image flipped horizontally, or
    `use_vertical_flip`.

    Example:
        >>> len(TenCrop(2)(np.arange(9).reshape(3, 3)))
        10
    """

    def __init__(self, size: int | Sequence[int], use_vertical_flip: bool = False) -> None:
        super().__init__(size)
        self.use_vertical_flip = checks.boolean("TenCrop", "use_vertical_flip", use_vertical_flip)

    def _parts(self, image: np.ndarray) -> list[np.ndarray]:
        flipped = image[::-1] if self.use_vertical_flip else image[:, ::-1]
        return [*super()._parts(image), *super()._parts(flipped)]


class SlicePatches(TensorOperation):
    """The image split into a grid of equal patches, `num_height` times `num_width`, row by row.

    Args:
        slice_mode: Whether an image that does not divide evenly is padded, or cropped, at its right and bottom.
        fill_value: The value of the padding, from 0 to 255.

    Example:
        >>> [patch.tolist() for patch in SlicePatches(1, 2)(np.arange(3)[None])]
        [[[0, 1]], [[2, 0]]]
    """

    same_size = False

    def __init__(
        self, num_height: int = 1, num_width: int = 1, slice_mode: SliceMode = SliceMode.PAD, fill_value: int = 0
    ) -> None:
        self.grid = tuple(
            checks.integer("SlicePatches", name, value, at_least=1)
            for name, value in (("num_height", num_height), ("num_width", num_width))
        )
        self.slice_mode = enum_member("SlicePatches", "slice_mode", slice_mode, SliceMode)
        (self.fill_value,) = color("SlicePatches", (fill_value,))

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
        """Return the patches of one image; a grid of one patch gives an array instead of a tuple."""
        image = read_value("SlicePatches", values[0])
        if len(values) != 1 or image.ndim not in (2, 3):
            raise checks.fail_value("SlicePatches", "the value must be one image (H, W) or (H, W, C)", image.shape,
                                    "SlicePatches(2, 2)(image)")
        if any(length < count for length, count in zip(image.shape, self.grid, strict=False)):
            raise checks.fail_value("SlicePatches", f"the image must have at least {self.grid} pixels", image.shape,
                                    "a smaller grid")
        padded = self.slice_mode is SliceMode.PAD
        sizes = [
            -(-length // count) if padded else length // count
            for length, count in zip(image.shape, self.grid, strict=False)
        ]
        if padded:
            widths = [(0, size * count - length) for size, count, length in zip(
                sizes, self.grid, image.shape, strict=False)]
            image = np.pad(image, [*widths, (0, 0)][: image.ndim], constant_values=self.fill_value)
        height, width = sizes
        patches = tuple(
            np.ascontiguousarray(image[row * height : (row + 1) * height, column * width : (column + 1) * width])
            for row in range(self.grid[0]) for column in range(self.grid[1])
        )
        return patches if len(patches) > 1 else patches[0]
