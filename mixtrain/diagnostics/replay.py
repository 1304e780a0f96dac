"""`Replay`: runs a batch forward and backward again, and returns a few numbers about each tensor."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.counting import in_one_program
from mixtrain.diagnostics.layer_calls import (
    LayerCall,
    called_path,
    is_float_tensor,
    layer_gradients,
    parameters_by_path,
    record_calls,
)
from mixtrain.diagnostics.ranges import largest_bits, magnitudes
from mixtrain.dtype import as_dtype, float_format
from mixtrain.typing import Network, Tensor, TensorLike, Tree


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """The values of a tensor in numbers: how many there are, and how many are not finite.

    `largest`: The largest magnitude; not finite if a value is not; None if it was not computed.
    """

    non_finite: int
    size: int
    dtype: str
    largest: float | None

    @property
    def finite(self) -> bool:
        return self.non_finite == 0


@dataclasses.dataclass(frozen=True)
class CallInfo:
    """One call of a layer: its path, and the info of its float inputs and outputs."""

    path: str
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]


@dataclasses.dataclass(frozen=True)
class GradientInfo:
    """The values of a gradient in numbers, at the loss scale of a pass and at a larger one.

    Backward passes are linear: a scale that is larger by a power of two multiplies each value by that power, exactly,
    unless one of them overflows. `overflowing` counts values that are not finite at the larger scale; `largest` is the
    largest magnitude at the scale of the pass.
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
    """Result of a forward and backward pass over a batch.

    `of_outputs`: The gradients of each call's outputs, None for one that the loss does not depend on. `of_parameters`:
    Likewise those of the parameters that each layer owns, by its path.
    """

    calls: list[CallInfo]
    loss: TensorInfo
    of_outputs: list[list[GradientInfo | None]]
    of_parameters: dict[str, list[GradientInfo | None]]

    @property
    def gradients(self) -> list[GradientInfo]:
        groups = (*self.of_outputs, *self.of_parameters.values())
        return [gradient for group in groups for gradient in group if gradient is not None]


class Replay:
    """Runs batches again; variables that the forward pass writes (moving statistics, random states) are restored.

    `network`: The network to inspect. `loss_of`: Takes the columns of a batch, runs `network` and returns the loss.
    `float32`: A context manager in which the network computes in float32; None if that is not possible. `compiled`:
    Compiles a function of tensors; None to run layer by layer, which is faster for the first few batches.

    `parameters`: The parameters whose gradients are measured, by the path of the layer that owns them.
    """

    def __init__(
        self, network: Network, loss_of: Callable[..., Tensor], *,
        float32: Callable[[], contextlib.AbstractContextManager[Any]] | None = None,
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> None:
        self.parameters = parameters_by_path(network)
        self._network = network
        self._loss_of = loss_of
        self._float32 = float32
        self._measured_pass = _Measured(self._pass, compiled)
        self._measured_forward = _Measured(self._forward, compiled)

    def run(self, batch: Sequence[Tree], loss_scale: float, factor: float = 1.0) -> PassInfo:
        """Run a batch forward and backward; overflows are counted at `factor` times `loss_scale`."""
        scales = backend.to_tensor(np.array([loss_scale, factor], np.float32))
        calls, loss, of_outputs, *of_parameters = self._measured_pass(scales, *batch)
        by_path = dict(zip(self.parameters, of_parameters, strict=True))
        return PassInfo([CallInfo(*call) for call in calls], loss, of_outputs, by_path)

    def in_float32(self, batch: Sequence[Tree]) -> list[CallInfo] | None:
        """Run a batch forward in float32, and return magnitudes; None if the network cannot compute in float32."""
        return None if self._float32 is None else [CallInfo(*call) for call in self._measured_forward(*batch)[0]]

    def tensors(self, batch: Sequence[Tree]) -> list[LayerCall]:
        return record_calls(self._network, lambda: self._loss_of(*batch))[0]

    def _pass(self, scales: Tensor, *batch: Tensor) -> list[_Query]:
        loss_scale, factor = scales[0], scales[1]
        gradients = layer_gradients(self._network, lambda: self._loss_of(*batch), loss_scale)
        dtypes: dict[str, list[str]] = {}
        for call in gradients.calls:
            dtypes.setdefault(call.path, []).extend(as_dtype(value.dtype).name for value in call.outputs)
        # Parameters are cast to half in the forward pass: a float32 gradient is a cast, or a sum, of half gradients.
        of_parameters = [
            _Query(
                gradients.of_parameters[path], GradientInfo, factor, tuple(dtypes.get(called_path(path, dtypes), ())),
                magnitudes=True,
            )
            for path in self.parameters
        ]
        of_outputs = _Query(gradients.of_outputs, GradientInfo, factor, magnitudes=True)
        return [_Query(_as_tuples(gradients.calls)), _Query(gradients.loss), of_outputs, *of_parameters]

    def _forward(self, *batch: Tensor) -> list[_Query]:
        with self._float32():  # type: ignore[misc]
            return [_Query(_as_tuples(self.tensors(batch)), magnitudes=True)]


def _as_tuples(calls: Sequence[LayerCall]) -> list[Any]:
    return [(call.path, call.inputs, call.outputs) for call in calls]


class _Query(NamedTuple):
    """Tensors in lists and tuples, and which info is requested of them.

    `factor`: What values are multiplied by before they are checked to be finite. `dtypes`: If it is more than 1, dtypes
    besides their own in which the products must be finite. `magnitudes`: Whether the largest magnitude is computed, as
    `GradientInfo` requires.
    """

    tensors: Tree
    info_type: Callable[..., TensorInfo | GradientInfo] = TensorInfo
    factor: Tensor | None = None
    dtypes: tuple[str, ...] = ()
    magnitudes: bool = False

    def limit(self, value: Tensor) -> Tensor:
        """Return the largest magnitude that counts as finite in a tensor, float32."""
        if not is_float_tensor(value):
            return np.float32(np.inf)
        own, *others = (np.float32(float_format(name).max) for name in (as_dtype(value.dtype).name, *self.dtypes))
        if self.factor is None:
            return own
        return keras.ops.where(self.factor > 1, min([own, *others]) / self.factor, own)


@dataclasses.dataclass(frozen=True)
class _Slot:
    """A measured tensor: its index, its dtype, and the class of its info."""

    index: int
    dtype: str
    info_type: Callable[..., TensorInfo | GradientInfo]


class _Measured:
    """A function from tensors to queries that returns info for tensors; if compiled, only numbers leave the program."""

    def __init__(
        self, function: Callable[..., Sequence[_Query]],
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None,
    ) -> None:
        self._function = function
        # The nested lists of the queries with a `_Slot` for each tensor, set when the function is traced.
        self._structure: list[Any] = []
        self._compiled = None if compiled is None else compiled(self._numbers)

    def __call__(self, *inputs: Tensor) -> list[Any]:
        """Call the function, and return its results with info in place of tensors."""
        if self._compiled is None:
            return [_map_tensors(functools.partial(_info, query), query.tensors) for query in self._function(*inputs)]
        non_finite, size, bits = backend.to_numpy(backend.call_with_branches(self._compiled, *inputs))
        largest = [value if known else None for known, value in zip(bits >= 0, magnitudes(bits).tolist(), strict=True)]

        def info(slot: _Slot) -> TensorInfo | GradientInfo:
            return slot.info_type(int(non_finite[slot.index]), int(size[slot.index]), slot.dtype, largest[slot.index])

        return [_map_tensors(info, part) for part in self._structure]

    def _numbers(self, *inputs: Tensor) -> Tensor:
        """Run the function, and return the numbers of each tensor of its queries, int32 (3, tensors).

        They are the number of non-finite values, the size, and the result of `largest_bits`, negative if it was not
        computed.
        """
        tensors: list[Tensor] = []
        limits: list[Tensor] = []
        with_largest: list[bool] = []
        slots: dict[Hashable, _Slot] = {}

        def slot_of(query: _Query, value: Tensor) -> _Slot:
            # The output of one layer is the input of the next: it is measured once.
            key = id(value), query.info_type, query.dtypes
            if key not in slots:
                slots[key] = _Slot(len(tensors), as_dtype(value.dtype).name, query.info_type)
                tensors.append(value)
                limits.append(keras.ops.cast(query.limit(value), "float32"))
                with_largest.append(query.magnitudes)
            return slots[key]

        queries = self._function(*inputs)
        self._structure = [_map_tensors(functools.partial(slot_of, query), query.tensors) for query in queries]
        dense = [backend.densified(value) for value in tensors]
        size = [keras.ops.cast(keras.ops.size(value), "int32") for value in dense]
        non_finite, largest = in_one_program(_measure(with_largest), [keras.ops.stack(limits), *dense])
        return keras.ops.stack([non_finite, keras.ops.stack(size), largest])


def _measure(with_largest: Sequence[bool]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return a function that counts the values of tensors beyond limits, and finds the largest magnitude of some."""

    def measure(limits: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        counts, bits = [], []
        for index, (value, wants_largest) in enumerate(zip(tensors, with_largest, strict=True)):
            counts.append(_count_beyond(value, limits[index]))
            bits.append(largest_bits(value) if wants_largest else np.int32(-1))
        return keras.ops.stack(counts), keras.ops.stack(bits)

    return measure


def _count_beyond(value: Tensor, limit: Tensor) -> Tensor:
    """Return how many values have a magnitude above a limit, or are nan."""
    within = keras.ops.abs(keras.ops.cast(value, "float32")) <= limit
    return keras.ops.size(value) - keras.ops.sum(keras.ops.cast(within, "int32"))


def _map_tensors(function: Callable[[Tensor], Any], value: Tree) -> Any:
    """Apply a function to each tensor in nested lists and tuples, and return nested lists."""
    if isinstance(value, (list, tuple)):
        return [_map_tensors(function, item) for item in value]
    return value if value is None or isinstance(value, str) else function(value)


def _info(query: _Query, value: Tensor) -> TensorInfo | GradientInfo:
    info = tensor_info(value, backend.to_numpy(keras.ops.cast(query.limit(value), "float32")))
    return query.info_type(info.non_finite, info.size, info.dtype, info.largest)


def tensor_info(value: TensorLike, limit: float | np.ndarray = np.inf) -> TensorInfo:
    """Compute the info of a tensor or array; all integers are finite, and floats up to `limit`."""
    name = as_dtype(value.dtype).name
    value = backend.densified(value)
    if is_float_tensor(value) and name in ("float16", "bfloat16"):
        value = keras.ops.cast(value, "float32")
    array = backend.to_numpy(value) if backend.is_tensor(value) else np.asarray(value)
    magnitude = np.abs(array)
    non_finite = 0
    if array.dtype.kind == "f":
        non_finite = array.size - int(np.count_nonzero(magnitude <= min(limit, np.finfo(array.dtype).max)))
    return TensorInfo(non_finite, array.size, name, float(magnitude.max(initial=0)))
