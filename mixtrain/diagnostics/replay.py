"""`Replay`: a batch run forward and backward once more, and what became of each tensor, told by a few numbers."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.counting import in_one_program
from mixtrain.diagnostics.layer_calls import LayerCall, is_float_tensor, layer_gradients, watched
from mixtrain.diagnostics.ranges import largest_magnitude
from mixtrain.dtype import as_dtype


@dataclasses.dataclass(frozen=True)
class TensorFacts:
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
class CallFacts:
    """What one call of a layer took and gave: its path, and the facts of its float tensors."""

    path: str
    inputs: list[TensorFacts]
    outputs: list[TensorFacts]


@dataclasses.dataclass(frozen=True)
class PassFacts:
    """What a pass over a batch came to; the magnitudes are those of gradients.

    Attributes:
        calls: The calls of layers, in the order in which they end.
        loss: The loss.
        of_outputs: The gradients of each call's outputs; None where the loss does not depend on one.
        of_parameters: The gradients of the parameters that a layer owns, by its path; likewise.
    """

    calls: list[CallFacts]
    loss: TensorFacts
    of_outputs: list[list[TensorFacts | None]]
    of_parameters: dict[str, list[TensorFacts | None]]

    @property
    def gradients(self) -> list[TensorFacts]:
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
    """

    def __init__(
        self,
        network: Any,
        loss_of: Callable[..., Any],
        *,
        float32: Callable[[], contextlib.AbstractContextManager[Any]] | None = None,
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> None:
        self._network = network
        self._loss_of = loss_of
        self._float32 = float32
        self._both = _Measured(self._passes, (False, True, True), compiled)
        self._wide = _Measured(self._forward, (True,), compiled)

    def run(self, batch: Sequence[Any], loss_scale: float, another_scale: float) -> tuple[PassFacts, PassFacts]:
        """Run a batch forward and backward at two loss scales; both share the pass forward."""
        scales = [backend.to_tensor(np.float32(scale)) for scale in (loss_scale, another_scale)]
        (calls, loss), one, another = self._both(*scales, *batch)
        calls = [CallFacts(*call) for call in calls]
        return PassFacts(calls, loss, *one), PassFacts(calls, loss, *another)

    def in_float32(self, batch: Sequence[Any]) -> list[CallFacts] | None:
        """Run a batch forward in float32, and tell magnitudes; None where the network cannot be put there."""
        return None if self._float32 is None else [CallFacts(*call) for call in self._wide(*batch)[0]]

    def tensors(self, batch: Sequence[Any]) -> list[LayerCall]:
        """Run a batch forward, and return the tensors themselves."""
        return watched(self._network, lambda: self._loss_of(*batch))[0]

    def _passes(self, loss_scale: Any, another_scale: Any, *batch: Any) -> Any:
        passes = layer_gradients(self._network, lambda: self._loss_of(*batch), [loss_scale, another_scale])
        gradients = [(one.of_outputs, one.of_parameters) for one in passes]
        return (_listed(passes[0].calls), passes[0].loss), *gradients

    def _forward(self, *batch: Any) -> Any:
        with self._float32():  # type: ignore[misc]
            return (_listed(self.tensors(batch)),)


def _listed(calls: Sequence[LayerCall]) -> list[Any]:
    return [(call.path, call.inputs, call.outputs) for call in calls]


@dataclasses.dataclass(frozen=True)
class _Place:
    """Which of the measured tensors one is, and its format."""

    number: int
    dtype: str


class _Measured:
    """A function whose tensors come back as facts; compiled, it returns their numbers alone.

    Args:
        function: Takes tensors; returns parts, of tensors in lists and dicts.
        magnitudes: For each part, whether the largest magnitude of its tensors is looked for.
        compiled: As of `Replay`.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[Any]],
        magnitudes: Sequence[bool],
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None,
    ) -> None:
        self._function = function
        self._magnitudes = magnitudes
        self._form: list[Any] = []
        self._compiled = None if compiled is None else compiled(self._numbers)

    def __call__(self, *inputs: Any) -> Any:
        """Return what the function returns, `TensorFacts` in place of tensors."""
        if self._compiled is None:
            return _replaced(self._function(*inputs), facts_of)
        numbers = map(backend.to_numpy, backend.call_with_branches(self._compiled, *inputs))
        bad, size, largest = (one.tolist() for one in numbers)

        def facts(place: _Place) -> TensorFacts:
            at = place.number
            return TensorFacts(bad[at], size[at], place.dtype, None if largest[at] < 0 else largest[at])

        return _replaced(self._form, facts)

    def _numbers(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """Run the function; return of each tensor the count of values that are not finite, the size, the largest."""
        tensors: list[Any] = []
        places: dict[int, _Place] = {}

        def noted(value: Any) -> _Place:
            # What one layer gives the next one takes.
            if id(value) not in places:
                places[id(value)] = _Place(len(tensors), as_dtype(value.dtype).name)
                tensors.append(value)
            return places[id(value)]

        looked: list[bool] = []
        self._form = []
        for part, looks in zip(self._function(*inputs), self._magnitudes, strict=True):
            self._form.append(_replaced(part, noted))
            looked += [looks] * (len(tensors) - len(looked))
        dense = [backend.densified(value) for value in tensors]
        size = [keras.ops.cast(keras.ops.size(value), "int32") for value in dense]
        bad, largest = in_one_program(_counted(looked), dense)
        return bad, keras.ops.stack(size), largest


def _counted(looked: Sequence[bool]) -> Callable[..., tuple[Any, Any]]:
    """Return what counts the values of tensors that are not finite, and finds the largest magnitude of some of them.

    Args:
        looked: Whether the magnitude of each is looked for; it is -1 where it is not.
    """

    def count(*tensors: Any) -> tuple[Any, Any]:
        bad, tops = [], []
        for value, looks in zip(tensors, looked, strict=True):
            bad.append(_not_finite(value))
            tops.append(largest_magnitude(value) if looks else np.float32(-1))
        return keras.ops.stack(bad), keras.ops.stack(tops)

    return count


def _not_finite(value: Any) -> Any:
    # Rows are added up in float32, which XLA does faster; a whole tensor may have more than float32 counts.
    finite = keras.ops.cast(keras.ops.isfinite(keras.ops.cast(value, "float32")), "float32")
    rows = keras.ops.sum(finite, axis=-1) if finite.ndim else finite
    return keras.ops.size(value) - keras.ops.sum(keras.ops.cast(rows, "int32"))


def _replaced(value: Any, replace: Callable[[Any], Any]) -> Any:
    """Return lists and dicts with something else in place of each tensor in them."""
    if isinstance(value, (list, tuple)):
        return [_replaced(one, replace) for one in value]
    if isinstance(value, dict):
        return {key: _replaced(one, replace) for key, one in value.items()}
    return value if value is None or isinstance(value, str) else replace(value)


def facts_of(value: Any) -> TensorFacts:
    """Return what a tensor or array holds; integers are all finite."""
    name = as_dtype(value.dtype).name
    value = backend.densified(value)
    if is_float_tensor(value) and name in ("float16", "bfloat16"):
        value = keras.ops.cast(value, "float32")
    array = backend.to_numpy(value) if backend.is_tensor(value) else np.asarray(value)
    bad = int((~np.isfinite(array)).sum()) if array.dtype.kind == "f" else 0
    return TensorFacts(bad, array.size, name, float(np.abs(array).max(initial=0)))
