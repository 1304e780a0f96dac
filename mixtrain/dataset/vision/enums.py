"""The words that image transforms take: interpolations, borders and conversions, with MindSpore's values."""

from __future__ import annotations

import enum

from mixtrain import backend


class Inter(enum.IntEnum):
    """How pixels between pixels are made.

    On arrays `BILINEAR` and `BICUBIC` mean what OpenCV means by them, on Pillow's images what Pillow does: it averages
    where it shrinks. `PILCUBIC` and `ANTIALIAS` mean Pillow's bicubic and Lanczos on both.

    Example:
        >>> Inter.LINEAR is Inter.BILINEAR
        True

    Source: MindSpore, `mindspore.dataset.vision.Inter`.
    """

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, enum.Enum):
    """What a border is filled with: one value, the edge's, or the image mirrored without or with its edge.

    Example:
        >>> Border("edge")
        <Border.EDGE: 'edge'>

    Source: MindSpore, `mindspore.dataset.vision.Border`.
    """

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ConvertMode(enum.IntEnum):
    """Which channels an image has, and which it is to have.

    Example:
        >>> ConvertMode.COLOR_RGB2BGR is ConvertMode.COLOR_BGR2RGB
        True

    Source: MindSpore, `mindspore.dataset.vision.ConvertMode`.
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
    """Whether `SlicePatches` fills up an image that does not divide evenly, or drops what is over.

    Example:
        >>> SliceMode.DROP.value
        1

    Source: MindSpore, `mindspore.dataset.vision.SliceMode`.
    """

    PAD = 0
    DROP = 1


class ImageReadMode(enum.IntEnum):
    """Whether `read_image` makes a gray image, one in three colors, or leaves it as it is.

    Example:
        >>> ImageReadMode.COLOR.value
        2

    Source: MindSpore, `mindspore.dataset.vision.ImageReadMode`.
    """

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2


class ImageBatchFormat(enum.IntEnum):
    """Where the channels of a batch of images are.

    Example:
        >>> ImageBatchFormat.NCHW.value
        1

    Source: MindSpore, `mindspore.dataset.vision.ImageBatchFormat`.
    """

    NHWC = 0
    NCHW = 1


# For arrays, and for what are Pillow's images.
METHODS: dict[Inter, tuple[backend.images.Method, backend.images.Method]] = {
    Inter.NEAREST: ("nearest", "pil_nearest"),
    Inter.ANTIALIAS: ("pil_lanczos", "pil_lanczos"),
    Inter.BILINEAR: ("linear", "pil_linear"),
    Inter.BICUBIC: ("cubic", "pil_cubic"),
    Inter.AREA: ("area", "area"),
    Inter.PILCUBIC: ("pil_cubic", "pil_cubic"),
}
