"""The transforms of MindSpore's older module `py_transforms` that differ from `vision`: arrays are (C, H, W)."""

from __future__ import annotations

from collections.abc import Sequence

from mixtrain.dataset.vision import erase, layout, scale
from mixtrain.lazy_names import serve_names


class Decode(layout.Decode):
    """The Pillow image in the contents of a file. Example: ``Decode()``."""

    def __init__(self) -> None:
        super().__init__(to_pil=True)


class Normalize(scale.Normalize):
    """``(value - mean) / std`` of each channel of an image (C, H, W), such as the result of `ToTensor`; see
    `vision.Normalize`.

    Example:
        >>> Normalize([0.5], [0.5]).is_hwc
        False
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(mean, std, is_hwc=False)


class Cutout(erase.CutOut):
    """An image (C, H, W) with `num_patches` squares of side `length` at random positions set to 0.

    Example:
        >>> Cutout(8).is_hwc
        False
    """

    def __init__(self, length: int, num_patches: int = 1) -> None:
        super().__init__(length, num_patches, is_hwc=False)


CutOut = Cutout


serve_names(__name__)
