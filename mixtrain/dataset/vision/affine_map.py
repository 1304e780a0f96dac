"""Affine maps, from a place in the result to one in the image: rotation, shear, scale and shift."""

from __future__ import annotations

from typing import Any, Final

from mixtrain.backend import warp

_RADIANS: Final = 3.141592653589793 / 180.0


def rotation(degrees: Any, center: tuple[Any, Any], shift: tuple[Any, Any] = (0.0, 0.0)) -> Any:
    """Return the map of a turn against the clock.

    Args:
        degrees: The angle.
        center: x and y of what stays; `shift` moves it afterwards.
        shift: By how much the result is moved.
    """
    xp, (angle,) = warp.floats(degrees)
    cosine, sine = xp.cos(angle * _RADIANS), xp.sin(angle * _RADIANS)
    return _around(center, shift, cosine, -sine, sine, cosine)


def affine(degrees: Any, center: tuple[Any, Any], shift: tuple[Any, Any], scale: Any, shear: tuple[Any, Any]) -> Any:
    """Return the map of shear, scale, a turn with the clock and a shift."""
    xp, angles = warp.floats(degrees, *shear)
    angle, across, down = (value * _RADIANS for value in angles)
    a = xp.cos(angle - down) / xp.cos(down)
    b = -xp.cos(angle - down) * xp.tan(across) / xp.cos(down) - xp.sin(angle)
    c = xp.sin(angle - down) / xp.cos(down)
    d = -xp.sin(angle - down) * xp.tan(across) / xp.cos(down) + xp.cos(angle)
    # Of determinant 1, so that its inverse needs no division but by the scale.
    return _around(center, shift, d / scale, -b / scale, -c / scale, a / scale)


def _around(center: tuple[Any, Any], shift: tuple[Any, Any], *matrix: Any) -> Any:
    xp, (x, y, to_x, to_y, a, b, c, d) = warp.floats(*center, *shift, *matrix)
    to_x, to_y = x + to_x, y + to_y
    return xp.stack([a, b, x - a * to_x - b * to_y, c, d, y - c * to_x - d * to_y])
