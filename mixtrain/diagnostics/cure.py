"""`explained`: what cures an overflow that no loss scale helps, decided by passes with layers in float32."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Final

from mixtrain.diagnostics.finding import Finding, Kind
from mixtrain.diagnostics.layer_calls import DTYPE_ERRORS, parent_path
from mixtrain.diagnostics.replay import CallInfo, GradientInfo, PassInfo, Replay, TensorInfo, all_finite, is_within
from mixtrain.dtype import float_format
from mixtrain.typing import Tree

# Number of sets of layers that are tried before the whole network is advised.
_MAX_TRIALS: Final = 6
# Number of layers of a set that cures at once without which it is tried.
_MAX_DROPPED: Final = 3
# A loss scale at which no product of gradients is beyond the range of float32.
_TINY: Final = 2.0**-100


def explained(
    finding: Finding, replay: Replay, batch: Sequence[Tree], result: PassInfo, call_index: int | None = None,
    index: int = 0, loss_scale: float = 1.0,
) -> Finding:
    """Complete a finding that no scale helps: whether float32 has it too, and which layers to keep in float32.

    `result`: The pass that it was found in. `call_index`, `index`: For "forward" and "gradient", the index of the call,
    and of its output. `loss_scale`: That which the gradient contains as a factor.
    """
    # What cures the same tensors is found once; whether float32 has it too is asked of each batch.
    known = replay.cures.setdefault((finding.kind, finding.layer), {})
    is_gradient = finding.kind in ("gradient", "parameter")
    plain = replay.forward_in_float32(batch) if known and not is_gradient else replay.in_float32(batch)
    if plain is None:
        return finding
    magnitude = _magnitude(finding, plain, call_index, index, loss_scale)
    if magnitude is not None and math.isfinite(magnitude) and finding.dtype != "float32":
        finding = dataclasses.replace(finding, largest=magnitude)
    if is_gradient and plain.loss.finite and not plain.finite:
        tiny = replay.in_float32(batch, _TINY)
        if tiny is not None and tiny.finite:
            # A product beyond the range of float32, not a derivative.
            return dataclasses.replace(finding, dtype="float32", largest=None)
        return _derivative(finding, plain)
    if not plain.loss.finite:
        return dataclasses.replace(finding, in_float32=True)
    if not any(map(replay.half_of, replay.computes_in)):
        return finding
    overflowing = {call.path for call in result.calls if all_finite(call.inputs) and not all_finite(call.outputs)}
    beyond = {call.path for index, call in enumerate(plain.calls) if _is_beyond(replay, plain, index, forward=True)}
    key = frozenset(overflowing), frozenset(beyond)
    if key not in known:
        whole = (plain if plain.of_outputs else replay.in_float32(batch)) or plain
        known[key] = _fewest(finding, replay, batch, whole), whole.finite
    cure, finite = known[key]
    return dataclasses.replace(finding, cure=cure, cures_all=finite)


def _magnitude(
    finding: Finding, plain: PassInfo, call_index: int | None, index: int, loss_scale: float
) -> float | None:
    """Return the largest magnitude in float32 of the tensor that is not finite; None if it is unknown."""
    tensors: Sequence[TensorInfo | GradientInfo | None] = []
    if finding.kind == "loss":
        tensors = [info for path, info in plain.added if path == finding.layer]
    elif call_index is not None and call_index < len(plain.calls) and plain.calls[call_index].path == finding.layer:
        is_gradient = finding.kind == "gradient"
        tensors = (plain.of_outputs[call_index] if is_gradient else plain.calls[call_index].outputs)[index : index + 1]
    elif finding.kind == "parameter":
        tensors = plain.of_parameters.get(finding.layer or "", [])[index : index + 1]
    known = (info.largest for info in tensors if info is not None and info.largest is not None)
    return max((largest * loss_scale for largest in known), default=None)


# ---- which layers in float32 cure ------------------------------------------------------------------------------------
def _fewest(finding: Finding, replay: Replay, batch: Sequence[Tree], plain: PassInfo) -> tuple[str, ...]:
    """Return layers with which in float32 the batch is finite, found by trying; "" is the whole network."""
    beyond = [call.path for index, call in enumerate(plain.calls) if _is_beyond(replay, plain, index)]
    paths = [path for path in beyond if not any(other != path and is_within(other, path) for other in beyond)]
    first = finding.layer
    if finding.kind in ("forward", "loss", "parameter") and first is not None and replay.half_of(first) is not None:
        paths = [first, *(path for path in paths if not is_within(path, first))]
    order = {call.path: index for index, call in enumerate(plain.calls)}
    suspected: list[str] = []
    for _ in range(_MAX_TRIALS):
        chosen = tuple(sorted(set(paths), key=lambda path: order.get(path, 0)))
        trial = _tried(replay, chosen, batch)
        if trial is None:
            paths = [parent_path(path) or path for path in chosen]
            continue
        if _cures(trial, plain):
            # Suspects that were tried before the one that cures may not be needed, nor some of those tried first.
            for path in suspected[:-1] or chosen[:_MAX_DROPPED]:
                fewer = tuple(other for other in chosen if other != path)
                if path in chosen and fewer and _cures(_tried(replay, fewer, batch), plain):
                    chosen = fewer
            return chosen
        suspects = (path for path in _suspects(replay, trial) if not any(is_within(path, other) for other in chosen))
        added = next(suspects, None)
        if added is None:
            break
        suspected.append(added)
        paths = [*(path for path in chosen if not is_within(path, added)), added]
    return ("",)


def _tried(replay: Replay, chosen: Sequence[str], batch: Sequence[Tree]) -> PassInfo | None:
    """Run a batch with layers in float32; None if the code of a layer around them does not take float32 of them."""
    try:
        return replay.keeping_float32(chosen, batch, 1.0) if chosen else replay.run(batch, 1.0)
    except DTYPE_ERRORS:
        return None


def _cures(trial: PassInfo | None, plain: PassInfo) -> bool:
    return trial is not None and (trial.finite if plain.finite else trial.loss.finite)


def _is_beyond(replay: Replay, plain: PassInfo, index: int, *, forward: bool = False) -> bool:
    """Whether a tensor of a call, or its gradient, is beyond the range of the half dtype that the call computes in.

    `forward`: Whether gradients do not count.
    """
    call = plain.calls[index]
    half = replay.half_of(call.path)
    if half is None:
        return False
    gradients: list[GradientInfo | None] = []
    if not forward:
        gradients = [*plain.of_inputs[index], *plain.of_outputs[index], *plain.of_parameters.get(call.path, ())]
    infos: list[TensorInfo | GradientInfo] = [*call.inputs, *call.outputs, *filter(None, gradients)]
    # What is infinite in float32 is not the doing of half.
    return any(float_format(half).max < (info.largest or 0.0) < math.inf for info in infos)


def _suspects(replay: Replay, trial: PassInfo) -> Iterator[str]:
    """Yield the layers in half near the first tensor of a pass that is not finite, the likeliest first."""
    if all(all_finite(call.outputs) for call in trial.calls):
        yield from (path for path, info in trial.added if not info.finite and replay.half_of(path) is not None)
    count = len(trial.calls)
    start = count - 1
    for index, call in enumerate(trial.calls):
        if not all_finite(call.outputs) or not all_finite(call.inputs):
            start = index
            break
    else:
        for index in reversed(range(count)):
            if not all_finite(trial.of_outputs[index]):
                # The layer after it computes the gradient of its output.
                start = min(index + 1, count - 1)
                break
    for index in [*range(start, -1, -1), *range(start + 1, count)]:
        path = trial.calls[index].path
        if replay.half_of(path) is not None and path:
            yield path


# ---- derivatives that are not finite in float32 either ---------------------------------------------------------------
def _derivative(finding: Finding, plain: PassInfo) -> Finding:
    """Return the finding of the layer, or the loss function, that computes the first gradient that is not finite."""
    path, kind, info = _computed_by(plain)
    return dataclasses.replace(
        finding, kind=kind, layer=path, count=info.overflowing, nan=info.nan, size=info.size, dtype="float32",
        largest=None, in_float32=True,
    )


def _computed_by(plain: PassInfo) -> tuple[str | None, Kind, GradientInfo]:
    """Return the layer that computes the first gradient that is not finite, None for the loss function."""
    calls: list[CallInfo] = plain.calls
    if not all_finite(plain.of_outputs[-1]):
        return None, "gradient", _first(plain.of_outputs[-1])
    blamed = [
        index for index in reversed(range(len(calls)))
        if all_finite(plain.of_outputs[index]) and not all_finite(plain.of_inputs[index])
    ]
    for index in blamed:
        path = calls[index].path
        if not any(calls[other].path != path and is_within(calls[other].path, path) for other in blamed):
            # Between the layers inside it, the first of them whose gradient is not finite knows which values are not.
            inner = (
                plain.of_outputs[other] for other in reversed(range(index))
                if is_within(calls[other].path, path) and not all_finite(plain.of_outputs[other])
            )
            return path, "gradient", _first(next(inner, plain.of_inputs[index]))
    for index in reversed(range(len(calls))):
        if not all_finite(plain.of_outputs[index]):
            # Computed between layers, by the layer around them.
            return parent_path(calls[index].path), "gradient", _first(plain.of_outputs[index])
    path, group = next((path, group) for path, group in plain.of_parameters.items() if not all_finite(group))
    return path, "parameter", _first(group)


def _first(gradients: Sequence[GradientInfo | None]) -> GradientInfo:
    return next(gradient for gradient in gradients if gradient is not None and not gradient.finite)
