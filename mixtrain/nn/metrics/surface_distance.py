"""`HausdorffDistance`, `MeanSurfaceDistance` and `RootMeanSquareDistance`: distances of the edges of two masks."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

from mixtrain import checks
from mixtrain.metrics.metric import Metric, rearrange_inputs

_DISTANCE_METRICS: Final = ("euclidean", "chessboard", "taxicab")
# Maximum number of pairs of edge points whose distances are computed at a time, to bound memory.
_MAX_PAIRS: Final = 2**22
_DistanceMetric = Literal["euclidean", "chessboard", "taxicab"]


class _SurfaceDistance(Metric):
    """Base class of distances between the edges of the last two masks."""

    def __init__(self, distance_metric: str) -> None:
        super().__init__()
        self.distance_metric = checks.one_of(type(self).__name__, "distance_metric", distance_metric, _DISTANCE_METRICS)
        self.clear()

    def clear(self) -> None:
        self._edges: tuple[np.ndarray, np.ndarray] | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Set the two masks, replacing those of an earlier call.

        Args: *inputs: Predicted labels, true labels of the same shape, and the label whose masks are compared.
        """
        where = f"{type(self).__name__}.update"
        if len(inputs) != 3:
            raise checks.fail_value(where, "it takes three inputs", len(inputs), "update(predicted, true, label)")
        predicted, true, label = self._convert_data(inputs[0]), self._convert_data(inputs[1]), inputs[2]
        if not isinstance(label, int | float):
            raise checks.fail_type(where, "the label must be a number", label, "update(predicted, true, 1)")
        if predicted.shape != true.shape or not predicted.size:
            raise checks.fail_value(
                where, f"the true labels must have the shape {predicted.shape} of the predicted, and be some",
                true.shape, "two arrays of one shape",
            )
        masks = predicted == label, true == label
        if not (masks[0].any() or masks[1].any()):
            raise checks.fail_value(where, "the label must be in one of the arrays", label, "a label that is in them")
        self._edges = _edges(masks[0]), _edges(masks[1])

    def _distances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances from each predicted edge point to the true edge, and vice versa."""
        if self._edges is None:
            raise RuntimeError(f"{type(self).__name__}.eval: nothing was gathered. Write update(...) first.")
        predicted, true = self._edges
        return self._nearest(predicted, true), self._nearest(true, predicted)

    def _nearest(self, points: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the distance of each point to the nearest of the others; infinite if there are none."""
        if not len(others):
            return np.full(len(points), np.inf)
        rows = max(1, _MAX_PAIRS // len(others))
        chunks = []
        for start in range(0, len(points), rows):
            offsets = np.abs(points[start:start + rows, None] - others[None])
            if self.distance_metric == "euclidean":
                chunks.append(np.sqrt((offsets * offsets).sum(-1).min(1)))
            else:
                chunks.append((offsets.max(-1) if self.distance_metric == "chessboard" else offsets.sum(-1)).min(1))
        return np.concatenate(chunks) if chunks else np.zeros(0)


class HausdorffDistance(_SurfaceDistance):
    """The maximum distance from an edge point of one mask to the edge of the other.

    Args:
        distance_metric: "euclidean", "chessboard" (maximum difference of coordinates) or "taxicab" (sum).
        percentile: Percentile of the distances to use; None for the maximum.
        directed: Whether to use only distances from the predicted to the true mask.
        crop: Accepted for compatibility with MindSpore; cropping to the masks does not change their edges.

    Example:
        >>> HausdorffDistance()([[1, 0, 0, 0]], [[0, 0, 0, 1]], 1)
        3.0
    """

    def __init__(
        self, distance_metric: _DistanceMetric = "euclidean", percentile: float | None = None, directed: bool = False,
        crop: bool = True,
    ) -> None:
        super().__init__(distance_metric)
        if percentile is not None:
            percentile = checks.number(
                "HausdorffDistance", "percentile", percentile, at_least=0.0, at_most=100.0, example=95.0
            )
        self.percentile = percentile
        self.directed = checks.boolean("HausdorffDistance", "directed", directed)
        self.crop = checks.boolean("HausdorffDistance", "crop", crop)

    def eval(self) -> float:
        """Compute the distance between the last masks."""
        to_true, to_predicted = (self._maximum(distances) for distances in self._distances())
        return to_true if self.directed else max(to_true, to_predicted)

    def _maximum(self, distances: np.ndarray) -> float:
        if not len(distances):
            return float("inf")
        return float(np.percentile(distances, self.percentile) if self.percentile else distances.max())


class MeanSurfaceDistance(_SurfaceDistance):
    """The mean distance from the edge points of the predicted mask to the edge of the true one.

    With `symmetric`, the means of both directions are averaged.

    Args: distance_metric: As in `HausdorffDistance`.

    Example:
        >>> MeanSurfaceDistance()([[1, 0, 1, 0]], [[0, 0, 0, 1]], 1)
        2.0
    """

    def __init__(self, symmetric: bool = False, distance_metric: _DistanceMetric = "euclidean") -> None:
        super().__init__(distance_metric)
        self.symmetric = checks.boolean(type(self).__name__, "symmetric", symmetric)

    def eval(self) -> float:
        """Compute the distance between the last masks; infinite if one has no edge."""
        directions = self._distances() if self.symmetric else self._distances()[:1]
        if not all(len(distances) for distances in directions):
            return float("inf")
        return self._reduce(list(directions))

    def _reduce(self, directions: list[np.ndarray]) -> float:
        return float(np.mean([distances.mean() for distances in directions]))


class RootMeanSquareDistance(MeanSurfaceDistance):
    """The root mean square distance from the edge points of the predicted mask to the edge of the true one.

    With `symmetric`, the mean squares of both directions are averaged.

    Args: distance_metric: As in `HausdorffDistance`.

    Example:
        >>> RootMeanSquareDistance()([[1, 1, 0, 0]], [[1, 0, 0, 0]], 1) ** 2
        0.5000000000000001

    Source: MindSpore, `mindspore.train.RootMeanSquareDistance`, which omits the square root if `symmetric` is False.
    """

    def _reduce(self, directions: list[np.ndarray]) -> float:
        return float(np.sqrt(np.mean([(distances**2).mean() for distances in directions])))


def _edges(mask: np.ndarray) -> np.ndarray:
    """Return the coordinates of the points of a mask that have a neighbor outside the mask."""
    padded = np.pad(mask, 1)
    interior = padded.copy()
    for axis in range(mask.ndim):
        interior &= np.roll(padded, 1, axis) & np.roll(padded, -1, axis)
    interior = interior[(slice(1, -1),) * mask.ndim]
    return np.argwhere(mask & ~interior)
