"""From images to what networks take, and back: axes, tensors, Pillow's images and files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dataset.transforms.operation import PictureMode, Seed, TensorOperation
from mixtrain.dataset.transforms.type_cast import TypeCast
from mixtrain.dtype import as_dtype


def _channels_first(name: str, value: Any, rank: int) -> Any:
    """Return images whose last axes, `rank` of them, are (H, W) or (H, W, C), with channels first."""
    backend.require(
        rank in (2, 3),
        f"{name}: expected an image (H, W) or (H, W, C); got a value of {{}} dimensions. Write one image a row.",
        rank,
    )
    return value if rank == 2 else keras.ops.moveaxis(value, -1, -3)


class HWC2CHW(TensorOperation):
    """Images (H, W, C) as (C, H, W); (H, W) stays.

    Example:
        >>> import numpy as np
        >>> HWC2CHW()(np.zeros((28, 30, 3))).shape
        (3, 28, 30)

    Source: MindSpore, `mindspore.dataset.vision.HWC2CHW`.
    """

    by_block = True

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor."""
        return _channels_first("HWC2CHW", value, len(value.shape))

    def block(self, values: Any) -> Any:
        """Return the results for a block of rows."""
        return _channels_first("HWC2CHW", values, len(values.shape) - 1)


class ToTensor(TensorOperation):
    """Images (H, W) or (H, W, C), arrays or Pillow's, as (C, H, W), with 0 to 255 brought to 0 to 1.

    Args:
        output_type: The dtype of the result, a mixtrain or NumPy one.

    Example:
        >>> import numpy as np
        >>> ToTensor()(np.full((2, 2), 255, np.uint8)).tolist()
        [[[1.0, 1.0], [1.0, 1.0]]]

    Source: MindSpore, `mindspore.dataset.vision.ToTensor`.
    """

    by_block = True

    def __init__(self, output_type: Any = np.float32) -> None:
        self.output_type = as_dtype(output_type)

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor."""
        return self._made(value, len(value.shape))

    def block(self, values: Any) -> Any:
        """Return the results for a block of rows."""
        return self._made(values, len(values.shape) - 1)

    def _made(self, value: Any, rank: int) -> Any:
        first = _channels_first("ToTensor", value, rank)
        first = keras.ops.expand_dims(first, -3) if rank == 2 else first
        return keras.ops.cast(keras.ops.cast(first, "float32") / 255.0, self.output_type)


class ToPIL(TensorOperation):
    """An array (H, W) or (H, W, C) of uint8 as one of Pillow's images; needs Pillow.

    Between transforms no image is made: it says that the next ones have Pillow's meaning.

    Example:
        >>> import numpy as np
        >>> ToPIL()(np.zeros((28, 30, 3), np.uint8)).size
        (30, 28)

    Source: MindSpore, `mindspore.dataset.vision.ToPIL`.
    """

    by_block = True
    pictures: ClassVar[PictureMode] = "makes"

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor: itself."""
        return value

    def block(self, values: Any) -> Any:
        """Return the results for a block of rows: itself."""
        return values


class ToNumpy(TensorOperation):
    """One of Pillow's images as an array.

    Example:
        >>> import numpy as np
        >>> ToNumpy()(np.zeros((2, 2), np.uint8)).shape
        (2, 2)

    Source: MindSpore, `mindspore.dataset.vision.ToNumpy`.
    """

    by_block = True

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor: itself."""
        return value

    def block(self, values: Any) -> Any:
        """Return the results for a block of rows: itself."""
        return values


class ToType(TypeCast):
    """The image in another dtype; see `transforms.TypeCast`.

    Args:
        data_type: A mixtrain or NumPy dtype.
        output_type: The same under another name.

    Example:
        >>> import numpy as np
        >>> ToType(np.float32)(np.array([1, 2])).dtype
        dtype('float32')

    Source: MindSpore, `mindspore.dataset.vision.ToType`.
    """


class Decode(TensorOperation):
    """The image (H, W, 3), uint8, of a file's contents: JPEG, PNG, BMP or GIF, of which the first picture counts.

    Args:
        to_pil: Whether to give one of Pillow's images, on which later transforms have Pillow's meaning.

    Raises:
        TypeError: `to_pil` is no bool.
        ValueError: On use: the value is no vector of bytes, or no such file.

    Example:
        >>> import numpy as np
        >>> pixel = bytes.fromhex("424d3a0000000000000036000000280000000100000001000000010018000000000004000000"
        ...                       "00000000000000000000000000000000" "0000ff00")
        >>> Decode()(np.frombuffer(pixel, np.uint8)).tolist()
        [[[255, 0, 0]]]

    Source: MindSpore, `mindspore.dataset.vision.Decode`.
    """

    opens = True

    def __init__(self, to_pil: bool = False) -> None:
        self.to_pil = checks.boolean("Decode", "to_pil", to_pil)
        self.pictures: PictureMode = "makes" if to_pil else "ends"  # type: ignore[misc]

    def graph(self, value: Any, seed: Seed) -> Any:
        """Return the result for a tensor of bytes."""
        check_contents("Decode", value)
        return backend.images.decode(value)

    def open(self, contents: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the results for several files' bytes."""
        for value in contents:
            check_contents("Decode", value)
        return backend.images.decode_files(contents)


def check_contents(name: str, value: Any) -> None:
    """Raise where a tensor is no vector of bytes."""
    if value.dtype == "uint8" and len(value.shape) == 1:
        return  # At once, for this is asked of each row.
    dtype = keras.backend.standardize_dtype(value.dtype)
    backend.require(
        False,
        f"{name}: expected a file's contents, a vector of uint8; got {dtype} of {{}} dimensions. "
        "Write it first, and only where images are not decoded yet.",
        len(value.shape),
    )
