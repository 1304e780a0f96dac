"""Enumerations for the arguments of image transforms: interpolations, borders, conversions, with MindSpore's values."""

from __future__ import annotations

import enum

from mixtrain.data_backend import images


class Inter(enum.IntEnum):
    """Interpolations.

    `BILINEAR` and `BICUBIC` are those of OpenCV for arrays, and those of Pillow for Pillow images, which average pixels
    when they shrink. `PILCUBIC` and `ANTIALIAS` are Pillow's bicubic and Lanczos for both.

    Example:
        >>> Inter.LINEAR is Inter.BILINEAR
        True
    """

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, enum.Enum):
    """How a border is filled: with one value, with the edge, or with the image reflected without or with its edge.

    Example:
        >>> Border("edge")
        <Border.EDGE: 'edge'>
    """

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ConvertMode(enum.IntEnum):
    """The channels of an image, and those that it is converted to.

    Example:
        >>> ConvertMode.COLOR_RGB2BGR is ConvertMode.COLOR_BGR2RGB
        True
    """

    COLOR_BGR2BGRA = COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class SliceMode(enum.IntEnum):
    """Whether `SlicePatches` pads an image that does not divide evenly, or drops the remainder.

    Example:
        >>> SliceMode.DROP.value
        1
    """

    PAD = 0
    DROP = 1


class ImageReadMode(enum.IntEnum):
    """Whether `read_image` converts an image to grayscale or to three colors.

    Example:
        >>> ImageReadMode.COLOR.value
        2
    """

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


class ImageBatchFormat(enum.IntEnum):
    """The layout of a batch of images.

    Example:
        >>> ImageBatchFormat.NCHW.value
        1
    """

    NHWC = 0
    NCHW = 1


# The backend's method for arrays, and for Pillow images.
METHODS: dict[Inter, tuple[images.Method, images.Method]] = {
    Inter.NEAREST: ("nearest", "pil_nearest"),
    Inter.ANTIALIAS: ("pil_lanczos", "pil_lanczos"),
    Inter.BILINEAR: ("linear", "pil_linear"),
    Inter.BICUBIC: ("cubic", "pil_cubic"),
    Inter.AREA: ("area", "area"),
    Inter.PILCUBIC: ("pil_cubic", "pil_cubic"),
}
