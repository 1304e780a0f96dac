"""Brightness, contrast, saturation, hue: changed by a given amount, or by chance."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from mixtrain import backend, checks
from mixtrain.dataset.transforms.operation import PictureMode, Seed
from mixtrain.dataset.vision.arguments import limits
from mixtrain.dataset.vision.operation import ImageOperation


class _Adjust(ImageOperation):
    """The base of the four that follow: one number, one function of an image and that number."""

    colors: ClassVar[bool] = True
    argument: ClassVar[str]
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    change: ClassVar[Any]  # A function of an image and the number.

    def _set(self, value: float) -> None:
        low, high = self.bounds
        self.amount = checks.number(self.name, self.argument, value, at_least=low, at_most=high)

    def image(self, image: Any, seed: Seed) -> Any:
        """Return the result for a tensor (H, W, 3)."""
        return type(self).change(image, self.amount)


class AdjustBrightness(_Adjust):
    """The image with all values times a factor.

    Args:
        brightness_factor: The factor; 0 gives black.

    Example:
        >>> import numpy as np
        >>> AdjustBrightness(2.0)(np.full((1, 1, 3), 100, np.uint8)).tolist()
        [[[200, 200, 200]]]

    Source: MindSpore, `mindspore.dataset.vision.AdjustBrightness`.
    """

    argument = "brightness_factor"
    change = staticmethod(backend.colors.brighten)

    def __init__(self, brightness_factor: float) -> None:
        self._set(brightness_factor)


class AdjustContrast(_Adjust):
    """The image farther from, or nearer to, the mean of its brightness.

    Args:
        contrast_factor: The factor; 0 gives one grey.

    Example:
        >>> import numpy as np
        >>> AdjustContrast(0.0)(np.full((1, 1, 3), 100, np.uint8)).tolist()
        [[[100, 100, 100]]]

    Source: MindSpore, `mindspore.dataset.vision.AdjustContrast`.
    """

    argument = "contrast_factor"
    change = staticmethod(backend.colors.contrast)

    def __init__(self, contrast_factor: float) -> None:
        self._set(contrast_factor)


class AdjustSaturation(_Adjust):
    """The image with stronger or weaker colors.

    Args:
        saturation_factor: The factor; 0 gives greys.

    Example:
        >>> import numpy as np
        >>> AdjustSaturation(1.0)(np.full((1, 1, 3), 100, np.uint8)).tolist()
        [[[100, 100, 100]]]

    Source: MindSpore, `mindspore.dataset.vision.AdjustSaturation`.
    """

    argument = "saturation_factor"
    change = staticmethod(backend.colors.saturation)

    def __init__(self, saturation_factor: float) -> None:
        self._set(saturation_factor)


class AdjustHue(_Adjust):
    """The image with its hues turned.

    Args:
        hue_factor: By which share of the circle, from -0.5 to 0.5.

    Example:
        >>> import numpy as np
        >>> AdjustHue(0.5)(np.array([[[1.0, 0.0, 0.0]]], np.float32)).tolist()
        [[[0.0, 1.0, 1.0]]]

    Source: MindSpore, `mindspore.dataset.vision.AdjustHue`.
    """

    argument = "hue_factor"
    bounds = (-0.5, 0.5)
    change = staticmethod(backend.colors.hue)

    def __init__(self, hue_factor: float) -> None:
        self._set(hue_factor)


class RandomColorAdjust(ImageOperation):
    """Brightness, contrast, saturation and hue changed by random amounts, in random order.

    Args:
        brightness: A range (min, max) for the factor; or a number b, for a range of b around 1.
        contrast: Likewise.
        saturation: Likewise.
        hue: A range for the share of the circle, from -0.5 to 0.5; or a number h, for (-h, h).

    Raises:
        TypeError: An argument is not a number or pair.
        ValueError: An argument is out of range; on use, images have not three channels.

    Example:
        >>> import numpy as np
        >>> RandomColorAdjust(brightness=(2, 2))(np.full((1, 1, 3), 100, np.uint8)).tolist()
        [[[200, 200, 200]]]

    Source: MindSpore, `mindspore.dataset.vision.RandomColorAdjust`.
    """

    colors: ClassVar[bool] = True
    random = True

    def __init__(
        self,
        brightness: float | Sequence[float] = (1, 1),
        contrast: float | Sequence[float] = (1, 1),
        saturation: float | Sequence[float] = (1, 1),
        hue: float | Sequence[float] = (0, 0),
    ) -> None:
        self.brightness = self._factors("brightness", brightness)
        self.contrast = self._factors("contrast", contrast)
        self.saturation = self._factors("saturation", saturation)
        self.hue = self._turns(hue)

    def image(self, image: Any, seed: Seed) -> Any:
        """Return the result for a tensor (H, W, 3)."""
        colors = backend.colors
        changes = (
            (colors.brighten, self.brightness, 1.0),
            (colors.contrast, self.contrast, 1.0),
            (colors.saturation, self.saturation, 1.0),
            (colors.hue, self.hue, 0.0),
        )
        row_random, active = backend.row_random, []
        for number, (change, (low, high), nothing) in enumerate(changes):
            if (low, high) != (nothing, nothing):
                active.append((change, row_random.uniform(row_random.fold(seed, number), low, high)))
        order = row_random.permutation(row_random.fold(seed, len(changes)), len(active))
        for turn in range(len(active)):
            branches = [functools.partial(change, image, amount) for change, amount in active]
            image = row_random.one_of(order[turn], branches)
        return image

    def _factors(self, name: str, value: Any) -> tuple[float, float]:
        if isinstance(value, (list, tuple)):
            return limits(self.name, name, value, at_least=0.0, example="(0.6, 1.4)")
        spread = checks.number(self.name, name, value, at_least=0.0, example=0.4)
        return max(0.0, 1.0 - spread), 1.0 + spread

    def _turns(self, value: Any) -> tuple[float, float]:
        if isinstance(value, (list, tuple)):
            return limits(self.name, "hue", value, at_least=-0.5, at_most=0.5, example="(-0.1, 0.1)")
        spread = checks.number(self.name, "hue", value, at_least=0.0, at_most=0.5, example=0.1)
        return -spread, spread


class RandomColor(ImageOperation):
    """Colors stronger or weaker by a random factor.

    Args:
        degrees: The range (min, max) of the factor; 0 gives greys, 1 the image.

    Example:
        >>> import numpy as np
        >>> RandomColor((1.0, 1.0))(np.full((1, 1, 3), 9, np.uint8)).tolist()
        [[[9, 9, 9]]]

    Source: MindSpore, `mindspore.dataset.vision.RandomColor`.
    """

    colors: ClassVar[bool] = True
    random = True

    def __init__(self, degrees: Sequence[float] = (0.1, 1.9)) -> None:
        self.degrees = limits("RandomColor", "degrees", degrees, at_least=0.0, example="(0.1, 1.9)")

    def image(self, image: Any, seed: Seed) -> Any:
        """Return the result for a tensor (H, W, 3)."""
        return backend.colors.saturation(image, backend.row_random.uniform(seed, *self.degrees))


class RandomLighting(ImageOperation):
    """Random amounts of the colors in which photographs differ most, added.

    Args:
        alpha: The standard deviation of the amounts.

    Example:
        >>> import numpy as np
        >>> RandomLighting(0.0)(np.full((1, 1, 3), 9, np.uint8)).tolist()
        [[[9, 9, 9]]]

    Source: MindSpore, `mindspore.dataset.vision.RandomLighting`.
    """

    colors: ClassVar[bool] = True
    random = True
    pictures: ClassVar[PictureMode] = "keeps"

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = checks.number("RandomLighting", "alpha", alpha, at_least=0.0, example=0.05)

    def image(self, image: Any, seed: Seed) -> Any:
        """Return the result for a tensor (H, W, 3)."""
        return backend.colors.light(image, backend.row_random.normal(seed, self.alpha, (3,)))
