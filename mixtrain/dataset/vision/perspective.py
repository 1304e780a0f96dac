"""Images seen in perspective: four points of the image moved to four others, given or by chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mixtrain import checks
from mixtrain.dataset.transforms.operation import TensorOperation, read_value
from mixtrain.dataset.transforms.picture import is_picture
from mixtrain.dataset.vision.arguments import interpolation as read_interpolation
from mixtrain.dataset.vision.arguments import probability
from mixtrain.dataset.vision.boxes import generator
from mixtrain.dataset.vision.enums import Inter

Points = Sequence[Sequence[int]]

# Pillow's numbers of its interpolations, which its classes of words have too.
_PILLOW: Final = {Inter.NEAREST: 0, Inter.BILINEAR: 2, Inter.BICUBIC: 3}


class Perspective(TensorOperation):
    """The image with four of its points moved to four others, and black where nothing comes to lie.

    Args:
        start_points: Four points (x, y) in the image: top left, top right, bottom right, bottom left.
        end_points: Where they are in the result.
        interpolation: `Inter.NEAREST` or `Inter.BILINEAR`; for Pillow's images `Inter.BICUBIC` too.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: There are not four points of two numbers, three of them lie on one line, or an interpolation is
            not offered.

    Example:
        >>> import numpy as np
        >>> corners = [[0, 0], [2, 0], [2, 2], [0, 2]]
        >>> moved = [[1, 0], [3, 0], [3, 2], [1, 2]]
        >>> Perspective(corners, moved, Inter.NEAREST)(np.array([[1, 2, 3]], np.uint8)).tolist()
        [[0, 1, 2]]

    Source: MindSpore, `mindspore.dataset.vision.Perspective`.
    """

    def __init__(self, start_points: Points, end_points: Points, interpolation: Inter = Inter.BILINEAR) -> None:
        self.start_points = _points("start_points", start_points)
        self.end_points = _points("end_points", end_points)
        self.interpolation = _interpolation("Perspective", interpolation)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
        """Return the result for one image, a picture of Pillow's where it is one."""
        return moved("Perspective", values[0], self.start_points, self.end_points, self.interpolation)


class RandomPerspective(TensorOperation):
    """The image with its corners moved inwards by chance.

    Args:
        distortion_scale: How far at most, as a share of half of the image's height and width.
        prob: The probability that it is done.
        interpolation: `Inter.NEAREST` or `Inter.BILINEAR`; for Pillow's images `Inter.BICUBIC` too.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: A number is not from 0 to 1; on use, an interpolation is not offered.

    Example:
        >>> import numpy as np
        >>> RandomPerspective(0.5, 1.0, Inter.BILINEAR)(np.zeros((8, 6, 3), np.uint8)).shape
        (8, 6, 3)

    Source: MindSpore, `mindspore.dataset.vision.RandomPerspective`.
    """

    def __init__(
        self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC
    ) -> None:
        where = "RandomPerspective"
        self.distortion_scale = checks.number(where, "distortion_scale", distortion_scale, at_least=0.0, at_most=1.0)
        self.prob = probability(where, prob)
        self.interpolation = _interpolation(where, interpolation)

    def run(self, values: tuple[Any, ...], seed: tuple[int, int]) -> Any:
        """Return the result for one image, a picture of Pillow's where it is one."""
        chance, image = generator(seed), values[0]
        if chance.random() >= self.prob:
            return image
        height, width = np.asarray(image).shape[:2]
        right, bottom = width - 1, height - 1
        reach = [int(self.distortion_scale * size / 2) + 1 for size in (width, height)]
        inwards = np.stack([chance.integers(reach) for _ in range(4)])
        corners = np.array([[0, 0], [right, 0], [right, bottom], [0, bottom]])
        ends = corners + inwards * [[1, 1], [-1, 1], [-1, -1], [1, -1]]
        return moved("RandomPerspective", image, corners, ends, self.interpolation)


def moved(where: str, image: Any, start: np.ndarray, end: np.ndarray, interpolation: Inter) -> Any:
    """Return an image in perspective: an array as OpenCV would have it, a picture of Pillow's as Pillow would."""
    coefficients = _map(where, end, start)
    if is_picture(image):
        return image.transform(image.size, 2, tuple(coefficients), _PILLOW[interpolation])  # 2: in perspective.
    array = read_value(where, image)
    if array.ndim not in (2, 3):
        raise checks.fail_value(where, "the value must be an image (H, W) or (H, W, C)", array.shape,
                                f"{where}(...)(image)")
    if interpolation is Inter.BICUBIC:
        raise checks.fail_value(where, "interpolation must be Inter.NEAREST or Inter.BILINEAR for arrays",
                                interpolation.name, "interpolation=vision.Inter.BILINEAR")
    return _seen_through(coefficients, array, interpolation)


def _map(where: str, there: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Return the eight numbers of the map that takes four points to four others."""
    rows = []
    for (x, y), (to_x, to_y) in zip(there, here, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -to_x * x, -to_x * y])
        rows.append([0, 0, 0, x, y, 1, -to_y * x, -to_y * y])
    try:
        return np.linalg.solve(np.array(rows, np.float64), here.reshape(-1).astype(np.float64))
    except np.linalg.LinAlgError as error:
        raise checks.fail_value(where, "no three of four points may lie on one line", there.tolist(),
                                "[[0, 0], [9, 0], [9, 9], [0, 9]]") from error


def _seen_through(coefficients: np.ndarray, image: np.ndarray, interpolation: Inter) -> np.ndarray:
    """Return the image whose pixels come from the places that the map gives, in steps of a 32nd as in OpenCV."""
    y, x = np.mgrid[: image.shape[0], : image.shape[1]].astype(np.float64)
    a, b, c, d, e, f, g, h = coefficients
    depth = g * x + h * y + 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        across, down = (a * x + b * y + c) / depth, (d * x + e * y + f) / depth
    # What lies behind the viewer, or far out, is outside the image.
    far = 2.0 * sum(image.shape[:2]) + 2.0
    across, down = (np.where(np.abs(place) < far, place, far) for place in (across, down))
    if interpolation is Inter.NEAREST:
        return _pixels(image, np.rint(down), np.rint(across))
    across, down = np.rint(across * 32) / 32, np.rint(down * 32) / 32
    left, top = np.floor(across), np.floor(down)
    right, low = ((place - start).reshape(*place.shape, *[1] * (image.ndim - 2))
                  for place, start in ((across, left), (down, top)))
    upper = _pixels(image, top, left) * (1 - right) + _pixels(image, top, left + 1) * right
    lower = _pixels(image, top + 1, left) * (1 - right) + _pixels(image, top + 1, left + 1) * right
    result = upper * (1 - low) + lower * low
    return (np.rint(result) if image.dtype.kind in "biu" else result).astype(image.dtype)


def _pixels(image: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the pixels at rows and columns, 0 outside the image."""
    height, width = image.shape[:2]
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    row, column = (np.clip(place, 0, size - 1).astype(int) for place, size in ((rows, height), (columns, width)))
    return image[row, column] * inside.reshape(*inside.shape, *[1] * (image.ndim - 2)).astype(image.dtype)


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
    kind = read_interpolation(where, value)
    if kind not in _PILLOW:
        raise checks.fail_value(where, "interpolation must be Inter.NEAREST, Inter.BILINEAR or Inter.BICUBIC",
                                kind.name, "interpolation=vision.Inter.BILINEAR")
    return kind
