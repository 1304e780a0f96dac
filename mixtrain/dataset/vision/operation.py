"""What image transforms have in common: which shapes they take, and grey images without an axis for channels."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import keras

from mixtrain import backend
from mixtrain.dataset.transforms.operation import PictureMode, Seed, TensorOperation


class ImageOperation(TensorOperation):
    """The base: a subclass defines `image`, a function of a tensor (H, W, C).

    Attributes:
        batched: Whether axes before these are fine too.
        random: Whether it draws random numbers, so that each row needs its own.
        colors: Whether there must be three channels.
        whole: Whether values must be uint8.
    """

    batched: ClassVar[bool] = False
    random: ClassVar[bool] = False
    colors: ClassVar[bool] = False
    whole: ClassVar[bool] = False
    pictures: ClassVar[PictureMode] = "keeps"

    def image(self, image: Any, seed: Seed) -> Any:
        """Return the result for a tensor (H, W, C)."""
        raise NotImplementedError(f"{self.name}: expected a method image(image, seed); got none. Write it.")

    @property
    def name(self) -> str:
        """The class's name, for messages."""
        return type(self).__name__

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor."""
        return self._checked(value, len(value.shape), seed)

    @property
    def by_block(self) -> bool:  # type: ignore[override]
        """Whether it takes blocks of rows: where axes before the image are fine, and rows are treated alike."""
        return self.batched and not self.random

    def block(self, values: Any) -> Any:
        """Return the results for a block of rows."""
        return self._checked(values, len(values.shape) - 1, None)

    def _checked(self, value: Any, rank: int, seed: Seed) -> Any:
        backend.require(
            rank in (2, 3) or (self.batched and rank > 3),
            f"{self.name}: expected an image (H, W) or (H, W, C); got a value of {{}} dimensions. "
            "Write a map that makes images, such as Decode(), before it.",
            rank,
        )
        if self.whole:
            dtype = keras.backend.standardize_dtype(value.dtype)
            backend.require(
                dtype == "uint8",
                f"{self.name}: expected an image of dtype uint8; got {dtype}. Write it before Rescale and Normalize.",
            )
        image = value if rank > 2 else value[..., None]
        if self.colors:
            check_channels(self.name, image, 3)
        result = self.image(image, seed)
        return result[..., 0] if rank == 2 else result


class TwofoldOperation(ImageOperation):
    """The base of those that mean something else on Pillow's images.

    Attributes:
        on_pictures: Whether it is the transform for these.
    """

    on_pictures: bool = False

    def for_pictures(self) -> TensorOperation:
        """Return the transform with Pillow's meaning."""
        copied = copy.copy(self)
        copied.on_pictures = True
        return copied


def check_channels(name: str, image: Any, count: int, axis: int = -1) -> None:
    """Raise, now or when the graph runs, where an image has not `count` channels."""
    channels = image.shape[axis]
    if channels is None:
        channels = keras.ops.shape(image)[axis]
    backend.require(
        channels == count,
        f"{name}: expected {{}} channels; got {{}}. Write images that have them, or other arguments for {name}.",
        count,
        channels,
    )
