"""The transform of MindSpore's older module `c_transforms` that differs from `vision`: `Decode`."""

from __future__ import annotations

from mixtrain import checks
from mixtrain.dataset.vision import layout
from mixtrain.lazy_names import serve_names


class Decode(layout.Decode):
    """The image in the contents of a file; see `vision.Decode`. `rgb` must be True.

    Example:
        >>> Decode(rgb=True).to_pil
        False
    """

    def __init__(self, rgb: bool = True) -> None:
        if not checks.boolean("Decode", "rgb", rgb):
            raise checks.fail_value("Decode", "rgb must be True", rgb, "ConvertColor(COLOR_RGB2BGR) after it")
        super().__init__()


serve_names(__name__)
