"""Affine and linear maps of the values of images: Rescale, Normalize, NormalizePad and LinearTransformation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import keras
import numpy as np

from mixtrain import checks, data_backend
from mixtrain.data_backend import colors
from mixtrain.dataset.transforms.operation import BlockOperation, TensorOperation, read_value
from mixtrain.dataset.vision.operation import check_channels
from mixtrain.dtype import as_dtype
from mixtrain.typing import Tensor


class Rescale(BlockOperation):
    """``value * rescale + shift``, in float32.

    Example:
        >>> Rescale(1 / 255, -0.5)(np.array([0, 255], np.uint8)).tolist()
        [-0.5, 0.5]
    """

    def __init__(self, rescale: float, shift: float) -> None:
        self.rescale = checks.number("Rescale", "rescale", rescale)
        self.shift = checks.number("Rescale", "shift", shift, example=0.0)

    def apply(self, value: Tensor, rank: int) -> Tensor:
        return colors.scale_values(value, self.rescale, self.shift)


class Normalize(BlockOperation):
    """``(value - mean) / std`` of each channel, in float32.

    Args:
        mean: One number per channel, or one for all; from 0 to 255.
        std: Likewise, above 0.
        is_hwc: Whether images are (H, W, C); otherwise (C, H, W).

    Example:
        >>> Normalize(mean=[10.0], std=[2.0])(np.array([[10, 12]], np.uint8)).tolist()
        [[0.0, 1.0]]
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True) -> None:
        self.mean, self.std = _read_moments(type(self).__name__, mean, std)
        self.is_hwc = checks.boolean(type(self).__name__, "is_hwc", is_hwc)

    def apply(self, value: Tensor, rank: int) -> Tensor:
        name = type(self).__name__
        data_backend.require(
            rank >= 2, f"{name}: expected an image (H, W), (H, W, C) or (C, H, W); got {{}} dimensions. "
                       "Write Decode() or a reshape before it.", rank,
        )
        channels_last = self.is_hwc or rank == 2
        image = value[..., None] if rank == 2 else value
        axis = -1 if channels_last else -3
        if len(self.mean) != 1:
            check_channels(name, image, len(self.mean), axis)
        shape = (-1,) if channels_last else (-1, 1, 1)
        mean, std = (np.reshape(np.array(moments, np.float32), shape) for moments in (self.mean, self.std))
        result = colors.normalize(image, mean, std)
        return result[..., 0] if rank == 2 else result


class LinearTransformation(TensorOperation):
    """``(image - mean) @ matrix`` of the flattened image, such as whitening; the result has the image's shape.

    Args: transformation_matrix, mean_vector: NumPy arrays (D, D) and (D,), where D is the number of values of an image.

    Example:
        >>> LinearTransformation(2 * np.eye(4), np.ones(4))(np.array([[1, 2], [3, 4]])).tolist()
        [[0.0, 2.0], [4.0, 6.0]]
    """

    def __init__(self, transformation_matrix: np.ndarray, mean_vector: np.ndarray) -> None:
        where, write = "LinearTransformation", "LinearTransformation(np.eye(12), np.zeros(12))"
        self.matrix = checks.instance(where, "transformation_matrix", transformation_matrix, np.ndarray, write)
        self.mean = checks.instance(where, "mean_vector", mean_vector, np.ndarray, write)
        if self.mean.ndim != 1 or self.matrix.shape != (self.mean.size, self.mean.size):
            raise checks.fail_value(where, "transformation_matrix must be (D, D), and mean_vector (D,)",
                                    (self.matrix.shape, self.mean.shape), write)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> np.ndarray:
        """Return the result for one image, as an array."""
        image = read_value("LinearTransformation", values[0])
        if image.size != self.mean.size:
            raise checks.fail_value("LinearTransformation", f"the image must have {self.mean.size} values", image.shape,
                                    "a matrix that fits, or Resize before it")
        result: np.ndarray = ((image.reshape(-1) - self.mean) @ self.matrix).reshape(image.shape)
        return result


class NormalizePad(Normalize):
    """`Normalize`, followed by one more channel of zeros, in `dtype`, "float32" or "float16"; `mean`, `std`, `is_hwc`
    as there.

    Example:
        >>> NormalizePad([1.0], [2.0])(np.full((1, 1, 3), 3, np.uint8)).tolist()
        [[[1.0, 1.0, 1.0, 0.0]]]
    """

    def __init__(
        self, mean: Sequence[float], std: Sequence[float], dtype: Literal["float32", "float16"] = "float32",
        is_hwc: bool = True,
    ) -> None:
        super().__init__(mean, std, is_hwc)
        self.dtype = as_dtype(checks.one_of("NormalizePad", "dtype", dtype, ("float32", "float16")))

    def apply(self, value: Tensor, rank: int) -> Tensor:
        result = super().apply(value, rank)
        result = result[..., None] if rank == 2 else result
        axis = -1 if self.is_hwc or rank == 2 else -3
        widths = [(0, 0)] * len(result.shape)
        widths[axis] = (0, 1)
        return keras.ops.cast(keras.ops.pad(result, widths), self.dtype)


def _read_moments(
    where: str, mean: Sequence[float], std: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    for name, values in (("mean", mean), ("std", std)):
        checks.instance(where, name, values, (list, tuple, np.ndarray), f"{name}=[0.5, 0.5, 0.5]")
    if len(mean) != len(std) or len(mean) == 0:
        raise checks.fail_value(
            where, f"mean and std must have as many numbers, one for each channel; mean has {len(mean)}, std",
            len(std), "mean=[0.5, 0.5, 0.5], std=[0.2, 0.2, 0.2]",
        )
    means = [checks.number(where, "mean", item, at_least=0.0, at_most=255.0) for item in mean]
    stds = [checks.number(where, "std", item, above=0.0, at_most=255.0) for item in std]
    return tuple(means), tuple(stds)
