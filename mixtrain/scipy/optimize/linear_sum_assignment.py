"""`linear_sum_assignment`: rows and columns in pairs of the least total cost, by shortest augmenting paths."""

from __future__ import annotations

from typing import Final

import numpy as np

from mixtrain import backend, checks, dtype as dtypes
from mixtrain.boundary import tensor
from mixtrain.ops.inputs import rank_of
from mixtrain.ops.operator import operator
from mixtrain.scipy.arguments import a_tensor
from mixtrain.typing import Tensor, TensorLike

_WHERE: Final = "scipy.optimize.linear_sum_assignment"
_NAMES: Final = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
_DTYPES: Final = tuple(getattr(dtypes, name) for name in _NAMES.split())


def _columns_of(cost: np.ndarray) -> np.ndarray:
    """Return the column of each row of a matrix of costs, which has at least as many columns (Crouse, 2016)."""
    height, width = cost.shape
    column_of, row_of, row_prices, prices = np.full(height, -1), np.full(width, -1), np.zeros(height), np.zeros(width)
    for start in range(height):
        distances, previous, left = np.full(width, np.inf), np.full(width, -1), np.arange(width)[::-1].copy()
        row, rows, columns, least = start, [], [], 0.0
        while row >= 0:  # Until the nearest column has no row.
            rows.append(row)
            through = least + cost[row, left] - row_prices[row] - prices[left]
            nearer = through < distances[left]
            distances[left[nearer]], previous[left[nearer]] = through[nearer], row
            least = distances[left].min()
            if np.isinf(least):
                raise RuntimeError(f"{_WHERE}: expected an assignment of finite cost; got none. Write finite costs.")
            nearest = np.flatnonzero(distances[left] == least)
            free = nearest[row_of[left[nearest]] < 0]
            index = free[-1] if free.size else nearest[0]  # This choice among equal columns is SciPy's and MindSpore's.
            column, left[index], left = left[index], left[-1], left[:-1]
            columns.append(column)
            row = row_of[column]
        row_prices[start] += least
        row_prices[rows[1:]] += least - distances[column_of[rows[1:]]]
        prices[columns] -= least - distances[columns]
        while row != start:  # The rows of the path take the columns that it leads to.
            row = row_of[column] = previous[column]
            column_of[row], column = column, column_of[row]
    return column_of


def _pairs(cost: np.ndarray, limit: np.ndarray, maximize: bool) -> np.ndarray:
    costs = cost[:, : int(limit)].astype(np.float64) * (-1 if maximize else 1)
    if int(limit) < 1 or np.isnan(costs).any():
        raise RuntimeError(f"{_WHERE}: expected columns without NaN; got NaN, or a limit of 0. Write finite costs.")
    wide = costs.shape[0] <= costs.shape[1]
    others = _columns_of(costs if wide else costs.T)
    pairs = np.stack([np.arange(len(others)), others] if wide else [np.sort(others), np.argsort(others)])
    return np.pad(pairs, ((0, 0), (0, min(cost.shape) - len(others))), constant_values=-1)


def _linear_sum_assignment(
    cost_matrix: TensorLike, maximize: bool, dimension_limit: TensorLike | None = None
) -> tuple[Tensor, Tensor]:
    """The rows and their columns, int64, of the least total of `cost_matrix`; with `maximize` of the greatest.

    Only the first `dimension_limit` columns are looked at; indices that are missing then are -1.

    Raises: TypeError for another dtype; ValueError unless there are two axes; RuntimeError where no cost is finite.

    Example:
        >>> import mixtrain
        >>> cost = mixtrain.Tensor([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0]])
        >>> mixtrain.scipy.optimize.linear_sum_assignment(cost, False)[1].asnumpy().tolist()
        [1, 0]
    """
    cost = a_tensor(_WHERE, "cost_matrix", cost_matrix, _DTYPES, maximize=maximize)
    if rank_of(cost) != 2:
        raise checks.fail_value(_WHERE, "cost_matrix must have two axes", tuple(cost.shape), "a matrix")
    limit = tensor(_WHERE, cost.shape[1] if dimension_limit is None else dimension_limit)
    pairs, = backend.computed_by_numpy(
        lambda cost, limit: [_pairs(cost, limit, maximize)], [cost, limit], [(2, min(cost.shape))], ["int64"]
    )
    return pairs[0], pairs[1]


linear_sum_assignment = operator("linear_sum_assignment", _linear_sum_assignment, owner="scipy.optimize")
