"""Conversions of images between layouts, arrays, tensors, Pillow images and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import checks, data_backend
from mixtrain.data_backend import images
from mixtrain.dataset.transforms.operation import BlockOperation, PictureMode, Seed, TensorOperation
from mixtrain.dataset.transforms.type_cast import TypeCast
from mixtrain.dtype import as_dtype
from mixtrain.typing import DTypeLike, Tensor


def _channels_first(name: str, value: Tensor, rank: int) -> Tensor:
    """Return images whose last `rank` axes are (H, W) or (H, W, C) in channels-first layout."""
    data_backend.require(
        rank in (2, 3),
        f"{name}: expected an image (H, W) or (H, W, C); got a value of {{}} dimensions. Write one image a row.",
        rank,
    )
    return value if rank == 2 else keras.ops.moveaxis(value, -1, -3)


class HWC2CHW(BlockOperation):
    """Images (H, W, C) as (C, H, W); (H, W) is unchanged.

    Example:
        >>> HWC2CHW()(np.zeros((28, 30, 3))).shape
        (3, 28, 30)
    """

    def apply(self, value: Tensor, rank: int) -> Tensor:
        return _channels_first("HWC2CHW", value, rank)


class ToTensor(BlockOperation):
    """Images (H, W) or (H, W, C), arrays or Pillow images, as (C, H, W) of dtype `output_type`, scaled from [0, 255] to
    [0, 1].

    Example:
        >>> ToTensor()(np.full((2, 2), 255, np.uint8)).tolist()
        [[[1.0, 1.0], [1.0, 1.0]]]
    """

    def __init__(self, output_type: DTypeLike = np.float32) -> None:
        self.output_type = as_dtype(output_type)

    def apply(self, value: Tensor, rank: int) -> Tensor:
        image = _channels_first("ToTensor", value, rank)
        image = keras.ops.expand_dims(image, -3) if rank == 2 else image
        return keras.ops.cast(keras.ops.cast(image, "float32") / 255.0, self.output_type)


class ToPIL(BlockOperation):
    """A uint8 array (H, W) or (H, W, C) as a Pillow image; needs Pillow.

    Between transforms no image is created; the following transforms use Pillow's conventions.

    Example:
        >>> ToPIL()(np.zeros((28, 30, 3), np.uint8)).size
        (30, 28)
    """

    pictures = "makes"

    def apply(self, value: Tensor, rank: int) -> Tensor:
        return value


class ToNumpy(BlockOperation):
    """A Pillow image as an array.

    Example:
        >>> ToNumpy()(np.zeros((2, 2), np.uint8)).shape
        (2, 2)
    """

    def apply(self, value: Tensor, rank: int) -> Tensor:
        return value


class ToType(TypeCast):
    """The image cast to another dtype; `data_type` and `output_type` are those of `transforms.TypeCast`.

    Example:
        >>> ToType(np.float32)(np.array([1, 2])).dtype
        dtype('float32')
    """


class Decode(TensorOperation):
    """The image (H, W, 3), uint8, in the contents of a JPEG, PNG, BMP or GIF file; of a GIF, the first frame.

    Args: to_pil: Whether to return a Pillow image, for which the following transforms use Pillow's conventions.

    Example:
        >>> pixel = bytes.fromhex("424d3a0000000000000036000000280000000100000001000000010018000000000004000000"
        ...                       "00000000000000000000000000000000" "0000ff00")
        >>> Decode()(np.frombuffer(pixel, np.uint8)).tolist()
        [[[255, 0, 0]]]
    """

    opens = True

    def __init__(self, to_pil: bool = False) -> None:
        self.to_pil = checks.boolean("Decode", "to_pil", to_pil)
        self.pictures: PictureMode = "makes" if to_pil else "ends"  # type: ignore[misc]

    def graph(self, value: Tensor, seed: Seed) -> Tensor:
        check_contents("Decode", value)
        return images.decode(value)

    def open(self, contents: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        for value in contents:
            check_contents("Decode", value)
        return images.decode_files(contents)


def check_contents(name: str, value: Any) -> None:
    """Raise if a tensor is not a vector of bytes."""
    if value.dtype == "uint8" and len(value.shape) == 1:
        return  # A fast path, since this is called for each row.
    dtype = keras.backend.standardize_dtype(value.dtype)
    data_backend.require(
        False,
        f"{name}: expected a file's contents, a vector of uint8; got {dtype} of {{}} dimensions. "
        "Write it first, and only where images are not decoded yet.",
        len(value.shape),
    )
