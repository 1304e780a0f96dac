"""`StepRecords`: what each step of a call reports, read from the device when somebody looks; those of an epoch."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend

_LOSS, _OVERFLOW, _LOSS_SCALE, _ROWS = "loss", "overflow", "loss_scale", "rows"
_LEARNING_RATE, _GRAD_NORM, _NON_FINITE = "learning_rate", "grad_norm", "non_finite_counts"
# What stands before the name of a metric where its running values are a column.
_METRIC: Final = "metric "
_NAMES: Final = (_LOSS, _OVERFLOW, _LOSS_SCALE, _ROWS, _LEARNING_RATE, _GRAD_NORM)
# The steps of a long epoch that are kept as they came; older ones are compacted, as many at a time. The device has
# finished steps that lie so far back, and need not be waited for.
RECENT_STEPS: Final = 1024


class StepRecords:
    """The results of the steps of one call, oldest first.

    Args:
        loss: A tensor of shape (n, ...) or a list of n tensors; a loss that is not a scalar counts by its mean.
        overflow: Likewise, bool; None without loss scaling.
        loss_scale: Likewise, float32; None without loss scaling.
        rows: Likewise, int: rows of each step's batch; None where all have as many.
        learning_rate: Likewise, float32; None where it is not known.
        grad_norm: Likewise, float32; None where it is not known.
        metrics: Likewise, the running value of each metric after each step, by name.
        gradients: Tensors of shape (n, ...), the gradients of each weight by name; None where no callback asked.
        predictions: Likewise, the network's outputs in any structure; None where no callback asked.
        non_finite_counts: A tensor of shape (n, weights), int32; None where no callback hears of overflows.
        stacked: Whether the last three have an axis of steps, which those of a single step may lack.

    Example:
        >>> StepRecords([np.float32(2.0)]).loss.tolist()
        [2.0]
    """

    def __init__(
        self,
        loss: Any,
        overflow: Any = None,
        loss_scale: Any = None,
        *,
        rows: Any = None,
        learning_rate: Any = None,
        grad_norm: Any = None,
        metrics: Mapping[str, Any] | None = None,
        gradients: Mapping[str, Any] | None = None,
        predictions: Any = None,
        non_finite_counts: Any = None,
        stacked: bool = True,
    ) -> None:
        self._count = len(loss)
        self._columns: dict[str, Any] = {
            _LOSS: loss, _OVERFLOW: overflow, _LOSS_SCALE: loss_scale, _ROWS: rows,
            _LEARNING_RATE: learning_rate, _GRAD_NORM: grad_norm,
        }
        for name, values in (metrics or {}).items():
            self._columns[_METRIC + name] = values
        self._tensors = {"gradients": gradients, "predictions": predictions, _NON_FINITE: non_finite_counts}
        self._stacked = stacked

    def __len__(self) -> int:
        return self._count

    def each(self) -> list[StepRecords]:
        """Return the records of each step; what one of them reads from the device, all have."""
        return [_OneOfMany(self, index) for index in range(len(self))]

    def _column(self, name: str) -> np.ndarray | None:
        """Return a column as an array, which is read from the device once; None where there is none."""
        values = self._columns[name]
        if values is None or isinstance(values, np.ndarray):
            return values
        found = self._columns[name] = _as_array(values)
        return found

    def _filled(self, name: str, default: Any, dtype: Any) -> np.ndarray:
        """Return a column of one number a step, of a format; of the default where there is none."""
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
        """The learning rate of each step, float32 (n,), of the optimizer's default group; nan where there is none."""
        return self._filled(_LEARNING_RATE, np.nan, np.float32)

    @property
    def grad_norm(self) -> np.ndarray:
        """The L2 norm of all gradients of each step as one vector, float32 (n,).

        The gradients are those that the optimizer gets, unscaled and before its clipping. The norm is not finite where
        the step overflowed, and nan where a train cell with a `construct` of its own ran it.
        """
        return self._filled(_GRAD_NORM, np.nan, np.float32)

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """The running value of each of Keras's metrics after each step, from the start of the epoch, (n,) by name.

        A skipped step leaves it as it was; of a metric that gives an array the shape is (n, ...).
        """
        return {name: self._column(_METRIC + name) for name in self._metric_names()}  # type: ignore[misc]

    def _metric_names(self) -> list[str]:
        return [name.removeprefix(_METRIC) for name in self._columns if name.startswith(_METRIC)]

    @property
    def gradients(self) -> dict[str, np.ndarray]:
        """The gradient of each weight in each step, float32 (n, ...) by the weight's name.

        They are those that `grad_norm` is of. Only in hooks of steps, where a callback of the run has
        ``needs = {"gradients"}``.
        """
        return self._needed("gradients")  # type: ignore[no-any-return]

    @property
    def predictions(self) -> Any:
        """The network's outputs in each step, in their structure, floats in float32 (n, ...).

        Only in hooks of steps, where a callback of the run has ``needs = {"predictions"}``.
        """
        return self._needed("predictions")

    @property
    def non_finite_counts(self) -> np.ndarray | None:
        """How many values of the gradient of each weight were not finite in each step, int32 (n, weights).

        None where it is not known: no callback of the run hears of overflows, or the step is of the user's own making.
        """
        return self._of_steps(_NON_FINITE)  # type: ignore[no-any-return]

    def _needed(self, name: str) -> Any:
        found = self._of_steps(name)
        if found is None:
            raise AttributeError(
                f"step_results.{name}: a callback of the run must ask for them, and they are kept for hooks of steps "
                f'alone. Write needs = {{"{name}"}} in its class.'
            )
        return found

    def _of_steps(self, name: str) -> Any:
        """Return tensors that somebody asked for, as arrays; None where nobody did."""
        found = self._tensors[name]
        if found is None:
            return None
        arrays = keras.tree.map_structure(backend.to_numpy, found)
        return arrays if self._stacked else keras.tree.map_structure(lambda values: values[None], arrays)

    def scalars(self) -> StepRecords:
        """Return the same records without tensors that somebody asked for, which take much memory."""
        if all(value is None for value in self._tensors.values()):
            return self
        found = copy.copy(self)
        found._tensors = dict.fromkeys(self._tensors)
        return found

    @property
    def rows(self) -> np.ndarray:
        """By how many rows each step counts, int (n,); all 1 where all have as many."""
        return self._filled(_ROWS, 1, int)

    @property
    def scaled(self) -> bool:
        """Whether the steps ran with loss scaling that can skip."""
        return self._columns[_OVERFLOW] is not None

    def compacted(self) -> StepRecords:
        """Return the same records as arrays alone; a column of one value takes no memory."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in _NAMES}
        if not self.scaled:
            columns |= {_OVERFLOW: None, _LOSS_SCALE: None}
        metrics = {name: _as_one_value(column) for name, column in self.metrics.items()}
        columns = {name: _as_one_value(column) for name, column in columns.items()}
        return StepRecords(**columns, metrics=metrics)

    @staticmethod
    def joined(parts: Iterable[StepRecords]) -> StepRecords:
        """Return the records of several calls as one."""
        found = [part for part in parts if len(part)]
        return _Joined(found) if found else StepRecords(np.zeros(0, np.float32))


def _as_array(values: Any) -> np.ndarray:
    """Return a column as an array."""
    if not isinstance(values, list):
        return backend.to_numpy(values)
    # Most lists are those of a single step.
    return backend.to_numpy(values[0])[None] if len(values) == 1 else np.stack([*map(backend.to_numpy, values)])


def _as_one_value(column: np.ndarray | None) -> np.ndarray | None:
    """Return a column whose values are equal as a view of the first; another one as it is."""
    if column is None:
        return None
    one = np.broadcast_to(column[0].copy(), column.shape)
    return one if np.array_equal(column, one, equal_nan=True) else column


class _OneOfMany(StepRecords):
    """One step of the records of a call."""

    def __init__(self, whole: StepRecords, index: int) -> None:
        self._whole = whole
        self._count = 1
        self._place = slice(index, index + 1)

    def _column(self, name: str) -> np.ndarray | None:
        values = self._whole._column(name)
        return None if values is None else values[self._place]

    def _of_steps(self, name: str) -> Any:
        found = self._whole._of_steps(name)
        return None if found is None else keras.tree.map_structure(lambda values: values[self._place], found)

    def scalars(self) -> StepRecords:
        return _OneOfMany(self._whole.scalars(), self._place.start)

    def _metric_names(self) -> list[str]:
        return self._whole._metric_names()

    @property
    def scaled(self) -> bool:
        return self._whole.scaled


class _Joined(StepRecords):
    """The records of several calls, of which a column is read when somebody looks at it."""

    def __init__(self, parts: list[StepRecords]) -> None:
        self._parts = parts
        self._count = sum(map(len, parts))
        self._known: dict[str, np.ndarray] = {}

    def _column(self, name: str) -> np.ndarray | None:
        if name not in self._known:
            known = (part._column(name) if name.startswith(_METRIC) else getattr(part, name) for part in self._parts)
            self._known[name] = np.concatenate(list(known))
        return self._known[name]

    def _of_steps(self, name: str) -> Any:
        found = [part._of_steps(name) for part in self._parts]
        if any(part is None for part in found):
            return None
        return keras.tree.map_structure(lambda *parts: np.concatenate(parts), *found)

    def scalars(self) -> StepRecords:
        return _Joined([part.scalars() for part in self._parts])

    def _metric_names(self) -> list[str]:
        return self._parts[0]._metric_names()

    @property
    def scaled(self) -> bool:
        return self._parts[0].scaled


class EpochRecords:
    """The records of an epoch as its calls come in; of all but the latest, arrays alone are kept.

    Example:
        >>> records = EpochRecords()
        >>> for loss in range(3):
        ...     records.add(StepRecords([np.float32(loss)]))
        >>> records.joined().loss.tolist()
        [0.0, 1.0, 2.0]
    """

    def __init__(self) -> None:
        self._compacted: list[StepRecords] = []
        self._recent: list[StepRecords] = []
        self._recent_steps = 0

    def add(self, records: StepRecords) -> None:
        """Take in the records of a call."""
        self._recent.append(records.scalars())
        self._recent_steps += len(records)
        if self._recent_steps >= 2 * RECENT_STEPS:
            self._compact()

    def _compact(self) -> None:
        """Compact the oldest of the recent records."""
        count = steps = 0
        while self._recent_steps - steps > RECENT_STEPS:
            steps += len(self._recent[count])
            count += 1
        self._compacted.append(StepRecords.joined(self._recent[:count]).compacted())
        del self._recent[:count]
        self._recent_steps -= steps

    def joined(self) -> StepRecords:
        """Return the records of all calls as one."""
        return StepRecords.joined([*self._compacted, *self._recent])
