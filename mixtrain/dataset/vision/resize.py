"""Resizing of images: Resize, RandomResize and ResizedCrop."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import keras

from mixtrain.data_backend import images, row_random
from mixtrain.dataset.vision.arguments import interpolation as read_interpolation, pair
from mixtrain.dataset.vision.crop import check_inside
from mixtrain.dataset.vision.enums import METHODS, Inter
from mixtrain.dataset.vision.operation import Seed, TwofoldOperation
from mixtrain.typing import Tensor


class Resizing(TwofoldOperation):
    """Base class of transforms that resize; Pillow images are resized as by Pillow."""

    def resized(self, image: Tensor, size: tuple[Tensor, Tensor], interpolation: Inter) -> Tensor:
        """Return a tensor (..., H, W, C), resized."""
        return images.resize(image, *size, METHODS[interpolation][self.on_pictures])


class Resize(Resizing):
    """The image resized by `interpolation`, in the same dtype.

    Args: size: The new (height, width); or an int for the shorter edge, the longer in proportion.

    Example:
        >>> import numpy as np
        >>> Resize((32, 48))(np.zeros((28, 28, 1), np.uint8)).shape
        (32, 48, 1)
    """

    batched = True

    def __init__(self, size: int | Sequence[int], interpolation: Inter = Inter.LINEAR) -> None:
        self.size = pair("Resize", "size", size)
        self.interpolation = read_interpolation("Resize", interpolation)
        self._by_shorter_edge = not isinstance(size, (list, tuple))

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        size = _scaled_size(image, self.size[0]) if self._by_shorter_edge else self.size
        return self.resized(image, size, self.interpolation)


def _scaled_size(image: Tensor, edge: int) -> tuple[Tensor, Tensor]:
    """Return the height and width of an image scaled so that its shorter edge is `edge`."""
    height, width = images.size_of(image)
    known = isinstance(height, int) and isinstance(width, int)
    shorter = min(height, width) if known else keras.ops.minimum(height, width)
    return height * edge // shorter, width * edge // shorter


class RandomResize(Resizing):
    """The image resized with a random interpolation. `size`: the new (height, width); or an int for the shorter edge.

    Example:
        >>> import numpy as np
        >>> RandomResize((4, 6))(np.zeros((28, 28, 3), np.uint8)).shape
        (4, 6, 3)
    """

    random = True
    pictures = "ends"

    def __init__(self, size: int | Sequence[int]) -> None:
        self._choices = [Resize(size, kind) for kind in (Inter.BILINEAR, Inter.NEAREST, Inter.BICUBIC, Inter.AREA)]

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        index = row_random.integer(seed, len(self._choices))
        return row_random.switch(index, [functools.partial(each.image, image, seed) for each in self._choices])


class ResizedCrop(Resizing):
    """A given part of the image, resized by `interpolation` to `size`, (height, width) or an int for both.

    Args: top, left, height, width: As in `Erase`.
    Raises: ValueError: A number is out of range; on use, the part is not inside the image.

    Example:
        >>> import numpy as np
        >>> ResizedCrop(0, 0, 1, 2, (2, 2), Inter.NEAREST)(np.array([[1, 2], [3, 4]])).tolist()
        [[1, 2], [1, 2]]
    """

    batched = True
    pictures = "ends"

    def __init__(
        self, top: int, left: int, height: int, width: int, size: int | Sequence[int],
        interpolation: Inter = Inter.BILINEAR,
    ) -> None:
        self.corner = pair("ResizedCrop", "(top, left)", (top, left), at_least=0)
        self.part = pair("ResizedCrop", "(height, width)", (height, width))
        self.size = pair("ResizedCrop", "size", size)
        self.interpolation = read_interpolation("ResizedCrop", interpolation)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        check_inside(self.name, image, *self.corner, *self.part)
        return self.resized(images.crop(image, *self.corner, *self.part), self.size, self.interpolation)
