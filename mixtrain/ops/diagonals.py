"""Read and write bands of diagonals of matrices, and build matrices from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import keras
import numpy as np

from mixtrain import checks
from mixtrain.ops.indexing import flat_positions, scatter_flat
from mixtrain.ops.inputs import tensor, values_of
from mixtrain.ops.primitive import REQUIRED, configured
from mixtrain.typing import Tensor, TensorLike

_ALIGNMENTS: Final = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def _band(where: str, k: int | Sequence[int] | Tensor, align: str) -> tuple[int, int]:
    """Return the lowest and the highest diagonal of `k`."""
    checks.one_of(where, "align", align, _ALIGNMENTS)
    diagonals = values_of(where, k).reshape(-1).tolist()
    return int(diagonals[0]), int(diagonals[-1])


def _band_indices(rows: int, columns: int, low: int, high: int, align: str) -> tuple[np.ndarray, ...]:
    """Return row, column and a mask of what is in the matrix, for each entry of the band (diagonals, longest)."""
    upper, _, lower = align.partition("_")
    lengths = [min(rows + min(d, 0), columns - max(d, 0)) for d in range(low, high + 1)]
    longest = max(lengths)
    row = np.zeros((len(lengths), longest), np.int64)
    column, inside = row.copy(), np.zeros(row.shape, bool)
    for index, diagonal in enumerate(range(high, low - 1, -1)):
        length = lengths[diagonal - low]
        side = upper if diagonal >= 0 else lower
        start = longest - length if side == "RIGHT" else 0
        steps = np.arange(length)
        row[index, start : start + length] = steps + max(-diagonal, 0)
        column[index, start : start + length] = steps + max(diagonal, 0)
        inside[index, start : start + length] = True
    return row, column, inside


def matrix_diag_part(
    x: TensorLike, k: int | Sequence[int] | Tensor, padding_value: TensorLike, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The diagonals `k` (one number, or the lowest and the highest) of the matrices `x`, padded with `padding_value`.

    `align` is the alignment of shorter diagonals: "RIGHT_LEFT" is right for the upper and left for the lower ones.
    """
    where, value = "ops.matrix_diag_part", tensor("ops.matrix_diag_part", x)
    low, high = _band(where, k, align)
    rows, columns = value.shape[-2:]
    row, column, inside = _band_indices(rows, columns, low, high, align)
    flat = keras.ops.reshape(value, (*value.shape[:-2], rows * columns))
    band = keras.ops.take(flat, row * columns + column, axis=-1)
    band = keras.ops.where(inside, band, keras.ops.cast(padding_value, value.dtype))
    return band[..., 0, :] if low == high else band


def _set_band(x: Tensor, diagonal: Tensor, low: int, high: int, align: str) -> Tensor:
    """Return the matrices `x` with a band of their diagonals replaced."""
    rows, columns = x.shape[-2:]
    row, column, inside = _band_indices(rows, columns, low, high, align)
    band = diagonal if low != high else diagonal[..., None, :]
    # For each element of a matrix, its position in the flat band, or -1.
    source = np.full((rows, columns), -1, np.int64)
    source[row[inside], column[inside]] = np.flatnonzero(inside.reshape(-1))
    flat = keras.ops.reshape(band, (*band.shape[:-2], -1))
    return keras.ops.where(source >= 0, keras.ops.take(flat, np.maximum(source, 0), axis=-1), x)


def matrix_set_diag(
    x: TensorLike, diagonal: TensorLike, k: int | Sequence[int] | Tensor = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The matrices `x` with their diagonals `k` replaced by `diagonal`; `align` as in `matrix_diag_part`."""
    where = "ops.matrix_set_diag"
    low, high = _band(where, k, align)
    value = tensor(where, x)
    return _set_band(value, keras.ops.cast(tensor(where, diagonal), value.dtype), low, high, align)


def matrix_diag(
    x: TensorLike, k: int | Sequence[int] | Tensor = 0, num_rows: TensorLike = -1, num_cols: TensorLike = -1,
    padding_value: TensorLike = 0, align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the diagonals `k` from `x`, and `padding_value` elsewhere.

    `num_rows` and `num_cols` are their sizes, -1 for the smallest; `align` as in `matrix_diag_part`.
    """
    where, band = "ops.matrix_diag", tensor("ops.matrix_diag", x)
    low, high = _band(where, k, align)
    longest = band.shape[-1]
    rows, columns = (int(values_of(where, value).reshape(-1)[0]) for value in (num_rows, num_cols))
    min_rows, min_columns = longest + max(-high, 0), longest + max(low, 0)
    if rows <= 0 and columns <= 0:
        rows = columns = max(min_rows, min_columns)
    rows, columns = rows if rows > 0 else min_rows, columns if columns > 0 else min_columns
    batch = tuple(band.shape[: -1 if low == high else -2])
    matrix = keras.ops.full((*batch, rows, columns), 0, dtype=band.dtype) + keras.ops.cast(padding_value, band.dtype)
    return _set_band(matrix, band, low, high, align)


def fill_diagonal(x: TensorLike, fill_value: float, wrap: bool = False) -> Tensor:
    """Return `x` with `fill_value` on its diagonal; with `wrap` it starts again below the end of a high matrix."""
    value = tensor("Tensor.fill_diagonal", x)
    sizes = tuple(value.shape)
    if len(sizes) < 2 or (len(sizes) > 2 and len(set(sizes)) > 1):
        raise checks.fail_value(
            "Tensor.fill_diagonal", "there must be two axes, or several of one size", sizes, "a matrix"
        )
    # One step along every axis is as many steps in the flat tensor as their strides together.
    stride = sum(math.prod(sizes[axis + 1:]) for axis in range(len(sizes)))
    positions = keras.ops.reshape(flat_positions(value), (-1,))[::stride]
    positions = positions if wrap else positions[: min(sizes)]
    return scatter_flat(value, positions, keras.ops.full(positions.shape, fill_value, dtype=value.dtype))



MatrixDiagV3 = configured("MatrixDiagV3", matrix_diag, align="RIGHT_LEFT")
MatrixDiagPartV3 = configured("MatrixDiagPartV3", matrix_diag_part, align="RIGHT_LEFT")
MatrixSetDiagV3 = configured("MatrixSetDiagV3", matrix_set_diag, align="RIGHT_LEFT")
FillDiagonal = configured("FillDiagonal", fill_diagonal, fill_value=REQUIRED, wrap=False)
