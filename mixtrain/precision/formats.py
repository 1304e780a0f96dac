"""The formats that a layer computes in and keeps its parameters in: its own, and those of the plan in force."""

from __future__ import annotations

from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.dtype import DType, as_dtype, float32, is_float
from mixtrain.network.keras_own import keras_owns
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.precision.families import family_of
from mixtrain.precision.half_products import covered
from mixtrain.precision.own_policy import own_policy
from mixtrain.precision.plan_request import request_of

_ATTENTION: Final = tuple(
    getattr(keras.layers, name)
    for name in ("Attention", "AdditiveAttention", "MultiHeadAttention", "GroupQueryAttention")
    if hasattr(keras.layers, name)
)


def own_format(layer: Any) -> DType:
    """Return the format that a layer computes in without any plan."""
    if isinstance(layer, keras.Layer):
        policy = own_policy(layer)
        # A map of policies has one for each layer's path.
        return _float_format(layer.compute_dtype if policy is layer.dtype_policy else policy.compute_dtype)
    request = request_of(layer)
    return float32 if request is None else request.dtype


def present_format(layer: Any) -> DType:
    """Return the format that a layer computes in as it stands now."""
    if isinstance(layer, keras.Layer):
        return _float_format(layer.compute_dtype)
    rule = getattr(layer, "cast_rule", None)
    return float32 if rule is None else rule.parameters or rule.inputs or float32


def computed_dtypes(network: Any) -> frozenset[DType]:
    """Return the formats that a network's layers compute in as they stand now."""
    return frozenset(present_format(node.layer) for node in tree_of(network).walk())


def choose_step_jit(network: Any) -> backend.JitChoice:
    """Return how a training step of a network is compiled: by its layers' formats and operations, and the device."""
    layers = [node.layer for node in tree_of(network).walk()]
    products = all(map(multiplies_by_backend, layers))
    return backend.choose_jit(computed_dtypes(network), backend.describe_device(), compilable(network), products)


def multiplies_by_backend(layer: Any) -> bool:
    """Whether a layer's own half products, if it has any, are the backend's.

    A Cell's are, by `mixtrain.ops`; of a Keras layer that is not Keras's own nothing is known.
    """
    if is_cell(layer) or present_format(layer) == float32 or covered(layer):
        return True
    return keras_owns(type(layer)) and family_of(layer) not in ("matmul", "recurrent") and not (
        isinstance(layer, _ATTENTION)
    )


def compilable(network: Any) -> bool:
    """Whether XLA has every operation of a network's layers; some of Keras's image layers say no.

    Recurrent layers say no for the sake of cuDNN alone, and compile.
    """
    layers = (node.layer for node in tree_of(network).walk())
    return all(getattr(layer, "supports_jit", True) or family_of(layer) == "recurrent" for layer in layers)


def parameter_format(layer: Any) -> DType | None:
    """Return the format that a layer's own parameters, or those below it, are stored in; None where it has none."""
    first = next(iter(layer.get_parameters() if is_cell(layer) else getattr(layer, "weights", ())), None)
    if first is None:
        return None
    return as_dtype(getattr(first, "stored_dtype", first.dtype))


def reason_to_stay(layer: Any) -> str | None:
    """Return why a Keras layer's own dtype policy must stay, or None where a rule may replace it."""
    if not isinstance(layer, keras.Layer):
        return None
    if layer.quantization_mode is not None:
        return f"quantized ({layer.quantization_mode})"
    if isinstance(own_policy(layer), keras.dtype_policies.DTypePolicyMap):
        return "its dtype policy is a map of others"
    if layer.variable_dtype != "float32":
        return f"its variables are {layer.variable_dtype}"
    return None


def _float_format(name: Any) -> DType:
    """Return a Keras compute dtype; float32 for layers of integers and strings, which no rule concerns."""
    try:
        dtype = as_dtype(name)
    except TypeError:
        return float32
    return dtype if is_float(dtype) else float32
