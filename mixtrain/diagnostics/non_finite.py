"""Finding the first layer whose output, or its gradient, is not finite: a batch is replayed, tensor by tensor."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.finding import Finding, Kind
from mixtrain.diagnostics.layer_calls import is_float_tensor
from mixtrain.diagnostics.replay import CallInfo, GradientInfo, PassInfo, Replay, TensorInfo, tensor_info
from mixtrain.dtype import float_format

# Where a gradient is: its kind, the number of its call or the path of its layer, its number there.
_Place = tuple[Kind, Any, int]
# How many values of the gradients of parameters a step found not finite, by the path of the layer that owns them; None
# of one that it does not take.
Told = Mapping[str, Sequence[int | None]]


@dataclasses.dataclass(frozen=True)
class _Overflow:
    """A gradient that overflows: where it is, and how many of its values are not finite."""

    place: _Place
    count: int


def find_non_finite(
    replay: Replay,
    batch: Sequence[Any],
    loss_scale: float,
    *,
    factor: float = 2.0,
    minimum: float = 1.0,
    told: Told | None = None,
) -> Finding:
    """Run a batch forward and backward, and say where numbers first went wrong and what would help.

    Args:
        replay: Runs it. Where it can put the network into float32, the magnitude of an output is found that half
            precision does not hold.
        batch: The columns.
        loss_scale: What the loss is multiplied by before gradients are taken.
        factor: Smaller scales are this one divided by powers of it.
        minimum: The smallest of them.
        told: What the step itself knows of its gradients. With it a pass at the next smaller scale mostly tells all.
    """
    for number, column in enumerate(batch):
        for part in keras.tree.flatten(column):
            info = tensor_info(part)
            if not info.finite:
                return Finding("input", column=number, count=info.bad, size=info.size, forward_finite=False)
    # The next smaller scale is the likeliest to help: a scale has most often grown one time too many.
    next_scale = max(loss_scale / factor, minimum)
    found = smaller = replay.run(batch, next_scale, loss_scale / next_scale)
    culprit = _first_output(found.calls, replay, batch)
    if not found.loss.finite:
        if culprit is None:
            return Finding("loss", count=found.loss.bad, size=found.loss.size, forward_finite=False)
        return _described(culprit, found.calls, replay, batch)
    first = None
    if told is not None and next_scale != loss_scale:
        first = _foretold(smaller, loss_scale / next_scale, told)
    if first is None:
        found = smaller if next_scale == loss_scale else replay.run(batch, loss_scale)
        first = _first_gradient(found)
    finding = Finding("none")
    if first is not None:
        scale, helped = _scale_that_helps(replay, batch, loss_scale, smaller, factor, minimum)
        finding = _gradient_finding(found, first, helped, loss_scale, scale, culprit is None)
    # An output that is not finite and is masked out afterwards need not be what went wrong.
    if culprit is not None and finding.scale is None:
        return _described(culprit, found.calls, replay, batch)
    return finding


# ---- forward ------------------------------------------------------------------------------------------------------
def _all_finite(tensors: Sequence[TensorInfo | GradientInfo]) -> bool:
    return all(one.finite for one in tensors)


def _first_output(
    calls: Sequence[CallInfo], replay: Replay, batch: Sequence[Any]
) -> tuple[int, int | None] | None:
    """Return the first call, in the order in which calls end, whose inputs were finite and whose outputs are not.

    Returns:
        ``(number of the call, None)``; with the number of a column where it is that column which, cast to half, was not
        finite; or None where all outputs are finite.
    """
    wrong = [number for number, call in enumerate(calls) if not _all_finite(call.outputs)]
    tensors = None
    for number in wrong:
        if _all_finite(calls[number].inputs):
            return number, None
        # An input is not finite because the layer casts it, or because what is around the layer made it so.
        tensors = tensors or replay.tensors(batch)
        inputs = [value for value in tensors[number].inputs if not tensor_info(value).finite]
        columns = [_source(value, batch) for value in inputs]
        if None not in columns:
            return number, columns[0]
        earlier = [value for call in tensors[:number] for value in call.outputs if tensor_info(value).finite]
        if all(_source(value, earlier) is not None for value in inputs):
            return number, None
    return (wrong[0], None) if wrong else None


def _source(value: Any, finite: Sequence[Any]) -> int | None:
    """Return the number of the finite tensor that a cast has made into `value`; None where there is none."""
    for number, other in enumerate(finite):
        for part in keras.tree.flatten(other):
            if is_float_tensor(part) and part.dtype != value.dtype and tuple(part.shape) == tuple(value.shape):
                one, cast = (backend.to_numpy(keras.ops.cast(each, value.dtype)) for each in (value, part))
                if np.array_equal(cast, one, equal_nan=True):
                    return number
    return None


def _described(
    culprit: tuple[int, int | None], calls: Sequence[CallInfo], replay: Replay, batch: Sequence[Any]
) -> Finding:
    """Return the finding of a forward pass with the info of the tensor that is not finite."""
    number, column = culprit
    call = calls[number]
    if column is not None:
        info = next(one for one in call.inputs if not one.finite)
        parts = [tensor_info(part) for part in keras.tree.flatten(batch[column]) if is_float_tensor(part)]
        known = max(part.largest or 0.0 for part in parts)
        return Finding(
            "input", column=column, count=info.bad, size=info.size, dtype=info.dtype, largest=known,
            forward_finite=False,
        )
    place, info = next((place, one) for place, one in enumerate(call.outputs) if not one.finite)
    wide = None if info.dtype == "float32" else replay.in_float32(batch)
    largest = None
    if wide is not None and [one.path for one in wide] == [one.path for one in calls]:
        if place < len(wide[number].outputs):
            largest = wide[number].outputs[place].largest
    if largest is not None and not float_format(info.dtype).max < largest < math.inf:
        largest = None
    return Finding(
        "forward", call.path, count=info.bad, size=info.size, dtype=info.dtype, largest=largest, forward_finite=False
    )


# ---- backward -----------------------------------------------------------------------------------------------------
def _backwards(found: PassInfo) -> Iterator[tuple[_Place, GradientInfo]]:
    """Yield the gradients of a pass from the loss backwards, each with where it is."""
    left = collections.Counter(call.path for call in found.calls)
    of_parameters = dict(found.of_parameters)

    def owned(path: str) -> Iterator[tuple[_Place, GradientInfo]]:
        for place, gradient in enumerate(of_parameters.pop(path, ())):
            if gradient is not None:
                yield ("parameter", path, place), gradient

    for number in reversed(range(len(found.calls))):
        path = found.calls[number].path
        for place, gradient in enumerate(found.of_outputs[number]):
            if gradient is not None:
                yield ("gradient", number, place), gradient
        left[path] -= 1
        # A gradient of a parameter is the sum over all calls of its layer: looked at after the last of them.
        if left[path] == 0:
            yield from owned(path)
    # Parameters of layers that are not called themselves, whose holder reads them.
    for path in [*of_parameters]:
        yield from owned(path)


def _first_gradient(found: PassInfo) -> _Overflow | None:
    """Return the first gradient, from the loss backwards, that overflows."""
    return next((_Overflow(place, one.overflowing) for place, one in _backwards(found) if one.overflowing), None)


def _foretold(smaller: PassInfo, factor: float, told: Told) -> _Overflow | None:
    """Return the first gradient that overflowed in a step, as a pass at a smaller scale foretells it.

    Numbers grow by a power of two without another rounding, so that a pass knows which will be too large. What
    overflows between two tensors that it sees, as in a sum, shows in what the step tells of its parameters.

    Args:
        smaller: The pass.
        factor: By how much the scale of the step is larger.
        told: What the step tells.

    Returns:
        The gradient, or None where only a pass at the scale of the step can tell.
    """
    if math.frexp(factor)[0] != 0.5:
        return None
    first = None
    for place, gradient in _backwards(smaller):
        kind, path, number = place
        if first is not None and (kind, path) != first.place[:2]:
            break
        seen = told[path][number] if kind == "parameter" else None
        if seen is not None and bool(seen) != bool(gradient.overflowing):
            # All gradients of a layer's parameters are made of that of its output: where one is finite, so is it.
            alone = seen and first is None and 0 in told[path]
            return _Overflow(place, seen) if alone else None
        if first is None and gradient.overflowing:
            first = _Overflow(place, gradient.overflowing)
    return first


def _gradient_at(found: PassInfo, place: _Place) -> GradientInfo:
    kind, where, number = place
    group = found.of_outputs[where] if kind == "gradient" else found.of_parameters[where]
    return group[number]  # type: ignore[return-value]


def _gradient_finding(
    found: PassInfo,
    overflow: _Overflow,
    helped: PassInfo | None,
    loss_scale: float,
    scale: float,
    forward_finite: bool,
) -> Finding:
    """Return the finding of a gradient; its magnitude is that of the pass whose scale helped."""
    place = overflow.place
    kind, where, _ = place
    info = _gradient_at(found, place)
    path = found.calls[where].path if kind == "gradient" else where
    formats = [one.dtype for call in found.calls if call.path == path for one in call.outputs]
    largest = None if helped is None else (_gradient_at(helped, place).largest or 0.0) * (loss_scale / scale)
    # A parameter is read in half: its float32 gradient is a cast of one that was taken there.
    narrow = [name for name in formats if largest is not None and largest > float_format(name).max]
    return Finding(
        kind, path, count=overflow.count, size=info.size, dtype=narrow[0] if narrow else (formats or ["float32"])[0],
        largest=largest, forward_finite=forward_finite, scale=None if helped is None else scale,
    )


def _scale_that_helps(
    replay: Replay, batch: Sequence[Any], loss_scale: float, smaller: PassInfo, factor: float, minimum: float
) -> tuple[float, PassInfo | None]:
    """Return the largest smaller scale at which all gradients are finite, and its pass; None where there is none.

    Args:
        replay: Runs the batch.
        batch: Its columns.
        loss_scale: The scale that did not do.
        smaller: The pass at the next smaller scale.
        factor: What a scale is divided by to become the next.
        minimum: The smallest.
    """

    last = max(math.ceil(math.log(loss_scale / minimum, factor) - 1e-9), 0)
    if not last:
        return minimum, None

    def scale_of(power: int) -> float:
        return max(loss_scale / factor**power, minimum)

    # Powers of the factor: the largest known not to do, the smallest known to do, its pass.
    wrong, good, found = (0, 1, smaller) if _all_finite(smaller.gradients) else (1, last, None)

    def try_power(power: int) -> bool:
        nonlocal wrong, good, found
        trial = replay.run(batch, scale_of(power))
        if not _all_finite(trial.gradients):
            wrong = power
            return False
        good, found = power, trial
        return True

    if found is None and last > 1 and not try_power(last):
        return minimum, None  # Where the smallest scale does not help, none does.
    while found is not None and good - wrong > 1:
        # Gradients grow with the scale, so those at hand tell how far it may grow; a pass makes sure of it.
        space = min(float_format(one.dtype).max / (one.largest or 1.0) for one in found.gradients)
        guess = max(math.ceil(math.log(loss_scale / (scale_of(good) * space), factor) - 1e-9), wrong + 1)
        if guess >= good:
            break
        if not try_power(guess) and good - wrong > 1:
            try_power((wrong + good) // 2)
    return (scale_of(good), found) if found is not None else (minimum, None)
