"""Conversion between RGB and HSV colors, and adjustment of hue and saturation."""

from __future__ import annotations

from collections.abc import Callable

import keras

from mixtrain.ops.inputs import as_floats
from mixtrain.ops.primitive import primitive, primitives
from mixtrain.typing import Tensor, TensorLike


def _converter(where: str, convert: Callable[..., Tensor]) -> Callable[[TensorLike], Tensor]:
    return lambda images: convert(as_floats(where, images), data_format="channels_last")


_rgb_to_hsv = _converter("ops.RGBToHSV", keras.ops.image.rgb_to_hsv)
_hsv_to_rgb = _converter("ops.HSVToRGB", keras.ops.image.hsv_to_rgb)


def _adjust(images: Tensor, delta: TensorLike = 0.0, scale: TensorLike = 1.0) -> Tensor:
    hue, saturation, value = keras.ops.unstack(_rgb_to_hsv(images), 3, axis=-1)
    adjusted = (keras.ops.mod(hue + delta, 1.0), keras.ops.clip(saturation * scale, 0.0, 1.0), value)
    return _hsv_to_rgb(keras.ops.stack(adjusted, axis=-1))


RGBToHSV, HSVToRGB = primitives(RGBToHSV=_rgb_to_hsv, HSVToRGB=_hsv_to_rgb)
AdjustHue = primitive("AdjustHue", lambda image, delta: _adjust(image, delta=delta))
AdjustSaturation = primitive("AdjustSaturation", lambda image, scale: _adjust(image, scale=scale))
