"""The base classes of image transforms: checks of shape and dtype, and grayscale images without a channel axis."""

from __future__ import annotations

import copy
from typing import ClassVar

import keras

from mixtrain import data_backend
from mixtrain.dataset.transforms.operation import PictureMode, Seed, TensorOperation
from mixtrain.typing import Tensor


class ImageOperation(TensorOperation):
    """Base class of image transforms: a subclass defines `image`, a function of a tensor (H, W, C).

    Attributes:
        batched: Whether leading batch axes are supported too.
        random: Whether the transform is random, so that rows differ.
        rgb_only: Whether images must have three channels.
        uint8_only: Whether the dtype of images must be uint8.
    """

    batched: ClassVar[bool] = False
    random: ClassVar[bool] = False
    rgb_only: ClassVar[bool] = False
    uint8_only: ClassVar[bool] = False
    pictures: ClassVar[PictureMode] = "keeps"

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        """Return the result for a tensor (H, W, C), or (..., H, W, C) if `batched`."""
        raise NotImplementedError(f"{self.name}: expected a method image(image, seed); got none. Write it.")

    @property
    def name(self) -> str:
        """The name of the class, for messages."""
        return type(self).__name__

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        return self._apply(value, len(value.shape), seed)

    @property
    def by_block(self) -> bool:  # type: ignore[override]
        """Whether blocks of rows can be passed: batch axes are supported, and all rows are transformed alike."""
        return self.batched and not self.random

    def block(self, values: Tensor) -> Tensor:
        return self._apply(values, len(values.shape) - 1, None)

    def _apply(self, value: Tensor, rank: int, seed: Seed) -> Tensor:
        data_backend.require(
            rank in (2, 3) or (self.batched and rank > 3),
            f"{self.name}: expected an image (H, W) or (H, W, C); got a value of {{}} dimensions. "
            "Write a map that makes images, such as Decode(), before it.",
            rank,
        )
        if self.uint8_only:
            dtype = keras.backend.standardize_dtype(value.dtype)
            data_backend.require(
                dtype == "uint8",
                f"{self.name}: expected an image of dtype uint8; got {dtype}. Write it before Rescale and Normalize.",
            )
        image = value if rank > 2 else value[..., None]
        if self.rgb_only:
            check_channels(self.name, image, 3)
        result = self.image(image, seed)
        return result[..., 0] if rank == 2 else result


class TwofoldOperation(ImageOperation):
    """Base class of image transforms that follow Pillow's conventions on Pillow images.

    Attributes:
        on_pictures: Whether this is the transform for Pillow images.
    """

    on_pictures: bool = False

    def for_pictures(self) -> TensorOperation:
        """Return the transform with Pillow's conventions."""
        copied = copy.copy(self)
        copied.on_pictures = True
        return copied


def check_channels(name: str, image: Tensor, count: int, axis: int = -1) -> None:
    """Raise, now or when the graph runs, if an image does not have `count` channels."""
    channels = image.shape[axis]
    if channels is None:
        channels = keras.ops.shape(image)[axis]
    data_backend.require(
        channels == count,
        f"{name}: expected {{}} channels; got {{}}. Write images that have them, or other arguments for {name}.",
        count,
        channels,
    )
