"""Borders around images: Pad and PadToSize."""

from __future__ import annotations

from collections.abc import Sequence

from mixtrain import data_backend
from mixtrain.data_backend import images
from mixtrain.dataset.vision.arguments import border, color, margins, pair
from mixtrain.dataset.vision.crop import logical_and
from mixtrain.dataset.vision.enums import Border
from mixtrain.dataset.vision.operation import ImageOperation, Seed
from mixtrain.typing import Tensor


class Pad(ImageOperation):
    """The image with a border.

    Args:
        padding: One width, (left and right, top and bottom), or (left, top, right, bottom).
        fill_value: The value of a constant border: one int from 0 to 255, or one per channel.
        padding_mode: How the border is filled.

    Example:
        >>> import numpy as np
        >>> Pad((1, 0), fill_value=7)(np.array([[1, 2]])).tolist()
        [[7, 1, 2, 7]]
    """

    batched = True

    def __init__(
        self, padding: int | Sequence[int], fill_value: int | tuple[int, ...] = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.padding = margins("Pad", padding)
        self.fill_value = color("Pad", fill_value)
        self.padding_mode = border("Pad", padding_mode)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return images.pad(image, *self.padding, self.padding_mode.value, self.fill_value)


class PadToSize(ImageOperation):
    """The image padded to a size.

    Args:
        fill_value, padding_mode: As in `Pad`.
        size: (height, width), or one int for both.
        offset: Width of the border at the top and at the left; None: half of the whole border.

    Example:
        >>> import numpy as np
        >>> PadToSize((1, 4), offset=(0, 1))(np.array([[1, 2]])).tolist()
        [[0, 1, 2, 0]]
    """

    batched = True
    pictures = "ends"

    def __init__(
        self, size: int | Sequence[int], offset: int | Sequence[int] | None = None,
        fill_value: int | tuple[int, ...] = 0, padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self.size = pair("PadToSize", "size", size)
        self.offset = None if offset is None or offset == [] else pair("PadToSize", "offset", offset, at_least=0)
        self.fill_value = color("PadToSize", fill_value)
        self.padding_mode = border("PadToSize", padding_mode)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        rows, columns = images.size_of(image)
        vertical, horizontal = self.size[0] - rows, self.size[1] - columns  # Total width of the border.
        top, left = (vertical // 2, horizontal // 2) if self.offset is None else self.offset
        data_backend.require(
            logical_and(rows + top <= self.size[0], columns + left <= self.size[1]),
            "PadToSize: expected images of height and width up to {} and {}, with their offset; got {} and {}. "
            "Write a larger size.", *self.size, rows, columns,
        )
        return images.pad(
            image, left, top, horizontal - left, vertical - top, self.padding_mode.value, self.fill_value
        )
