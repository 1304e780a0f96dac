"""Bands of diagonals of matrices: read, written, and turned into matrices."""

from __future__ import annotations

from typing import Any, Final

import keras
import numpy as np

from mixtrain import checks
from mixtrain.ops.inputs import tensor, values_of
from mixtrain.ops.primitive import configured

_ALIGNMENTS: Final = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def _band(where: str, k: Any, align: str) -> tuple[int, int]:
    checks.one_of(where, "align", align, _ALIGNMENTS)
    numbers = values_of(where, k).reshape(-1).tolist()
    return int(numbers[0]), int(numbers[-1])


def _places(rows: int, columns: int, low: int, high: int, align: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return row, column and whether it is in the matrix, for each place of the band (diagonals, longest)."""
    above, _, below = align.partition("_")
    lengths = [min(rows + min(d, 0), columns - max(d, 0)) for d in range(low, high + 1)]
    longest = max(lengths)
    row = np.zeros((len(lengths), longest), np.int64)
    column, inside = row.copy(), np.zeros(row.shape, bool)
    for place, diagonal in enumerate(range(high, low - 1, -1)):
        length = lengths[diagonal - low]
        side = above if diagonal >= 0 else below
        first = longest - length if side == "RIGHT" else 0
        steps = np.arange(length)
        row[place, first : first + length] = steps + max(-diagonal, 0)
        column[place, first : first + length] = steps + max(diagonal, 0)
        inside[place, first : first + length] = True
    return row, column, inside


def matrix_diag_part(x: Any, k: Any, padding_value: Any, align: str = "RIGHT_LEFT") -> Any:
    """The diagonals `k` (one number, or the lowest and the highest) of the matrices `x`, padded by `padding_value`.

    `align` says on which side shorter diagonals lie: "RIGHT_LEFT" for the upper ones right, the lower ones left.
    Source: MindSpore, `mindspore.ops.matrix_diag_part`.
    """
    where, value = "ops.matrix_diag_part", tensor("ops.matrix_diag_part", x)
    low, high = _band(where, k, align)
    rows, columns = value.shape[-2:]
    row, column, inside = _places(rows, columns, low, high, align)
    flat = keras.ops.reshape(value, (*value.shape[:-2], rows * columns))
    found = keras.ops.take(flat, row * columns + column, axis=-1)
    found = keras.ops.where(inside, found, keras.ops.cast(padding_value, value.dtype))
    return found[..., 0, :] if low == high else found


def _written(x: Any, diagonal: Any, low: int, high: int, align: str) -> Any:
    rows, columns = x.shape[-2:]
    row, column, inside = _places(rows, columns, low, high, align)
    band = diagonal if low != high else diagonal[..., None, :]
    source = np.full((rows, columns), -1, np.int64)
    source[row[inside], column[inside]] = np.flatnonzero(inside.reshape(-1))
    flat = keras.ops.reshape(band, (*band.shape[:-2], -1))
    return keras.ops.where(source >= 0, keras.ops.take(flat, np.maximum(source, 0), axis=-1), x)


def matrix_set_diag(x: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Any:
    """The matrices `x` with their diagonals `k` replaced by `diagonal`; `align` as in `matrix_diag_part`.

    Source: MindSpore, `mindspore.ops.matrix_set_diag`.
    """
    where = "ops.matrix_set_diag"
    low, high = _band(where, k, align)
    value = tensor(where, x)
    return _written(value, keras.ops.cast(tensor(where, diagonal), value.dtype), low, high, align)


def matrix_diag(
    x: Any, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Any:
    """Matrices whose diagonals `k` are `x`, with `padding_value` elsewhere.

    `num_rows` and `num_cols` are their sizes, -1 for the least; `align` as in `matrix_diag_part`.
    Source: MindSpore, `mindspore.ops.matrix_diag`.
    """
    where, band = "ops.matrix_diag", tensor("ops.matrix_diag", x)
    low, high = _band(where, k, align)
    longest = band.shape[-1]
    given = [int(values_of(where, one).reshape(-1)[0]) for one in (num_rows, num_cols)]
    rows = given[0] if given[0] > 0 else longest + max(-high, 0) if given[1] <= 0 else 0
    columns = given[1] if given[1] > 0 else longest + max(low, 0) if given[0] <= 0 else 0
    if given[0] <= 0 and given[1] <= 0:
        rows = columns = max(rows, columns)
    rows, columns = rows or longest + max(-high, 0), columns or longest + max(low, 0)
    ahead = tuple(band.shape[: -1 if low == high else -2])
    empty = keras.ops.full((*ahead, rows, columns), 0, dtype=band.dtype) + keras.ops.cast(padding_value, band.dtype)
    return _written(empty, band, low, high, align)


MatrixDiagV3: Final = configured("MatrixDiagV3", matrix_diag, align="RIGHT_LEFT")
MatrixDiagPartV3: Final = configured("MatrixDiagPartV3", matrix_diag_part, align="RIGHT_LEFT")
MatrixSetDiagV3: Final = configured("MatrixSetDiagV3", matrix_set_diag, align="RIGHT_LEFT")
