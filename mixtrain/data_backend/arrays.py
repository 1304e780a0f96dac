"""What kernels of images are written in: one namespace of array functions, and the kernels that differ by backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras

if TYPE_CHECKING or keras.backend.backend() == "tensorflow":
    from mixtrain.data_backend.tensorflow.array_namespace import (
        cast,
        choose,
        exact,
        is_integer,
        lanczos,
        number,
        numbers_to,
        one_hot,
        saturate,
        size_of,
        sized,
        space,
    )
    from mixtrain.data_backend.tensorflow.color_kernels import (
        blur,
        by_table,
        hsv_to_rgb,
        normalize,
        rgb_to_hsv,
        smoothed,
        stretched,
        weighted_sum,
    )
else:
    from mixtrain.data_backend.jax.array_namespace import (
        cast,
        choose,
        exact,
        is_integer,
        lanczos,
        number,
        numbers_to,
        one_hot,
        saturate,
        size_of,
        sized,
        space,
    )
    from mixtrain.data_backend.jax.color_kernels import (
        blur,
        by_table,
        hsv_to_rgb,
        normalize,
        rgb_to_hsv,
        smoothed,
        stretched,
        weighted_sum,
    )

__all__ = [
    "blur", "by_table", "cast", "choose", "exact", "hsv_to_rgb", "is_integer", "lanczos", "normalize", "number",
    "numbers_to", "one_hot", "rgb_to_hsv", "saturate", "size_of", "sized", "smoothed", "space", "stretched",
    "weighted_sum",
]
