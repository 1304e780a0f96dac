"""Flips of images, always or at random."""

from __future__ import annotations

from typing import ClassVar, Literal

from mixtrain.data_backend import images, row_random
from mixtrain.dataset.vision.arguments import probability
from mixtrain.dataset.vision.operation import ImageOperation, Seed
from mixtrain.typing import Tensor


class HorizontalFlip(ImageOperation):
    """The image flipped horizontally.

    Example:
        >>> import numpy as np
        >>> HorizontalFlip()(np.array([[1, 2, 3]])).tolist()
        [[3, 2, 1]]
    """

    batched = True
    axis: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"
    pictures = "ends"

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return images.flip(image, self.axis)


class VerticalFlip(HorizontalFlip):
    """The image flipped vertically. Example: ``VerticalFlip()(image)``."""

    axis = "vertical"


class RandomHorizontalFlip(ImageOperation):
    """The image flipped horizontally with probability `prob`.

    Example:
        >>> import numpy as np
        >>> RandomHorizontalFlip(1.0)(np.array([[1, 2, 3]])).tolist()
        [[3, 2, 1]]
    """

    random = True
    batched = True
    axis: ClassVar[Literal["horizontal", "vertical"]] = "horizontal"

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = probability(self.name, prob)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        flipped = row_random.bernoulli(seed, self.prob)
        return row_random.cond(flipped, lambda: images.flip(image, self.axis), lambda: image)


class RandomVerticalFlip(RandomHorizontalFlip):
    """The image flipped vertically with probability `prob`.

    Example:
        >>> import numpy as np
        >>> RandomVerticalFlip(1.0)(np.array([[1], [2]])).tolist()
        [[2], [1]]
    """

    axis = "vertical"
