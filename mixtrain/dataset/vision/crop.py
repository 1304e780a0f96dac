"""Crops of images: at the center, at a given position, at random positions."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import checks, data_backend
from mixtrain.data_backend import images, row_random
from mixtrain.dataset.vision.arguments import border, color, margins, pair
from mixtrain.dataset.vision.enums import Border
from mixtrain.dataset.vision.operation import ImageOperation, Seed, TwofoldOperation
from mixtrain.typing import Tensor


def check_inside(
    name: str, image: Tensor, top: Tensor | int, left: Tensor | int, height: Tensor | int, width: Tensor | int
) -> None:
    """Raise, now or when the graph runs, if a part is not inside the image."""
    rows, columns = images.size_of(image)
    data_backend.require(
        logical_and(top + height <= rows, left + width <= columns),
        f"{name}: expected a part inside the image, of height {{}} and width {{}}; got one of height {{}} and width "
        f"{{}} from row {{}} and column {{}} on. Write a smaller size for {name}, or Resize or Pad before it.",
        rows, columns, height, width, top, left,
    )


def logical_and(first: Tensor, second: Tensor) -> Tensor:
    """Return whether two bools or tensors are both true."""
    if isinstance(first, bool) and isinstance(second, bool):
        return first and second
    return keras.ops.logical_and(first, second)


def _maximum(first: Tensor, second: Tensor) -> Tensor:
    if isinstance(first, int) and isinstance(second, int):
        return max(first, second)
    return keras.ops.maximum(first, second)


def _missing(rows: Tensor, columns: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return how many rows and columns an image lacks to have a size."""
    return _maximum(size[0] - rows, 0), _maximum(size[1] - columns, 0)


def _half_to_even(value: Tensor) -> Tensor:
    """Return half of an int, rounded half to even as by `round` of Python, which crops of Pillow images use."""
    return value // 2 + (value % 2) * (value // 2 % 2)


class CenterCrop(TwofoldOperation):
    """The center of the image, padded with black if the image is smaller. `size`: (height, width), or one int for both.

    Example:
        >>> import numpy as np
        >>> CenterCrop((1, 2))(np.arange(16).reshape(4, 4)).tolist()
        [[5, 6]]
    """

    batched = True

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = pair("CenterCrop", "size", size)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        height, width = self.size
        rows, columns = images.size_of(image)
        missing = _missing(rows, columns, self.size)
        if not all(isinstance(value, int) and value == 0 for value in missing):
            top, left = ((value + 1) // 2 for value in missing)
            image = images.pad(image, left, top, missing[1] - left, missing[0] - top, "constant")
        surplus = _maximum(rows, height) - height, _maximum(columns, width) - width
        top, left = (_half_to_even(value) if self.on_pictures else value // 2 for value in surplus)
        return images.crop(image, top, left, height, width)


class Crop(ImageOperation):
    """The part of the image of `size` (an int, or height and width) that starts at `coordinates`, (row, column).

    Raises: ValueError: An argument is out of range; on use, the part is not inside the image.

    Example:
        >>> import numpy as np
        >>> Crop((0, 1), (1, 2))(np.arange(16).reshape(4, 4)).tolist()
        [[1, 2]]
    """

    pictures = "ends"

    def __init__(self, coordinates: Sequence[int], size: int | Sequence[int]) -> None:
        checks.instance("Crop", "coordinates", coordinates, (list, tuple), "coordinates=(0, 0)")
        self.coordinates = pair("Crop", "coordinates", coordinates, at_least=0)
        self.size = pair("Crop", "size", size)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        check_inside(self.name, image, *self.coordinates, *self.size)
        return images.crop(image, *self.coordinates, *self.size)


class RandomCrop(ImageOperation):
    """A part of the image at a random position, sampled uniformly.

    Args:
        size: (height, width), or one int for both.
        padding: A border that is added first: one int, (left and right, top and bottom), or (left, top, right, bottom).
        pad_if_needed: Whether to pad images that are smaller than `size`.
        fill_value: The value of a constant border: one int from 0 to 255, or one per channel.
        padding_mode: How a border is filled.

    Example:
        >>> import numpy as np
        >>> RandomCrop(32, padding=4)(np.zeros((32, 32, 3), np.uint8)).shape
        (32, 32, 3)
    """

    random = True
    batched = True

    def __init__(
        self, size: int | Sequence[int], padding: int | Sequence[int] | None = None, pad_if_needed: bool = False,
        fill_value: int | tuple[int, ...] = 0, padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.size = pair("RandomCrop", "size", size)
        self.padding = (0, 0, 0, 0) if padding is None else margins("RandomCrop", padding)
        self.pad_if_needed = checks.boolean("RandomCrop", "pad_if_needed", pad_if_needed)
        self.fill_value = color("RandomCrop", fill_value)
        self.padding_mode = border("RandomCrop", padding_mode)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        if any(self.padding):
            image = self._padded(image, *self.padding)
        if self.pad_if_needed:
            ends, sides = _missing(*images.size_of(image), self.size)
            image = self._padded(image, sides, ends, sides, ends)
        check_inside(self.name, image, 0, 0, *self.size)
        rows, columns = images.size_of(image)
        top = row_random.integer(row_random.fold_in(seed, 0), rows - self.size[0] + 1)
        left = row_random.integer(row_random.fold_in(seed, 1), columns - self.size[1] + 1)
        return images.crop(image, top, left, *self.size)

    def _padded(self, image: Tensor, left: Tensor | int, top: Tensor | int, right: Tensor, bottom: Tensor) -> Tensor:
        return images.pad(image, left, top, right, bottom, self.padding_mode.value, self.fill_value)
