"""What kernels of images are written in: one namespace of array functions, and the kernels that differ by backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mixtrain.typing import Tensor


def space(*values: Any) -> tuple[Any, ...]:
    """Return a namespace that has array functions by NumPy's names, and the values as arrays of it."""

def cast(values: Any, dtype: Any) -> Tensor:
    """Return an array, or a number as an array, in a dtype."""

def exact(values: Tensor) -> Tensor:
    """Return values in the dtype in which products of two float32 numbers are summed."""

def number(value: Any) -> Any:
    """Return a number by which float32 arrays are multiplied, or an array of one, in float32."""

def numbers_to(count: Any, dtype: str | None = None) -> Tensor:
    """Return the numbers 0 to `count` - 1, by default in the integer dtype in which the backend counts."""

def one_hot(indices: Tensor, count: Tensor | int) -> Tensor:
    """Return float32 (n, count) with a 1 in each row, at an index (n,)."""

def choose(condition: Tensor, yes: Callable[[], Tensor], no: Callable[[], Tensor]) -> Tensor:
    """Return the result of one of two functions, of one size, by a condition on sizes."""

def lanczos(x: Tensor) -> Tensor:
    """Return the kernel of three lobes by which Pillow resizes, float32."""

def is_integer(dtype: Any) -> bool:
    """Whether a dtype of an array is an integer one."""

def size_of(image: Tensor) -> tuple[Tensor | int, Tensor | int]:
    """Return height and width: ints where they are known, otherwise tensors."""

def sized(image: Tensor, height: Tensor | int, width: Tensor | int, channels: int | None) -> Tensor:
    """Return an image, which is of a size that the backend may not know, with that size."""

def saturate(values: Tensor, dtype: Any) -> Tensor:
    """Cast float values to `dtype`, for an integer dtype rounded to nearest and clipped to its range."""

def normalize(values: Tensor, mean: np.ndarray, deviation: np.ndarray) -> Tensor:
    """Return ``(values - mean) / deviation`` in float32; both broadcast to the last axes of `values`."""

def rgb_to_hsv(image: Tensor) -> Tensor:
    """Convert red, green and blue in [0, 1] to hue, saturation and value in [0, 1]."""

def hsv_to_rgb(image: Tensor) -> Tensor:
    """Convert hue, saturation and value to red, green and blue."""

def by_table(image: Tensor, table: Callable[[Tensor], Tensor]) -> Tensor:
    """Map the values of each channel of a uint8 image by the table that `table` computes from its histogram."""

def stretched(low: Tensor, high: Tensor) -> Tensor:
    """Return the levels 0 to 255 mapped so that `low` becomes 0 and `high` 255, unclipped integers."""

def smoothed(values: Tensor) -> Tensor:
    """Return the mean of the 3 x 3 pixels around each of float32 values, with weight 5 for the center."""

def blur(image: Tensor, across: Sequence[float], down: Sequence[float]) -> Tensor:
    """Convolve the image with weights across and down, with the edge reflected."""

def weighted_sum(matrix: np.ndarray, vector: Tensor) -> Tensor:
    """Return the product of a float32 matrix and a vector."""
