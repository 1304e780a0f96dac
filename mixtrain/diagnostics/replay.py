"""`Replay`: runs a batch forward and backward again, and returns a few numbers about each tensor."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.counting import in_one_program
from mixtrain.diagnostics.float8_scales import scaled_layers
from mixtrain.diagnostics.layer_calls import (
    LayerCall,
    as_tuples,
    called_path,
    is_float_tensor,
    layer_gradients,
    parameters_by_path,
    record_calls,
)
from mixtrain.diagnostics.ranges import INFINITY_BITS, largest_bits, magnitudes
from mixtrain.dtype import as_dtype, float_format
from mixtrain.typing import Network, Tensor, TensorLike, Tree

# The layers to keep in float32, and whether float32 has finite gradients.
_Cure: TypeAlias = tuple[tuple[str, ...], bool]
# Cures by the kind and layer of a finding; then by the layers that overflow in the pass it was found in, and those with
# tensors beyond the range of half.
Cures: TypeAlias = dict[tuple[str, str | None], dict[tuple[frozenset[str], frozenset[str]], _Cure]]


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """The values of a tensor in numbers: how many there are, how many are not finite, and how many of these are NaN.

    `largest`: The largest magnitude; not finite if a value is not; None if it was not computed.
    """

    non_finite: int
    nan: int
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
    unless one of them overflows. `overflowing` counts values that are not finite at the larger scale, `nan` those that
    are NaN; `largest` is the largest magnitude at the scale of the pass. `dtype`: Its dtype, or that which it is cast
    to next.
    """

    overflowing: int
    nan: int
    size: int
    dtype: str
    largest: float

    @property
    def finite(self) -> bool:
        """Whether every value is finite at the scale of the pass."""
        return self.largest <= float_format(self.dtype).max


@dataclasses.dataclass(frozen=True)
class PassInfo:
    """Result of a forward and backward pass over a batch.

    `added`: The losses that layers added, with the layers' paths. `of_outputs`: The gradients of each call's outputs,
    None for one that the loss does not depend on. `of_inputs`: Those of its inputs, if requested. `of_parameters`:
    Likewise those of the parameters that each layer owns, by its path.
    """

    calls: list[CallInfo]
    loss: TensorInfo
    added: list[tuple[str, TensorInfo]]
    of_outputs: list[list[GradientInfo | None]]
    of_inputs: list[list[GradientInfo | None]]
    of_parameters: dict[str, list[GradientInfo | None]]

    @property
    def gradients(self) -> list[GradientInfo]:
        groups = (*self.of_outputs, *self.of_parameters.values())
        return [gradient for group in groups for gradient in group if gradient is not None]

    @property
    def finite(self) -> bool:
        """Whether the loss and every gradient are finite."""
        return self.loss.finite and all_finite(self.gradients)


class Replay:
    """Runs batches again; variables that the forward pass writes (moving statistics, random states) are restored.

    `network`: The network to inspect. `loss_of`: Takes the columns of a batch, runs `network` and returns the loss.
    `float32`: Takes paths of layers, "" for the whole network, and returns a context manager in which these compute in
    float32; None if that is not possible. `compiled`: Compiles a function of tensors; None to run layer by layer, which
    is faster for the first few batches. `computes_in`: The dtype that each layer computes in, by its path, where it may
    be another than that of its outputs. `cures`: What was found before; what is found is added.

    `parameters`: The parameters whose gradients are measured, by the path of the layer that owns them. `clips`: Whether
    layers clip values to a scale that they keep, so that an infinite input gives finite outputs.
    """

    def __init__(
        self, network: Network, loss_of: Callable[..., Tensor], *,
        float32: Callable[[Sequence[str]], contextlib.AbstractContextManager[Any]] | None = None,
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
        computes_in: Mapping[str, str] = MappingProxyType({}),
        cures: Cures | None = None,
    ) -> None:
        self.parameters = parameters_by_path(network)
        self.clips = bool(scaled_layers(network))
        self.computes_in = computes_in
        self.cures: Cures = {} if cures is None else cures
        self._network = network
        self._loss_of = loss_of
        self._float32 = float32
        self._compiled = compiled
        self._measured_pass = _Measured(self._pass, compiled)

    @functools.cached_property
    def _float32_forward(self) -> _Measured:
        return _Measured(self._forward, self._compiled)

    @functools.cached_property
    def _float32_pass(self) -> _Measured:
        return _Measured(functools.partial(self._pass, kept=("",), in_detail=True), self._compiled)

    def run(self, batch: Sequence[Tree], loss_scale: float, factor: float = 1.0) -> PassInfo:
        """Run a batch forward and backward; overflows are counted at `factor` times `loss_scale`."""
        return self._info(self._measured_pass, batch, loss_scale, factor)

    def in_float32(self, batch: Sequence[Tree], loss_scale: float = 1.0) -> PassInfo | None:
        """Run a batch in float32, with the magnitudes of inputs and outputs and the gradients of inputs; None if the
        network cannot compute in float32."""
        if self._float32 is None:
            return None
        with self._float32([""]):
            return self._info(self._float32_pass, batch, loss_scale)

    def forward_in_float32(self, batch: Sequence[Tree]) -> PassInfo | None:
        """Do the same as `in_float32` without the backward pass, so without gradients."""
        if self._float32 is None:
            return None
        with self._float32([""]):
            calls, loss, added = self._float32_forward(*batch)
        return PassInfo([CallInfo(*call) for call in calls], loss, [tuple(row) for row in added], [], [], {})

    def keeping_float32(self, paths: Sequence[str], batch: Sequence[Tree], loss_scale: float) -> PassInfo:
        """Run a batch with some layers in float32."""
        if self._float32 is None:
            raise RuntimeError("Replay: a network that cannot compute in float32")
        with self._float32(paths):
            return self._info(_Measured(functools.partial(self._pass, kept=paths), self._compiled), batch, loss_scale)

    def _info(
        self, measured: _Measured, batch: Sequence[Tree], loss_scale: float, factor: float = 1.0
    ) -> PassInfo:
        scales = backend.to_tensor(np.array([loss_scale, factor], np.float32))
        calls, loss, added, of_inputs, *of_tensors = measured(scales, *batch)
        of_outputs, of_parameters = of_tensors[: len(calls)], of_tensors[len(calls) :]
        by_path = dict(zip(self.parameters, of_parameters, strict=True))
        return PassInfo(
            [CallInfo(*call) for call in calls], loss, [tuple(row) for row in added], of_outputs, of_inputs, by_path
        )

    def tensors(self, batch: Sequence[Tree]) -> list[LayerCall]:
        return record_calls(self._network, lambda: self._loss_of(*batch)).calls

    def half_of(self, path: str, kept: Sequence[str] = ()) -> str | None:
        """Return the half dtype that a layer computes in; None if it is another, unknown, or kept in float32."""
        name = self.computes_in.get(path)
        return name if name in ("float16", "bfloat16") and not any(is_within(path, other) for other in kept) else None

    def _pass(
        self, scales: Tensor, *batch: Tensor, kept: Sequence[str] = (), in_detail: bool = False
    ) -> list[_Query]:
        loss_scale, factor = scales[0], scales[1]
        gradients = layer_gradients(
            self._network, lambda: self._loss_of(*batch), loss_scale, with_inputs=in_detail
        )
        dtypes: dict[str, list[str]] = {}
        for call in gradients.calls:
            names = (as_dtype(value.dtype).name for value in call.outputs)
            dtypes.setdefault(call.path, []).extend([*names, *filter(None, [self.half_of(call.path, kept)])])
        # Parameters are cast to half in the forward pass: a float32 gradient is a cast, or a sum, of half gradients.
        of_parameters = [
            _Query(
                gradients.of_parameters[path], GradientInfo, factor, tuple(dtypes.get(called_path(path, dtypes), ())),
                magnitudes=True,
            )
            for path in self.parameters
        ]
        # A layer that computes in half casts the float32 gradient of its output, if no layer inside it does.
        leaves = {path for path in dtypes if not any(other != path and is_within(other, path) for other in dtypes)}
        of_outputs = [
            _Query(
                group, GradientInfo, factor, magnitudes=True,
                cast=self.half_of(call.path, kept) if call.path in leaves else None,
            )
            for call, group in zip(gradients.calls, gradients.of_outputs, strict=True)
        ]
        return [
            _Query(as_tuples(gradients.calls), magnitudes=in_detail), _Query(gradients.loss),
            _Query(gradients.added, magnitudes=in_detail),
            _Query(gradients.of_inputs, GradientInfo, factor, magnitudes=True), *of_outputs, *of_parameters,
        ]

    def _forward(self, *batch: Tensor) -> list[_Query]:
        recorded = record_calls(self._network, lambda: self._loss_of(*batch))
        calls, added = as_tuples(recorded.calls), recorded.added
        return [_Query(calls, magnitudes=True), _Query(recorded.loss), _Query(added, magnitudes=True)]


def all_finite(tensors: Iterable[TensorInfo | GradientInfo | None]) -> bool:
    """Whether tensors are finite; None, for a gradient that there is not, is."""
    return all(tensor is None or tensor.finite for tensor in tensors)


def is_within(path: str, other: str) -> bool:
    """Whether a path is another one or inside it."""
    return not other or path == other or path.startswith((f"{other}/", f"{other}."))


class _Query(NamedTuple):
    """Tensors in lists and tuples, and which info is requested of them.

    `factor`: What values are multiplied by before they are checked to be finite. `dtypes`: If it is more than 1, dtypes
    besides their own in which the products must be finite. `magnitudes`: Whether the largest magnitude is computed, as
    `GradientInfo` requires. `cast`: A dtype that the values are cast to next, in which they must be finite.
    """

    tensors: Tree
    info_type: Callable[..., TensorInfo | GradientInfo] = TensorInfo
    factor: Tensor | None = None
    dtypes: tuple[str, ...] = ()
    magnitudes: bool = False
    cast: str | None = None

    def dtype_of(self, value: Tensor) -> str:
        """Return the dtype in which the values of a tensor must be finite."""
        name = as_dtype(value.dtype).name
        return self.cast if self.cast is not None and name == "float32" else name

    def limit(self, value: Tensor) -> Tensor:
        """Return the largest magnitude that counts as finite in a tensor, float32."""
        if not is_float_tensor(value):
            return np.float32(np.inf)
        own, *others = (np.float32(float_format(name).max) for name in (self.dtype_of(value), *self.dtypes))
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
        self._compiled = None if compiled is None else backend.called_directly(compiled(self._numbers))

    def __call__(self, *inputs: Tensor) -> list[Any]:
        """Call the function, and return its results with info in place of tensors."""
        if self._compiled is None:
            return [_map_tensors(functools.partial(_info, query), query.tensors) for query in self._function(*inputs)]
        (numbers,) = backend.call_with_branches(self._compiled, *inputs)
        non_finite, nan, size, bits = backend.to_numpy(numbers)
        largest = [value if known else None for known, value in zip(bits >= 0, magnitudes(bits).tolist(), strict=True)]

        def info(slot: _Slot) -> TensorInfo | GradientInfo:
            index = slot.index
            return slot.info_type(int(non_finite[index]), int(nan[index]), int(size[index]), slot.dtype, largest[index])

        return [_map_tensors(info, part) for part in self._structure]

    def _numbers(self, *inputs: Tensor) -> tuple[Tensor]:
        """Run the function, and return the numbers of each tensor of its queries, int32 (4, tensors), in a tuple.

        They are the number of non-finite values, that of NaN, the size, and the result of `largest_bits`, negative if
        it was not computed.
        """
        tensors: list[Tensor] = []
        limits: list[Tensor] = []
        with_largest: list[bool] = []
        slots: dict[Hashable, _Slot] = {}

        def slot_of(query: _Query, value: Tensor) -> _Slot:
            # The output of one layer is the input of the next: it is measured once.
            key = id(value), query.info_type, query.dtypes, query.cast
            if key not in slots:
                slots[key] = _Slot(len(tensors), query.dtype_of(value), query.info_type)
                tensors.append(value)
                limits.append(keras.ops.cast(query.limit(value), "float32"))
                with_largest.append(query.magnitudes)
            return slots[key]

        queries = self._function(*inputs)
        self._structure = [_map_tensors(functools.partial(slot_of, query), query.tensors) for query in queries]
        dense = [backend.densified(value) for value in tensors]
        size = [keras.ops.cast(keras.ops.size(value), "int32") for value in dense]
        non_finite, nan, largest = in_one_program(_measure(with_largest), [keras.ops.stack(limits), *dense])
        return (keras.ops.stack([non_finite, nan, keras.ops.stack(size), largest]),)


def _measure(with_largest: Sequence[bool]) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Return a function that counts the values of tensors beyond limits and NaN, and finds the largest magnitudes."""

    def measure(limits: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        counts = keras.ops.stack([_count_beyond(value, limits[index]) for index, value in enumerate(tensors)])
        bits = keras.ops.stack([
            largest_bits(value) if wanted else np.int32(-1) for value, wanted in zip(tensors, with_largest, strict=True)
        ])
        # NaN is beyond every limit and above all other bits: most often nothing has to be counted.
        any_nan = keras.ops.any(keras.ops.where(bits >= 0, bits > INFINITY_BITS, counts > 0))
        nan_counts = keras.ops.cond(
            any_nan,
            lambda: keras.ops.stack([_count(keras.ops.isnan(value)) for value in tensors]),
            lambda: keras.ops.zeros_like(counts),
        )
        return counts, nan_counts, bits

    return measure


def _count(chosen: Tensor) -> Tensor:
    """Return the number of True values."""
    return keras.ops.sum(keras.ops.cast(chosen, "int32"))


def _count_beyond(value: Tensor, limit: Tensor) -> Tensor:
    """Return how many values have a magnitude above a limit, or are nan."""
    within = keras.ops.abs(keras.ops.cast(value, "float32")) <= limit
    return keras.ops.size(value) - _count(within)


def _map_tensors(function: Callable[[Tensor], Any], value: Tree) -> Any:
    """Apply a function to each tensor in nested lists and tuples, and return nested lists."""
    if isinstance(value, (list, tuple)):
        return [_map_tensors(function, item) for item in value]
    return value if value is None or isinstance(value, str) else function(value)


def _info(query: _Query, value: Tensor) -> TensorInfo | GradientInfo:
    info = tensor_info(value, backend.to_numpy(keras.ops.cast(query.limit(value), "float32")))
    return query.info_type(info.non_finite, info.nan, info.size, query.dtype_of(value), info.largest)


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
    nan = int(np.count_nonzero(np.isnan(array))) if array.dtype.kind == "f" else 0
    return TensorInfo(non_finite, nan, array.size, name, float(magnitude.max(initial=0)))
