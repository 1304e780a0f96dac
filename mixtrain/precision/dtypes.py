"""The dtypes in which a layer computes and stores parameters, without a plan and under the plan in force."""

from __future__ import annotations

from typing import Final

import keras

from mixtrain import backend
from mixtrain.dtype import DType, as_dtype, float32, is_float
from mixtrain.network.keras_own import keras_owns
from mixtrain.network.marks import REQUEST, STORED_BY_PLAN
from mixtrain.network.walk import is_cell, tree_of, variables_of
from mixtrain.precision.families import family_of
from mixtrain.precision.half_products import covered
from mixtrain.precision.own_policy import own_policy
from mixtrain.typing import DTypeLike, Layer, Network, Variable

_ATTENTION: Final = tuple(
    getattr(keras.layers, name)
    for name in ("Attention", "AdditiveAttention", "MultiHeadAttention", "GroupQueryAttention")
    if hasattr(keras.layers, name)
)


def own_dtype(layer: Layer) -> DType:
    """Return the dtype that a layer computes in without any plan."""
    if isinstance(layer, keras.Layer):
        policy = own_policy(layer)
        # A policy map has no dtype of its own; the layer looks its policy up by path.
        return _float_format(layer.compute_dtype if policy is layer.dtype_policy else policy.compute_dtype)
    request = REQUEST.of(layer)
    return float32 if request is None else request.dtype


def current_dtype(layer: Layer) -> DType:
    """Return the dtype that a layer currently computes in."""
    if isinstance(layer, keras.Layer):
        return _float_format(layer.compute_dtype)
    rule = getattr(layer, "cast_rule", None)
    return float32 if rule is None else rule.parameters or rule.inputs or float32


def computed_dtypes(network: Network) -> frozenset[DType]:
    return frozenset(current_dtype(node.layer) for node in tree_of(network).walk())


def choose_step_jit(*networks: Network) -> backend.JitChoice:
    """Choose how to compile a step of networks, by the dtypes and operations of their layers and the device."""
    layers = [node.layer for network in networks for node in tree_of(network).walk()]
    products = all(map(multiplies_by_backend, layers))
    dtypes = frozenset[DType]().union(*map(computed_dtypes, networks))
    return backend.choose_jit(dtypes, backend.describe_device(), all(map(compilable, networks)), products)


def multiplies_by_backend(layer: Layer) -> bool:
    """Whether the half-precision products of a layer, if any, go through the backend's kernels.

    Those of Cells do, by `mixtrain.ops`. A Keras layer of a user's own may do anything, so it counts as not.
    """
    if is_cell(layer) or current_dtype(layer) == float32 or covered(layer):
        return True
    return keras_owns(type(layer)) and family_of(layer) not in ("matmul", "recurrent") and not (
        isinstance(layer, _ATTENTION)
    )


def compilable(network: Network) -> bool:
    """Whether XLA can compile every layer of a network; some image layers of Keras's declare that it cannot.

    Recurrent layers declare so only to let cuDNN run them, and do compile.
    """
    layers = (node.layer for node in tree_of(network).walk())
    return all(getattr(layer, "supports_jit", True) or family_of(layer) == "recurrent" for layer in layers)


def parameter_dtype_of(layer: Layer) -> DType | None:
    """Return the dtype in which the parameters of a layer are stored without a plan; None if it has none."""
    return next(map(own_storage_of, variables_of(layer)), None)


def own_storage_of(variable: Variable) -> DType:
    """Return the dtype in which a variable is stored without a plan."""
    return float32 if STORED_BY_PLAN.of(variable) else stored_dtype_of(variable)


def stored_dtype_of(variable: Variable) -> DType:
    """Return the dtype in which a variable is stored, which a Parameter that is read in another one knows."""
    return as_dtype(getattr(variable, "stored_dtype", variable.dtype))


def reason_to_stay(layer: Layer) -> str | None:
    """Return why the dtype policy of a Keras layer must stay, or None if a rule may replace it."""
    if not isinstance(layer, keras.Layer):
        return None
    if layer.quantization_mode is not None:
        return f"quantized ({layer.quantization_mode})"
    if isinstance(own_policy(layer), keras.dtype_policies.DTypePolicyMap):
        return "its dtype policy is a map of others"
    if layer.variable_dtype != "float32":
        return f"its variables are {layer.variable_dtype}"
    return None


def _float_format(name: DTypeLike) -> DType:
    """Return a Keras compute dtype; float32 for layers of integers and strings, to which no rule applies."""
    try:
        dtype = as_dtype(name)
    except TypeError:
        return float32
    return dtype if is_float(dtype) else float32
