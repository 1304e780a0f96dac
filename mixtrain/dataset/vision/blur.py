"""Images blurred and sharpened."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mixtrain import checks
from mixtrain.data_backend import colors, row_random
from mixtrain.dataset.vision.arguments import limits, pair, probability
from mixtrain.dataset.vision.operation import ImageOperation, Seed
from mixtrain.typing import Tensor


class GaussianBlur(ImageOperation):
    """The image convolved with a Gaussian kernel of size `kernel_size`, an odd int, or (width, height).

    Args: sigma: The standard deviation, or (width, height); by default ``((size - 1) / 2 - 1) * 0.3 + 0.8``.

    Example:
        >>> import numpy as np
        >>> GaussianBlur(3)(np.full((4, 4, 3), 7, np.uint8)).max()
        np.uint8(7)
    """

    pictures = "ends"

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] | None = None) -> None:
        sizes = pair("GaussianBlur", "kernel_size", kernel_size)
        if not all(size % 2 for size in sizes):
            raise checks.fail_value("GaussianBlur", "kernel_size must be odd", kernel_size, "kernel_size=3")
        sigmas: Sequence[float] = sigma if isinstance(sigma, (list, tuple)) else (sigma,)
        if len(sigmas) == 1:
            sigmas = (sigmas[0], sigmas[0])
        deviations = [
            ((size - 1) * 0.5 - 1) * 0.3 + 0.8
            if value is None
            else checks.number("GaussianBlur", "sigma", value, above=0.0)
            for value, size in zip(sigmas, sizes, strict=True)
        ]
        self.weights = [_gaussian(size, deviation) for size, deviation in zip(sizes, deviations, strict=True)]

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return colors.blur(image, *self.weights)


def _gaussian(size: int, deviation: float) -> list[float]:
    weights = [math.exp(-0.5 * ((index - (size - 1) / 2) / deviation) ** 2) for index in range(size)]
    return [weight / sum(weights) for weight in weights]


class AdjustSharpness(ImageOperation):
    """The image blurred (`sharpness_factor` 0), unchanged (1), sharpened (2), or in between.

    Example:
        >>> import numpy as np
        >>> AdjustSharpness(1.0)(np.array([[1, 2]], np.uint8)).tolist()
        [[1, 2]]
    """

    pictures = "ends"

    def __init__(self, sharpness_factor: float) -> None:
        self.factor = checks.number("AdjustSharpness", "sharpness_factor", sharpness_factor, at_least=0.0)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return sharpen(image, self.factor)


def sharpen(image: Tensor, factor: Tensor | float) -> Tensor:
    """Return the image blended with its smoothed version: 0 gives the latter, 1 the image, more extrapolates."""
    return colors.blend(image, colors.smooth(image), factor)


class RandomSharpness(ImageOperation):
    """`AdjustSharpness` by a random factor in the range `degrees`, (min, max).

    Example:
        >>> import numpy as np
        >>> RandomSharpness((1.0, 1.0))(np.array([[1, 2]], np.uint8)).tolist()
        [[1, 2]]
    """

    random = True

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self.degrees = limits("RandomSharpness", "degrees", degrees, at_least=0.0, example="(0.1, 1.9)")

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return sharpen(image, row_random.uniform(seed, *self.degrees))


class RandomAdjustSharpness(ImageOperation):
    """`AdjustSharpness` by a factor `degree`, with probability `prob`.

    Example:
        >>> import numpy as np
        >>> RandomAdjustSharpness(2.0, prob=0.0)(np.array([[1, 2]], np.uint8)).tolist()
        [[1, 2]]
    """

    random = True
    pictures = "ends"

    def __init__(self, degree: float, prob: float = 0.5) -> None:
        self.degree = checks.number("RandomAdjustSharpness", "degree", degree, at_least=0.0)
        self.prob = probability("RandomAdjustSharpness", prob)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return row_random.cond(
            row_random.bernoulli(seed, self.prob), lambda: sharpen(image, self.degree), lambda: image
        )
