"""`StepRecords` and `EpochRecords`: the results of steps, read from the device when they are first accessed."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.typing import DTypeLike, TensorLike, Tree

_LOSS, _OVERFLOW, _LOSS_SCALE, _ROWS = "loss", "overflow", "loss_scale", "rows"
_LEARNING_RATE, _GRAD_NORM, _NON_FINITE = "learning_rate", "grad_norm", "non_finite_counts"
# Prefix of the columns with the running values of metrics.
_METRIC: Final = "metric "
_NAMES: Final = (_LOSS, _OVERFLOW, _LOSS_SCALE, _ROWS, _LEARNING_RATE, _GRAD_NORM)
# Number of latest steps of an epoch whose records stay on the device; older ones are compacted, as many at a time. The
# device has finished steps that old, so that reading them does not wait.
RECENT_STEPS: Final = 1024


class StepRecords:
    """The results of the steps of one call, oldest first.

    Args:
        loss: A tensor of shape (n, ...) or a list of n tensors; the mean is taken of a loss that is not a scalar.
        overflow: Likewise, bool; None without loss scaling.
        loss_scale: Likewise, float32; None without loss scaling.
        rows: Likewise, int: rows of each step's batch; None if all are equal.
        learning_rate: Likewise, float32; None if unknown.
        grad_norm: Likewise, float32; None if unknown.
        metrics: Likewise, the running value of each metric after each step, by name.
        gradients: Tensors of shape (n, ...), the gradients of each weight by name; None if no callback needs them.
        predictions: Likewise, the network's outputs in any structure; None if no callback needs them.
        non_finite_counts: A tensor of shape (n, weights), int32; None if no callback has an overflow hook.
        stacked: Whether the last three have an axis of steps, which those of a single step may lack.

    Example: ``StepRecords([np.float32(2.0)]).loss``.
    """

    def __init__(
        self, loss: TensorLike, overflow: TensorLike | None = None, loss_scale: TensorLike | None = None, *,
        rows: TensorLike | None = None, learning_rate: TensorLike | None = None, grad_norm: TensorLike | None = None,
        metrics: Mapping[str, TensorLike] | None = None, gradients: Mapping[str, TensorLike] | None = None,
        predictions: Tree | None = None, non_finite_counts: TensorLike | None = None, stacked: bool = True,
    ) -> None:
        self._count = len(loss)
        self._columns: dict[str, Any] = {
            _LOSS: loss, _OVERFLOW: overflow, _LOSS_SCALE: loss_scale, _ROWS: rows,
            _LEARNING_RATE: learning_rate, _GRAD_NORM: grad_norm,
        }
        for name, values in (metrics or {}).items():
            self._columns[_METRIC + name] = values
        tensors = {"gradients": gradients, "predictions": predictions, _NON_FINITE: non_finite_counts}
        self._tensors = {name: values for name, values in tensors.items() if values is not None}
        self._stacked = stacked

    def __len__(self) -> int:
        return self._count

    def each(self) -> list[StepRecords]:
        """Return the records of each step; a column is read from the device once for all of them."""
        return [_SingleStep(self, index) for index in range(len(self))]

    def _column(self, name: str) -> np.ndarray | None:
        """Return a column as an array, which is read from the device once; None if there is no such column."""
        values = self._columns[name]
        if values is None or isinstance(values, np.ndarray):
            return values
        array = self._columns[name] = _as_array(values)
        return array

    def _filled(self, name: str, default: float, dtype: DTypeLike) -> np.ndarray:
        """Return a column of one number per step in a dtype, filled with the default if there is no such column."""
        values = self._column(name)
        if values is None:
            return np.full(len(self), default, dtype)
        return values.reshape(-1).astype(dtype, copy=False)

    @property
    def loss(self) -> np.ndarray:
        """The unscaled losses, float32 (n,)."""
        values = self._column(_LOSS)
        if values.ndim == 1:  # type: ignore[union-attr]
            return values.astype(np.float32, copy=False)  # type: ignore[union-attr]
        return values.reshape(len(values), -1).mean(axis=1, dtype=np.float32)  # type: ignore

    @property
    def overflow(self) -> np.ndarray:
        """Whether each step overflowed, bool (n,); all False without loss scaling."""
        return self._filled(_OVERFLOW, False, bool)

    @property
    def loss_scale(self) -> np.ndarray:
        """The scale that each step used, float32 (n,); all 1 without loss scaling."""
        return self._filled(_LOSS_SCALE, 1, np.float32)

    @property
    def learning_rate(self) -> np.ndarray:
        """The learning rate of each step, float32 (n,), of the optimizer's default group; nan if there is none."""
        return self._filled(_LEARNING_RATE, np.nan, np.float32)

    @property
    def grad_norm(self) -> np.ndarray:
        """The L2 norm of all gradients of each step as one vector, float32 (n,).

        The gradients are the optimizer's inputs: unscaled, before its clipping. The norm is not finite if the step
        overflowed, and nan if a train cell that overrides `construct` ran it.
        """
        return self._filled(_GRAD_NORM, np.nan, np.float32)

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """The running value of each of Keras's metrics after each step, from the start of the epoch, (n,) by name.

        A skipped step does not change it. A metric that returns an array has shape (n, ...).
        """
        return {name: self._column(_METRIC + name) for name in self._metric_names()}  # type: ignore[misc]

    def _metric_names(self) -> list[str]:
        return [name.removeprefix(_METRIC) for name in self._columns if name.startswith(_METRIC)]

    @property
    def gradients(self) -> dict[str, np.ndarray]:
        """The gradient of each weight in each step, float32 (n, ...) by the weight's name; `grad_norm` is their norm.

        Available in step hooks alone, if a callback of the run has ``needs = {"gradients"}``.
        """
        return self._needed("gradients")  # type: ignore[no-any-return]

    @property
    def predictions(self) -> Tree | None:
        """The network's outputs in each step, in their structure, floats in float32 (n, ...).

        Available in step hooks alone, if a callback of the run has ``needs = {"predictions"}``.
        """
        return self._needed("predictions")

    @property
    def non_finite_counts(self) -> np.ndarray | None:
        """The number of values that are not finite in the gradient of each weight in each step, int32 (n, weights).

        None if unknown: no callback of the run has an overflow hook, or the train step is the user's own.
        """
        return self._tensor_arrays(_NON_FINITE)  # type: ignore[no-any-return]

    def _needed(self, name: str) -> Any:
        arrays = self._tensor_arrays(name)
        if arrays is None:
            raise AttributeError(
                f"step_results.{name}: a callback of the run must ask for them, and they are kept for hooks of steps "
                f'alone. Write needs = {{"{name}"}} in its class.'
            )
        return arrays

    def _tensor_arrays(self, name: str) -> Tree:
        """Return gradients, predictions or counts as arrays; None if no callback needs them."""
        tensors = self._tensors.get(name)
        if tensors is None:
            return None
        arrays = keras.tree.map_structure(backend.to_numpy, tensors)
        return arrays if self._stacked else keras.tree.map_structure(lambda values: values[None], arrays)

    def scalars(self) -> StepRecords:
        """Return the same records without gradients and predictions, which take much memory."""
        if not self._tensors:
            return self
        records = copy.copy(self)
        records._tensors = {}
        return records

    @property
    def rows(self) -> np.ndarray:
        """The number of rows of each step's batch, int (n,); all 1 if they are equal."""
        return self._filled(_ROWS, 1, int)

    @property
    def scaled(self) -> bool:
        """Whether the steps ran with a loss scaling that can skip steps."""
        return self._columns[_OVERFLOW] is not None

    def compacted(self) -> StepRecords:
        """Return the same records as arrays alone; a constant column takes no memory."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in _NAMES}
        if not self.scaled:
            columns |= {_OVERFLOW: None, _LOSS_SCALE: None}
        metrics = {name: _shrunk(column) for name, column in self.metrics.items()}
        columns = {name: _shrunk(column) for name, column in columns.items()}
        return StepRecords(**columns, metrics=metrics)

    @staticmethod
    def joined(parts: Iterable[StepRecords]) -> StepRecords:
        """Return the records of several calls as one."""
        non_empty = [part for part in parts if len(part)]
        return _Joined(non_empty) if non_empty else StepRecords(np.zeros(0, np.float32))


def _as_array(values: TensorLike) -> np.ndarray:
    if not isinstance(values, list):
        return backend.to_numpy(values)
    # Most lists are those of a single step.
    return backend.to_numpy(values[0])[None] if len(values) == 1 else np.stack([*map(backend.to_numpy, values)])


def _shrunk(column: np.ndarray | None) -> np.ndarray | None:
    """Return a column whose values are equal as a broadcast view of the first; any other column itself."""
    if column is None:
        return None
    view = np.broadcast_to(column[0].copy(), column.shape)
    return view if np.array_equal(column, view, equal_nan=True) else column


class _SingleStep(StepRecords):
    """One step of the records of a call."""

    def __init__(self, records: StepRecords, index: int) -> None:
        self._records = records
        self._count = 1
        self._slice = slice(index, index + 1)

    def _column(self, name: str) -> np.ndarray | None:
        values = self._records._column(name)
        return None if values is None else values[self._slice]

    def _tensor_arrays(self, name: str) -> Tree:
        arrays = self._records._tensor_arrays(name)
        return None if arrays is None else keras.tree.map_structure(lambda values: values[self._slice], arrays)

    def scalars(self) -> StepRecords:
        return _SingleStep(self._records.scalars(), self._slice.start)

    def _metric_names(self) -> list[str]:
        return self._records._metric_names()

    @property
    def scaled(self) -> bool:
        return self._records.scaled


class _Joined(StepRecords):
    """The records of several calls; a column is read when it is first accessed."""

    def __init__(self, parts: list[StepRecords]) -> None:
        self._parts = parts
        self._count = sum(map(len, parts))
        self._columns = {}

    def _column(self, name: str) -> np.ndarray | None:
        if name not in self._columns:
            metric, parts = name.startswith(_METRIC), self._parts
            if not metric and all(part._column(name) is None for part in parts):
                self._columns[name] = None  # Filled once, not part by part.
            else:
                columns: list[Any] = [part._column(name) if metric else getattr(part, name) for part in parts]
                self._columns[name] = np.concatenate(columns)
        return self._columns[name]  # type: ignore[no-any-return]

    def _tensor_arrays(self, name: str) -> Tree:
        arrays = [part._tensor_arrays(name) for part in self._parts]
        if any(part is None for part in arrays):
            return None
        return keras.tree.map_structure(lambda *parts: np.concatenate(parts), *arrays)

    def scalars(self) -> StepRecords:
        return _Joined([part.scalars() for part in self._parts])

    def _metric_names(self) -> list[str]:
        return self._parts[0]._metric_names()

    @property
    def scaled(self) -> bool:
        return self._parts[0].scaled


class EpochRecords:
    """Collects the records of an epoch, call by call; all but the latest are kept as compact arrays."""

    def __init__(self) -> None:
        self._compacted: list[StepRecords] = []
        self._recent: list[StepRecords] = []
        self._recent_steps = 0

    def add(self, records: StepRecords) -> None:
        self._recent.append(records.scalars())
        self._recent_steps += len(records)
        if self._recent_steps >= 2 * RECENT_STEPS:
            self._compact()

    def _compact(self) -> None:
        count = steps = 0
        while self._recent_steps - steps > RECENT_STEPS:
            steps += len(self._recent[count])
            count += 1
        self._compacted.append(StepRecords.joined(self._recent[:count]).compacted())
        del self._recent[:count]
        self._recent_steps -= steps

    def joined(self) -> StepRecords:
        return StepRecords.joined([*self._compacted, *self._recent])
