"""Colors of images as hue, saturation and value, and images with them changed."""

from __future__ import annotations

from typing import Any, Final

import keras

from mixtrain.ops.inputs import as_floats
from mixtrain.ops.primitive import primitive


def _converted(where: str, convert: Any) -> Any:
    return lambda images: convert(as_floats(where, images), data_format="channels_last")


_rgb_to_hsv = _converted("ops.RGBToHSV", keras.ops.image.rgb_to_hsv)
_hsv_to_rgb = _converted("ops.HSVToRGB", keras.ops.image.hsv_to_rgb)


def _changed(images: Any, hue: Any = 0.0, saturation: Any = 1.0) -> Any:
    parts = keras.ops.unstack(_rgb_to_hsv(images), 3, axis=-1)
    changed = (keras.ops.mod(parts[0] + hue, 1.0), keras.ops.clip(parts[1] * saturation, 0.0, 1.0), parts[2])
    return _hsv_to_rgb(keras.ops.stack(changed, axis=-1))


RGBToHSV: Final = primitive("RGBToHSV", _rgb_to_hsv)
HSVToRGB: Final = primitive("HSVToRGB", _hsv_to_rgb)
AdjustHue: Final = primitive("AdjustHue", lambda image, delta: _changed(image, hue=delta))
AdjustSaturation: Final = primitive("AdjustSaturation", lambda image, scale: _changed(image, saturation=scale))
