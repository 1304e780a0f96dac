"""`ConvertModelUtils`: what scripts call before training, whichever optimizer they chose."""

from __future__ import annotations

from typing import Any

from mixtrain.lazy_names import serve_names
from mixtrain.train.model import Model

__all__ = ["ConvertModelUtils"]


class ConvertModelUtils:
    """Converts a Model that trains with thor. That optimizer is not offered, so there is none to convert.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> model = mixtrain.Model(nn.Dense(2, 1))
        >>> ConvertModelUtils().convert_to_thor_model(model, optimizer=None) is model
        True

    Source: MindSpore, `mindspore.train.ConvertModelUtils`, which returns a Model with another optimizer as it is.
    """

    @staticmethod
    def convert_to_thor_model(model: Model, *args: Any, **kwargs: Any) -> Model:
        """Return the Model. `model`: a Model; `args`, `kwargs`: its parts, as thor would need them."""
        return model


serve_names(__name__)
