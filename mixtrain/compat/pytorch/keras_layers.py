"""Keras layers and operators under an autocast: the dtype in which a call computes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import keras

from mixtrain.autocast.operator_lists import OperatorClass
from mixtrain.autocast.state import Autocast, autocast_in_force, autocasting, float_dtypes, is_symbolic, widest
from mixtrain.cell.autocast import listed_name
from mixtrain.cell.layer import CellLayer
from mixtrain.dtype import DType, float32, float64
from mixtrain.network.keras_own import keras_owns
from mixtrain.network.marks import PLANNED_RULE, REQUEST
from mixtrain.precision.cast import cast_floats
from mixtrain.precision.dtypes import reason_to_stay
from mixtrain.precision.families import rule_giver


@dataclasses.dataclass(frozen=True)
class LayerCall:
    """The dtypes of one call of a layer.

    Attributes:
        layer: The layer.
        dtype: The dtype in which the layer computes; None for its own.
        takes_all: Whether inputs and variables are not cast.
        returns: The dtype to which floating-point outputs are cast; None for no cast.
    """

    layer: Any
    dtype: DType | None = None
    takes_all: bool = False
    returns: DType | None = None


_calling: ContextVar[LayerCall | None] = ContextVar("mixtrain_layer_call", default=None)


def compute_dtype_of(layer: Any) -> DType | None:
    """Return the dtype in which a layer computes under the autocast in force; None for its own."""
    call = _calling.get()
    if call is not None and call.layer is layer:
        return call.dtype
    state = autocast_in_force()
    if state is None or _has_own_dtype(layer):
        return None
    return _dtype_by_class(layer, state)


def takes_all(layer: Any) -> bool:
    """Whether the running call of a layer takes inputs and variables without a cast."""
    call = _calling.get()
    return call is not None and call.layer is layer and call.takes_all


def layer_call(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `keras.Layer.__call__`."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        state = autocast_in_force()
        if state is None:
            return original(self, *args, **kwargs)
        if is_symbolic((args, kwargs)):  # A model is being built; dtypes are decided when it runs.
            with autocasting(None):
                return original(self, *args, **kwargs)
        decision, inner_scope = _decide(self, state, float_dtypes((args, kwargs), numpy_as_float32=True))
        token = _calling.set(decision)
        try:
            with inner_scope:
                outputs = original(self, *args, **kwargs)
        finally:
            _calling.reset(token)
        return cast_floats(outputs, decision.returns)

    return call


def operation_call(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of `keras.Operation.__call__`, which the operations of functional models use."""

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        state = autocast_in_force()
        if state is None or isinstance(self, keras.Layer) or PLANNED_RULE.of(self) or is_symbolic((args, kwargs)):
            return original(self, *args, **kwargs)
        args, kwargs = state.cast(type(self).__name__, args, kwargs)
        return original(self, *args, **kwargs)

    return call


def operator_call(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement of a function of `keras.ops`."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        state = autocast_in_force()
        if state is not None and not is_symbolic((args, kwargs)):
            args, kwargs = state.cast(name, args, kwargs)
        return original(*args, **kwargs)

    return call


def _decide(
    layer: Any, state: Autocast, dtypes: set[DType]
) -> tuple[LayerCall, contextlib.AbstractContextManager[None]]:
    """Return the dtypes of a layer's call, and the scope for the operators inside it.

    `layer`: The layer. `state`: The autocast in force. `dtypes`: The dtypes of its floating-point inputs.
    """
    same: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    # The code inside a layer of Keras's own is written for one dtype, so autocast ends there. A Model or Lambda runs
    # code of the user's.
    library = keras_owns(type(layer)) and not isinstance(layer, (keras.Model, keras.layers.Lambda))
    planned, request = PLANNED_RULE.of(layer), REQUEST.of(layer)
    # A plan, or a `to_float` without one, beats autocast.
    if planned is not None or request is not None:
        by_user = planned is None or planned.by_user
        requested = request.dtype if planned is None and request is not None else None
        return LayerCall(layer, requested), autocasting(None) if by_user or library else same
    if _has_own_dtype(layer):
        return LayerCall(layer), autocasting(None) if library else same
    if float64 in dtypes and (library or _class_of(layer, state)):
        return LayerCall(layer), autocasting(None)
    dtype = _dtype_by_class(layer, state)
    if dtype is not None:
        returns = _returns(layer, dtype)
        if state.covering or dtype != float32:
            covers = state.covering or _is_recurrent(layer, state)
            return LayerCall(layer, dtype), autocasting(dataclasses.replace(state, covering=True)) if covers else same
        return LayerCall(layer, dtype, returns=returns), autocasting(None)
    # Without a row, a layer of Keras's computes in the widest dtype of its inputs, a user's layer as written.
    if library and not isinstance(layer, keras.layers.Wrapper):
        return LayerCall(layer, widest(dtypes) if dtypes else None), autocasting(None)
    return LayerCall(layer, takes_all=True), same


def _dtype_by_class(layer: Any, state: Autocast) -> DType | None:
    """Return the dtype for the row of a layer's class; None if its inputs decide."""
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
    """Return the operator class of a Keras layer; None without a row in the table."""
    name = listed_name(type(rule_giver(layer)), state, keras_owns)
    return None if name is None else state.listed(name)


def _is_recurrent(layer: Any, state: Autocast) -> bool:
    name = listed_name(type(rule_giver(layer)), state, keras_owns)
    return name is not None and state.is_recurrent(name)


def _ends_in_float32(layer: Any, state: Autocast) -> bool:
    """Whether a layer ends in an activation of Keras's that computes in float32, such as softmax; then all of it does.

    A layer has one dtype, and refers to the activation function itself, which cannot be replaced there.
    """
    activation = getattr(rule_giver(layer), "activation", None)
    return keras_owns(activation) and state.listed(getattr(activation, "__name__", "")) == "float32"


def _returns(layer: Any, dtype: DType) -> DType | None:
    """Return the dtype of the calling layer if it is another one, such as half around a softmax inside an attention."""
    caller = _calling.get()
    return caller.dtype if caller is not None and caller.dtype not in (None, dtype) and not caller.takes_all else None


def _has_own_dtype(layer: Any) -> bool:
    """Whether a layer has a dtype policy of its own, which stays, or computes no floats."""
    if isinstance(layer, CellLayer) or reason_to_stay(layer) is not None:
        return True
    return bool(layer.dtype_policy.compute_dtype != float32)
