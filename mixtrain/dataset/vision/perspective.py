"""Perspective transforms of images: four points are moved to four others, given or random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mixtrain import checks
from mixtrain.dataset.transforms.operation import TensorOperation, read_value
from mixtrain.dataset.transforms.picture import is_picture
from mixtrain.dataset.transforms.transform_chain import numpy_generator
from mixtrain.dataset.vision.arguments import interpolation as read_interpolation, probability
from mixtrain.dataset.vision.enums import Inter
from mixtrain.typing import Tensor

Points = Sequence[Sequence[int]]

# The values of Pillow's enumerations `Resampling` and `Transform`.
_PILLOW_RESAMPLING: Final = {Inter.NEAREST: 0, Inter.BILINEAR: 2, Inter.BICUBIC: 3}
_PILLOW_PERSPECTIVE: Final = 2


class Perspective(TensorOperation):
    """The image with four of its points moved to four others; black outside the image.

    Args:
        start_points, end_points: Four points (x, y) in the image, and in the result: top left, top right, bottom right,
            bottom left.
        interpolation: `Inter.NEAREST` or `Inter.BILINEAR`; for Pillow images `Inter.BICUBIC` too.

    Raises: ValueError: There are not four points of two numbers, three of them are on one line, or the interpolation is
        not supported.

    Example:
        >>> corners = [[0, 0], [2, 0], [2, 2], [0, 2]]
        >>> moved = [[1, 0], [3, 0], [3, 2], [1, 2]]
        >>> Perspective(corners, moved, Inter.NEAREST)(np.array([[1, 2, 3]], np.uint8)).tolist()
        [[0, 1, 2]]
    """

    def __init__(self, start_points: Points, end_points: Points, interpolation: Inter = Inter.BILINEAR) -> None:
        self.start_points = _points("start_points", start_points)
        self.end_points = _points("end_points", end_points)
        self.interpolation = _interpolation("Perspective", interpolation)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
        """Return the result for one image, a Pillow image for a Pillow image."""
        return _transformed("Perspective", values[0], self.start_points, self.end_points, self.interpolation)


class RandomPerspective(TensorOperation):
    """The image with its corners moved inwards by random amounts, with probability `prob`.

    Args:
        distortion_scale: The maximum distance, as a fraction (0 to 1) of half of the image's height and width.
        interpolation: As in `Perspective`.

    Raises: ValueError: A number is not from 0 to 1; on use, the interpolation is not supported.

    Example:
        >>> RandomPerspective(0.5, 1.0, Inter.BILINEAR)(np.zeros((8, 6, 3), np.uint8)).shape
        (8, 6, 3)
    """

    def __init__(self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC) -> None:
        where = "RandomPerspective"
        self.distortion_scale = checks.number(where, "distortion_scale", distortion_scale, at_least=0.0, at_most=1.0)
        self.prob = probability(where, prob)
        self.interpolation = _interpolation(where, interpolation)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
        """Return the result for one image, a Pillow image for a Pillow image."""
        generator, image = numpy_generator(seed), values[0]
        if generator.random() >= self.prob:
            return image
        height, width = np.asarray(image).shape[:2]
        right, bottom = width - 1, height - 1
        bounds = [int(self.distortion_scale * size / 2) + 1 for size in (width, height)]
        shifts = np.stack([generator.integers(bounds) for _ in range(4)])
        corners = np.array([[0, 0], [right, 0], [right, bottom], [0, bottom]])
        ends = corners + shifts * [[1, 1], [-1, 1], [-1, -1], [1, -1]]
        return _transformed("RandomPerspective", image, corners, ends, self.interpolation)


def _transformed(where: str, image: Tensor, start: np.ndarray, end: np.ndarray, interpolation: Inter) -> Tensor:
    """Return the perspective transform of an image: of an array as by OpenCV, of a Pillow image as by Pillow."""
    coefficients = _coefficients(where, end, start)
    if is_picture(image):
        resampling = _PILLOW_RESAMPLING[interpolation]
        return image.transform(image.size, _PILLOW_PERSPECTIVE, tuple(coefficients), resampling)
    array = read_value(where, image)
    if array.ndim not in (2, 3):
        raise checks.fail_value(where, "the value must be an image (H, W) or (H, W, C)", array.shape,
                                f"{where}(...)(image)")
    if interpolation is Inter.BICUBIC:
        raise checks.fail_value(where, "interpolation must be Inter.NEAREST or Inter.BILINEAR for arrays",
                                interpolation.name, "interpolation=vision.Inter.BILINEAR")
    return _warped(coefficients, array, interpolation)


def _coefficients(where: str, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return the eight coefficients of the perspective transform from four points to four others."""
    rows = []
    for (x, y), (to_x, to_y) in zip(start, end, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -to_x * x, -to_x * y])
        rows.append([0, 0, 0, x, y, 1, -to_y * x, -to_y * y])
    try:
        return np.linalg.solve(np.array(rows, np.float64), end.reshape(-1).astype(np.float64))
    except np.linalg.LinAlgError as error:
        raise checks.fail_value(where, "no three of four points may lie on one line", start.tolist(),
                                "[[0, 0], [9, 0], [9, 9], [0, 9]]") from error


def _warped(coefficients: np.ndarray, image: np.ndarray, interpolation: Inter) -> np.ndarray:
    """Return the image sampled at the transform of each pixel; positions are rounded to 1/32 pixel as in OpenCV."""
    y, x = np.mgrid[: image.shape[0], : image.shape[1]].astype(np.float64)
    a, b, c, d, e, f, g, h = coefficients
    depth = g * x + h * y + 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        columns, rows = (a * x + b * y + c) / depth, (d * x + e * y + f) / depth
    # Points at infinity and far away become one point outside the image.
    far = 2.0 * sum(image.shape[:2]) + 2.0
    columns, rows = (np.where(np.abs(values) < far, values, far) for values in (columns, rows))
    if interpolation is Inter.NEAREST:
        return _pixels(image, np.rint(rows), np.rint(columns))
    columns, rows = np.rint(columns * 32) / 32, np.rint(rows * 32) / 32
    left, top = np.floor(columns), np.floor(rows)
    right_weight, lower_weight = ((values - start).reshape(*values.shape, *[1] * (image.ndim - 2))
                                  for values, start in ((columns, left), (rows, top)))
    upper = _pixels(image, top, left) * (1 - right_weight) + _pixels(image, top, left + 1) * right_weight
    lower = _pixels(image, top + 1, left) * (1 - right_weight) + _pixels(image, top + 1, left + 1) * right_weight
    result = upper * (1 - lower_weight) + lower * lower_weight
    return (np.rint(result) if image.dtype.kind in "biu" else result).astype(image.dtype)


def _pixels(image: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the pixels at rows and columns, 0 outside the image."""
    height, width = image.shape[:2]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    rows, columns = (np.clip(values, 0, size - 1).astype(int) for values, size in ((rows, height), (columns, width)))
    return image[rows, columns] * inside.reshape(*inside.shape, *[1] * (image.ndim - 2)).astype(image.dtype)


def _points(name: str, points: Any) -> np.ndarray:
    try:
        array = np.array(points, np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (4, 2):
        raise checks.fail_value("Perspective", f"{name} must be four points (x, y)", points,
                                f"{name}=[[0, 0], [9, 0], [9, 9], [0, 9]]")
    return array


def _interpolation(where: str, value: Any) -> Inter:
    interpolation = read_interpolation(where, value)
    if interpolation not in _PILLOW_RESAMPLING:
        raise checks.fail_value(where, "interpolation must be Inter.NEAREST, Inter.BILINEAR or Inter.BICUBIC",
                                interpolation.name, "interpolation=vision.Inter.BILINEAR")
    return interpolation
