"""`find_non_finite`: the first tensor in a replayed batch, of the forward or backward pass, that is not finite."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.cure import explained
from mixtrain.diagnostics.finding import Finding, Kind
from mixtrain.diagnostics.layer_calls import called_path, is_float_tensor
from mixtrain.diagnostics.replay import CallInfo, GradientInfo, PassInfo, Replay, TensorInfo, all_finite, tensor_info
from mixtrain.dtype import float_format
from mixtrain.typing import Tensor, Tree

# Which gradient: its kind, the index of its call or the path of its layer, and its index there.
_Key = tuple[Kind, Any, int]
# Where a tensor is in a batch: the index of its column, and the entries in that.
_Path = tuple[Any, ...]
# The counts of non-finite values that a step found in gradients of parameters, by the path of the layer that owns them;
# None for a gradient that the step does not compute.
StepCounts = Mapping[str, Sequence[int | None]]


@dataclasses.dataclass(frozen=True)
class _Overflow:
    """A gradient that overflows, how many of its values are not finite, and how many of these are NaN, if known."""

    key: _Key
    count: int
    nan: int | None


def find_non_finite(
    replay: Replay, batch: Sequence[Tree], loss_scale: float, *, factor: float = 2.0, minimum: float = 1.0,
    step_counts: StepCounts | None = None,
) -> Finding:
    """Run a batch forward and backward, and find the first tensor that is not finite and what would help.

    If `replay` can run in float32, it finds magnitudes of outputs beyond the range of half, and which layers must be
    kept in float32. Smaller scales are `loss_scale` divided by powers of `factor`. With `step_counts`, the counts of
    non-finite gradients from the step, a pass at the next smaller scale is mostly enough.
    """
    parts = ((path, tensor_info(part)) for path, part in keras.tree.flatten_with_path([*batch]))
    non_finite = next(((path, info) for path, info in parts if not info.finite), None)
    if non_finite is not None and _spreads(replay, batch):
        return _batch_finding(*non_finite)
    # The next smaller scale is the likeliest to help: a scale has most often grown one time too many.
    next_scale = max(loss_scale / factor, minimum)
    result = smaller = replay.run(batch, next_scale, loss_scale / next_scale)
    culprit = _first_output(result.calls, replay, batch)
    if not result.loss.finite:
        return _forward_finding(culprit, result, replay, batch)
    overflow = None
    if step_counts is not None and next_scale != loss_scale:
        overflow = _predicted_overflow(smaller, loss_scale / next_scale, step_counts)
    if overflow is None:
        result = smaller if next_scale == loss_scale else replay.run(batch, loss_scale)
        overflow = _first_overflow(result)
    finding = Finding("none")
    if overflow is not None:
        scale, finite_pass = _largest_finite_scale(replay, batch, loss_scale, smaller, factor, minimum)
        if finite_pass is None and minimum < loss_scale:
            # What no scale helps is known at the smallest: larger ones add overflows of their own.
            lowest = replay.run(batch, minimum)
            lasting = _first_overflow(lowest)
            if lasting is not None and lasting.key != overflow.key:
                result, overflow = lowest, lasting
        finding = _gradient_finding(replay, result, overflow, finite_pass, loss_scale, scale, culprit is None)
    # A non-finite output that is masked out later is not the cause if a smaller scale helps.
    if finding.scale is not None:
        return finding
    if culprit is None and overflow is not None:
        culprit = _cast_input(result.calls, replay, batch)
    if culprit is not None:
        return _forward_finding(culprit, result, replay, batch)
    if overflow is None:
        # Layers that clip an infinite value keep it in the magnitudes of their histories, which the step checks.
        return finding if non_finite is None or not replay.clips else _batch_finding(*non_finite)
    kind, call_index, index = overflow.key
    return explained(finding, replay, batch, result, call_index if kind == "gradient" else None, index, loss_scale)


def _batch_finding(path: _Path, info: TensorInfo) -> Finding:
    """Return the finding of a part of the batch that is not finite itself."""
    return Finding(
        "input", column=path[0], part=_entries(path), count=info.non_finite, nan=info.nan, size=info.size,
        forward_finite=False,
    )


def _entries(path: _Path) -> str:
    """Return the text of the entries that lead to a part of a column."""
    return "".join(f"[{entry!r}]" for entry in path[1:])


def _spreads(replay: Replay, batch: Sequence[Tree]) -> bool:
    """Whether what is not finite in a batch is the cause, and not missing values that the network or its loss masks."""
    result = replay.run(batch, 1.0)
    filled = keras.tree.map_structure(lambda part: keras.ops.nan_to_num(part, 0.0, 0.0, 0.0), batch)
    if result.finite or replay.run(filled, 1.0).finite:
        return not result.finite
    # Something else is not finite either: what comes first in the forward pass counts.
    first = next((call for call in result.calls if not all_finite(call.outputs)), None)
    return not result.loss.finite if first is None else not all_finite(first.inputs)


def _first_output(calls: Sequence[CallInfo], replay: Replay, batch: Sequence[Tree]) -> tuple[int, _Path | None] | None:
    """Return the first call, in the order in which calls end, with finite inputs and outputs that are not, or None.

    With it comes the place in the batch of what overflowed when it was cast to half, or None.
    """
    non_finite = [index for index, call in enumerate(calls) if not all_finite(call.outputs)]
    tensors = None
    for index in non_finite:
        if all_finite(calls[index].inputs):
            return index, None
        # An input is not finite because the layer casts it, or because an operation outside of layers computed it.
        tensors = tensors or replay.tensors(batch)
        inputs = [value for value in tensors[index].inputs if not tensor_info(value).finite]
        places = [_source(value, batch) for value in inputs]
        if None not in places:
            return index, places[0]
        earlier = [value for call in tensors[:index] for value in call.outputs if tensor_info(value).finite]
        if all(_source(value, earlier) is not None for value in inputs):
            return index, None
    return (non_finite[0], None) if non_finite else None


def _source(value: Tensor, finite: Sequence[Tree]) -> _Path | None:
    """Return the place of the finite tensor that `value` is a cast of; None if there is none."""
    for path, part in keras.tree.flatten_with_path([*finite]):
        casts = is_float_tensor(part) and part.dtype != value.dtype and tuple(part.shape) == tuple(value.shape)
        if casts and tensor_info(part).finite:
            expected, cast = (backend.to_numpy(keras.ops.cast(tensor, value.dtype)) for tensor in (value, part))
            if np.array_equal(cast, expected, equal_nan=True):
                return path
    return None


def _cast_input(calls: Sequence[CallInfo], replay: Replay, batch: Sequence[Tree]) -> tuple[int, _Path | None] | None:
    """Return the first call that casts a column to values that are not finite, with the column's index, or None."""
    if all(all_finite(call.inputs) for call in calls):
        return None
    for index, call in enumerate(replay.tensors(batch)):
        for value in call.inputs:
            place = None if tensor_info(value).finite else _source(value, batch)
            if place is not None:
                return index, place
    return None


def _forward_finding(
    culprit: tuple[int, _Path | None] | None, result: PassInfo, replay: Replay, batch: Sequence[Tree]
) -> Finding:
    """Return the finding of a forward pass with the info of the tensor that is not finite; without one, the loss."""
    if culprit is None:
        path, info = next((row for row in result.added if not row[1].finite), (None, result.loss))
        finding = Finding(
            "loss", path, count=info.non_finite, nan=info.nan, size=info.size, dtype=info.dtype, forward_finite=False
        )
        return explained(finding, replay, batch, result)
    call_index, place = culprit
    calls = result.calls
    call = calls[call_index]
    if place is not None:
        info = next(tensor for tensor in call.inputs if not tensor.finite)
        cast = next(part for path, part in keras.tree.flatten_with_path([*batch]) if path == place)
        finding = Finding(
            "input", call.path, column=place[0], part=_entries(place), count=info.non_finite, nan=info.nan,
            size=info.size, dtype=info.dtype, largest=tensor_info(cast).largest, forward_finite=False,
        )
        return dataclasses.replace(explained(finding, replay, batch, result), layer=None)
    index, info = next((index, tensor) for index, tensor in enumerate(call.outputs) if not tensor.finite)
    dtype = info.dtype if info.dtype != "float32" else replay.half_of(call.path) or "float32"
    finding = Finding(
        "forward", call.path, count=info.non_finite, nan=info.nan, size=info.size, dtype=dtype, forward_finite=False
    )
    return explained(finding, replay, batch, result, call_index, index)


def _backward_order(result: PassInfo) -> Iterator[tuple[_Key, GradientInfo]]:
    """Yield the gradients of a pass, with their keys, in the order of the backward pass."""
    remaining_calls = collections.Counter(call.path for call in result.calls)
    of_parameters = dict(result.of_parameters)
    # Parameters of layers that are called inside another's loop come after the gradients of the layers within that one.
    inner: dict[int, list[str]] = {}
    for path in result.of_parameters:
        around = called_path(path, remaining_calls)
        if path not in remaining_calls and around in remaining_calls:
            first = next(i for i, call in enumerate(result.calls) if (call.path + "/").startswith(around + "/"))
            inner.setdefault(first, []).append(path)

    def parameters_of(path: str) -> Iterator[tuple[_Key, GradientInfo]]:
        for index, gradient in enumerate(of_parameters.pop(path, ())):
            if gradient is not None:
                yield ("parameter", path, index), gradient

    for call_index in reversed(range(len(result.calls))):
        path = result.calls[call_index].path
        for index, gradient in enumerate(result.of_outputs[call_index]):
            if gradient is not None:
                yield ("gradient", call_index, index), gradient
        remaining_calls[path] -= 1
        # A gradient of a parameter is the sum over all calls of its layer, so it comes after the last of them.
        if remaining_calls[path] == 0:
            yield from parameters_of(path)
        for inner_path in inner.get(call_index, ()):
            yield from parameters_of(inner_path)
    # Parameters of layers that are not called themselves, because another layer reads them.
    for path in [*of_parameters]:
        yield from parameters_of(path)


def _first_overflow(result: PassInfo) -> _Overflow | None:
    """Return the first gradient, in the order of the backward pass, that overflows."""
    gradients = _backward_order(result)
    return next((_overflow(*row) for row in gradients if row[1].overflowing), None)


def _overflow(key: _Key, gradient: GradientInfo) -> _Overflow:
    return _Overflow(key, gradient.overflowing, gradient.nan)


def _predicted_overflow(smaller: PassInfo, factor: float, step_counts: StepCounts) -> _Overflow | None:
    """Predict the first gradient that overflowed in a step from a pass at a scale smaller by `factor`.

    Scaling by a power of two is exact, so the pass knows which of its values overflow at the scale of the step. An
    overflow between two of its tensors, as in a sum, shows in the counts of the step. None if a pass at the scale of
    the step is needed.
    """
    # Scaling is exact only by a power of two, whose mantissa is 0.5.
    if math.frexp(factor)[0] != 0.5:
        return None
    first = None
    for key, gradient in _backward_order(smaller):
        kind, path, index = key
        if first is not None and (kind, path) != first.key[:2]:
            break
        count = step_counts[path][index] if kind == "parameter" else None
        if count is not None and bool(count) != bool(gradient.overflowing):
            # All gradients of a layer's parameters derive from that of its output: if one is finite, so is that.
            only_this = count and first is None and 0 in step_counts[path]
            return _Overflow(key, count, None) if only_this else None
        if first is None and gradient.overflowing:
            first = _overflow(key, gradient)
    return first


def _gradient_at(result: PassInfo, key: _Key) -> GradientInfo:
    kind, call_or_path, index = key
    group = result.of_outputs[call_or_path] if kind == "gradient" else result.of_parameters[call_or_path]
    return group[index]  # type: ignore[return-value]


def _gradient_finding(
    replay: Replay, result: PassInfo, overflow: _Overflow, finite_pass: PassInfo | None, loss_scale: float,
    scale: float, forward_finite: bool,
) -> Finding:
    """Return the finding of a gradient, with the magnitude computed from the pass at a scale that helps."""
    kind, call_or_path, _ = overflow.key
    info = _gradient_at(result, overflow.key)
    path = result.calls[call_or_path].path if kind == "gradient" else call_or_path
    around = called_path(path, {call.path for call in result.calls})
    outputs = [tensor.dtype for call in result.calls if call.path == around for tensor in call.outputs]
    dtypes = [*filter(None, [replay.half_of(around)]), *outputs]
    largest = None
    if finite_pass is not None:
        largest = (_gradient_at(finite_pass, overflow.key).largest or 0.0) * (loss_scale / scale)
    # Parameters are cast to half in the forward pass: a float32 gradient is a cast of a half gradient.
    exceeded = [name for name in dtypes if largest is not None and largest > float_format(name).max]
    # What overflowed on the way to a value may have become inf or NaN; only a pass at the scale of the step knows.
    nan = overflow.nan if largest is None or exceeded else None
    return Finding(
        kind, path, count=overflow.count, nan=nan, size=info.size, dtype=[*exceeded, *dtypes, "float32"][0],
        largest=largest, forward_finite=forward_finite, scale=None if finite_pass is None else scale,
    )


def _largest_finite_scale(
    replay: Replay, batch: Sequence[Tree], loss_scale: float, smaller: PassInfo, factor: float, minimum: float
) -> tuple[float, PassInfo | None]:
    """Return the largest smaller scale at which all gradients are finite, and its pass; None if there is none.

    `smaller` is the pass at the next smaller scale, which is `loss_scale` divided by `factor`.
    """
    # Less 1e-9, so that a rounding error of the logarithm of an exact power does not add another.
    last = max(math.ceil(math.log(loss_scale / minimum, factor) - 1e-9), 0)
    if not last:
        return minimum, None

    def scale_of(power: int) -> float:
        return max(loss_scale / factor**power, minimum)

    # Powers of the factor: the largest that overflows, the smallest that is finite, and the pass at the latter.
    overflowing, finite, finite_pass = (0, 1, smaller) if all_finite(smaller.gradients) else (1, last, None)

    def try_power(power: int) -> bool:
        nonlocal overflowing, finite, finite_pass
        trial = replay.run(batch, scale_of(power))
        if not all_finite(trial.gradients):
            overflowing = power
            return False
        finite, finite_pass = power, trial
        return True

    if finite_pass is None and last > 1 and not try_power(last):
        return minimum, None  # If the smallest scale does not help, none does.
    while finite_pass is not None and finite - overflowing > 1:
        # Gradients grow with the scale, so their headroom predicts the largest scale; a pass confirms it.
        headroom = min(float_format(info.dtype).max / (info.largest or 1.0) for info in finite_pass.gradients)
        guess = max(math.ceil(math.log(loss_scale / (scale_of(finite) * headroom), factor) - 1e-9), overflowing + 1)
        if guess >= finite:
            break
        if not try_power(guess) and finite - overflowing > 1:
            try_power((overflowing + finite) // 2)
    return (scale_of(finite), finite_pass) if finite_pass is not None else (minimum, None)
