"""Adjustments of brightness, contrast, saturation and hue, by given or random amounts."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from mixtrain import checks
from mixtrain.data_backend import colors, row_random
from mixtrain.dataset.vision.arguments import limits
from mixtrain.dataset.vision.operation import ImageOperation, Seed
from mixtrain.typing import Tensor


class _Adjust(ImageOperation):
    """Base class of adjustments by one amount.

    Attributes:
        argument: The name of the amount.
        bounds: Minimum and maximum of the amount.
        change: From an image and the amount to an image.
    """

    rgb_only = True
    argument: ClassVar[str]
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    change: ClassVar[Any]

    def _set(self, value: float) -> None:
        low, high = self.bounds
        self.amount = checks.number(self.name, self.argument, value, at_least=low, at_most=high)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return type(self).change(image, self.amount)


class AdjustBrightness(_Adjust):
    """The image with all values multiplied by `brightness_factor`; 0 gives black.

    Example:
        >>> import numpy as np
        >>> AdjustBrightness(2.0)(np.full((1, 1, 3), 100, np.uint8)).tolist()
        [[[200, 200, 200]]]
    """

    argument = "brightness_factor"
    change = staticmethod(colors.brighten)

    def __init__(self, brightness_factor: float) -> None:
        self._set(brightness_factor)


class AdjustContrast(_Adjust):
    """The image with its contrast multiplied by `contrast_factor`; 0 gives a uniform gray, the mean brightness.

    Example:
        >>> import numpy as np
        >>> AdjustContrast(0.0)(np.full((1, 1, 3), 100, np.uint8)).tolist()
        [[[100, 100, 100]]]
    """

    argument = "contrast_factor"
    change = staticmethod(colors.contrast)

    def __init__(self, contrast_factor: float) -> None:
        self._set(contrast_factor)


class AdjustSaturation(_Adjust):
    """The image with its saturation multiplied by `saturation_factor`; 0 gives a grayscale image.

    Example:
        >>> import numpy as np
        >>> AdjustSaturation(1.0)(np.full((1, 1, 3), 100, np.uint8)).tolist()
        [[[100, 100, 100]]]
    """

    argument = "saturation_factor"
    change = staticmethod(colors.saturation)

    def __init__(self, saturation_factor: float) -> None:
        self._set(saturation_factor)


class AdjustHue(_Adjust):
    """The image with its hues rotated by `hue_factor`, a fraction of the color circle, from -0.5 to 0.5.

    Example:
        >>> import numpy as np
        >>> AdjustHue(0.5)(np.array([[[1.0, 0.0, 0.0]]], np.float32)).tolist()
        [[[0.0, 1.0, 1.0]]]
    """

    argument = "hue_factor"
    bounds = (-0.5, 0.5)
    change = staticmethod(colors.hue)

    def __init__(self, hue_factor: float) -> None:
        self._set(hue_factor)


class RandomColorAdjust(ImageOperation):
    """Brightness, contrast, saturation and hue changed by random amounts, in random order.

    Args:
        brightness, contrast, saturation: A range (min, max) of the factor; or a number b for (max(0, 1 - b), 1 + b).
        hue: A range of the fraction of the color circle, from -0.5 to 0.5; or a number h for (-h, h).

    Example:
        >>> import numpy as np
        >>> RandomColorAdjust(brightness=(2, 2))(np.full((1, 1, 3), 100, np.uint8)).tolist()
        [[[200, 200, 200]]]
    """

    rgb_only = True
    random = True

    def __init__(
        self, brightness: float | Sequence[float] = (1, 1), contrast: float | Sequence[float] = (1, 1),
        saturation: float | Sequence[float] = (1, 1), hue: float | Sequence[float] = (0, 0),
    ) -> None:
        self.brightness = self._factors("brightness", brightness)
        self.contrast = self._factors("contrast", contrast)
        self.saturation = self._factors("saturation", saturation)
        self.hue = self._hue_range(hue)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        changes = (
            (colors.brighten, self.brightness, 1.0),
            (colors.contrast, self.contrast, 1.0),
            (colors.saturation, self.saturation, 1.0),
            (colors.hue, self.hue, 0.0),
        )
        active = []
        for index, (change, (low, high), identity) in enumerate(changes):
            if (low, high) != (identity, identity):
                active.append((change, row_random.uniform(row_random.fold_in(seed, index), low, high)))
        order = row_random.permutation(row_random.fold_in(seed, len(changes)), len(active))
        for position in range(len(active)):
            branches = [functools.partial(change, image, amount) for change, amount in active]
            image = row_random.switch(order[position], branches)
        return image

    def _factors(self, name: str, value: Any) -> tuple[float, float]:
        if isinstance(value, (list, tuple)):
            return limits(self.name, name, value, at_least=0.0, example="(0.6, 1.4)")
        spread = checks.number(self.name, name, value, at_least=0.0, example=0.4)
        return max(0.0, 1.0 - spread), 1.0 + spread

    def _hue_range(self, value: Any) -> tuple[float, float]:
        if isinstance(value, (list, tuple)):
            return limits(self.name, "hue", value, at_least=-0.5, at_most=0.5, example="(-0.1, 0.1)")
        spread = checks.number(self.name, "hue", value, at_least=0.0, at_most=0.5, example=0.1)
        return -spread, spread


class RandomColor(ImageOperation):
    """`AdjustSaturation` by a random factor in the range `degrees`, (min, max).

    Example:
        >>> import numpy as np
        >>> RandomColor((1.0, 1.0))(np.full((1, 1, 3), 9, np.uint8)).tolist()
        [[[9, 9, 9]]]
    """

    rgb_only = True
    random = True

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self.degrees = limits("RandomColor", "degrees", degrees, at_least=0.0, example="(0.1, 1.9)")

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return colors.saturation(image, row_random.uniform(seed, *self.degrees))


class RandomLighting(ImageOperation):
    """The image plus the principal components of the colors of ImageNet times normal numbers of deviation `alpha`.

    Example:
        >>> import numpy as np
        >>> RandomLighting(0.0)(np.full((1, 1, 3), 9, np.uint8)).tolist()
        [[[9, 9, 9]]]
    """

    rgb_only = True
    random = True
    pictures = "keeps"

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = checks.number("RandomLighting", "alpha", alpha, at_least=0.0, example=0.05)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return colors.pca_lighting(image, row_random.normal(seed, self.alpha, (3,)))
