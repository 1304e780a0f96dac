"""`LostUpdates`: warns once of weights that do not move in half precision, and would in float32."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Final

import keras
import numpy as np

from mixtrain import backend, boundary, checks
from mixtrain.diagnostics.deviation import drawing_in_float32
from mixtrain.diagnostics.layer_calls import is_float_tensor, parameters_by_path
from mixtrain.diagnostics.ranges import TensorRanges
from mixtrain.dtype import HALF_DTYPES, as_dtype, float16, float_format
from mixtrain.network.unique_names import variable_names
from mixtrain.precision.master_weights import (
    LowPrecisionUpdate,
    full_value,
    stored_in_float32,
    update_of,
    updated_as,
)
from mixtrain.step.train_step import TrainStep
from mixtrain.train.columns import network_inputs
from mixtrain.train.first_scale import FIRST_MARGIN
from mixtrain.train.networks import Networks
from mixtrain.train.run_context import RunContext
from mixtrain.train.stepper import Stepper
from mixtrain.train.trial import largest_exponent
from mixtrain.train.watch import FIRST_ONLY, Watch
from mixtrain.typing import Batch

_log = logging.getLogger("mixtrain")
# Weights are compared with those before the first step after as many steps: a layer that starts at zero, or a rate that
# does, has moved by then. Of fewer updates, as where steps overflow, the first epoch must end.
_LOOK_AFTER: Final = 8
_MIN_UPDATES: Final = 4
# Share of the weights of a layer, of those that float32 moves, from which it is told.
_MANY: Final = 0.5
# The largest weights are not looked at if all together take more memory than this.
_MAX_BYTES: Final = 2**26


class _Weights:
    """The weights of a step that are looked at, the smallest first; their values are shown as one vector.

    `step`: The step. `paths`: The path of the layer that owns each weight.
    """

    def __init__(self, networks: Networks) -> None:
        self.step: TrainStep = networks.step  # type: ignore[assignment]
        owners = {id(each): path for path, group in parameters_by_path(networks.examined).items() for each in group}
        names = dict(zip(map(id, self.step.weights), variable_names(self.step.weights), strict=True))
        ordered = sorted(self.step.weights, key=lambda weight: math.prod(weight.shape))
        ends = 4 * np.cumsum([math.prod(weight.shape) for weight in ordered])
        self._weights = [
            weight for weight, end in zip(ordered, ends, strict=True)
            if end <= _MAX_BYTES and not backend.takes_next_value(weight)
        ]
        self._names = [names[id(weight)] for weight in self._weights]
        self.paths = [owners.get(id(weight), "") for weight in self._weights]

    def values(self) -> np.ndarray:
        """Return copies of all values, float32."""
        arrays = [backend.to_numpy(full_value(weight)).astype(np.float32) for weight in self._weights]
        return np.concatenate([np.ravel(array) for array in arrays] or [np.zeros(0, np.float32)])

    def of_gradients(self, gradients: dict[str, np.ndarray]) -> np.ndarray:
        """Return the gradients of one step; that of a weight which has none is 0."""
        empty = (np.zeros(weight.shape, np.float32) for weight in self._weights)
        return np.concatenate([np.ravel(gradients.get(*pair)) for pair in zip(self._names, empty, strict=True)])

    def each(self, values: np.ndarray) -> list[np.ndarray]:
        """Return a vector as one array for each weight."""
        ends = np.cumsum([math.prod(weight.shape) for weight in self._weights])[:-1]
        parts = np.split(values, ends)
        return [part.reshape(weight.shape) for part, weight in zip(parts, self._weights, strict=True)]

    def number(self, paths: Sequence[str], mask: np.ndarray) -> int:
        """Return how many elements of a mask are set in the weights of some layers."""
        return int(self.total(paths, mask, mask))

    def total(self, paths: Sequence[str], mask: np.ndarray, values: np.ndarray) -> float:
        """Return the sum of the values where a mask is set in the weights of some layers."""
        parts = zip(self.paths, self.each(np.where(mask, values, 0)), strict=True)
        return sum(float(part.sum()) for path, part in parts if path in paths)

    def half_units(self) -> np.ndarray:
        """Return half a unit in the last place of each value that is rounded to nearest in half; 0 of all others."""
        units = []
        for weight in self._weights:
            size, dtype = backend.to_numpy(weight).astype(np.float32), as_dtype(weight.dtype)
            nearest = update_of(weight, self.step.low_precision_update or "nearest") == "nearest"
            epsilon = float_format(dtype.name).epsilon if nearest else 0.0
            units.append(np.ravel(np.ldexp(epsilon / 2, np.frexp(size)[1] - 1)))
        return np.concatenate(units)


class LostUpdates(Watch):
    """Looks once whether weights move, in the first epoch.

    Weights that stay where they are have many reasons: units that are off, rows of an embedding that no batch reads, a
    rate of 0. So it only says what steps on one batch have shown that were then undone: float32 moves the weights, the
    network as it is does not, and what is advised moves them.

    Args:
        networks: The networks of the Model.
    """

    def __init__(self, networks: Networks) -> None:
        super().__init__(networks)
        self.done = False
        self._weights: _Weights | None = None

    @property
    def active(self) -> bool:
        """Whether the weights were not looked at yet, and layers compute in half precision."""
        return not self.done and super().active

    def on_train_begin(self, run_context: RunContext) -> None:
        """Forget the weights of an interrupted run."""
        self._weights = None
        super().on_train_begin(run_context)

    def on_train_sample(self, run_context: RunContext) -> None:
        """Keep the weights before the first step; look at them some steps later."""
        arguments = run_context.original_args()
        batch = boundary.to_backend_tensors(arguments.train_dataset_element)
        if self._weights is None:
            self._weights = _Weights(self._networks)
            self._start, self._first, self._rate = self._weights.values(), self._count(), self._learning_rate()
            # A call of sink feed shows no batch but its first.
            self._batch = batch if arguments.dataset_sink_mode else None
            self.sample_every = FIRST_ONLY if arguments.dataset_sink_mode else _LOOK_AFTER
        elif self.done or self._count() - self._first < _MIN_UPDATES or not self._look(batch):
            self.sample_every *= 2  # type: ignore[operator]

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Look at them now if the epoch was shorter, and release them."""
        if self._weights is None:
            return
        batch = run_context.original_args().get("train_dataset_element") if self._batch is None else self._batch
        if not self.done and batch is not None and self._count() > self._first:
            self._look(boundary.to_backend_tensors(batch))
        self.done, self._weights, self._batch, self.sample_every = True, None, None, FIRST_ONLY
        del self._start

    def _count(self) -> int:
        return int(backend.to_numpy(self._networks.step.driver.iterations))  # type: ignore[union-attr]

    def _learning_rate(self) -> float:
        rates = self._networks.step.rate().values()  # type: ignore[union-attr]
        return float(backend.to_numpy(next(iter(rates)))) if rates else math.inf

    def _look(self, batch: Batch) -> bool:
        """Look which weights have moved, and find out why if many have not; return False if a later look is needed."""
        weights: _Weights = self._weights  # type: ignore[assignment]
        still = weights.values() == self._start
        if any(map(_is_stuck, weights.each(still))):
            updates = self._count() - self._first
            _log.info("train: weights do not move; steps in half and in float32 are compiled, and undone, to see why")
            try:
                trials = _Trials(self._networks, weights, batch, f"{updates:,} update{'s' if updates > 1 else ''}")
                text = trials.explained(still, rising=self._learning_rate() > self._rate)
            except Exception as error:  # A step in another precision may fail where the user's own does not.
                _log.info("train: weights that do not move are not explained (%s)", str(error).partition("\n")[0])
                text = ""
            if text is None:
                return False
            if text:
                self.tell(text)
        self.done = True
        return True


def _is_stuck(still: np.ndarray) -> bool:
    """Whether nothing of a weight has moved, or much of the rows and columns that have."""
    moved = ~still
    if not moved.any():
        return moved.size > 0
    # Units that are off, and rows that no batch reads, are whole rows or columns.
    table = moved.reshape(-1, moved.shape[-1] if moved.ndim > 1 else 1)
    return bool(moved.sum() < (1 - _MANY) * table.any(axis=0).sum() * table.any(axis=1).sum())


# ---- the verdict ----------------------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class _Moves:
    """How a step changes the weights, and its gradients, which are unscaled."""

    change: np.ndarray
    gradients: np.ndarray


class _Trials:
    """Steps on one batch from the weights at hand, in the plan's precision and others; each is undone."""

    def __init__(self, networks: Networks, weights: _Weights, batch: Batch, updates: str) -> None:
        self._networks, self._weights, self._batch, self._updates = networks, weights, batch, updates
        self._scale = networks.loss_scale
        self._step = weights.step.for_trials(self._scale)

    def explained(self, still: np.ndarray, *, rising: bool) -> str | None:
        """Return the sentence about weights that have not moved; "" if float32 would not have moved them either.

        `still`: Which values have not moved. `rising`: Whether the learning rate rises, so that larger updates come.

        Returns: None if the step overflows, so that nothing is known yet.
        """
        half, plain = self._moves(), self._moves([""], stored=True)
        if half is None or plain is None:
            return None
        moved = plain.change != 0
        lost = moved & (half.change == 0) & still
        flushed = lost & (half.gradients == 0)
        paths = self._layers_of(flushed, moved)
        if paths:
            at = f" at loss scale {self._scale:.10g}" if self._networks.scaled else ""
            return (
                f"{self._half_of(paths)} flushes {self._share(paths, flushed, moved):.0%} of the gradients of "
                f"{_names(paths)} to 0{at}: {self._have_not_moved(paths, flushed)}. {self._cure(paths, moved)}"
            )
        units = self._weights.half_units()
        rounded = lost & (units > 0) & ~flushed
        paths = [] if rising else self._layers_of(rounded, moved)
        kept = self._moves(stored=True) if paths else None
        if kept is None or self._share(paths, moved & (kept.change == 0), moved) > _MANY:
            return ""
        small = self._weights.number(paths, rounded & (np.abs(kept.change) <= units))
        below = small > _MANY * self._weights.number(paths, rounded)
        reason = "smaller than half a unit in the last place" if below else "the optimizer computes in it too"
        return (
            f"{self._share(paths, rounded, moved):.0%} of the updates of {_names(paths)} are lost in "
            f"{self._half_of(paths)}, which their weights are stored in ({reason}): "
            f"{self._have_not_moved(paths, rounded)}. {self._storage_cure(paths, rounded, kept)}"
        )

    def _storage_cure(self, paths: Sequence[str], lost: np.ndarray, kept: _Moves) -> str:
        """Return the line for weights whose updates are lost: the first choice that moves them as float32 does."""
        for update in ("stochastic", "compensated"):
            tried = self._moves(update=update)
            # Stochastic rounding moves a few of them far: only the sum over many, if they are, is that of float32.
            along = 0.0 if tried is None else self._weights.total(paths, lost, tried.change * np.sign(kept.change))
            if along > _MANY * self._weights.total(paths, lost, np.abs(kept.change)):
                return f'Write low_precision_update="{update}" in Model.'
        return (
            'Store them in float32: dtype="mixed_bfloat16" in Keras layers, or amp_level="O2" for a network in float32.'
        )

    def _have_not_moved(self, paths: Sequence[str], lost: np.ndarray) -> str:
        number = self._weights.number(paths, lost)
        return f"{number:,} weights have not moved in {self._updates} that float32 would have moved"

    def _cure(self, paths: Sequence[str], moved: np.ndarray) -> str:
        """Return the first line that helps, found by trying: a larger loss scale, or layers in float32."""
        scale = self._larger_scale()
        if scale is not None and self._cures(paths, moved, self._moves(scale=scale)):
            return f"Write loss_scale_manager=mixtrain.DynamicLossScaleManager({scale:.10g})."
        chosen = paths if self._cures(paths, moved, self._moves(paths)) else [""]
        keep = f"keep {_names(chosen)} in float32, to_float(mixtrain.float32)."
        for index, column in enumerate(network_inputs(self._networks, self._batch, training=True)):
            if _is_flushed(column, self._half_of(paths)):
                return f"The values of column {index} of the batch become 0 too: scale the inputs, or {keep}"
        return f"K{keep[1:]}"

    def _larger_scale(self) -> float | None:
        """Return a larger loss scale at which the batch does not overflow, as a run finds its first; None for none."""
        if self._step.scale is None or float16 not in self._networks.precision.plan.compute_dtypes():
            return None
        with self._trying() as stepper:
            exponent = largest_exponent(stepper, self._step.scale.variable, self._batch)
        scale = 0.0 if exponent is None else math.ldexp(1.0, exponent) / FIRST_MARGIN
        return scale if scale > self._scale else None

    def _cures(self, paths: Sequence[str], moved: np.ndarray, moves: _Moves | None) -> bool:
        return moves is not None and self._share(paths, moved & (moves.change == 0), moved) <= _MANY

    def _share(self, paths: Sequence[str], mask: np.ndarray, moved: np.ndarray) -> float:
        return self._weights.number(paths, mask) / max(self._weights.number(paths, moved), 1)

    def _layers_of(self, mask: np.ndarray, moved: np.ndarray) -> list[str]:
        """Return the layers with many of these values among those that float32 moves."""
        return [path for path in dict.fromkeys(self._weights.paths) if self._share([path], mask, moved) > _MANY]

    def _half_of(self, paths: Sequence[str]) -> str:
        """Return the half dtype that layers compute in."""
        plan = self._networks.precision.plan
        used = [row.compute_dtype for row in plan.rows if row.path in paths and row.compute_dtype in HALF_DTYPES]
        return (used[0] if used else plan.half).name

    # ---- steps --------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def _trying(self) -> Iterator[Stepper]:
        with drawing_in_float32(self._networks.examined), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # What tracing the user's network warns of was seen before.
            yield Stepper(self._step, needs=frozenset({"gradients"}))

    def _moves(
        self, float32: Sequence[str] = (), *, stored: bool = False, scale: float | None = None,
        update: LowPrecisionUpdate | None = None,
    ) -> _Moves | None:
        """Return what a step moves; None if it overflows.

        `float32`: The layers that compute in float32, "" for all. `stored`: Whether weights and the optimizer's
        variables are stored in float32. `scale`: The loss scale; None for that of the run. `update`: How updates of
        weights in half, in float32, are rounded; None for as they are.
        """
        step = self._step
        with contextlib.ExitStack() as stack:
            if float32:
                stack.enter_context(self._networks.keeping_float32(float32))
            if stored:
                stack.enter_context(stored_in_float32([*step.weights, *step.driver.state_variables()]))
            if update is not None:
                stack.enter_context(stored_in_float32(step.driver.state_variables()))
                stack.enter_context(updated_as(step.weights, update))
            stepper = stack.enter_context(self._trying())
            if step.scale is not None:
                step.scale.variable.assign(np.float32(self._scale if scale is None else scale))
            before = self._weights.values()
            records = stack.enter_context(stepper.tried(self._batch))
            if records.overflow[0]:
                return None
            return _Moves(self._weights.values() - before, self._weights.of_gradients(records.gradients))


def _is_flushed(column: Batch, half: str) -> bool:
    """Whether half precision has 0 for most of the values of a column that are not 0."""
    for part in filter(is_float_tensor, keras.tree.flatten(column)):
        ranges = TensorRanges.of("activation", "", part)
        counts = ranges.counts(half)
        if counts.flushed > _MANY * (ranges.size - counts.zero):
            return True
    return False


def _names(paths: Sequence[str]) -> str:
    return checks.join_names(path or "the network itself" for path in paths)
