"""Finding the first layer whose output, or its gradient, is not finite: an instrumented pass over one batch."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import backend
from mixtrain.boundary import settled
from mixtrain.common.referenced_layers import referenced_variables
from mixtrain.dtype import as_dtype, float_format
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.seed import stream_states

Kind = Literal["input", "forward", "loss", "gradient", "parameter", "none"]
_NO_SCALE: Final = "a smaller loss scale cannot help"


@dataclasses.dataclass(frozen=True)
class Finding:
    """Where numbers first went wrong, and what would help. Findings are equal where kind and layer are.

    Attributes:
        kind: "input": a column of the batch is not finite, or not in the format that it is cast to; "forward": a
            layer's output; "loss": only the loss; "gradient": only a gradient, at this loss scale, of a layer's output;
            "parameter": of a layer's parameter; "none": everything is finite.
        layer: The layer's path, or None.
        column: Number of the batch's column, for "input".
        count: How many values of that tensor are not finite.
        size: How many it has.
        dtype: The floating-point format that they do not fit in.
        largest: The largest magnitude, where it can be told: of a gradient by a pass at a smaller scale, of an output
            by a pass in float32.
        forward_finite: Whether every layer's output and the loss are finite.
        scale: The largest scale, a power of the factor below the one used, whose gradients are finite; None where no
            scale helps.

    Example:
        >>> print(Finding("gradient", "conv2", count=11, size=2**21, dtype="float16", largest=1.3e5, scale=32768.0))
        gradient of layer conv2's output: 11 of 2,097,152 values above 65504, the largest 1.3e+05; forward finite;
        scale 32768 would do
    """

    kind: Kind
    layer: str | None = None
    column: int | None = dataclasses.field(default=None, compare=False)
    count: int = dataclasses.field(default=0, compare=False)
    size: int = dataclasses.field(default=0, compare=False)
    dtype: str = dataclasses.field(default="float32", compare=False)
    largest: float | None = dataclasses.field(default=None, compare=False)
    forward_finite: bool = dataclasses.field(default=True, compare=False)
    scale: float | None = dataclasses.field(default=None, compare=False)

    def __str__(self) -> str:
        place = "the network itself" if self.layer == "" else f"layer {self.layer}"
        if self.kind == "none":
            return "a second pass over the batch at hand found every output and gradient finite"
        if self.kind == "loss":
            return (
                f"the loss: {self._values()}, every layer's output is finite; {_NO_SCALE}: look at the loss function "
                "and the labels"
            )
        if self.kind == "input":
            cure = "look at the data" if self.largest is None else "scale the data, or keep what reads it in float32"
            return f"column {self.column} of the batch: {self._values()}; {_NO_SCALE}: {cure}"
        if self.kind == "forward":
            overflows = self.largest is not None
            cure = _in_float32(place) if overflows else "look at its weights and its inputs"
            return f"output of {place}: {self._values()}; {_NO_SCALE}: {cure}"
        of = f"gradient of {place}'s output" if self.kind == "gradient" else f"gradient of a parameter of {place}"
        forward = "forward finite" if self.forward_finite else "forward not finite"
        cure = "look at its weights" if self.dtype == "float32" else _in_float32(place)
        cure = f"no scale helps: {cure}" if self.scale is None else f"scale {self.scale:.10g} would do"
        return f"{of}: {self._values()}; {forward}; {cure}"

    def _values(self) -> str:
        if self.largest is None:
            return f"{self.count:,} of {self.size:,} values not finite"
        limit = float_format(self.dtype).max
        return f"{self.count:,} of {self.size:,} values above {limit:.6g}, the largest {self.largest:.2g}"


def _in_float32(place: str) -> str:
    return f"keep {place} in float32, to_float(mixtrain.float32)"


@dataclasses.dataclass(frozen=True)
class LayerCall:
    """One call of a layer.

    Attributes:
        path: The layer's path.
        inputs: The float tensors that came in, after the casts of the plan.
        outputs: Those that came out.
    """

    path: str
    inputs: list[Any]
    outputs: list[Any]


@dataclasses.dataclass(frozen=True)
class LayerGradients:
    """The gradients of one pass: of the outputs of each call, and of the parameters that a layer owns."""

    of_outputs: list[list[Any]]
    of_parameters: dict[str, list[Any]]

    def all(self) -> list[Any]:
        groups = (*self.of_outputs, *self.of_parameters.values())
        return [gradient for group in groups for gradient in group if gradient is not None]


# Where a gradient is: its kind, the number of its call or the path of its layer, its number there.
_Place = tuple[Kind, Any, int]


def find_non_finite(
    network: Any,
    loss_of: Callable[..., Any],
    batch: Sequence[Any],
    loss_scale: float,
    *,
    factor: float = 2.0,
    minimum: float = 1.0,
    in_float32: Callable[[], contextlib.AbstractContextManager[Any]] | None = None,
) -> Finding:
    """Run forward and backward layer by layer, and say where numbers first went wrong and what would help.

    Args:
        network: The network to look into.
        loss_of: Takes the columns of a batch, runs `network` and returns the loss.
        batch: The columns.
        loss_scale: What the loss is multiplied by before gradients are taken.
        factor: Smaller scales are this one divided by powers of it.
        minimum: The smallest of them.
        in_float32: Puts the network into float32 for as long as it is entered; by it the magnitude of an output is
            found that half precision does not hold.

    Returns:
        The finding. Variables that the forward pass writes (moving statistics, random states) are put back.
    """
    for number, column in enumerate(batch):
        for part in keras.tree.flatten(column):
            bad, size = _count(part)
            if bad:
                return Finding("input", column=number, count=bad, size=size, forward_finite=False)

    def run() -> Any:
        return loss_of(*batch)

    calls, loss = watched(network, run)
    culprit = _first_output(calls, batch)
    if not _finite(loss):
        if culprit is None:
            bad, size = _count(loss)
            return Finding("loss", count=bad, size=size, forward_finite=False)
        return _described(culprit, calls, batch, network, run, in_float32)
    found = _gradient_finding(Backward(network, run, calls), loss_scale, factor, minimum, culprit is None)
    # An output that is not finite and is masked out afterwards need not be what went wrong.
    if culprit is not None and found.scale is None:
        return _described(culprit, calls, batch, network, run, in_float32)
    return found


# ---- forward ------------------------------------------------------------------------------------------------------
def _first_output(calls: list[LayerCall], batch: Sequence[Any]) -> tuple[int, int | None] | None:
    """Return the first call, in the order in which calls end, whose inputs were finite and whose outputs are not.

    Returns:
        ``(number of the call, None)``; with the number of a column where it is that column which, cast to half, was not
        finite; or None where all outputs are finite.
    """
    wrong = [number for number, call in enumerate(calls) if not all(map(_finite, call.outputs))]
    for number in wrong:
        inputs = [value for value in calls[number].inputs if not _finite(value)]
        if not inputs:
            return number, None
        # An input is not finite because the layer casts it, or because what is around the layer made it so.
        columns = [_source(value, batch) for value in inputs]
        if None not in columns:
            return number, columns[0]
        earlier = [value for call in calls[:number] for value in call.outputs if _finite(value)]
        if all(_source(value, earlier) is not None for value in inputs):
            return number, None
    return (wrong[0], None) if wrong else None


def _source(value: Any, finite: Sequence[Any]) -> int | None:
    """Return the number of the finite tensor that a cast has made into `value`; None where there is none."""
    for number, other in enumerate(finite):
        for part in keras.tree.flatten(other):
            if _is_float_tensor(part) and part.dtype != value.dtype and tuple(part.shape) == tuple(value.shape):
                if np.array_equal(_numbers(keras.ops.cast(part, value.dtype)), _numbers(value), equal_nan=True):
                    return number
    return None


def _described(
    culprit: tuple[int, int | None], calls: list[LayerCall], batch: Sequence[Any], network: Any, run: Callable[[], Any],
    in_float32: Callable[[], contextlib.AbstractContextManager[Any]] | None,
) -> Finding:
    """Return the finding of a forward pass with the facts of the tensor that is not finite."""
    number, column = culprit
    if column is not None:
        value = next(value for value in calls[number].inputs if not _finite(value))
        bad, size = _count(value)
        known = max(_largest(part) for part in keras.tree.flatten(batch[column]) if _is_float_tensor(part))
        return Finding(
            "input", column=column, count=bad, size=size, dtype=_format(value), largest=known, forward_finite=False
        )
    call = calls[number]
    place = next(place for place, value in enumerate(call.outputs) if not _finite(value))
    value = call.outputs[place]
    bad, size = _count(value)
    largest = None
    if in_float32 is not None and _format(value) != "float32":
        with in_float32():
            wide, _ = watched(network, run)
        if [one.path for one in wide] == [one.path for one in calls] and place < len(wide[number].outputs):
            largest = _largest(wide[number].outputs[place])
    if largest is not None and not float_format(_format(value)).max < largest < math.inf:
        largest = None
    return Finding(
        "forward", call.path, count=bad, size=size, dtype=_format(value), largest=largest, forward_finite=False
    )


# ---- backward -----------------------------------------------------------------------------------------------------
class Backward:
    """Takes the gradients of each layer's outputs and parameters at any loss scale."""

    def __init__(self, network: Any, run: Callable[[], Any], calls: list[LayerCall]) -> None:
        self._network = network
        self._run = run
        self.calls = calls
        self._owned = _parameters_by_path(network)

    @classmethod
    def of(cls, network: Any, run: Callable[[], Any]) -> Backward:
        """Run a network forward, and return what takes gradients of the calls that were seen."""
        return cls(network, run, watched(network, run)[0])

    def at(self, loss_scale: float) -> LayerGradients:
        """Run forward and backward."""
        taps = [[keras.ops.zeros_like(value) for value in call.outputs] for call in self.calls]

        def scaled(*tapping: Any) -> tuple[Any, Any]:
            given = iter(tapping)
            _, tapped = watched(self._network, self._run, iter([[next(given) for _ in group] for group in taps]))
            return keras.ops.cast(tapped, "float32") * loss_scale, ()

        variables = [variable for group in self._owned.values() for variable in group]
        found = backend.value_and_gradient(scaled, variables, [tap for group in taps for tap in group])[2]
        gradients = iter(found)
        of_parameters = {path: [next(gradients) for _ in held] for path, held in self._owned.items()}
        return LayerGradients([[next(gradients) for _ in group] for group in taps], of_parameters)

    def first(self, gradients: LayerGradients) -> _Place | None:
        """Return where the first gradient is, from the loss backwards, that is not finite."""
        left = collections.Counter(call.path for call in self.calls)
        of_parameters = dict(gradients.of_parameters)
        for number in reversed(range(len(self.calls))):
            path = self.calls[number].path
            for place, gradient in enumerate(gradients.of_outputs[number]):
                if not _finite_gradient(gradient):
                    return "gradient", number, place
            left[path] -= 1
            # A gradient of a parameter is the sum over all calls of its layer: looked at after the last of them.
            if left[path] == 0:
                for place, gradient in enumerate(of_parameters.pop(path, ())):
                    if not _finite_gradient(gradient):
                        return "parameter", path, place
        # Parameters of layers that are not called themselves, whose holder reads them.
        for path, group in of_parameters.items():
            for place, gradient in enumerate(group):
                if not _finite_gradient(gradient):
                    return "parameter", path, place
        return None


def _gradient_finding(
    backward: Backward, loss_scale: float, factor: float, minimum: float, forward_finite: bool
) -> Finding:
    """Look at gradients from the loss backwards, and for the scale at which they are finite."""
    gradients = backward.at(loss_scale)
    place = backward.first(gradients)
    if place is None:
        return Finding("none", forward_finite=forward_finite)
    kind, where, number = place
    of = gradients.of_outputs if kind == "gradient" else gradients.of_parameters
    bad, size = _count(backend.densified(of[where][number]))
    path = backward.calls[where].path if kind == "gradient" else where
    formats = [_format(value) for call in backward.calls if call.path == path for value in call.outputs]
    scale, smaller = _scale_that_helps(backward, loss_scale, factor, minimum)
    largest = None
    if scale is not None:
        of = smaller.of_outputs if kind == "gradient" else smaller.of_parameters
        largest = _largest(backend.densified(of[where][number])) * (loss_scale / scale)
    # A parameter is read in half: its float32 gradient is a cast of one that was taken there.
    narrow = [name for name in formats if largest is not None and largest > float_format(name).max]
    return Finding(
        kind, path, count=bad, size=size, dtype=narrow[0] if narrow else (formats or ["float32"])[0], largest=largest,
        forward_finite=forward_finite, scale=scale,
    )


def _scale_that_helps(
    backward: Backward, loss_scale: float, factor: float, minimum: float
) -> tuple[float | None, Any]:
    """Return the largest smaller scale at which all gradients are finite, and these; None where there is none."""

    def scale_of(power: int) -> float:
        return max(loss_scale / factor**power, minimum)

    def at(power: int) -> LayerGradients | None:
        gradients = backward.at(scale_of(power))
        return gradients if all(map(_finite_gradient, gradients.all())) else None

    # At the smallest scale first: where that does not help, none does.
    wrong, good = 0, max(math.ceil(math.log(loss_scale / minimum, factor) - 1e-9), 0)
    found = at(good) if good else None
    if found is None:
        return None, None
    passes = 0
    while good - wrong > 1:
        # Gradients grow with the scale, so those at hand tell how far it may grow; a pass makes sure of it.
        space = min(float_format(_format(value)).max / (_largest(value) or 1.0) for value in found.all())
        guess = max(math.ceil(math.log(loss_scale / (scale_of(good) * space), factor) - 1e-9), wrong + 1)
        if guess >= good:
            break
        guess = guess if passes < 2 else max(guess, (wrong + good) // 2)
        passes += 1
        trial = at(guess)
        if trial is None:
            wrong = guess
        else:
            good, found = guess, trial
    return scale_of(good), found


def _parameters_by_path(network: Any) -> dict[str, list[Any]]:
    """Return the trainable variables by the path of the innermost layer that holds them."""
    owned: dict[str, list[Any]] = {}
    seen: set[int] = set()
    for node in reversed(list(tree_of(network).walk())):
        held = node.layer.trainable_params() if is_cell(node.layer) else getattr(node.layer, "trainable_variables", ())
        owned[node.path] = [variable for variable in held if id(variable) not in seen]
        seen |= {id(variable) for variable in held}
    return owned


# ---- one pass -----------------------------------------------------------------------------------------------------
def watched(
    network: Any, run: Callable[[], Any], taps: Iterator[list[Any]] | None = None
) -> tuple[list[LayerCall], Any]:
    """Run a forward pass; note the float tensors of each layer call, innermost first, adding a tap to each output."""
    calls: list[LayerCall] = []
    nodes = list(tree_of(network).walk())
    variables = [*referenced_variables([network, run]), *stream_states()]
    before = [(variable, backend.snapshot(variable)) for variable in variables]

    def watching(path: str) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def call(*args: Any, **kwargs: Any) -> Any:
                inputs = list(filter(_is_float_tensor, keras.tree.flatten(settled((args, kwargs)))))
                result = settled(forward(*args, **kwargs))
                flat = keras.tree.flatten(result)
                places = [i for i, value in enumerate(flat) if _is_float_tensor(value)]
                if taps is not None:
                    for place, tap in zip(places, next(taps, []), strict=False):
                        flat[place] = flat[place] + tap
                calls.append(LayerCall(path, inputs, [flat[place] for place in places]))
                return keras.tree.pack_sequence_as(result, flat)

            return call

        return wrap

    with contextlib.ExitStack() as stack:
        for node in nodes:
            stack.callback(interpose(node.layer, watching(node.path)))
        loss = run()
    for variable, value in before:
        variable.assign(value)
    return calls, loss


# ---- tensors ------------------------------------------------------------------------------------------------------
def _is_float_tensor(value: Any) -> bool:
    return backend.is_tensor(value) and "float" in keras.backend.standardize_dtype(value.dtype)


def _finite_gradient(gradient: Any) -> bool:
    return gradient is None or bool(backend.all_finite([gradient]))


def _finite(value: Any) -> bool:
    return _count(value)[0] == 0


def _count(value: Any) -> tuple[int, int]:
    """Return how many values of a tensor or array are not finite, and how many it has; integers are all finite."""
    array = _numbers(value)
    return (int((~np.isfinite(array)).sum()) if array.dtype.kind == "f" else 0), array.size


def _largest(value: Any) -> float:
    """Return the largest magnitude of a tensor."""
    return float(np.abs(_numbers(backend.densified(value))).max(initial=0.0))


def _format(value: Any) -> str:
    return as_dtype(value.dtype).name


def _numbers(value: Any) -> np.ndarray:
    """Return a tensor as an array, half formats in float32."""
    if _is_float_tensor(value) and _format(value) in ("float16", "bfloat16"):
        value = keras.ops.cast(value, "float32")
    return backend.to_numpy(value) if backend.is_tensor(value) else np.asarray(value)
