"""Rotation, translation, scaling and shear of images, by given or random amounts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.data_backend import images, row_random, warp
from mixtrain.dataset.vision import affine_map
from mixtrain.dataset.vision.arguments import color, degrees_range, enum_member, limits
from mixtrain.dataset.vision.enums import Inter
from mixtrain.dataset.vision.operation import ImageOperation, Seed
from mixtrain.typing import Tensor

_SAMPLINGS: Final[dict[Inter, warp.Sampling]] = {Inter.NEAREST: "nearest", Inter.BILINEAR: "linear"}


def _read_sampling(where: str, value: Any) -> warp.Sampling:
    """Return the backend's name of an interpolation."""
    resample = enum_member(where, "resample", value, Inter)
    if resample not in _SAMPLINGS:
        raise checks.fail_value(
            where, "resample must be Inter.NEAREST or Inter.BILINEAR", resample.name, "resample=vision.Inter.BILINEAR"
        )
    return _SAMPLINGS[resample]


class _Rotation(ImageOperation):
    """Base class of `Rotate` and `RandomRotation`."""

    def _set(self, resample: Any, expand: Any, center: Any, fill_value: Any) -> None:
        self.sampling = _read_sampling(self.name, resample)
        self.expand = checks.boolean(self.name, "expand", expand)
        self.center = center
        if center is not None:
            checks.instance(self.name, "center", center, (tuple, list), "center=(16, 16)")
            if len(center) != 2:
                raise checks.fail_value(self.name, "center must be (x, y)", center, "center=(16, 16)")
        self.fill_value = color(self.name, fill_value)

    def _rotated(self, image: Tensor, degrees: Tensor | float) -> Tensor:
        rows, columns = images.size_of(image)
        center = _center(image)
        if not self.expand:
            matrix = affine_map.rotation(degrees, self.center or center)
            return warp.warp(image, matrix, self.sampling, self.fill_value)
        # The size of the bounding box of the rotated image.
        angle = keras.ops.cast(degrees, "float32") * (math.pi / 180.0)
        cosine, sine = keras.ops.abs(keras.ops.cos(angle)), keras.ops.abs(keras.ops.sin(angle))
        height, width = keras.ops.cast(rows, "float32"), keras.ops.cast(columns, "float32")
        new_width, new_height = height * sine + width * cosine, height * cosine + width * sine
        shift = (new_width - width) / 2.0, (new_height - height) / 2.0
        matrix = affine_map.rotation(degrees, center, shift)
        size = tuple(keras.ops.cast(keras.ops.round(value), "int32") for value in (new_height, new_width))
        return warp.warp(image, matrix, self.sampling, self.fill_value, size)


def _center(image: Tensor) -> tuple[Tensor, Tensor]:
    """Return x and y of the image's center."""
    rows, columns = (keras.ops.cast(size, "float32") for size in images.size_of(image))
    return (columns - 1.0) / 2.0, (rows - 1.0) / 2.0


class Rotate(_Rotation):
    """The image rotated counterclockwise.

    Args:
        degrees: The angle.
        resample: `Inter.NEAREST` or `Inter.BILINEAR`.
        expand: Whether the result has the size of the rotated image; otherwise that of the image.
        center: (x, y) of the center of rotation; by default, and always with `expand`, the center of the image.
        fill_value: The value outside the image: one int from 0 to 255, or one per channel.

    Example:
        >>> import numpy as np
        >>> Rotate(90)(np.array([[1, 2], [3, 4]], np.uint8)).tolist()
        [[2, 4], [1, 3]]
    """

    pictures = "ends"

    def __init__(
        self, degrees: float, resample: Inter = Inter.NEAREST, expand: bool = False,
        center: tuple[float, float] | None = None, fill_value: int | tuple[int, ...] = 0,
    ) -> None:
        self.degrees = checks.number("Rotate", "degrees", degrees, example=90)
        self._set(resample, expand, center, fill_value)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return self._rotated(image, self.degrees)


class RandomRotation(_Rotation):
    """The image rotated by a random angle, counterclockwise if it is positive.

    Args:
        resample, expand, center, fill_value: As in `Rotate`.
        degrees: The range (min, max) of the angle; or a number d for (-d, d).

    Example:
        >>> import numpy as np
        >>> RandomRotation((90, 90))(np.array([[1, 2], [3, 4]], np.uint8)).tolist()
        [[2, 4], [1, 3]]
    """

    random = True

    def __init__(
        self, degrees: float | Sequence[float], resample: Inter = Inter.NEAREST, expand: bool = False,
        center: tuple[float, float] | None = None, fill_value: int | tuple[int, ...] = 0,
    ) -> None:
        self.degrees = degrees_range("RandomRotation", degrees)
        self._set(resample, expand, center, fill_value)
        self.same_size = not expand

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return self._rotated(image, row_random.uniform(seed, *self.degrees))


class RandomAffine(ImageOperation):
    """The image rotated, translated, scaled and sheared by random amounts.

    Args:
        resample, fill_value: As in `Rotate`.
        degrees: The range (min, max) of the clockwise angle; or a number d for (-d, d).
        translate: The range (min, max) of the translation to the right as a fraction of the width, optionally followed
            by that of the translation down as a fraction of the height; none by default.
        scale: The range of the scale; 1 by default.
        shear: The range of the shear along x in degrees, optionally followed by that along y; a number s means (-s, s).

    Example:
        >>> import numpy as np
        >>> RandomAffine(0, translate=(0.5, 0.5))(np.array([[1, 2]], np.uint8)).tolist()
        [[0, 1]]
    """

    random = True

    def __init__(
        self, degrees: float | Sequence[float], translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None, shear: float | Sequence[float] | None = None,
        resample: Inter = Inter.NEAREST, fill_value: int | tuple[int, ...] = 0,
    ) -> None:
        where = "RandomAffine"
        self.degrees = degrees_range(where, degrees)
        self.translate = _two_ranges(where, "translate", translate, (-1.0, 1.0))
        self.scale = (1.0, 1.0) if scale is None else limits(where, "scale", scale, at_least=1e-6, example="(0.9, 1.1)")
        if shear is not None and not isinstance(shear, (list, tuple)):
            maximum = checks.number(where, "shear", shear, at_least=0.0, at_most=180.0, example=10)
            shear = (-maximum, maximum)
        self.shear = _two_ranges(where, "shear", shear, (-180.0, 180.0))
        self.sampling = _read_sampling(where, resample)
        self.fill_value = color(where, fill_value)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        ranges = (self.degrees, self.scale, *self.translate, *self.shear)
        degrees, scale, right, down, shear_x, shear_y = (
            row_random.uniform(row_random.fold_in(seed, index), *bounds)
            for index, bounds in enumerate(ranges)
        )
        return _warped(image, degrees, (right, down), scale, (shear_x, shear_y), self.sampling, self.fill_value)


class Affine(ImageOperation):
    """The image rotated, translated, scaled and sheared.

    Args:
        resample, fill_value: As in `Rotate`.
        degrees: The clockwise angle.
        translate: The translations to the right and down, as fractions of width and height.
        scale: The scale.
        shear: The shear along x in degrees, or along x and y.

    Example:
        >>> import numpy as np
        >>> Affine(0.0, (0.5, 0.0), 1.0, 0.0)(np.array([[1, 2]], np.uint8)).tolist()
        [[0, 1]]
    """

    pictures = "ends"

    def __init__(
        self, degrees: float, translate: Sequence[float], scale: float, shear: float | Sequence[float],
        resample: Inter = Inter.NEAREST, fill_value: int | tuple[int, ...] = 0,
    ) -> None:
        self.degrees = checks.number("Affine", "degrees", degrees, example=10.0)
        right, down = checks.instance("Affine", "translate", translate, (list, tuple), "translate=(0.0, 0.0)")
        self.translate = tuple(
            checks.number("Affine", "translate", value, at_least=-1.0, at_most=1.0) for value in (right, down)
        )
        self.scale = checks.number("Affine", "scale", scale, above=0.0)
        shears = shear if isinstance(shear, (list, tuple)) else (shear, 0.0)
        self.shear = tuple(checks.number("Affine", "shear", value, at_least=-180.0, at_most=180.0) for value in shears)
        self.sampling = _read_sampling("Affine", resample)
        self.fill_value = color("Affine", fill_value)

    def image(self, image: Tensor, seed: Seed) -> Tensor:
        return _warped(image, self.degrees, self.translate, self.scale, self.shear, self.sampling, self.fill_value)


def _warped(
    image: Tensor, degrees: Tensor | float, translate: Any, scale: Tensor | float, shear: Any,
    sampling: warp.Sampling, fill_value: tuple[int, ...],
) -> Tensor:
    rows, columns = (keras.ops.cast(size, "float32") for size in images.size_of(image))
    matrix = affine_map.affine(degrees, _center(image), (translate[0] * columns, translate[1] * rows), scale, shear)
    return warp.warp(image, matrix, sampling, fill_value)


def _two_ranges(where: str, name: str, value: Any, bounds: tuple[float, float]) -> list[tuple[float, float]]:
    """Return the ranges for x and y, from None, one range, or two ranges in one list."""
    write = f"{name}=({bounds[0] / 10:g}, {bounds[1] / 10:g})"
    numbers = [0.0, 0.0] if value is None else checks.instance(where, name, value, (list, tuple), write)
    if len(numbers) not in (2, 4):
        raise checks.fail_value(where, f"{name} must be (min, max), or two such ranges in one", value, write)
    numbers = [*numbers, 0.0, 0.0][:4]
    return [
        limits(where, name, tuple(numbers[start : start + 2]), at_least=bounds[0], at_most=bounds[1], example=write)
        for start in (0, 2)
    ]
