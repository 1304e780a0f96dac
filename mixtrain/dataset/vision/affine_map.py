"""Affine maps from a point of the result to a point of the image: rotation, shear, scale and translation."""

from __future__ import annotations

from typing import Final

from mixtrain.data_backend import warp
from mixtrain.typing import Tensor

_RADIANS: Final = 3.141592653589793 / 180.0


def rotation(
    degrees: Tensor | float, center: tuple[Tensor, Tensor], shift: tuple[Tensor, Tensor] = (0.0, 0.0)
) -> Tensor:
    """Return the map of a counterclockwise rotation about a center (x, y), followed by a shift."""
    xp, (angle,) = warp.floats(degrees)
    cosine, sine = xp.cos(angle * _RADIANS), xp.sin(angle * _RADIANS)
    return _about_center(center, shift, cosine, -sine, sine, cosine)


def affine(
    degrees: Tensor | float, center: tuple[Tensor, Tensor], shift: tuple[Tensor, Tensor], scale: Tensor | float,
    shear: tuple[Tensor, Tensor],
) -> Tensor:
    """Return the map of a shear, a scale, a clockwise rotation and a translation."""
    xp, angles = warp.floats(degrees, *shear)
    angle, shear_x, shear_y = (value * _RADIANS for value in angles)
    a = xp.cos(angle - shear_y) / xp.cos(shear_y)
    b = -xp.cos(angle - shear_y) * xp.tan(shear_x) / xp.cos(shear_y) - xp.sin(angle)
    c = xp.sin(angle - shear_y) / xp.cos(shear_y)
    d = -xp.sin(angle - shear_y) * xp.tan(shear_x) / xp.cos(shear_y) + xp.cos(angle)
    # The determinant of the matrix is 1, so that its inverse needs no division except by the scale.
    return _about_center(center, shift, d / scale, -b / scale, -c / scale, a / scale)


def _about_center(center: tuple[Tensor, Tensor], shift: tuple[Tensor, Tensor], *matrix: Tensor) -> Tensor:
    """Return the six coefficients of a map from the result, whose center is shifted, to the image."""
    xp, (x, y, shift_x, shift_y, a, b, c, d) = warp.floats(*center, *shift, *matrix)
    new_x, new_y = x + shift_x, y + shift_y
    return xp.stack([a, b, x - a * new_x - b * new_y, c, d, y - c * new_x - d * new_y])
