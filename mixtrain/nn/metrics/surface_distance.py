"""`HausdorffDistance`, `MeanSurfaceDistance` and `RootMeanSquareDistance`: how far apart the edges of two masks are."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np

from mixtrain import checks
from mixtrain.nn.metrics.metric import Metric, rearrange_inputs

_KINDS: Final = ("euclidean", "chessboard", "taxicab")
# Distances between all edge points of two masks are computed for this many pairs at a time.
_PAIRS: Final = 2**22
_Kind = Literal["euclidean", "chessboard", "taxicab"]


class _SurfaceDistance(Metric):
    """What the distances share: they look at the edges of the last masks."""

    def __init__(self, distance_metric: str) -> None:
        super().__init__()
        self.distance_metric = checks.one_of(type(self).__name__, "distance_metric", distance_metric, _KINDS)
        self.clear()

    def clear(self) -> None:
        """Forget what was gathered."""
        self._edges: tuple[np.ndarray, np.ndarray] | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take in two masks; those of an earlier call are forgotten.

        Args:
            *inputs: The predicted labels, the true ones, of one shape, and the label whose masks are compared.

        Raises:
            TypeError: The label is not a number.
            ValueError: There are not three inputs, the shapes differ, or the label is in neither.
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
        """Return the distances from each predicted edge point to the true edge, and back.

        Raises:
            RuntimeError: There was no `update`.
        """
        if self._edges is None:
            raise RuntimeError(f"{type(self).__name__}.eval: nothing was gathered. Write update(...) first.")
        predicted, true = self._edges
        return self._nearest(predicted, true), self._nearest(true, predicted)

    def _nearest(self, points: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the distance of each point to the nearest of the others: infinite where there are none."""
        if not len(others):
            return np.full(len(points), np.inf)
        rows = max(1, _PAIRS // len(others))
        parts = []
        for start in range(0, len(points), rows):
            away = np.abs(points[start:start + rows, None] - others[None])
            if self.distance_metric == "euclidean":
                parts.append(np.sqrt((away * away).sum(-1).min(1)))
            else:
                parts.append((away.max(-1) if self.distance_metric == "chessboard" else away.sum(-1)).min(1))
        return np.concatenate(parts) if parts else np.zeros(0)


class HausdorffDistance(_SurfaceDistance):
    """The greatest distance from an edge point of one mask to the edge of the other.

    Args:
        distance_metric: "euclidean", "chessboard" (the greatest difference of coordinates) or "taxicab" (their sum).
        percentile: Which percentile of the distances counts; None for the greatest.
        directed: Whether only the way from the predicted to the true mask counts.
        crop: Accepted for MindSpore scripts; edges are the same in the box around both masks.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is unknown or out of range.

    Example:
        >>> HausdorffDistance()([[1, 0, 0, 0]], [[0, 0, 0, 1]], 1)
        3.0

    Source: MindSpore, `mindspore.train.HausdorffDistance`.
    """

    def __init__(
        self,
        distance_metric: _Kind = "euclidean",
        percentile: float | None = None,
        directed: bool = False,
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
        """Return the distance between the last masks.

        Raises:
            RuntimeError: There was no `update`.
        """
        there, back = (self._greatest(distances) for distances in self._distances())
        return there if self.directed else max(there, back)

    def _greatest(self, distances: np.ndarray) -> float:
        if not len(distances):
            return float("inf")
        return float(np.percentile(distances, self.percentile) if self.percentile else distances.max())


class MeanSurfaceDistance(_SurfaceDistance):
    """The mean distance from the edge points of the predicted mask to the edge of the true one.

    Args:
        symmetric: Whether the mean of both ways is taken.
        distance_metric: "euclidean", "chessboard" (the greatest difference of coordinates) or "taxicab" (their sum).

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `distance_metric` is unknown.

    Example:
        >>> MeanSurfaceDistance()([[1, 0, 1, 0]], [[0, 0, 0, 1]], 1)
        2.0

    Source: MindSpore, `mindspore.train.MeanSurfaceDistance`.
    """

    def __init__(self, symmetric: bool = False, distance_metric: _Kind = "euclidean") -> None:
        super().__init__(distance_metric)
        self.symmetric = checks.boolean(type(self).__name__, "symmetric", symmetric)

    def eval(self) -> float:
        """Return the distance between the last masks; infinite where one has no edge.

        Raises:
            RuntimeError: There was no `update`.
        """
        ways = self._distances() if self.symmetric else self._distances()[:1]
        if not all(len(way) for way in ways):
            return float("inf")
        return self._joined(list(ways))

    def _joined(self, ways: list[np.ndarray]) -> float:
        return float(np.mean([way.mean() for way in ways]))


class RootMeanSquareDistance(MeanSurfaceDistance):
    """The root of the mean squared distance from the edge points of the predicted mask to the edge of the true one.

    Args:
        symmetric: Whether the mean square of both ways is taken.
        distance_metric: "euclidean", "chessboard" (the greatest difference of coordinates) or "taxicab" (their sum).

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `distance_metric` is unknown.

    Example:
        >>> RootMeanSquareDistance()([[1, 1, 0, 0]], [[1, 0, 0, 0]], 1) ** 2
        0.5000000000000001

    Source: MindSpore, `mindspore.train.RootMeanSquareDistance`, whose result is not rooted where `symmetric` is False.
    """

    def _joined(self, ways: list[np.ndarray]) -> float:
        return float(np.sqrt(np.mean([(way**2).mean() for way in ways])))


def _edges(mask: np.ndarray) -> np.ndarray:
    """Return the coordinates of the points of a mask that have a neighbor outside it."""
    padded = np.pad(mask, 1)
    inside = padded.copy()
    for axis in range(mask.ndim):
        inside &= np.roll(padded, 1, axis) & np.roll(padded, -1, axis)
    core = inside[(slice(1, -1),) * mask.ndim]
    return np.argwhere(mask & ~core)
