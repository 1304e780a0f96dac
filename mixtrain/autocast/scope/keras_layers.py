"""Keras under an autocast: how a layer of Keras's is called, and in which format it computes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import keras

from mixtrain.autocast.state import (
    Autocast, autocast_in_force, autocasting, float_formats, is_symbolic, widest,
)
from mixtrain.autocast.operator_lists import OperatorClass
from mixtrain.cell.autocast import listed_name
from mixtrain.cell.layer import CellLayer
from mixtrain.dtype import DType, float32, float64
from mixtrain.network.keras_own import keras_owns
from mixtrain.precision.cast import cast_floats
from mixtrain.precision.families import rule_giver
from mixtrain.precision.formats import reason_to_stay
from mixtrain.precision.plan import planned_rule
from mixtrain.precision.plan_request import request_of


@dataclasses.dataclass(frozen=True)
class LayerCall:
    """How one call of a layer computes.

    Attributes:
        layer: The layer.
        dtype: The format it computes in; None for its own.
        takes_all: Whether inputs and variables come as they are.
        returns: The format of float outputs; None for what it computes.
    """

    layer: Any
    dtype: DType | None = None
    takes_all: bool = False
    returns: DType | None = None


_calling: ContextVar[LayerCall | None] = ContextVar("mixtrain_layer_call", default=None)


def compute_dtype_of(layer: Any) -> DType | None:
    """Return the format that a layer computes in under the autocast in force; None for its own."""
    call = _calling.get()
    if call is not None and call.layer is layer:
        return call.dtype
    state = autocast_in_force()
    if state is None or _has_own_format(layer):
        return None
    return _format_of_class(layer, state)


def takes_all(layer: Any) -> bool:
    """Whether the call of a layer that is running takes inputs and variables as they are."""
    call = _calling.get()
    return call is not None and call.layer is layer and call.takes_all


def layer_call(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return `keras.Layer.__call__` as it is under an autocast."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        state = autocast_in_force()
        if state is None:
            return original(self, *args, **kwargs)
        if is_symbolic((args, kwargs)):  # A model is being built: what it computes in is decided when it runs.
            with autocasting(None):
                return original(self, *args, **kwargs)
        how, inside = _decide(self, state, float_formats((args, kwargs), numpy_as_float32=True))
        token = _calling.set(how)
        try:
            with inside:
                outputs = original(self, *args, **kwargs)
        finally:
            _calling.reset(token)
        return cast_floats(outputs, how.returns)

    return call


def operation_call(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return `keras.Operation.__call__` as it is under an autocast: for the operations of functional models."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        state = autocast_in_force()
        if state is None or isinstance(self, keras.Layer) or planned_rule(self) or is_symbolic((args, kwargs)):
            return original(self, *args, **kwargs)
        args, kwargs = state.cast(type(self).__name__, args, kwargs)
        return original(self, *args, **kwargs)

    return call


def operator_call(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `keras.ops` as it is under an autocast."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        state = autocast_in_force()
        if state is not None and not is_symbolic((args, kwargs)):
            args, kwargs = state.cast(name, args, kwargs)
        return original(*args, **kwargs)

    return call


def _decide(
    layer: Any, state: Autocast, formats: set[DType]
) -> tuple[LayerCall, contextlib.AbstractContextManager[None]]:
    """Return how a layer is called, and what puts in force what holds for the operators inside."""
    same: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    library = keras_owns(type(layer)) and not isinstance(layer, (keras.Model, keras.layers.Lambda))
    planned, request = planned_rule(layer), request_of(layer)
    if planned is not None or request is not None:
        by_user = planned is None or planned.by_user
        asked = request.dtype if planned is None and request is not None else None
        return LayerCall(layer, asked), autocasting(None) if by_user or library else same
    if _has_own_format(layer):
        return LayerCall(layer), autocasting(None) if library else same
    if float64 in formats and (library or _class_of(layer, state)):
        return LayerCall(layer), autocasting(None)
    dtype = _format_of_class(layer, state)
    if dtype is not None:
        returns = _returns(layer, dtype)
        if state.covering or dtype != float32:
            covers = state.covering or _is_recurrent(layer, state)
            return LayerCall(layer, dtype), autocasting(dataclasses.replace(state, covering=True)) if covers else same
        return LayerCall(layer, dtype, returns=returns), autocasting(None)
    if library and not isinstance(layer, keras.layers.Wrapper):
        return LayerCall(layer, widest(formats) if formats else None), autocasting(None)
    return LayerCall(layer, takes_all=True), same


def _format_of_class(layer: Any, state: Autocast) -> DType | None:
    """Return the format that the row of a layer's class means; None where its inputs decide."""
    if isinstance(layer, CellLayer):
        return None
    if state.covering:
        return state.dtype
    kind = _class_of(layer, state)
    if kind != "promote" and not _is_recurrent(layer, state) and _ends_in_float32(layer, state):
        return float32
    if kind == "half":
        return state.dtype
    return float32 if kind == "float32" else None


def _class_of(layer: Any, state: Autocast) -> OperatorClass | None:
    """Return the class of the row of a Keras layer's class; None where there is none."""
    name = listed_name(type(rule_giver(layer)), state, keras_owns)
    return None if name is None else state.listed(name)


def _is_recurrent(layer: Any, state: Autocast) -> bool:
    name = listed_name(type(rule_giver(layer)), state, keras_owns)
    return name is not None and state.is_recurrent(name)


def _ends_in_float32(layer: Any, state: Autocast) -> bool:
    """Whether a layer ends in a function of Keras's that computes in float32, a softmax say; then all of it does.

    A layer has one format, and Keras's layers hold the function itself, which nothing can stand before.
    """
    activation = getattr(rule_giver(layer), "activation", None)
    of_keras = keras_owns(activation)
    return of_keras and state.listed(getattr(activation, "__name__", "")) == "float32"


def _returns(layer: Any, dtype: DType) -> DType | None:
    """Return the format of the layer that calls this one where it is in half: a softmax inside an attention, say."""
    above = _calling.get()
    return above.dtype if above is not None and above.dtype not in (None, dtype) and not above.takes_all else None


def _has_own_format(layer: Any) -> bool:
    """Whether a layer was given a dtype policy of its own, which stands, or computes no floats."""
    if isinstance(layer, CellLayer) or reason_to_stay(layer) is not None:
        return True
    return bool(layer.dtype_policy.compute_dtype != float32)
