"""`Replay`: a batch run forward and backward once more, and a few numbers about each tensor."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.counting import in_one_program
from mixtrain.diagnostics.layer_calls import LayerCall, is_float_tensor, layer_gradients, parameters_by_path, watched
from mixtrain.diagnostics.ranges import largest_bits, magnitudes
from mixtrain.dtype import as_dtype, float_format


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """What a tensor holds.

    Attributes:
        bad: How many values are not finite.
        size: How many it has.
        dtype: Its floating-point format.
        largest: The largest magnitude; not finite where a value is not; None where it was not looked for.
    """

    bad: int
    size: int
    dtype: str
    largest: float | None

    @property
    def finite(self) -> bool:
        """Whether every value is finite."""
        return self.bad == 0


@dataclasses.dataclass(frozen=True)
class CallInfo:
    """What one call of a layer took and gave: its path, and about its float tensors."""

    path: str
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]


@dataclasses.dataclass(frozen=True)
class GradientInfo:
    """What a gradient holds at the loss scale of a pass, and would hold at a larger one.

    Backward passes are linear: at a scale that is larger by a power of two each number is larger by it, to the bit,
    unless one of them overflows.

    Attributes:
        overflowing: How many values are not finite at the larger scale.
        size: How many it has.
        dtype: Its floating-point format.
        largest: The largest magnitude at the scale of the pass; not finite where a value is not.
    """

    overflowing: int
    size: int
    dtype: str
    largest: float

    @property
    def finite(self) -> bool:
        """Whether every value is finite at the scale of the pass."""
        return math.isfinite(self.largest)


@dataclasses.dataclass(frozen=True)
class PassInfo:
    """What a pass over a batch came to.

    Attributes:
        calls: The calls of layers, in the order in which they end.
        loss: The loss.
        of_outputs: The gradients of each call's outputs; None where the loss does not depend on one.
        of_parameters: The gradients of the parameters that a layer owns, by its path; likewise.
    """

    calls: list[CallInfo]
    loss: TensorInfo
    of_outputs: list[list[GradientInfo | None]]
    of_parameters: dict[str, list[GradientInfo | None]]

    @property
    def gradients(self) -> list[GradientInfo]:
        """All gradients that there are."""
        groups = (*self.of_outputs, *self.of_parameters.values())
        return [gradient for group in groups for gradient in group if gradient is not None]


class Replay:
    """Runs batches again; variables that the forward pass writes (moving statistics, random states) are put back.

    Args:
        network: The network to look into.
        loss_of: Takes the columns of a batch, runs `network` and returns the loss.
        float32: Puts the network into float32 for as long as it is entered; None where nothing does.
        compiled: Compiles a function of tensors; None to run layer by layer, which is quicker for the first few
            batches.

    Attributes:
        parameters: The parameters that gradients are told of, by the path of the layer that owns them.
    """

    def __init__(
        self,
        network: Any,
        loss_of: Callable[..., Any],
        *,
        float32: Callable[[], contextlib.AbstractContextManager[Any]] | None = None,
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> None:
        self.parameters = parameters_by_path(network)
        self._network = network
        self._loss_of = loss_of
        self._float32 = float32
        self._narrow = _Measured(self._pass, compiled)
        self._wide = _Measured(self._forward, compiled)

    def run(self, batch: Sequence[Any], loss_scale: float, factor: float = 1.0) -> PassInfo:
        """Run a batch forward and backward.

        Args:
            batch: Its columns.
            loss_scale: What the loss is multiplied by.
            factor: By how much the scale is larger that gradients are to overflow at.
        """
        scales = backend.to_tensor(np.array([loss_scale, factor], np.float32))
        calls, loss, of_outputs, *of_parameters = self._narrow(scales, *batch)
        by_path = dict(zip(self.parameters, of_parameters, strict=True))
        return PassInfo([CallInfo(*call) for call in calls], loss, of_outputs, by_path)

    def in_float32(self, batch: Sequence[Any]) -> list[CallInfo] | None:
        """Run a batch forward in float32, and tell magnitudes; None where the network cannot be put there."""
        return None if self._float32 is None else [CallInfo(*call) for call in self._wide(*batch)[0]]

    def tensors(self, batch: Sequence[Any]) -> list[LayerCall]:
        """Run a batch forward, and return the tensors themselves."""
        return watched(self._network, lambda: self._loss_of(*batch))[0]

    def _pass(self, scales: Any, *batch: Any) -> list[_Look]:
        loss_scale, factor = scales[0], scales[1]
        found = layer_gradients(self._network, lambda: self._loss_of(*batch), loss_scale)
        formats: dict[str, list[str]] = {}
        for call in found.calls:
            formats.setdefault(call.path, []).extend(as_dtype(value.dtype).name for value in call.outputs)
        looks = [_Look(_listed(found.calls)), _Look(found.loss), _Look(found.of_outputs, GradientInfo, factor)]
        # A parameter is read in half: its float32 gradient is a cast of one taken there, or the sum of several.
        return looks + [
            _Look(found.of_parameters[path], GradientInfo, factor, tuple(formats.get(path, ())))
            for path in self.parameters
        ]

    def _forward(self, *batch: Any) -> list[_Look]:
        with self._float32():  # type: ignore[misc]
            return [_Look(_listed(self.tensors(batch)), magnitudes=True)]


def _listed(calls: Sequence[LayerCall]) -> list[Any]:
    return [(call.path, call.inputs, call.outputs) for call in calls]


class _Look(NamedTuple):
    """What is looked for in tensors.

    Attributes:
        tensors: They, in lists and tuples.
        info_type: What is returned of each.
        factor: What values are multiplied by before they are held to be finite.
        formats: Where it is more than 1, the formats that they must then be finite in beside their own.
        magnitudes: Whether the largest magnitude is looked for where `info_type` may leave it out.
    """

    tensors: Any
    info_type: Callable[..., TensorInfo | GradientInfo] = TensorInfo
    factor: Any = None
    formats: tuple[str, ...] = ()
    magnitudes: bool = False

    def limit(self, value: Any) -> Any:
        """Return the largest magnitude of a value that counts as finite, float32."""
        if not is_float_tensor(value):
            return np.float32(np.inf)
        own, *others = (np.float32(float_format(name).max) for name in (as_dtype(value.dtype).name, *self.formats))
        if self.factor is None:
            return own
        return keras.ops.where(self.factor > 1, min([own, *others]) / self.factor, own)

    @property
    def largest(self) -> bool:
        """Whether the largest magnitude is looked for."""
        return self.magnitudes or self.info_type is GradientInfo


@dataclasses.dataclass(frozen=True)
class _Place:
    """Which of the measured tensors one is, its dtype, and what is returned of it."""

    number: int
    dtype: str
    info_type: Callable[..., TensorInfo | GradientInfo]


class _Measured:
    """A function that returns info in place of tensors; compiled, it returns numbers alone.

    Args:
        function: Takes tensors, and returns what is looked for in others.
        compiled: As of `Replay`.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[_Look]],
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None,
    ) -> None:
        self._function = function
        self._form: list[Any] = []
        self._compiled = None if compiled is None else compiled(self._numbers)

    def __call__(self, *inputs: Any) -> list[Any]:
        """Return what the function returns, info in place of tensors."""
        if self._compiled is None:
            return [_replaced(look.tensors, functools.partial(_info, look)) for look in self._function(*inputs)]
        bad, size, bits = backend.to_numpy(backend.call_with_branches(self._compiled, *inputs))
        largest = [None if of < 0 else magnitude for of, magnitude in zip(bits, magnitudes(bits).tolist(), strict=True)]
        told = [*zip(bad.tolist(), size.tolist(), largest, strict=True)]

        def info(place: _Place) -> TensorInfo | GradientInfo:
            count, values, top = told[place.number]
            return place.info_type(count, values, place.dtype, top)

        return [_replaced(part, info) for part in self._form]

    def _numbers(self, *inputs: Any) -> Any:
        """Run the function; return of each tensor the count of values that are not finite, the size, the largest.

        Returns:
            int32 (3, tensors); the last as `largest_bits` gives it, negative where it is not looked for.
        """
        tensors: list[Any] = []
        limits: list[Any] = []
        looked: list[bool] = []
        places: dict[tuple[Any, ...], _Place] = {}

        def noted(look: _Look, value: Any) -> _Place:
            # What one layer gives the next one takes.
            key = id(value), look.info_type, look.formats
            if key not in places:
                places[key] = _Place(len(tensors), as_dtype(value.dtype).name, look.info_type)
                tensors.append(value)
                limits.append(keras.ops.cast(look.limit(value), "float32"))
                looked.append(look.largest)
            return places[key]

        self._form = [_replaced(look.tensors, functools.partial(noted, look)) for look in self._function(*inputs)]
        dense = [backend.densified(value) for value in tensors]
        size = [keras.ops.cast(keras.ops.size(value), "int32") for value in dense]
        bad, largest = in_one_program(_counted(looked), [keras.ops.stack(limits), *dense])
        return keras.ops.stack([bad, keras.ops.stack(size), largest])


def _counted(looked: Sequence[bool]) -> Callable[..., tuple[Any, Any]]:
    """Return what counts the values of tensors that are beyond limits, and finds the largest magnitude of some of them.

    Args:
        looked: Whether the magnitude of each is looked for.
    """

    def count(limits: Any, *tensors: Any) -> tuple[Any, Any]:
        bad, tops = [], []
        for place, (value, looks) in enumerate(zip(tensors, looked, strict=True)):
            bad.append(_beyond(value, limits[place]))
            tops.append(largest_bits(value) if looks else np.int32(-1))
        return keras.ops.stack(bad), keras.ops.stack(tops)

    return count


def _beyond(value: Any, limit: Any) -> Any:
    """Return how many values are larger than a limit, or nan."""
    within = keras.ops.abs(keras.ops.cast(value, "float32")) <= limit
    return keras.ops.size(value) - keras.ops.sum(keras.ops.cast(within, "int32"))


def _replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return lists and tuples, as lists, with something else in place of each tensor in them."""
    if isinstance(value, (list, tuple)):
        return [_replaced(one, replace) for one in value]
    return value if value is None or isinstance(value, str) else replace(value)


def _info(look: _Look, value: Any) -> TensorInfo | GradientInfo:
    """Return the info of a tensor that is looked at by itself."""
    found = tensor_info(value, backend.to_numpy(keras.ops.cast(look.limit(value), "float32")))
    return look.info_type(found.bad, found.size, found.dtype, found.largest)


def tensor_info(value: Any, limit: Any = np.inf) -> TensorInfo:
    """Return what a tensor or array holds; integers are all finite.

    Args:
        value: It.
        limit: The largest magnitude of a value that counts as finite.
    """
    name = as_dtype(value.dtype).name
    value = backend.densified(value)
    if is_float_tensor(value) and name in ("float16", "bfloat16"):
        value = keras.ops.cast(value, "float32")
    array = backend.to_numpy(value) if backend.is_tensor(value) else np.asarray(value)
    magnitude = np.abs(array)
    bad = 0
    if array.dtype.kind == "f":
        bad = array.size - int(np.count_nonzero(magnitude <= min(limit, np.finfo(array.dtype).max)))
    return TensorInfo(bad, array.size, name, float(magnitude.max(initial=0)))
