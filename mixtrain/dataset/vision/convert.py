"""Conversions of colors: reordered channels, grayscale, and HSV."""

from __future__ import annotations

from typing import ClassVar

import keras

from mixtrain import checks, data_backend
from mixtrain.data_backend import colors, row_random
from mixtrain.dataset.vision.arguments import enum_member, probability
from mixtrain.dataset.vision.enums import ConvertMode
from mixtrain.dataset.vision.operation import ImageOperation, Seed, TensorOperation, check_channels
from mixtrain.typing import Tensor

# The number of channels of the image, and the channels of the result; -1: an opaque alpha channel, None: grayscale.
_CHANNELS: dict[ConvertMode, tuple[int, tuple[int, ...] | None]] = {
    ConvertMode.COLOR_BGR2BGRA: (3, (0, 1, 2, -1)),
    ConvertMode.COLOR_BGRA2BGR: (4, (0, 1, 2)),
    ConvertMode.COLOR_BGR2RGBA: (3, (2, 1, 0, -1)),
    ConvertMode.COLOR_RGBA2BGR: (4, (2, 1, 0)),
    ConvertMode.COLOR_BGR2RGB: (3, (2, 1, 0)),
    ConvertMode.COLOR_BGRA2RGBA: (4, (2, 1, 0, 3)),
    ConvertMode.COLOR_BGR2GRAY: (3, None),
    ConvertMode.COLOR_RGB2GRAY: (3, None),
    ConvertMode.COLOR_GRAY2BGR: (1, (0, 0, 0)),
    ConvertMode.COLOR_GRAY2BGRA: (1, (0, 0, 0, -1)),
    ConvertMode.COLOR_BGRA2GRAY: (4, None),
    ConvertMode.COLOR_RGBA2GRAY: (4, None),
}
_BLUE_FIRST = (ConvertMode.COLOR_BGR2GRAY, ConvertMode.COLOR_BGRA2GRAY)


class ConvertColor(TensorOperation):
    """The image with the channels that `convert_mode` names; a grayscale result has shape (H, W).

    Example:
        >>> import numpy as np
        >>> from mixtrain.dataset.vision import ConvertMode
        >>> ConvertColor(ConvertMode.COLOR_RGB2BGR)(np.array([[[1, 2, 3]]], np.uint8)).tolist()
        [[[3, 2, 1]]]
    """

    def __init__(self, convert_mode: ConvertMode) -> None:
        self.convert_mode = enum_member("ConvertColor", "convert_mode", convert_mode, ConvertMode)

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        count, channels = _CHANNELS[self.convert_mode]
        image = value[..., None] if count == 1 and len(value.shape) == 2 else value
        data_backend.require(
            len(image.shape) == 3, "ConvertColor: expected an image (H, W, C); got {} dimensions. Write Decode() "
                                   "before it.", len(image.shape),
        )
        check_channels("ConvertColor", image, count)
        if channels is None:
            return colors.grayscale(image[..., 2::-1] if self.convert_mode in _BLUE_FIRST else image)[..., 0]
        opaque = keras.ops.full_like(image[..., :1], 255 if "int" in str(image.dtype.name) else 1)
        return keras.ops.concatenate([opaque if i < 0 else image[..., i : i + 1] for i in channels], axis=-1)


class Grayscale(ImageOperation):
    """The brightness of an array or Pillow image, as (H, W), or as three equal channels if `num_output_channels` is 3.

    Example:
        >>> import numpy as np
        >>> Grayscale(3)(np.array([[[255, 0, 0]]], np.uint8)).tolist()
        [[[76, 76, 76]]]
    """

    rgb_only = True

    def __init__(self, num_output_channels: int = 1) -> None:
        self.num_output_channels = checks.one_of("Grayscale", "num_output_channels", num_output_channels, (1, 3))

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        gray = colors.grayscale(image)
        return gray[..., 0] if self.num_output_channels == 1 else keras.ops.repeat(gray, 3, axis=-1)


class RandomGrayscale(ImageOperation):
    """The image converted with probability `prob` to three equal channels of its brightness.

    Example:
        >>> import numpy as np
        >>> RandomGrayscale(1.0)(np.array([[[255, 0, 0]]], np.uint8)).tolist()
        [[[76, 76, 76]]]
    """

    rgb_only = True
    random = True

    def __init__(self, prob: float = 0.1) -> None:
        self.prob = probability("RandomGrayscale", prob)
        self._grayscale = Grayscale(3)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        applied = row_random.bernoulli(seed, self.prob)
        return row_random.cond(applied, lambda: self._grayscale.image(image, seed), lambda: image)


class HsvToRgb(TensorOperation):
    """An HSV image to RGB, from 0 to 1 in float64; with `is_hwc` (H, W, C) or (N, H, W, C), otherwise channels-first.

    Example:
        >>> import numpy as np
        >>> HsvToRgb(is_hwc=True)(np.array([[[0.0, 1.0, 1.0]]], np.float32)).tolist()
        [[[1.0, 0.0, 0.0]]]
    """

    _to_rgb: ClassVar[bool] = True

    def __init__(self, is_hwc: bool = False) -> None:
        self.is_hwc = checks.boolean(type(self).__name__, "is_hwc", is_hwc)

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        data_backend.require(
            len(value.shape) in (3, 4), f"{type(self).__name__}: expected images of three or four dimensions; got {{}}."
                                        " Write images with channels.", len(value.shape),
        )
        image = value if self.is_hwc else keras.ops.moveaxis(value, -3, -1)
        check_channels(type(self).__name__, image, 3)
        convert = colors.hsv_to_rgb if self._to_rgb else colors.rgb_to_hsv
        result = convert(keras.ops.cast(image, "float64"))
        return result if self.is_hwc else keras.ops.moveaxis(result, -1, -3)


class RgbToHsv(HsvToRgb):
    """An RGB image to HSV, the inverse of `HsvToRgb`, with the same `is_hwc`.

    Example:
        >>> import numpy as np
        >>> RgbToHsv(is_hwc=True)(np.array([[[1.0, 0.0, 0.0]]], np.float32)).tolist()
        [[[0.0, 1.0, 1.0]]]
    """

    _to_rgb = False
    pictures = "ends"
